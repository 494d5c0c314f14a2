"""Bayesian decision-making with other rewards, contexts and states: one file per case."""
