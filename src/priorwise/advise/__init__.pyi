from priorwise.advise.backtest_result import Backtest as Backtest
from priorwise.advise.backtesting import backtest as backtest
from priorwise.advise.certificate import Certificate as Certificate
from priorwise.advise.certifying import certify as certify
from priorwise.advise.recommendation import Recommendation as Recommendation
from priorwise.advise.recommending import recommend as recommend
from priorwise.core.progress import Interrupted as Interrupted
