"""Where the command line writes, and how it ends: results on standard output and in files, progress
and errors on standard error; one line and an exit code when something is wrong, and a traceback
only for a bug.
"""

import codecs
import errno
import io
import math
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from priorwise._starting import INTERRUPTED
from priorwise.core.errors import SPELLING, ArgumentError, printable

if TYPE_CHECKING:
    from rich.console import Console

# Click's UsageError, or the copy of it inside later versions of Typer.
USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])

BAD_INPUT: Final = 2
BROKEN: Final = 1
BUG: Final = "this is a bug in priorwise, not in the input; please report it with the lines above"

LONGEST: Final = 1_000
"""Characters of a message; the middle of a longer one is left out."""

LONGEST_NAME: Final = 255  # bytes, on every file system in use
PIPED_WIDTH: Final = 140

OTHER_NAMES: Final = {"missing": "drop_missing", "policies": "policy", "log": "source"}
"""Options that are not called as the argument of the library."""

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


def output() -> "Console":
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
    signs = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in signs), error.end


def out_directory(text: str, *, files: Iterable[str] = (), folders: Iterable[str] = ()) -> Path:
    """Return the directory that ``--out`` names; stop before the work if its results could not be
    written. Creates nothing.
    """
    if not text.strip():
        unset = "is empty, as an unset variable of the shell is"
        fail("--out", f"{unset}; name a directory, such as --out results")
    if "\0" in text:
        fail("--out", "a name of a directory has no NUL character; choose another directory")
    directory = Path(text)
    longest = max(len(os.fsencode(part)) for part in (*directory.parts, ""))
    if longest > LONGEST_NAME:
        too_long = f"a name of {longest} bytes is too long for a directory"
        fail("--out", f"{too_long}; the most is {LONGEST_NAME}")
    try:
        nearest = directory.absolute()
        while not os.path.lexists(nearest):
            nearest = nearest.parent
        if not nearest.is_dir():
            fail("--out", f"{nearest} is a file, not a directory; choose another directory")
        if not os.access(nearest, os.W_OK | os.X_OK):
            fail("--out", f"no permission to write in {nearest}; choose another directory")
        for kind, other, wanted in (("file", "directory", files), ("directory", "file", folders)):
            for path in (directory / name for name in wanted):
                if path.is_dir() == (kind == "file") and os.path.lexists(path):
                    wrong = f"{path} is a {other} where a {kind} is to stand"
                    fail("--out", f"{wrong}; move it away or choose another directory")
    except OSError as error:
        fail("--out", f"{error}; choose another directory")
    return directory


def unwritten(error: OSError) -> NoReturn:
    """Stop: files could not be written."""
    cure = "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "move what is in the way"
    fail("--out", f"{error}; {cure} or choose another directory")


def results_directory(command: str, out: str | None, as_json: bool) -> Path | None:
    """Where a command writes its figure and its numbers; nowhere if it prints JSON and ``--out`` is
    not given.
    """
    if out is None and as_json:
        return None
    files = [f"{command}.{suffix}" for suffix in ("png", "svg", "json")]
    return out_directory("out" if out is None else out, files=files)


def write_all(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write all files of a directory, or none."""
    from priorwise.core.files import write_together

    directory.mkdir(parents=True, exist_ok=True)
    paths = {directory / name: content for name, content in contents.items()}
    write_together(paths)
    return list(paths)


def finish(
    command: str,
    directory: Path | None,
    picture: Mapping[str, bytes],
    text: str,
    show: "Callable[[Console], None] | None",
    interrupted: str = "",
) -> None:
    """Write the figure and the numbers of a command, show what it says, and name the files. Those
    of an ``interrupted`` command have names of their own: they replace no whole result.
    """
    command = f"interrupted-{command}" if interrupted else command
    files: list[Path] = []
    if directory is not None:
        contents = {f"{command}.{suffix}": content for suffix, content in picture.items()}
        try:
            files = write_all(directory, {**contents, f"{command}.json": f"{text}\n".encode()})
        except OSError as error:
            unwritten(error)
    if show is not None:
        console = output()
        show(console)
        console.print(f"Wrote {', '.join(map(str, files))}", soft_wrap=True, highlight=False)


def keep_fit(directory: Path | None, fit: Any) -> NoReturn:
    """End after Ctrl-C without numbers; write the prior of a log, if it was learned by then."""
    if fit is None or directory is None:
        raise KeyboardInterrupt
    content = f"{fit.fit.to_json()}\n".encode()
    try:
        (path,) = write_all(directory, {"interrupted-prior.json": content})
    except OSError as error:
        unwritten(error)
    raise KeyboardInterrupt(
        f"There are no numbers yet. Wrote the learned prior to {path}: priorwise certify takes it."
    )


def end(interrupted: str) -> None:
    """End as after Ctrl-C if there is something to say of it."""
    if interrupted:
        raise KeyboardInterrupt(interrupted)


def finite(value: Any) -> Any:
    """None for a float that is infinite or no number: JSON has neither."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def data(value: Any, *names: str) -> dict[str, Any]:
    """Attributes by name, for JSON."""
    return {name: finite(getattr(value, name)) for name in names}


def fail(option: str, problem: object) -> NoReturn:
    """Stop: name the option, what is wrong with it, and what to do."""
    refuse(f"{option}: {problem}")


def refuse(message: str, *, command: str = "") -> NoReturn:
    """Stop with a line that says what is wrong, and the command that would do, if there is one."""
    _say(message, command)
    raise typer.Exit(BAD_INPUT)


def _say(message: str, command: str = "") -> None:
    from rich.console import Console
    from rich.text import Text

    line = printable(" ".join(message.split()))
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    text = Text.assemble(("Error: ", "bold red"), (line, "red"))
    if command:  # to be copied, so it stands as it is
        text.append(f" {printable(command)}")
    Console(stderr=True).print(text, soft_wrap=True)


class Command(TyperCommand):
    """A command: what the library says about an argument names the option."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        running, spelling = _RUNNING.set(ctx), SPELLING.set(_spelled)
        try:
            return super().invoke(ctx)
        except (ArgumentError, ImportError) as error:
            _refuse(error)
        finally:
            _RUNNING.reset(running)
            SPELLING.reset(spelling)


_RUNNING: Final[ContextVar[typer.Context]] = ContextVar("_RUNNING")


@contextmanager
def refusing(place: str = "", *others: type[Exception]) -> Iterator[None]:
    """Turn what the library says about an argument, or the system about a file, into one line about
    an option, or about ``place``; ``others`` too, and let bugs through.
    """
    kinds: tuple[type[Exception], ...] = (ArgumentError, ImportError, OSError, *others)
    try:
        yield
    except kinds as error:
        _refuse(error, place)


def _refuse(error: Exception, place: str = "") -> NoReturn:
    positional = (each.metavar for each in _parameters() if each.param_type_name == "argument")
    place = place or str(next(positional, "priorwise"))
    if not isinstance(error, ArgumentError):
        fail(place, error)
    arguments = getattr(error, "arguments", None)  # those to pass
    if arguments:
        refuse(f"{place}: {error.problem}: type", command=_command_with(arguments))
    parameter = _parameter(error.argument)
    if parameter is None:
        fail(place, error)
    option = parameter.param_type_name == "option"
    refuse(error.sentence(parameter.opts[0] if option else str(parameter.metavar)))


def _parameters() -> Sequence[Any]:
    context = _RUNNING.get(None)
    return () if context is None else context.command.params


def _parameter(argument: str) -> Any:
    """Return the parameter of the running command for an argument of the library, if it has one."""
    names = (argument, OTHER_NAMES.get(argument))
    return next((each for each in _parameters() if each.name in names), None)


def _spelled(argument: str, value: object) -> str:
    """Write an argument as an option, if the running command has it."""
    parameter = _parameter(argument)
    if parameter is None:
        return f"{argument}={'' if value is None else '...' if value is ... else repr(value)}"
    if value is None or value is ... or parameter.is_flag:
        return str(parameter.opts[0])
    return f"{parameter.opts[0]} {shlex.quote(str(value))}"


def _command_with(arguments: Mapping[str, Any]) -> str:
    """Return the command line that is running with further options; what has no value is a
    placeholder.
    """
    context, words, options = _RUNNING.get(), [], []
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
        words += [_parameter(name).opts[0], "COLUMN" if several is None else str(several)]
    return shlex.join(["priorwise", str(context.info_name), *words, *options])


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
            what = f"not enough memory{f': {error}' if str(error) else ''}"
            _say(f"{what}; take fewer tasks, shorter ones or fewer arms")
            code = BAD_INPUT
        except OSError as error:
            if error.filename is not None:  # a file; commands explain those they know
                _say(str(error))
                sys.exit(BAD_INPUT)
            code = _unwritable(error)
        except Exception as error:
            traceback.print_exception(error, file=sys.stderr)
            _say(BUG)
            code = BROKEN
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
            text = Text.assemble(("Interrupted. ", "yellow"), kept)
            Console(stderr=True).print(text, soft_wrap=True)
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
    option = parameter.param_type_name == "option"
    name = parameter.opts[0] if option else parameter.metavar or parameter.name
    if not error.message:
        return f"{name} is missing: {parameter.help or f'see {command} --help'}"
    problem = error.message.removeprefix("Value error, ").rstrip(".")
    return f"{name}: {problem}; see {command} --help"
