"""Where the command line prints: results on standard output, progress and errors on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH: Final = 140


def output() -> Console:
    """Return the console for results; into a pipe or file, tables are written wide instead of wrapped."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def progress_to_stderr() -> None:
    """Send progress bars, also those of the library, to standard error."""
    import rich

    rich.reconfigure(stderr=True)


def counted(number: int, thing: str) -> str:
    """``1 pull``, ``2 pulls``."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
