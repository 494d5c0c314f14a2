"""Maximum marginal likelihood, right however the pulls were chosen: one folder per family, and a
table of them.
"""
