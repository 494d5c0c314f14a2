"""The options of reading and fitting a log, each declared once.

The declaration of an option has its type, its default, and what the command line says of it.
:func:`fit_prior`, ``read_log``, ``backtest``, ``recommend`` and all commands that read a log take
their options from here. The command line imports this, so nothing here imports NumPy.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypedDict,
    TypeVar,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from priorwise.core.errors import ArgumentTypeError

Arms = Literal["auto", "same", "new"]
RewardAs = Literal["reward", "converted", "value"]
HalfLife = float | Literal["auto", "none"] | None
Decimal = Literal[".", ","]
Missing = Literal["refuse", "drop"]
Text = str | None
Texts = Sequence[str] | str | None

FEATURES: Final = "What describes a task, numbers or words; several with commas, or repeated."
TIME: Final = "When a row was: days, times or numbers; none takes no column and no order for time."
WINDOW: Final = "Days that a reward may take: younger rows are left out."
REWARD_AS: Final = "The reward, whether there is one, or how much if there is."
DROP: Final = "Leave out rows without a reward, and count them."
DECIMAL: Final = "The decimal sign of numbers; the other one separates thousands."
NOISE_VAR: Final = "Variance of a single reward, where it is known."
HALF_LIFE: Final = "Days after which half of the tasks are left out; auto: if the prior changes."

Function = TypeVar("Function", bound=Callable[..., Any])


@final
@dataclass(frozen=True)
class LogOption:
    """What the command line says of an option; ``shown`` is what help says of its default.

    An option with a ``flag`` is a switch there, such as ``--drop-missing``, that sets this value.
    """

    help: str
    metavar: str | None = "COLUMN"
    shown: bool | str = False
    default: Any = None  # any type that the option has
    flag: str = ""


def guessed(text: str, metavar: str = "COLUMN") -> LogOption:
    """Return an option whose value is guessed by default."""
    return LogOption(text, metavar, "guessed")


def chosen(text: str, default: str, metavar: str | None = None) -> LogOption:
    """Return an option with a word as its default."""
    return LogOption(text, metavar, shown=True, default=default)


class Rows(TypedDict, total=False):
    """Which columns of a log mean what, and which rows count: see ``read_log``."""

    task: Annotated[Text, guessed("Which task a row belongs to.")]
    action: Annotated[Text, guessed("Which arm was pulled.")]
    reward: Annotated[Text, guessed("What it earned, or the sum over the pulls.")]
    pulls: Annotated[Text, guessed("How many pulls a row sums up.")]
    squares: Annotated[Text, guessed("Sum of squared rewards of a row.")]
    rate: Annotated[Text, guessed("Reward per pull of a row, instead of --reward.")]
    task_features: Annotated[Texts, LogOption(FEATURES, "COLUMNS")]
    time: Annotated[Text, guessed(TIME)]
    since: Annotated[Any, LogOption("Leave out rows before this time.", "TIME")]
    until: Annotated[Any, LogOption("Leave out rows after this time.", "TIME")]
    window: Annotated[float | None, LogOption(WINDOW, "DAYS")]
    reward_as: Annotated[RewardAs, chosen(REWARD_AS, "reward")]
    missing: Annotated[Missing, LogOption(DROP, None, default="refuse", flag="drop")]
    encoding: Annotated[Text, guessed("How a text file is encoded, such as latin-1.", "NAME")]
    decimal: Annotated[Decimal | None, guessed(DECIMAL, ".|,")]


class Reading(Rows, total=False):
    """The same, and how the log is fitted: see :func:`~priorwise.logs.fitting.fit_prior`."""

    arms: Annotated[Arms, chosen("Do tasks share their arms, or has each new ones?", "auto")]
    noise_var: Annotated[float | None, LogOption(NOISE_VAR, "NUMBER", "learned")]
    half_life: Annotated[HalfLife, chosen(HALF_LIFE, "auto", "DAYS|auto|none")]


class Features(TypedDict, total=False):
    """Columns of features of arms, which only Python takes."""

    context: Annotated[Texts, LogOption("Features of the pulled arm.")]


class RowsRead(Rows, Features, total=False):
    """What ``read_log`` takes."""

    propensity: Annotated[Text, LogOption("How likely the action of a row was.")]


class ReadingFeatures(Reading, Features, total=False):
    """What ``fit_prior`` and ``recommend`` take."""

    contexts: Annotated[Any, LogOption("Where the features of future tasks come from.")]


def declared(options: type) -> dict[str, tuple[Any, LogOption]]:
    """Return the type and the declaration of each option by its name."""
    hints = get_type_hints(options, include_extras=True)
    return {name: get_args(hint) for name, hint in hints.items()}


def takes(options: type) -> Callable[[Function], Function]:
    """Show the options in the signature of a function, in place of its keywords ``**reading``."""

    def shown(function: Function) -> Function:
        own = inspect.signature(function)
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(name, keyword, default=each.default, annotation=kind)
            for name, (kind, each) in declared(options).items()
        ]
        kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        with_signature(function, own.replace(parameters=[*kept, *added]))
        return function

    return shown


def with_signature(function: Callable[..., Any], signature: inspect.Signature) -> None:
    """Let a function show another signature, to help and to Typer."""
    function.__signature__ = signature  # type: ignore[attr-defined]


def complete(given: Mapping[str, Any], options: type, tool: str) -> dict[str, Any]:
    """Return all options, with the defaults of those that are not given; raise an error for an
    unknown name, or a word that is none of a ``Literal``.
    """
    from priorwise.core import validation

    known = declared(options)
    if unknown := [name for name in given if name not in known]:
        raise ArgumentTypeError(
            unknown[0],
            f"is no option of {tool}",
            cure=f"those of a log are {', '.join(known)}",
        )
    found = {name: given.get(name, each.default) for name, (_, each) in known.items()}
    for name, (kind, _) in known.items():
        if get_origin(kind) is Literal:
            validation.one_of(name, found[name], kind)
    return found


def part_of(given: Mapping[str, Any], options: type) -> dict[str, Any]:
    """Return those that are options of a smaller set."""
    return {name: given[name] for name in declared(options) if name in given}
