"""Roles, random streams, validation and JSON: what everything else stands on."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
