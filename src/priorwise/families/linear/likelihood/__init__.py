"""The marginal likelihood of linear Gaussian priors and its maximum."""
