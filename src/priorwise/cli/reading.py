"""Options of every command that reads a log and fits it. :mod:`priorwise.logs.options` declares
them, and :func:`reads_log` gives them to a command.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from priorwise.cli.inputs import argument, word
from priorwise.logs import options

Command = Callable[..., None]

LOG: Final = "Parquet, CSV or Arrow file of past tasks."
FAMILY: Final = "A family, or family:structure, such as beta:exchangeable; auto compares."
PANEL: Final = "How the log is read and fitted"

LogFile = Annotated[str, argument(LOG, "LOG")]


@dataclass(frozen=True)
class Reading:
    """How a log is read and fitted: the values of the options of a command."""

    values: dict[str, Any]

    @property
    def given(self) -> list[str]:
        """Options that are not at their default, as they are written."""
        default = {each.name: each.default for each in parameters()}
        changed = (name for name, value in self.values.items() if value != default[name])
        return [f"--{name}".replace("_", "-") for name in changed]

    @property
    def options(self) -> dict[str, Any]:
        """The same for ``fit_prior`` and its like."""
        found = dict(self.values)
        for name, (_, each) in options.declared(options.Reading).items():
            if each.flag:
                found[name] = each.flag if found.pop(f"{each.flag}_{name}") else each.default
        if (several := found.get("task_features")) is not None:
            found["task_features"] = [each.strip() for some in several for each in some.split(",")]
        return found


def parameters() -> list[inspect.Parameter]:
    """Return the options, as Typer reads them."""
    family = options.LogOption(FAMILY, "NAME", True, "auto")
    declared = {"family": (str, family), **options.declared(options.Reading)}
    annotated: Any = Annotated  # its arguments are known when this runs
    found = []
    for name, (kind, each) in declared.items():
        switch = f"{each.flag}_{name}" if each.flag else ""
        words = [f"--{switch}".replace("_", "-")] if switch else []
        about = word(each.help, each.metavar, *words, shown=each.shown, panel=PANEL)
        default, taken = (False, bool) if switch else (each.default, _type(kind))
        keyword, annotation = inspect.Parameter.KEYWORD_ONLY, annotated[taken, about]
        found.append(
            inspect.Parameter(switch or name, keyword, default=default, annotation=annotation)
        )
    return found


def _type(kind: Any) -> Any:
    """Return the type of an option on the command line, where texts stand for most types."""
    if get_origin(kind) is Literal:
        return kind
    parts = get_args(kind)
    if any(get_origin(each) is Sequence for each in parts):
        return list[str] | None
    return float | None if set(parts) == {float, type(None)} else str | None


def reads_log(*, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Give a command these options, except those of ``without``, in place of its parameter
    ``reading``. If the command has an option of the same name, that one stands.
    """
    return lambda command: _with_options(command, without)


def print_notes(console: Any, fit: Any) -> None:
    """Print what was guessed to read the log of a fit; a fit from a file has none."""
    log = getattr(fit, "log", None)
    for note in () if log is None else log.said:
        console.print(f"({note})", markup=False, soft_wrap=True)


def _with_options(command: Command, without: Sequence[str]) -> Command:
    own = inspect.signature(command, eval_str=True).parameters
    shared = {each.name: each for each in parameters() if each.name not in (*without, *own)}
    listed: list[inspect.Parameter] = []
    for name, each in own.items():
        listed += shared.values() if name == "reading" else [each]
    listed = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in listed]

    @wraps(command)
    def with_options(**values: Any) -> None:
        reading = Reading({name: values.pop(name) for name in shared})
        command(**values, reading=reading)

    options.with_signature(with_options, inspect.Signature(listed))  # what Typer reads
    with_options.__annotations__ = {each.name: each.annotation for each in listed}
    return with_options
