"""One folder per family: everything it knows about itself."""

from typing import Any

from priorwise._lazy import lazily


def _renamed(name: str) -> Any:
    """Look up a name of the last release."""
    if name != "Later":
        raise AttributeError(name)
    import warnings

    from priorwise.families.registry import LazyImport

    text = "priorwise.families.Later is now priorwise.families.LazyImport"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return LazyImport


__getattr__, __dir__, __all__ = lazily(__name__, __file__, _renamed)
