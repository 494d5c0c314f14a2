"""What may be said of a log, wherever one is read and fitted: the options of ``fit_prior`` by name,
for the tools that hand them on.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from priorwise.core.errors import ArgumentTypeError
from priorwise.logs.reducing import Arms
from priorwise.logs.times import HalfLife, RewardAs
from priorwise.logs.written import Decimal


class Reading(TypedDict, total=False):
    """Columns of a log, which of its rows count, and how it is fitted: see
    :func:`~priorwise.logs.fitting.fit_prior`.
    """

    task: str | None
    action: str | None
    reward: str | None
    pulls: str | None
    squares: str | None
    rate: str | None
    arms: Arms
    noise_var: float | None
    task_features: Sequence[str] | str | None
    time: str | None
    since: Any
    until: Any
    window: float | None
    half_life: HalfLife
    reward_as: RewardAs
    missing: Literal["refuse", "drop"]
    encoding: str | None
    decimal: Decimal | None


class ReadingFeatures(Reading, total=False):
    """The same with features of the pulled arm."""

    context: Sequence[str] | str | None
    contexts: Any


def check_names(given: Mapping[str, Any], options: Any, tool: str) -> None:
    """Refuse what is no option of a tool."""
    if unknown := [name for name in given if name not in options.__annotations__]:
        raise ArgumentTypeError(
            unknown[0],
            f"is no option of {tool}",
            cure=f"those of a log are {', '.join(options.__annotations__)}",
        )
