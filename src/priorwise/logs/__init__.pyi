from priorwise.logs.fitting import LogFit as LogFit
from priorwise.logs.fitting import fit_prior as fit_prior
from priorwise.logs.predictive import PredictiveCheck as PredictiveCheck
from priorwise.logs.reducing import Log as Log
from priorwise.logs.reducing import read_log as read_log
