"""Names that are imported when they are first used.

The stub beside a package's ``__init__.py`` lists its public names, one ``from module import name as
name`` per line: type checkers and editors read it, and so does :func:`lazily`.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

STUB = "__init__.pyi"


def lazily(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562)."""
    homes = names_in(Path(file).with_name(STUB))

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{_elsewhere(name)}", name=name
            )
        here = homes[name] == package  # one of its folders
        home = import_module(f"{package}.{name}" if here else homes[name])
        value = home if here else getattr(home, name)
        setattr(sys.modules[package], name, value)  # next time without this function
        return value

    return get, lambda: sorted(homes), sorted(homes)


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
