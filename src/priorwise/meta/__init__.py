"""Learning the prior: statistics and exploration, estimators, evidence, learners that use them, and
choosing between them.
"""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
