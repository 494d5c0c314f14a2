"""Decisions about many tasks at once: compiled, and made values only when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, final, overload

import numpy as np

from priorwise.serve.rows import Decided, Task
from priorwise.serve.tokens import token_of
from priorwise.serve.types import Decision

if TYPE_CHECKING:
    from priorwise.core.live import LiveDraws


@final
class Decisions(Sequence[Decision]):
    """A sequence of decisions, each made a value when it is asked for; ``arms`` and ``tokens`` are
    lists of theirs.
    """

    def __init__(self, tasks: list[Task], chosen: list[int]) -> None:
        """Take what was chosen for the next step of each task."""
        self._tasks, self._chosen = tasks, chosen
        self._steps = [task.steps for task in tasks]

    def __len__(self) -> int:
        """Return how many."""
        return len(self._tasks)

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> list[Decision]: ...
    def __getitem__(self, index: int | slice) -> Decision | list[Decision]:
        """Return one decision, or some."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        task, step = self._tasks[index], self._steps[index]
        arm = task.arms[self._chosen[index]]
        return Decision(arm, token_of(task, step), None, task.name, step, task.version)

    def __iter__(self) -> Iterator[Decision]:
        """Go through them."""
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        """Say how many."""
        return f"Decisions of {len(self):,} tasks"

    @property
    def arms(self) -> list[str]:
        """Names of the arms to play."""
        pairs = zip(self._tasks, self._chosen, strict=True)
        return [task.arms[arm] for task, arm in pairs]

    @property
    def tokens(self) -> list[str]:
        """Tokens that the rewards come with."""
        pairs = zip(self._tasks, self._steps, strict=True)
        return [token_of(task, step) for task, step in pairs]


@final
class DecisionList(list[Decision]):
    """Decisions as a list, with the same columns."""

    @property
    def arms(self) -> list[str]:
        """Names of the arms to play."""
        return [decision.arm for decision in self]

    @property
    def tokens(self) -> list[str]:
        """Tokens that the rewards come with."""
        return [decision.token for decision in self]


@final
class Batch:
    """Decisions that were made together, as they are logged until somebody asks for one."""

    __slots__ = ("chosen", "places", "seen", "settings", "time", "width")

    def __init__(
        self, tasks: list[Task], chosen: list[int], width: int, time: float, settings: int
    ) -> None:
        """Keep what differs between them."""
        self.places = {task.name: place for place, task in enumerate(tasks)}
        self.chosen, self.seen = chosen, [task.events for task in tasks]
        self.width, self.time, self.settings = width, time, settings

    def row(self, name: str, step: int) -> Decided:
        """Return the decision about one task."""
        at = self.places[name]
        return Decided(step, self.chosen[at], self.width, self.seen[at], self.time, self.settings)


def chosen_together(live: LiveDraws | None, tasks: list[Task]) -> list[int]:
    """Choose the next arm of each of several tasks with as many arms."""
    assert live is not None
    steps = np.array([task.steps + 1 for task in tasks])
    states = np.concatenate([np.asarray(task.state) for task in tasks]).reshape(len(tasks), -1)
    keys = np.array([task.key for task in tasks], dtype=np.uint64)
    masks = np.ones((len(tasks), len(tasks[0].arms)), dtype=np.uint8)
    arms = np.empty(len(tasks), dtype=np.int64)
    live.many(live.p, live.n, states, keys, steps, masks, arms)
    chosen: list[int] = arms.tolist()
    return chosen
