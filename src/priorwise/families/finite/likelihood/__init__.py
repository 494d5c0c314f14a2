"""The marginal likelihood of finite priors and its maximum."""
