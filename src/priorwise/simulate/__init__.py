"""Simulation: the NumPy loop that defines the meaning, the choice of the compiled one, comparisons
and results.
"""
