"""From a table of past tasks to a prior: open it, check it, reduce it to statistics, fit."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
