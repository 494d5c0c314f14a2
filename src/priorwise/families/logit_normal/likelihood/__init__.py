"""The marginal likelihood of logit-normal priors and its maximum."""
