"""Bounds on what a wrong prior costs."""
