"""Marginal likelihood of normal priors over weights."""
