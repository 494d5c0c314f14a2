"""How well a prior predicts tasks, and what follows: mixtures of priors, an alarm, a watch for
changes.
"""
