from priorwise.advise.certificate import Certificate as Certificate
from priorwise.advise.certifying import certify as certify
from priorwise.advise.recommendation import Recommendation as Recommendation
from priorwise.advise.recommending import recommend as recommend
