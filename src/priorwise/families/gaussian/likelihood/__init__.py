"""The marginal likelihood of Gaussian priors and its maximum."""
