"""Distances between priors."""
