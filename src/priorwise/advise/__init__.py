"""From a log to advice: what a policy would have earned, and what is risked."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
