"""A task's statistics as the sum of its events, one event at a time.

Sums of floats depend on their order, so events are always added in the order of their numbers:
a task that is summed up again has the same bits.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.protocols import for_arms
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray
from priorwise.families.registry import ask
from priorwise.fitting.statistics import PerArm

TOOL: Final = "Decider"
PROBES: Final = (-1.5, 0.25, 2.5)


def fold_of(prior: Any) -> ArmFold | AnyFold:
    """Return how the statistics of a prior's tasks are summed up."""
    kind = ask(prior, "statistics", TOOL)
    if issubclass(kind, PerArm) and kind.weights() is not None:
        return ArmFold(kind)
    return AnyFold(kind, prior)


@final
class ArmFold:
    """Statistics with a number per arm and column; a state is these numbers, column after column.

    A pull adds ``w0 + w1 r + w2 r^2`` to each column of its arm.
    """

    def __init__(self, kind: Any) -> None:
        """Look up once what a pull adds."""
        self.kind = kind
        weights = kind.weights()
        names = [each.name for each in fields(kind) if each.name not in kind.shared]
        self._weights = [weights[name] for name in names]
        self.columns = tuple(names)
        self.binary = not _takes(kind, 0.5) and _takes(kind, 0.0) and _takes(kind, 1.0)
        self._any_number = all(_takes(kind, each) for each in PROBES)

    def empty(self, arms: int) -> FloatArray:
        """Return the state before the first pull."""
        return np.zeros(len(self.columns) * arms)

    def grown(self, state: FloatArray, arms: int) -> FloatArray:
        """Return the state of a task that has more arms now."""
        columns = len(self.columns)
        wider = np.zeros((columns, arms))
        wider[:, : state.size // columns] = state.reshape(columns, -1)
        return wider.ravel()

    def check(self, value: float, name: str = "value") -> None:
        """Raise an error for a reward that the family rules out."""
        if self.binary:
            if value != 0.0 and value != 1.0:
                raise ValueError(f"{name} must be 0 or 1 for this prior, got {value:g}")
        elif not abs(value) <= validation.LARGEST:  # NaN is not
            raise ValueError(f"{name} must be a finite number, got {value:g}")
        elif not self._any_number:
            self.kind.addends(np.array([value]))

    def check_record(self, pulls: int, value: float, squares: float | None) -> None:
        """Refuse sums of rewards that cannot be."""
        if not abs(value) <= validation.LARGEST:
            raise ValueError(f"reward must be a finite sum of rewards, got {value:g}")
        if self.binary:
            if not (0.0 <= value <= pulls and value == round(value)):
                raise ValueError(
                    f"reward must be a whole number of successes, 0 to {pulls:,}, got {value:g}"
                )
            return
        if any(w2 for _, _, w2 in self._weights):
            if squares is None:
                if pulls > 1:
                    raise ValueError(
                        "squares is missing: this prior learns from the sum of squared rewards too "
                        "where several are recorded at once"
                    )
            elif not value * value <= squares * pulls * (1.0 + 1e-9) + 1e-300:
                raise ValueError(
                    f"squares must be at least reward^2 / pulls, {value * value / pulls:g}, got "
                    f"{squares:g}"
                )

    def add(
        self, state: FloatArray, arm: int, pulls: float, value: float, squares: float | None,
        context: Any = None,
    ) -> FloatArray:  # fmt: skip
        """Add pulls of an arm with this sum of rewards, in place."""
        arms = state.size // len(self._weights)
        square = value * value if squares is None else squares
        place = arm
        for w0, w1, w2 in self._weights:
            state[place] += w0 * pulls + w1 * value + w2 * square
            place += arms
        return state

    def statistics(self, states: list[FloatArray], names: Any = None) -> Any:
        """Return the statistics of tasks that all have the same arms."""
        columns = len(self.columns)
        stacked = np.stack(states).reshape(len(states), columns, -1)
        return self.kind._made(
            {name: stacked[:, place] for place, name in enumerate(self.columns)}, names=names
        )

    def ordered(self, state: FloatArray, arms: list[int]) -> FloatArray:
        """Return the state with the arms in another order."""
        return state.reshape(len(self.columns), -1)[:, arms].ravel()

    def pulls(self, state: FloatArray) -> list[float]:
        """Rewards known of each arm."""
        arms = state.size // len(self.columns)
        first = self.columns.index("pulls") * arms
        return [float(each) for each in state[first : first + arms]]

    def encode(self, state: FloatArray) -> bytes:
        """Return the bytes of a state."""
        return state.astype("<f8", copy=False).tobytes()

    def decode(self, content: bytes) -> FloatArray:
        """Return the state of such bytes."""
        return np.frombuffer(content, dtype="<f8").astype(np.float64)


@final
class AnyFold:
    """Statistics of any family: a state is the statistics of one task, as its class keeps them."""

    def __init__(self, kind: Any, prior: Any) -> None:
        """Remember the class, what a prior knows of its tasks, and what rewards it expects."""
        self.kind = kind
        self._prior = prior
        self._nothing: dict[str, int] = {}  # texts of empty statistics, with their arms
        law = getattr(prior, "reward_law", None)
        self.binary = bool(getattr(prior, "binary", getattr(law, "binary", False)))
        support: Any = getattr(prior, "reward_range", getattr(law, "support", None))
        self._range: tuple[float, float] = support or (-np.inf, np.inf)

    def empty(self, arms: int) -> Any:
        """Return the state before the first pull."""
        made = self.kind.empty(1, **self.kind.known(for_arms(self._prior, arms)))
        self._nothing[str(made.to_json())] = arms
        return made

    def grown(self, state: Any, arms: int) -> Any:
        """Refuse: only statistics for each arm can take new arms."""
        raise ValueError("available must name arms of the prior: it does not take new ones")

    def check(self, value: float, name: str = "value") -> None:
        """Raise an error for a reward that the prior rules out. The statistics check the rest when
        they add it.
        """
        if not abs(value) <= validation.LARGEST:
            raise ValueError(f"{name} must be a finite number, got {value:g}")
        if self.binary and value != 0.0 and value != 1.0:
            raise ValueError(f"{name} must be 0 or 1 for this prior, got {value:g}")
        least, most = self._range
        if not least <= value <= most:
            raise ValueError(
                f"{name} must lie between {least:g} and {most:g} for this prior, got {value:g}"
            )

    def check_record(self, pulls: int, value: float, squares: float | None) -> None:
        """Refuse several rewards at once."""
        raise ValueError(
            f"record is for families whose statistics are sums for each arm; {self.kind.__name__} "
            "reads single rewards: call reward for each"
        )

    def add(
        self, state: Any, arm: int, pulls: float, value: float, squares: float | None,
        context: Any = None,
    ) -> Any:  # fmt: skip
        """Return the state with one more pull."""
        signal = None if context is None else np.asarray(context, dtype=np.float64)[None]
        return state.observe(np.array([arm]), np.array([value]), signal)

    def statistics(self, states: list[Any], names: Any = None) -> Any:
        """Join the tasks."""
        return sum(states[1:], states[0])

    def ordered(self, state: Any, arms: list[int]) -> Any:
        """Refuse another order: only statistics for each arm can be put into one."""
        if arms != sorted(arms):
            raise ValueError("the statistics of this family cannot put their arms in another order")
        return state

    def pulls(self, state: Any) -> list[float] | None:
        """Rewards known of each arm, where the statistics say."""
        pulls = np.asarray(getattr(state, "pulls", 0.0))
        return None if pulls.ndim != 2 else [float(each) for each in pulls[0]]

    def encode(self, state: Any) -> bytes:
        """Return the JSON text of the statistics; before the first pull the number of arms, as the
        text does not say how many features an empty list of them has.
        """
        text = str(state.to_json())
        return str(self._nothing.get(text, text)).encode()

    def decode(self, content: bytes) -> Any:
        """Read it."""
        text = content.decode()
        return self.empty(int(text)) if text.isdigit() else Serializable.load(text)


def _takes(kind: Any, reward: float) -> bool:
    try:
        kind.addends(np.array([reward]))
    except ValueError:
        return False
    return True
