"""What can be asked and what is answered, as values.

Checks of arguments, the methods of deciders and clients, HTTP and the OpenAPI document are made
from these types. A field is declared once, with its limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Meta, Struct

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.serve.errors import NotFound
from priorwise.serve.rows import Status
from priorwise.serve.stores.store import NOTHING, Wanted
from priorwise.serve.tokens import parsed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LONGEST: Final = 500
"""Letters of the name of a task, an arm, a unit or a request."""
MOST_ITEMS: Final = 1000
"""Decisions or rewards in one request."""

Scope = Literal["decide", "reward", "read", "admin"]
"""What a key may do; ``admin`` may do everything."""
Outcome = Literal["counted", "repeated", "corrected"]

Json = dict[str, Any]
"""An object of JSON."""
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Token = Annotated[str, Meta(min_length=1, max_length=600)]
Arms = Annotated[Sequence[Name], Meta(min_length=1, max_length=1000)]
if TYPE_CHECKING:
    Context = ArrayLike
else:
    Context = list[list[float]]


class Request(Struct, forbid_unknown_fields=True):
    """What a request holds."""

    def checked(self) -> Self:
        """Return this request; raise an error that names the field where one is wrong."""
        checks = _CHECKS.get(type(self))
        if checks is None:
            checks = _CHECKS[type(self)] = tuple(_checks_of(type(self)))
        for name, check in checks:
            value = getattr(self, name)
            if value is not None:
                result = check(name, value)
                if result is not value:
                    setattr(self, name, result)
        return self

    def wanted(self) -> Wanted:
        """Return the rows that it is about."""
        return NOTHING

    def parts(self, size: int = MOST_ITEMS) -> list[Self]:
        """Return requests with at most so many items, to be made one after the other."""
        return [self]

    def identify(self, new: Callable[[], str]) -> None:
        """Give the request an id, if it can have one and has none: then it may be sent again."""
        if "request" in self.__struct_fields__ and getattr(self, "request") is None:  # noqa: B009
            setattr(self, "request", new())  # noqa: B010 - a field of some requests


class Answer(Struct, frozen=True):
    """What an answer holds."""


class ByTask(Request):
    """About one task, which a retry with the same id names again."""

    task: Name

    def wanted(self) -> Wanted:
        """Return the task, and what the same request or unit did before."""
        task = self.task
        request, unit = getattr(self, "request", None), getattr(self, "unit", None)
        return Wanted(
            (task,),
            (),
            () if request is None else ((task, request),),
            () if unit is None else ((task, unit),),
        )


# -- checks


Check = Callable[[str, Any], object]  # of whatever the caller passed
_CHECKS: Final[dict[type[Request], tuple[tuple[str, Check], ...]]] = {}


def _checks_of(kind: type[Request]) -> Iterator[tuple[str, Check]]:
    """Go through what checks each field that has limits of its own."""
    for name, hint in hints_of(kind).items():
        inner = without_none(hint)
        if inner is Name:
            yield name, check_name
        elif inner is float:
            yield name, _number
        elif get_origin(inner) is Annotated and get_args(inner)[0] is int:
            yield name, _count(get_args(inner)[1])


@cache
def hints_of(kind: type[Request]) -> dict[str, Any]:  # of any types
    """Return the types of the fields of a request, with their limits."""
    return get_type_hints(kind, include_extras=True)


def without_none(hint: object) -> object:
    """Return the type of a value that is not None, with its limits."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next(each for each in options if each is not type(None))


def bare(hint: object) -> object:
    """Return the type of a value that is not None, without its limits."""
    inner = without_none(hint)
    return bare(get_args(inner)[0]) if get_origin(inner) is Annotated else inner


def check_name(field: str, value: object) -> object:
    """Return a name that every store and every file can hold."""
    if (
        type(value) is str
        and 0 < len(value) <= LONGEST
        and ((value.isascii() and "\x00" not in value) or writable(value))
    ):
        return value
    raise ArgumentError(
        field,
        f"must be a name of 1 to {LONGEST} letters without NUL that UTF-8 can write",
        got=value,
    )


def _number(field: str, value: object) -> object:
    if type(value) is float and math.isfinite(value):
        return value
    return validation.number(field, value)


def _count(limits: Meta) -> Callable[[str, object], object]:
    def check(field: str, value: object) -> object:
        result = validation.count(field, value, int(limits.ge or 0))
        if limits.le is not None and result > limits.le:
            raise ArgumentError(field, f"must be at most {limits.le:,}", got=result)
        return result

    return check


def writable(text: str) -> bool:
    """Whether every store and every file can hold a text."""
    if "\x00" in text:
        return False
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


# -- requests


class Decide(ByTask):
    """Choose an arm for the next pull of a task; a new name starts a task.

    Parameters
    ----------
    task
        Its name; a new name starts a task.
    available
        Names of the arms that may be played, by default all. Where arms are new in every task, the
        first decision names them, and later ones may add some.
    context
        Features of the arms, one row per arm, for priors with features.
    unit
        Who is decided about: a unit keeps its first decision in a task, and a repeat is not another
        pull.
    request
        An id of this request: a retry with the same id returns the same decision.

    """

    available: Arms | None = None
    context: Context | None = None
    unit: Name | None = None
    request: Name | None = None


class DecideMany(Request):
    """Choose an arm for each of several tasks, all or none of them.

    The result has ``arms`` and ``tokens``, lists of those of all decisions, and is otherwise a
    sequence of decisions.

    Parameters
    ----------
    tasks
        Their names. A name may come several times.
    available
        Names of the arms that may be played, in all of the tasks.
    contexts
        Features, one value for each task.
    requests
        An id for each task: a retry with the same ids returns the same decisions.

    """

    tasks: Annotated[Sequence[Name], Meta(min_length=1, max_length=MOST_ITEMS)]
    available: Arms | None = None
    contexts: Annotated[Sequence[Context], Meta(max_length=MOST_ITEMS)] | None = None
    requests: Annotated[Sequence[Name], Meta(max_length=MOST_ITEMS)] | None = None

    def checked(self) -> Self:
        """Check names, and that there is one of everything for each task."""
        self.tasks = listed("tasks", self.tasks)
        for task in self.tasks:
            check_name("task", task)
        if self.contexts is not None:
            self.contexts = listed("contexts", self.contexts)
        if self.requests is not None:
            self.requests = listed("requests", self.requests)
            for request in self.requests:
                check_name("requests", request)
        for name, given in (("contexts", self.contexts), ("requests", self.requests)):
            if given is not None and len(given) != len(self.tasks):
                raise ArgumentError(
                    name, f"must have one for each of {len(self.tasks)} tasks", got=len(given)
                )
        return self

    def wanted(self) -> Wanted:
        """Return the tasks, and what the same requests did before."""
        return Wanted(self.tasks, (), list(zip(self.tasks, self.requests or (), strict=False)))

    def parts(self, size: int = MOST_ITEMS) -> list[Self]:
        """Return requests about some tasks each."""
        contexts, requests = self.contexts, self.requests
        return [
            type(self)(
                self.tasks[at : at + size],
                self.available,
                None if contexts is None else contexts[at : at + size],
                None if requests is None else requests[at : at + size],
            )
            for at in range(0, len(self.tasks), size)
        ]

    def identify(self, new: Callable[[], str]) -> None:
        """Give an id to each task."""
        if self.requests is None:
            self.requests = [new() for _ in self.tasks]


def listed(field: str, value: Any) -> list[Any]:  # of whatever the caller passed
    """Return a list of what is no text."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise ArgumentTypeError(field, "must be a list", got=value)
    return list(value)


class Reward(Request):
    """Take the reward of a decision; the same one again changes nothing.

    Returns ``"counted"``; ``"repeated"`` where the same reward came before, which changes nothing;
    or ``"corrected"``. Another value for the same token is an error, unless ``correct=True``
    replaces the first one.

    Parameters
    ----------
    token
        Of the decision.
    value
        The reward.
    correct
        Whether it replaces a reward that came before.

    """

    token: Token
    value: float
    correct: bool = False

    def wanted(self) -> Wanted:
        """Return the decision of the token."""
        task, step, _ = parsed(self.token)
        return Wanted((task,), ((task, step),))


if TYPE_CHECKING:
    Pair = Reward | tuple[str, float] | Exception
else:
    Pair = Reward


class Rewards(Request):
    """Take rewards of several decisions, each with its own outcome: a bad one stops no other.

    Parameters
    ----------
    rewards
        Rewards, or pairs of token and value. Each has its outcome, or the error that ``reward``
        would raise.
    correct
        Whether each replaces a reward that came before.

    """

    rewards: Annotated[Sequence[Pair], Meta(min_length=1, max_length=MOST_ITEMS)]
    correct: bool = False

    def checked(self) -> Self:
        """Make rewards of pairs."""
        self.rewards = [
            Reward(each[0], each[1], self.correct) if isinstance(each, tuple) else each
            for each in listed("rewards", self.rewards)
        ]
        return self

    def wanted(self) -> Wanted:
        """Return the decisions of all good tokens."""
        steps: list[tuple[str, int]] = []
        for each in self.rewards:
            with suppress(NotFound):  # which is its outcome
                steps += each.wanted().steps if isinstance(each, Reward) else ()
        return Wanted([task for task, _ in steps], steps)

    def parts(self, size: int = MOST_ITEMS) -> list[Self]:
        """Return requests with some rewards each."""
        return [
            type(self)(self.rewards[at : at + size]) for at in range(0, len(self.rewards), size)
        ]


class Allocate(ByTask):
    """Choose the next pulls of a task at once, all from what is known now.

    Parameters
    ----------
    task
        Its name; a new name starts a task.
    pulls
        How many.
    available
        Names of the arms that may be played, by default all.
    request
        An id of this request: a retry with the same id returns the same counts.

    """

    pulls: Annotated[int, Meta(ge=1, le=10_000_000)]
    available: Arms | None = None
    request: Name | None = None


class Record(ByTask):
    """Take the sum of the rewards of several pulls of an arm, as of a batch.

    Parameters
    ----------
    task, arm, pulls, reward
        ``reward`` is the sum over ``pulls`` pulls: successes, for rewards 0 and 1.
    squares
        Sum of the squared rewards, for families that learn how far rewards scatter.
    request
        An id: a retry with the same id is not counted twice. Without one it is.

    """

    arm: Name
    pulls: Annotated[int, Meta(ge=1, le=1 << 53)]
    reward: float
    squares: float | None = None
    request: Name | None = None


class CloseTask(ByTask):
    """Close a task: no more decisions, but late rewards. Returns whether it was open."""


class DeleteUnit(Request):
    """Erase what is known of a unit; returns in how many decisions it was.

    Its name, its context and its request ids are erased. The arms that it was shown and its rewards
    stay as parts of sums that name nobody, so that the decisions of others can still be made again.
    """

    unit: Name

    def wanted(self) -> Wanted:
        """Return the whole store."""
        return Wanted(whole=True)


class ListTasks(Request):
    """List tasks, the newest first."""

    closed: Annotated[
        bool | None, Meta(description="true or false: only tasks that are; both without it.")
    ] = None
    after: Annotated[
        str | None, Meta(description="The name of the last task of the answer before.")
    ] = None
    limit: Annotated[
        int, Meta(ge=1, le=1000, description="How many tasks, at most 1,000; 100 without it.")
    ] = 100


class Summarize(Request):
    """Say where a task stands: what is believed of each arm, and whether to stop."""

    task: Name
    context: Annotated[
        Context | None,
        Meta(description="Features, one row per arm, as JSON: for priors that have some."),
    ] = None


class Replay(Request):
    """Make every decision of a task again from the log; return the steps that differ."""

    task: Name


class ListPriors(Request):
    """List every prior that was ever proposed."""


class Propose(Request):
    """Keep a prior, as ``prior.to_json()`` writes it, for somebody to accept."""

    prior: Json
    story: Json | None = None


class Accept(Request):
    """Let new tasks start with a proposed prior; running ones keep theirs."""

    version: Annotated[int, Meta(ge=0)]


class Decline(Request):
    """Put a proposed prior aside."""

    version: Annotated[int, Meta(ge=0)]


class Refit(Request):
    """Fit the prior again on the closed tasks, and propose it with a backtest."""

    seed: Annotated[int, Meta(ge=0)]
    family: str = "auto"
    accept: Literal["ask", "better", "always"] = "ask"


class CheckPrior(Request):
    """Say whether closed tasks contradict the prior in use."""

    level: Annotated[
        float, Meta(gt=0.0, lt=1.0, description="Rate of false alarms; 0.01 without it.")
    ] = 0.01


class Export(Request):
    """Download the log of all decisions and rewards, as fit_prior reads it."""

    closed: Annotated[
        bool | None, Meta(description="true or false: only tasks that are; both without it.")
    ] = None
    outstanding: Annotated[
        bool, Meta(description="true: also decisions whose reward is not known.")
    ] = False


# -- answers


class Decision(Answer, frozen=True):
    """An arm to play, and the token that its reward is to come with.

    ``propensity`` is the probability with which this arm was drawn, None where propensities are
    off; ``error`` is how far the law that it was drawn from may be from the policy's, in total
    variation. ``repeated``: made before, for the same request or unit; it is not another pull.
    """

    arm: str
    token: str
    propensity: float | None
    task: str
    step: int
    version: int
    error: float | None = None
    repeated: bool = False


class Decisions(Answer, frozen=True):
    """One decision for each task, in their order."""

    decisions: list[Decision]


class Rewarded(Answer, frozen=True):
    """What became of a reward: ``repeated`` changed nothing."""

    outcome: Outcome


class Problem(Answer, frozen=True):
    """What is wrong, in a word for programs and a line for people."""

    code: str
    message: str
    where: str | None = None


class Failed(Answer, frozen=True):
    """An answer that is none."""

    error: Problem


class OneRewarded(Answer, frozen=True):
    """What became of one reward of several: its outcome, or what is wrong with it."""

    outcome: Outcome | None = None
    error: Problem | None = None


class AllRewarded(Answer, frozen=True):
    """What became of each reward, in their order."""

    outcomes: list[OneRewarded]


class Allocation(Answer, frozen=True):
    """How many of the next pulls each arm gets."""

    counts: dict[str, int]
    token: str
    task: str
    step: int
    version: int
    repeated: bool = False


class Closed(Answer, frozen=True):
    """Whether the task was open before."""

    closed: bool


class Deleted(Answer, frozen=True):
    """In how many decisions the unit was."""

    decisions: int


class TaskLine(Answer, frozen=True):
    """A task in the list; times are in seconds since 1970."""

    task: str
    version: int
    arms: tuple[str, ...]
    steps: int
    events: int
    opened: float
    closed: float | None


class Tasks(Answer, frozen=True):
    """Tasks, the newest first; ``next`` is what to pass as ``after``, null at the end."""

    tasks: list[TaskLine]
    next: str | None = None


class Arm(Answer, frozen=True):
    """What is believed of an arm: its mean reward with a 95 % interval, how likely it is the best,
    and what playing it from now on loses per pull. ``pulls`` are those whose rewards are known.
    """

    arm: str
    pulls: float | None
    mean: float
    low: float
    high: float
    prob_best: float
    expected_loss: float


class Stopping(Answer, frozen=True):
    """How the advice does on tasks of the prior that are looked at after every pull: the share that
    it stops, at a wrong arm, and what these lose per pull.
    """

    tolerance: float
    stopped: float
    false_stops: float
    false_stops_error: float
    lost: float | None
    lost_error: float | None
    pulls: float
    every_pull: bool


class Summary(Answer, frozen=True):
    """Where a task stands."""

    task: str
    arms: list[Arm]
    decided: int
    horizon: int
    closed: bool
    version: int
    leader: str
    expected_loss: float
    value_remaining: float
    stop: bool
    advice: str
    stopping: Stopping | None


class Prior(Answer, frozen=True):
    """A prior that was ever proposed; times are in seconds since 1970."""

    version: int
    status: Status
    current: bool
    made: float
    accepted: float | None
    story: Json
    prior: Json


class Priors(Answer, frozen=True):
    """Every prior, the first one first."""

    priors: list[Prior]


class Proposed(Answer, frozen=True):
    """The version of a prior, and what it is now."""

    version: int
    status: Status


class Replayed(Answer, frozen=True):
    """Steps of the decisions that come out otherwise."""

    differ: list[int]


class Refitted(Answer, frozen=True):
    """A prior that was fitted again: what the fit and its backtest say."""

    version: int
    accepted: bool
    better: bool
    report: str


class Alarm(Answer, frozen=True):
    """Whether closed tasks contradict the prior."""

    raised: bool
    tasks: int
    p_value: float
    report: str


class Alive(Answer, frozen=True):
    """The service runs."""

    status: Literal["alive"] = "alive"


class Ready(Answer, frozen=True):
    """The store answers."""

    status: Literal["ready"] = "ready"
