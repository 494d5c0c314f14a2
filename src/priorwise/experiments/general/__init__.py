"""Bayesian decision-making beyond known noise and bandits: one file per case."""
