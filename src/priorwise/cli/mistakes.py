"""Whose mistake an error is: what the library refuses is the user's and ends in one line about an
option; everything else is a bug of ours, and is shown as one.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any, Final

from priorwise.cli.output import fail, refuse
from priorwise.logs.naming import UnsureError

REFUSALS: Final = (ArithmeticError, ImportError, OSError, TypeError, ValueError)
NUMBERS: Final = (
    *("horizon", "batch", "seed", "tasks", "train", "most_run_out", "propensity"),
    *("draws", "bootstrap"),
)
"""Arguments of the library that are options of the same name, beside those of a log."""
COLUMNS: Final = ("task", "action", "reward", "pulls", "squares", "time", "propensity", "rate")
"""Those that name a column: an error may speak of what it holds."""
NAMED: Final = re.compile(r"\b([a-z_]+)=(\.\.\.|'([^']*)'|[\d.,]*\d)?(?![\w'\[({])")
"""How the library names an argument: ``name=``, ``name=...``, ``name='word'`` or ``name=5``."""

RUNNING: Final[ContextVar[Any]] = ContextVar("RUNNING")
"""What Typer knows of the command that is running, if it reads a log."""


@contextmanager
def refusing(place: str) -> Iterator[None]:
    """Turn what the library refuses into one line about an option, and let bugs through."""
    try:
        yield
    except REFUSALS as error:
        from priorwise.core.refusals import refused

        if not refused(error):
            raise
        if isinstance(error, UnsureError):
            problem = f"{place}: {in_options(error.problem)}: type"
            refuse(problem, command=command_with(error.arguments))
        text = in_options(str(error)).removeprefix("log: ")  # the place says so
        if text.startswith("--"):
            refuse(text)
        if text.startswith("log must "):
            refuse(f"{place} {text.removeprefix('log ')}")
        fail(place, text)


def command_with(arguments: Mapping[str, Any]) -> str:
    """Return the command line that is running with further options; what has no value is a
    placeholder.
    """
    context = RUNNING.get()
    words, options = [], []
    for each in context.command.params:
        values = context.params.get(str(each.name))
        source = context.get_parameter_source(str(each.name))
        if each.name in arguments or source is None or source.name != "COMMANDLINE":
            continue
        for value in values if isinstance(values, (list, tuple)) else [values]:
            text = str(value.value if isinstance(value, Enum) else value)
            if each.param_type_name == "argument":
                words.append(text)
            else:
                options += [each.opts[0]] if value is True else [each.opts[0], text]
    for name, value in arguments.items():
        several = ",".join(value) if isinstance(value, list) else value
        words += [_written(name), "COLUMN" if several is None else str(several)]
    return shlex.join(["priorwise", context.info_name, *words, *options])


def in_options(text: str) -> str:
    """Write arguments of the library as options: ``time=...`` is ``--time``, ``arms='new'`` is
    ``--arms new``, ``since must be a day`` is ``--since must be a day``.
    """
    from priorwise.cli.reading import Reading

    known = {*Reading.__annotations__, *NUMBERS}

    def option(found: re.Match[str]) -> str:
        name, value, quoted = found[1], found[2] or "", found[3]
        if (name, quoted) == ("missing", "drop"):
            return "--drop-missing"
        if name not in known:
            return found[0]
        if quoted and " " not in quoted:
            value = quoted
        return f"{_written(name)} {'' if value == '...' else value}".rstrip()

    text = NAMED.sub(option, text)
    first, _, rest = text.partition(" ")
    if first in known and rest.startswith("must "):
        return f"{_written(first)} {rest}"
    name = first.removesuffix(":")
    if first != name and name in known and name not in COLUMNS:
        return f"{_written(name)}: {rest}"
    return text


def _written(name: str) -> str:
    return f"--{name}".replace("_", "-")
