"""Marginal likelihood of Beta priors."""
