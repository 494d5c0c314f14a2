"""How the command line ends when something is wrong: one line, an exit code, no traceback."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any, Final, NoReturn, cast

import typer
from typer.core import TyperGroup

from priorwise._starting import INTERRUPTED
from priorwise.core.validation import printable

# Click's UsageError, or the copy of it inside later versions of Typer.
USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])

BAD_INPUT: Final = 2
BROKEN: Final = 1

LONGEST: Final = 1_000
"""Characters of a message; the middle of a longer one is left out."""


def fail(option: str, problem: object) -> NoReturn:
    """Stop: name the option, what is wrong with it, and what to do."""
    _say(f"{option}: {problem}")
    raise typer.Exit(BAD_INPUT)


def _say(message: str) -> None:
    from rich.console import Console
    from rich.text import Text

    line = printable(" ".join(message.split()))
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    Console(stderr=True).print(
        Text.assemble(("Error: ", "bold red"), (line, "red")), soft_wrap=True
    )


class Group(TyperGroup):
    """The commands, with errors of usage in one line and a clean end after Ctrl-C."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
            if sys.stdout is not None:  # as when its reader closed it before the start
                sys.stdout.flush()
        except USAGE_ERROR as error:
            _say(_explain(error))
            code = BAD_INPUT
        except typer.Abort:  # Ctrl-C before a command began
            _say("interrupted")
            code = INTERRUPTED
        except MemoryError as error:
            _say(
                f"not enough memory{f': {error}' if str(error) else ''}; take fewer tasks, shorter "
                "ones or fewer arms"
            )
            code = BAD_INPUT
        except OSError as error:
            if error.filename is not None:  # a file; commands explain those they know
                _say(str(error))
                sys.exit(BAD_INPUT)
            code = _unwritable(error)
        sys.exit(code or 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            from rich.console import Console
            from rich.text import Text

            # a command that keeps something says so
            kept = str(stop) or "No file was written or changed."
            Console(stderr=True).print(
                Text.assemble(("Interrupted. ", "yellow"), kept), soft_wrap=True
            )
            raise typer.Exit(INTERRUPTED) from None


def _unwritable(error: OSError) -> int:
    """Say that standard output takes no more, unless its reader has left, as ``head`` does; write
    nothing to it from here on.
    """
    with suppress(OSError):  # none to redirect
        # what is still in its buffer goes there when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno != errno.EPIPE:
        _say(f"standard output: {error}; make room, or send it elsewhere")
    return BROKEN


def _explain(error: Any) -> str:
    """Say which option, what is wrong and what to do; what a missing option should hold stands in
    its help.
    """
    context = error.ctx
    command = context.command_path if context else "priorwise"
    parameter = getattr(error, "param", None)  # errors about a parameter know which
    if parameter is None:
        return f"{error.format_message().rstrip('.')}; {command} --help shows what there is"
    name = (
        parameter.opts[0]
        if parameter.param_type_name == "option"
        else parameter.metavar or parameter.name
    )
    if not error.message:
        return f"{name} is missing: {parameter.help or f'see {command} --help'}"
    return (
        f"{name}: {error.message.removeprefix('Value error, ').rstrip('.')}; see {command} --help"
    )
