"""What a store keeps: tasks, decisions, and the events that their statistics are the sum of.

The log is the truth. A decision never changes once made, but for the reward that it shows; an event
is added and never changed. ``Decided.seen`` is the number of the last event that a decision knew
of, so that what it was based on can be summed up again, in the order of the events, to the last
bit.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final, Literal, NamedTuple, final

Kind = Literal["reward", "correction", "expired", "left out", "record", "sealed"]

COUNTED: Final = ("reward", "correction", "expired", "record")
"""Events that add to a task's statistics."""
REWARDS: Final = ("reward", "record")
"""Events by which rewards came."""


@final
class Task:
    """A task as it stands: a cached sum of its log. ``state`` is what its family's fold makes."""

    __slots__ = (
        "arms",
        "closed",
        "events",
        "key",
        "log",
        "name",
        "opened",
        "places",
        "state",
        "steps",
        "version",
    )

    def __init__(
        self,
        name: str,
        key: int,
        version: int,
        arms: tuple[str, ...],
        state: Any,
        opened: float,
        steps: int = 0,
        events: int = 0,
        closed: float | None = None,
    ) -> None:
        """Start a task, or restore one."""
        self.name = name
        self.key = key  # of its stream of random numbers
        self.version = version  # of the prior
        self.arms = arms
        self.places: dict[str, int] | None = None  # of the arms, looked up when asked for
        self.state = state
        self.opened = opened
        self.steps = steps  # pulls decided
        self.events = events  # number of the last event
        self.closed = closed
        self.log: Any = None  # of a store in memory


def copied(task: Task) -> Task:
    """Return a task as it stands now, whatever happens to it later."""
    made = Task(
        task.name, task.key, task.version, task.arms, copy(task.state), task.opened, task.steps,
        task.events, task.closed,
    )  # fmt: skip
    made.places, made.log = task.places, task.log
    return made


class Decided(NamedTuple):
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
    context: Any = None  # features, one row per arm
    unit: str | None = None
    request: str | None = None
    counts: tuple[int, ...] | None = None


class Event(NamedTuple):
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
    status: Literal["proposed", "accepted", "declined"]
    made: float
    accepted: float | None
    story: dict[str, Any]  # where it comes from: tasks, dates, its backtest


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
