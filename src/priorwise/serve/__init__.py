"""Live decisions: in the user's process, and as a service."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
