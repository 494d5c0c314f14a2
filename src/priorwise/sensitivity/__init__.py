"""How far apart two priors are, and what it costs to believe the wrong one."""

from priorwise._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
