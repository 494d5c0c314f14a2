"""Names that are imported when they are first used.

The stub beside a package's ``__init__.py`` lists its public names, one ``from module import name as
name`` per line: type checkers and editors read it, and so does :func:`lazily`.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

STUB = "__init__.pyi"


def lazily(
    package: str, file: str, otherwise: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562); ``otherwise``
    looks up names that the stub lacks.
    """
    homes = names_in(Path(file).with_name(STUB))

    def get(name: str) -> Any:
        if name not in homes:
            if otherwise is not None:
                with suppress(AttributeError):
                    return otherwise(name)
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{_elsewhere(name)}", name=name
            )
        here = homes[name] == package  # one of its folders
        home = import_module(f"{package}.{name}" if here else homes[name])
        value = home if here else getattr(home, name)
        setattr(sys.modules[package], name, value)  # next time without this function
        return value

    return get, lambda: sorted(homes), sorted(homes)


def moved(old: str, *homes: str, only: Sequence[str] = ()) -> Callable[[str], Any]:
    """Return ``__getattr__`` of a module whose names, or only some, have moved to others; using one
    warns.
    """

    def get(name: str) -> Any:
        for home in homes if not name.startswith("__") and (not only or name in only) else ():
            if hasattr(module := import_module(home), name):
                text = f"{old}.{name} has moved: import it from {home}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                return getattr(module, name)
        raise AttributeError(f"module {old!r} has no attribute {name!r}", name=name)

    return get


def names_in(stub: Path) -> dict[str, str]:
    """Module of each name that a stub lists."""
    text = stub.read_text().replace("(\n    ", "").replace(",\n)", "")  # lines that were too long
    lines = [line.split() for line in text.splitlines() if line.startswith("from ")]
    return {words[-1]: words[1] for words in lines}


def _elsewhere(name: str) -> str:
    """Say where else the package has the name."""
    root = Path(__file__).parent
    for stub in () if name.startswith("_") else [root / STUB, *sorted(root.glob(f"*/{STUB}"))]:
        if name in names_in(stub):
            place = ".".join(["priorwise", *stub.parent.relative_to(root).parts, name])
            return f"; it is {place}"
    return ""
