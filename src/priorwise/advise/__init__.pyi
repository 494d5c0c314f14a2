from priorwise.advise.certificate import Certificate as Certificate
from priorwise.advise.certifying import certify as certify
