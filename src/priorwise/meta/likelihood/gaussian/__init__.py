"""Marginal likelihood of normal priors over arms."""
