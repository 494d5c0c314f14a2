"""The marginal likelihood of normal priors over arms or weights of features, and its maximum."""
