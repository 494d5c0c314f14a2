"""Decisions about many tasks at once: compiled where single ones are, and told when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final, overload

import numpy as np

from priorwise.core import validation
from priorwise.serve.errors import Conflict
from priorwise.serve.operations import Decision, Operations, token_of
from priorwise.serve.rows import Decided, Task


@final
class Decisions(Sequence[Decision]):
    """A sequence of decisions, each made a value when it is asked for; ``arms`` and ``tokens`` are
    lists of theirs.
    """

    def __init__(self, tasks: list[Task], steps: list[int], chosen: list[int]) -> None:
        """Take what was chosen."""
        self._tasks, self._steps, self._chosen = tasks, steps, chosen

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
            return [self[each] for each in range(*index.indices(len(self)))]
        task, step = self._tasks[index], self._steps[index]
        arm = task.arms[self._chosen[index]]
        return Decision(arm, token_of(task, step), None, task.name, step, task.version)

    def __iter__(self) -> Iterator[Decision]:
        """Go through them."""
        return (self[each] for each in range(len(self)))

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
class Told(list[Decision]):
    """Decisions as a list, with the same columns."""

    @property
    def arms(self) -> list[str]:
        """Names of the arms to play."""
        return [each.arm for each in self]

    @property
    def tokens(self) -> list[str]:
        """Tokens that the rewards come with."""
        return [each.token for each in self]


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


def decide_together(
    operations: Operations, store: Any, names: list[str], version: int, now: float
) -> Decisions | None:
    """Decide about tasks with all their arms at once; None where that cannot be: with propensities,
    contexts, repeated names or a policy that is not compiled.
    """
    if operations.propensities or len(set(names)) < len(names):
        return None
    get = store.task
    tasks: list[Any] = []
    new: list[Task] = []
    groups: dict[tuple[int, int], list[int]] = {}
    for name in names:
        task = get(name)
        if task is not None and task.closed is not None:
            raise Conflict(f"task {validation.shown(name)} is closed")
        tasks.append(task)
    for place in range(len(tasks)):
        if tasks[place] is None:
            tasks[place] = operations.opened(names[place], None, version, now)
            new.append(tasks[place])
        kind = (tasks[place].version, len(tasks[place].arms))
        if kind in groups:
            groups[kind].append(place)
        else:
            groups[kind] = [place]
    choosers = {kind: operations.chooser(*kind) for kind in groups}
    if any(each.live is None for each in choosers.values()):  # type: ignore[attr-defined]
        return None
    for task in new:
        store.add_task(task)
    steps, chosen = [0] * len(tasks), [0] * len(tasks)
    for kind, places in groups.items():
        some = tasks if len(groups) == 1 else [tasks[place] for place in places]
        live: Any = choosers[kind].live  # type: ignore[attr-defined]
        at = [task.steps + 1 for task in some]
        out = np.empty(len(some), dtype=np.int64)
        states = np.concatenate([task.state for task in some]).reshape(len(some), -1)
        keys = np.array([task.key for task in some], dtype=np.uint64)
        masks = np.ones((len(some), kind[1]), dtype=np.uint8)
        live.many(live.p, live.n, states, keys, np.array(at), masks, out)
        arms = out.tolist()
        batch = Batch(some, arms, kind[1], now, operations.settings)
        for task, step in zip(some, at, strict=True):
            task.steps = step
            task.log.decided[step] = batch
        for place, step, arm in zip(places, at, arms, strict=True):
            steps[place], chosen[place] = step, arm
    return Decisions(tasks, steps, chosen)
