"""Moved to ``priorwise.fitting.runs`` and ``priorwise.core.trajectories``; this module goes with
the next release.
"""

from priorwise._lazy import moved

__getattr__ = moved(__name__, "priorwise.core.trajectories", "priorwise.fitting.runs")
