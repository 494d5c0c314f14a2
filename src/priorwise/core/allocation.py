"""Moved to ``priorwise.policies.allocation``; this module goes with the next release."""

from priorwise._lazy import moved

__getattr__ = moved(__name__, "priorwise.policies.allocation")
