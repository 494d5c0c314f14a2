"""Mixtures by maximum marginal likelihood."""
