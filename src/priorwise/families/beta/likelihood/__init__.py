"""The marginal likelihood of Beta priors and its maximum."""
