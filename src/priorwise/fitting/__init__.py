"""Statistics of tasks, and what fits of priors to them need and return."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
