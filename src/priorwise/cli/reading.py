"""Options of every command that reads a log and fits it: which columns, which rows, which family.
They are written down once, and :func:`reads_log` gives them to a command.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, Final

import typer

from priorwise.cli.inputs import argument, word

Command = Callable[..., None]

LOG: Final = "Parquet, CSV or Arrow file of past tasks."
FAMILY: Final = "A family, or family:structure, such as beta:exchangeable; auto compares."
NOISE_VAR: Final = "Variance of a single reward, where it is known."
FEATURES: Final = "What describes a task, numbers or words; several with commas, or repeated."
TIME: Final = "When a row was: days, times or numbers; none takes no column and no order for time."
WINDOW: Final = "Days that a reward may take: younger rows are left out."
HALF_LIFE: Final = "Days after which half of the tasks are left out; auto: if the prior changes."
REWARD_AS: Final = "The reward, whether there is one, or how much if there is."
ARMS: Final = "Do tasks share their arms, or has each new ones?"
ENCODING: Final = "How a text file is encoded, such as latin-1."
DECIMAL: Final = "The decimal sign of numbers; the other one separates thousands."
PANEL: Final = "How the log is read and fitted"
DROP: Final = "Leave out rows without a reward, and count them."

LogFile = Annotated[str, argument(LOG, "LOG")]


class ArmsAre(StrEnum):
    """Whether tasks share their arms."""

    auto = "auto"
    same = "same"
    new = "new"


RewardIs = StrEnum("RewardIs", ["reward", "converted", "value"])
"""What of a reward counts."""


def _column(words: str) -> Any:
    return word(words, "COLUMN", shown="guessed")


@dataclass(frozen=True)
class Reading:
    """How a log is read and fitted, as the options say."""

    family: Annotated[str, word(FAMILY, "NAME", shown=True)] = "auto"
    task: Annotated[str | None, _column("Which task a row belongs to.")] = None
    action: Annotated[str | None, _column("Which arm was pulled.")] = None
    reward: Annotated[str | None, _column("What it earned, or the sum over the pulls.")] = None
    pulls: Annotated[str | None, _column("How many pulls a row sums up.")] = None
    squares: Annotated[str | None, _column("Sum of squared rewards of a row.")] = None
    rate: Annotated[str | None, _column("Reward per pull of a row, instead of --reward.")] = None
    arms: Annotated[ArmsAre, typer.Option(help=ARMS)] = ArmsAre.auto
    noise_var: Annotated[float | None, word(NOISE_VAR, "NUMBER", shown="learned")] = None
    task_features: Annotated[list[str] | None, word(FEATURES, "COLUMNS")] = None
    time: Annotated[str | None, _column(TIME)] = None
    since: Annotated[str | None, word("Leave out rows before this time.", "TIME")] = None
    until: Annotated[str | None, word("Leave out rows after this time.", "TIME")] = None
    window: Annotated[float | None, word(WINDOW, "DAYS")] = None
    half_life: Annotated[str, word(HALF_LIFE, "DAYS|auto|none", shown=True)] = "auto"
    reward_as: Annotated[RewardIs, typer.Option(help=REWARD_AS)] = RewardIs.reward
    encoding: Annotated[str | None, word(ENCODING, "NAME", shown="guessed")] = None
    decimal: Annotated[str | None, word(DECIMAL, ".|,", shown="guessed")] = None
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help=DROP)] = False

    @property
    def given(self) -> list[str]:
        """Options that are not at their default, as they are written."""
        changed = (each.name for each in fields(self) if getattr(self, each.name) != each.default)
        return [f"--{name}".replace("_", "-") for name in changed]

    @property
    def options(self) -> dict[str, Any]:
        """The same for ``fit_prior`` and its like."""
        found: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        missing = "drop" if found.pop("drop_missing") else "refuse"
        words = {"arms": self.arms.value, "reward_as": self.reward_as.value, "missing": missing}
        if self.task_features is not None:
            several = [each.split(",") for each in self.task_features]
            found["task_features"] = [each.strip() for some in several for each in some]
        return found | words


def reads_log(*, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options of :class:`Reading`, except those of ``without``, in place of its
    parameter ``reading``. If the command has an option of the same name, that one stands.
    """
    return lambda command: _with_options(command, without)


def print_notes(console: Any, fit: Any) -> None:
    """Print what was guessed to read the log of a fit; a fit from a file has none."""
    log = getattr(fit, "log", None)
    for note in () if log is None else log.said:
        console.print(f"({note})", markup=False, soft_wrap=True)


def _with_options(command: Command, without: Sequence[str]) -> Command:
    own = inspect.signature(command, eval_str=True).parameters
    every = inspect.signature(Reading, eval_str=True).parameters
    shared = {name: each for name, each in every.items() if name not in without}
    for each in shared.values():
        (option,) = each.annotation.__metadata__
        option.rich_help_panel = PANEL
    listed = []
    for name, each in own.items():
        added = [shared[s] for s in shared if s not in own] if name == "reading" else [each]
        listed += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in added]

    @wraps(command)
    def with_options(**values: Any) -> None:
        read = {name: values.pop(name) for name in shared if name not in own}
        command(**values, reading=Reading(**read))

    # what Typer reads
    with_options.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in listed}
    return with_options
