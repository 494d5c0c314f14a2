"""alg(theta): one policy per file. Some see the posterior through draws only; others read it."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
