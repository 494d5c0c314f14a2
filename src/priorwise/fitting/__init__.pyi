from priorwise.fitting.fits import PriorFit as PriorFit
from priorwise.fitting.runs import Run as Run
