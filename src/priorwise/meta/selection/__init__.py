"""Choosing between models of the prior and between policies."""
