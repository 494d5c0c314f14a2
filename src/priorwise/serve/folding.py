"""A task's statistics as the sum of its events, one event at a time.

Sums of floats depend on their order, so events are always added in the order of their numbers:
a task that is summed up again has the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.core.protocols import for_arms
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray
from priorwise.families.registry import family_for
from priorwise.fitting.statistics import PerArm, PerTask
from priorwise.serve.rows import State

if TYPE_CHECKING:
    from priorwise.serve.choosing import LivePrior

TOOL: Final = "Decider"
PROBES: Final = (-1.5, 0.25, 2.5)


class Fold(ABC):
    """How statistics of tasks are summed up."""

    kind: type[PerTask]
    binary: bool
    """Whether rewards are 0 or 1."""

    @abstractmethod
    def empty(self, arms: int) -> State:
        """Return the state before the first pull."""

    @abstractmethod
    def grown(self, state: State, arms: int) -> State:
        """Return the state of a task that has more arms now."""

    @abstractmethod
    def check(self, value: float, name: str = "value") -> None:
        """Raise an error for a reward that the prior rules out."""

    @abstractmethod
    def check_record(self, pulls: int, value: float, squares: float | None) -> None:
        """Raise an error for sums of rewards that cannot be."""

    @abstractmethod
    def add(
        self, state: State, arm: int, pulls: float, value: float, squares: float | None,
        context: list[list[float]] | None = None,
    ) -> State:  # fmt: skip
        """Return the state with pulls of an arm that have this sum of rewards; it may be the same
        value, changed.
        """

    @abstractmethod
    def statistics(self, states: Sequence[State], names: tuple[str, ...] | None = None) -> PerTask:
        """Return the statistics of tasks that all have the same arms."""

    @abstractmethod
    def ordered(self, state: State, arms: list[int]) -> State:
        """Return the state with the arms in another order."""

    @abstractmethod
    def pulls(self, state: State) -> list[float] | None:
        """Rewards known of each arm, where the statistics say."""

    @abstractmethod
    def encode(self, state: State) -> bytes:
        """Return the bytes of a state."""

    @abstractmethod
    def decode(self, content: bytes) -> State:
        """Return the state of such bytes."""


def fold_of(prior: LivePrior) -> Fold:
    """Return how the statistics of a prior's tasks are summed up."""
    kind: type[PerTask] = family_for(prior, TOOL).statistics
    if issubclass(kind, PerArm) and kind.weights() is not None:
        return ArmFold(kind)
    return AnyFold(kind, prior)


def numbers(state: State) -> FloatArray:
    """Return the numbers of a state that has one per column and arm."""
    assert isinstance(state, np.ndarray)
    return state


def statistics(state: State) -> PerTask:
    """Return a state that is the statistics of one task."""
    assert isinstance(state, PerTask)
    return state


@final
class ArmFold(Fold):
    """Statistics with a number per arm and column; a state is these numbers, column after column.

    A pull adds ``w0 + w1 r + w2 r^2`` to each column of its arm.
    """

    def __init__(self, kind: type[PerArm]) -> None:
        """Look up once what a pull adds."""
        self.kind = self._kind = kind
        weights = kind.weights() or {}
        names = [column.name for column in fields(kind) if column.name not in kind.shared]
        self._weights = [weights[name] for name in names]
        self.columns = tuple(names)
        self.binary = not _takes(kind, 0.5) and _takes(kind, 0.0) and _takes(kind, 1.0)
        self._any_number = all(_takes(kind, value) for value in PROBES)

    def empty(self, arms: int) -> FloatArray:
        """Return the state before the first pull."""
        return np.zeros(len(self.columns) * arms)

    def grown(self, state: State, arms: int) -> FloatArray:
        """Return the state of a task that has more arms now."""
        columns = numbers(state).reshape(len(self.columns), -1)
        return np.pad(columns, [(0, 0), (0, arms - columns.shape[1])]).ravel()

    def check(self, value: float, name: str = "value") -> None:
        """Raise an error for a reward that the family rules out."""
        if self.binary:
            if value != 0.0 and value != 1.0:
                raise ArgumentError(name, "must be 0 or 1 for this prior", got=value)
        elif not abs(value) <= validation.LARGEST:  # NaN is not
            raise ArgumentError(name, "must be a finite number", got=value)
        elif not self._any_number:
            self._kind.addends(np.array([value]))

    def check_record(self, pulls: int, value: float, squares: float | None) -> None:
        """Refuse sums of rewards that cannot be."""
        if not abs(value) <= validation.LARGEST:
            raise ArgumentError("reward", "must be a finite sum of rewards", got=value)
        if self.binary:
            if not (0.0 <= value <= pulls and value == round(value)):
                raise ArgumentError(
                    "reward", f"must be a whole number of successes, 0 to {pulls:,}", got=value
                )
            return
        if any(w2 for _, _, w2 in self._weights):
            if squares is None:
                if pulls > 1:
                    raise ArgumentError(
                        "squares",
                        "is missing: this prior learns from the sum of squared rewards too where "
                        "several are recorded at once",
                    )
            elif not value * value <= squares * pulls * (1.0 + 1e-9) + 1e-300:
                least = value * value / pulls
                raise ArgumentError(
                    "squares", f"must be at least reward^2 / pulls, {least:g}", got=squares
                )

    def add(
        self, state: State, arm: int, pulls: float, value: float, squares: float | None,
        context: list[list[float]] | None = None,
    ) -> FloatArray:  # fmt: skip
        """Add pulls of an arm with this sum of rewards, in place."""
        assert isinstance(state, np.ndarray)
        arms = state.size // len(self._weights)
        square = value * value if squares is None else squares
        place = arm
        for w0, w1, w2 in self._weights:
            state[place] += w0 * pulls + w1 * value + w2 * square
            place += arms
        return state

    def statistics(self, states: Sequence[State], names: tuple[str, ...] | None = None) -> PerTask:
        """Return the statistics of tasks that all have the same arms."""
        columns = len(self.columns)
        stacked = np.stack([numbers(state) for state in states]).reshape(len(states), columns, -1)
        return self._kind._made(
            {name: stacked[:, place] for place, name in enumerate(self.columns)}, names=names
        )

    def ordered(self, state: State, arms: list[int]) -> FloatArray:
        """Return the state with the arms in another order."""
        return numbers(state).reshape(len(self.columns), -1)[:, arms].ravel()

    def pulls(self, state: State) -> list[float]:
        """Rewards known of each arm."""
        columns = numbers(state).reshape(len(self.columns), -1)
        pulls: list[float] = columns[self.columns.index("pulls")].tolist()
        return pulls

    def encode(self, state: State) -> bytes:
        """Return the bytes of a state."""
        return numbers(state).astype("<f8", copy=False).tobytes()

    def decode(self, content: bytes) -> FloatArray:
        """Return the state of such bytes."""
        return np.frombuffer(content, dtype="<f8").astype(np.float64)


@final
class AnyFold(Fold):
    """Statistics of any family: a state is the statistics of one task, as its class keeps them."""

    def __init__(self, kind: type[PerTask], prior: LivePrior) -> None:
        """Remember the class, what a prior knows of its tasks, and what rewards it expects."""
        self.kind = kind
        self._prior = prior
        self._nothing: dict[str, int] = {}  # texts of empty statistics, with their arms
        law = getattr(prior, "reward_law", None)
        self.binary = bool(getattr(prior, "binary", getattr(law, "binary", False)))
        support = getattr(prior, "reward_range", getattr(law, "support", None))
        self._range: tuple[float, float] = support or (-np.inf, np.inf)

    def empty(self, arms: int) -> PerTask:
        """Return the state before the first pull."""
        made = self.kind.empty(1, **self.kind.known(for_arms(self._prior, arms)))
        self._nothing[str(made.to_json())] = arms
        return made

    def grown(self, state: State, arms: int) -> State:
        """Only statistics for each arm can take new arms."""
        raise ArgumentError("available", "must name arms of the prior: it takes no new ones")

    def check(self, value: float, name: str = "value") -> None:
        """Raise an error for a reward that the prior rules out. The statistics check the rest when
        they add it.
        """
        if not abs(value) <= validation.LARGEST:
            raise ArgumentError(name, "must be a finite number", got=value)
        if self.binary and value != 0.0 and value != 1.0:
            raise ArgumentError(name, "must be 0 or 1 for this prior", got=value)
        least, most = self._range
        if not least <= value <= most:
            raise ArgumentError(
                name, f"must lie between {least:g} and {most:g} for this prior", got=value
            )

    def check_record(self, pulls: int, value: float, squares: float | None) -> None:
        """Several rewards at once have no place here."""
        raise MissingCapability(
            "record",
            f"is for families whose statistics are sums for each arm; {self.kind.__name__} reads "
            "single rewards",
            cure="call reward for each",
        )

    def add(
        self, state: State, arm: int, pulls: float, value: float, squares: float | None,
        context: list[list[float]] | None = None,
    ) -> PerTask:  # fmt: skip
        """Return the state with one more pull."""
        signal = None if context is None else np.asarray(context, dtype=np.float64)[None]
        return statistics(state).observe(np.array([arm]), np.array([value]), signal)

    def statistics(self, states: Sequence[State], names: tuple[str, ...] | None = None) -> PerTask:
        """Join the tasks."""
        first, *rest = map(statistics, states)
        return sum(rest, first)

    def ordered(self, state: State, arms: list[int]) -> State:
        """Only statistics for each arm can be put into another order."""
        if arms != sorted(arms):
            raise MissingCapability(
                "prior", "has its arms in another order than the statistics, which cannot change it"
            )
        return state

    def pulls(self, state: State) -> list[float] | None:
        """Rewards known of each arm, where the statistics say."""
        pulls = np.asarray(getattr(state, "pulls", 0.0))
        return None if pulls.ndim != 2 else [float(each) for each in pulls[0]]

    def encode(self, state: State) -> bytes:
        """Return the JSON text of the statistics; before the first pull the number of arms, as the
        text does not say how many features an empty list of them has.
        """
        text = statistics(state).to_json()
        return str(self._nothing.get(text, text)).encode()

    def decode(self, content: bytes) -> State:
        """Read it."""
        text = content.decode()
        if text.isdigit():
            return self.empty(int(text))
        state = Serializable.load(text)
        assert isinstance(state, PerTask)
        return state


def _takes(kind: type[PerArm], reward: float) -> bool:
    try:
        kind.addends(np.array([reward]))
    except ValueError:
        return False
    return True
