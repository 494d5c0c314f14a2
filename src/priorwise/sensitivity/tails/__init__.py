"""Tail expectations of what a task can cost."""
