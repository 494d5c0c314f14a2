"""Where the command line prints: results on standard output, progress and errors on standard
error.
"""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH: Final = 140

PLAIN: Final = {
    "±": "+-",
    "–": "-",
    "−": "-",
    "…": "...",
    "“": '"',
    "”": '"',
    "’": "'",
    "·": "*",
    "→": "->",
    "≤": "<=",
    "×": "x",
}
"""What is written instead where the terminal's encoding lacks a sign; a question mark for any
other.
"""


def output() -> Console:
    """Return the console for results; into a pipe or file, tables are written wide instead of
    wrapped.
    """
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def counted(number: int, thing: str) -> str:
    """``1 pull``, ``2 pulls``."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def plain_where_needed() -> None:
    """Let standard output and error write what their encoding has: a sign that it lacks must not
    end the command.
    """
    codecs.register_error("priorwise", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="priorwise")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(
        PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]
    ), error.end
