"""Marginal likelihood of priors on finitely many known tasks."""
