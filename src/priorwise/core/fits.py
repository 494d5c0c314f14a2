"""Moved to ``priorwise.fitting.fits``; this module goes with the next release."""

from priorwise._lazy import moved

__getattr__ = moved(__name__, "priorwise.fitting.fits")
