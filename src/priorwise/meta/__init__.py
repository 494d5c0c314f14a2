"""Learning the prior: statistics and exploration, estimators, evidence, learners that use them, and
choosing between them.
"""
