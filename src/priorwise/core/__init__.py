"""Roles, random streams, errors, checks, JSON and results: what everything else stands on."""

from priorwise._lazy import lazily, moved

# until the next release
_moved = moved(
    __name__,
    "priorwise.families",
    "priorwise.fitting",
    only=("Family", "family_of", "register", "PriorFit", "Run"),
)
__getattr__, __dir__, __all__ = lazily(__name__, __file__, _moved)
