"""What requests and answers hold. Checking, routing and the OpenAPI document are made from these
types.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

MOST_ITEMS: Final = 1000
"""Decisions or rewards in one request."""

Scope = Literal["decide", "reward", "read", "admin"]
"""What a key may do; ``admin`` may do everything."""

Name = Annotated[str, Meta(min_length=1, max_length=500)]
Arms = Annotated[list[Name], Meta(min_length=1, max_length=1000)]
Context = list[list[float]]
Outcome = Literal["counted", "repeated", "corrected"]


class Request(Struct, forbid_unknown_fields=True):
    """What a request holds."""


class Answer(Struct):
    """What an answer holds."""


# -- requests


class Decide(Request):
    """Choose an arm for the next pull of a task; a new name starts a task."""

    task: Name
    available: Arms | None = None
    context: Context | None = None
    unit: Name | None = None
    request: Name | None = None


class DecideMany(Request):
    """Choose an arm for each of several tasks; ``available`` holds for all of them."""

    tasks: Annotated[list[Name], Meta(min_length=1, max_length=MOST_ITEMS)]
    available: Arms | None = None
    contexts: Annotated[list[Context], Meta(max_length=MOST_ITEMS)] | None = None
    requests: Annotated[list[Name], Meta(max_length=MOST_ITEMS)] | None = None


class Reward(Request):
    """The reward of a decision; ``correct`` replaces one that came before."""

    token: Annotated[str, Meta(min_length=1, max_length=600)]
    value: float
    correct: bool = False


class Rewards(Request):
    """Rewards of several decisions; each has its own outcome."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=MOST_ITEMS)]


class Allocate(Request):
    """Choose the next pulls of a task at once."""

    task: Name
    pulls: Annotated[int, Meta(ge=1, le=10_000_000)]
    available: Arms | None = None
    request: Name | None = None


class Record(Request):
    """The sum of the rewards of several pulls of an arm; ``squares`` is that of their squares."""

    task: Name
    arm: Name
    pulls: Annotated[int, Meta(ge=1, le=1 << 53)]
    reward: float
    squares: float | None = None
    request: Name | None = None


class Propose(Request):
    """A prior, as ``prior.to_json()`` writes it, for somebody to accept."""

    prior: dict[str, Any]
    story: dict[str, Any] | None = None


# -- answers


class Decision(Answer):
    """An arm to play, and the token that its reward is to come with."""

    arm: str
    token: str
    propensity: float | None
    task: str
    step: int
    version: int
    error: float | None = None
    repeated: bool = False


class Decisions(Answer):
    """One decision for each task, in their order."""

    decisions: list[Decision]


class Rewarded(Answer):
    """What became of a reward: ``repeated`` changed nothing."""

    outcome: Outcome


class Problem(Answer):
    """What is wrong, in a word for programs and a line for people."""

    code: str
    message: str
    where: str | None = None


class Failed(Answer):
    """An answer that is none."""

    error: Problem


class OneRewarded(Answer):
    """What became of one reward of several: its outcome, or what is wrong with it."""

    outcome: Outcome | None = None
    error: Problem | None = None


class AllRewarded(Answer):
    """What became of each reward, in their order."""

    outcomes: list[OneRewarded]


class Allocation(Answer):
    """How many of the next pulls each arm gets."""

    counts: dict[str, int]
    token: str
    task: str
    step: int
    version: int
    repeated: bool = False


class Closed(Answer):
    """Whether the task was open before."""

    closed: bool


class Deleted(Answer):
    """In how many decisions the unit was."""

    decisions: int


class TaskLine(Answer):
    """A task in the list; times are in seconds since 1970."""

    task: str
    version: int
    arms: tuple[str, ...]
    steps: int
    events: int
    opened: float
    closed: float | None


class Tasks(Answer):
    """Tasks, the newest first; ``next`` is what to pass as ``after``, null at the end."""

    tasks: list[TaskLine]
    next: str | None = None


class Arm(Answer):
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


class Stopping(Answer):
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


class Summary(Answer):
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


class Prior(Answer):
    """A prior that was ever proposed; times are in seconds since 1970."""

    version: int
    status: Literal["proposed", "accepted", "declined"]
    current: bool
    made: float
    accepted: float | None
    story: dict[str, Any]
    prior: dict[str, Any]


class Priors(Answer):
    """Every prior, the first one first."""

    priors: list[Prior]


class Proposed(Answer):
    """The version of a prior, and what it is now."""

    version: int
    status: Literal["proposed", "accepted", "declined"]


class Alive(Answer):
    """The service runs."""

    status: Literal["alive"] = "alive"


class Ready(Answer):
    """The store answers."""

    status: Literal["ready"] = "ready"
