"""What a store keeps: tasks, decisions, and the events that their statistics are the sum of.

The log is the truth. A decision never changes once made, except for the reward that it shows; an
event is added and never changed. ``Decided.seen`` is the number of the last event that a decision
knew of, so that what it was based on can be summed up again, in the order of the events, to the
last bit.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final

from msgspec import Struct

from priorwise.core.types import FloatArray
from priorwise.fitting.statistics import PerTask

State: TypeAlias = FloatArray | PerTask
"""Statistics of one task: numbers per column and arm, or a value of the family's own class."""
Kind = Literal["reward", "correction", "expired", "left out", "record", "sealed"]
Status = Literal["proposed", "accepted", "declined"]

COUNTED: Final = ("reward", "correction", "expired", "record")
"""Events that add to a task's statistics."""
REWARDS: Final = ("reward", "record")
"""Events by which rewards came."""


@final
class Task(Struct):
    """A task as it stands: a cached sum of its log. ``state`` is what its family's fold makes."""

    name: str
    key: int  # of its stream of random numbers
    version: int  # of the prior
    arms: tuple[str, ...]
    state: State
    opened: float
    steps: int = 0  # pulls decided
    events: int = 0  # number of the last event
    closed: float | None = None
    decisions: int = 0  # a batch counts once
    rewards: int = 0  # without corrections
    id: int | None = None  # in a database
    places: dict[str, int] | None = None  # of the arms, looked up when asked for


def copied(task: Task) -> Task:
    """Return a task as it stands now, whatever happens to it later."""
    result = copy(task)
    result.state = copy(task.state)
    return result


@final
class Decided(Struct, frozen=True):
    """A decision as logged: of one pull, or of a batch (``counts``)."""

    step: int
    arm: int  # -1 of a batch
    width: int  # arms that the task had
    seen: int  # events that it knew of
    time: float
    settings: int
    pulls: int = 1
    mask: str | None = None  # "1101": which arms were available; None: all
    propensity: float | None = None
    error: float | None = None
    context: list[list[float]] | None = None  # features, one row per arm
    unit: str | None = None
    request: str | None = None
    counts: tuple[int, ...] | None = None


@final
class Event(Struct, frozen=True):
    """Something that a task learned: a reward, or several at once."""

    number: int
    kind: Kind
    step: int | None  # of the decision; None of a record
    arm: int
    pulls: float
    value: float | None  # reward, or their sum
    squares: float | None
    time: float
    request: str | None = None
    state: bytes | None = None  # sealed: the sum of all events up to this one


class Version(NamedTuple):
    """A prior that was ever proposed, with what it was fitted on."""

    number: int
    prior: str  # JSON
    status: Status
    made: float
    accepted: float | None
    story: dict[str, Any]  # JSON: where it comes from, its tasks, dates and backtest


class Listed(NamedTuple):
    """A task in a list."""

    name: str
    version: int
    arms: tuple[str, ...]
    steps: int
    events: int
    opened: float
    closed: float | None


class Size(NamedTuple):
    """How much a store holds; ``decisions`` counts a batch once, ``rewards`` does not count
    corrections.
    """

    open: int
    closed: int
    decisions: int
    rewards: int


class Key(NamedTuple):
    """A key of the service: who may do what. The key itself is not kept, only its digest."""

    name: str
    digest: str
    scopes: tuple[str, ...]
    made: float
    ended: float | None = None  # since when it is no longer accepted
    rate: float | None = None  # requests per second
