"""The decisions of a log with the laws that they were drawn from, as
:mod:`priorwise.advise.choices` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

import numpy as np

from priorwise.advise.choices import Ratio, Uniform, uniform_of
from priorwise.core.protocols import MeanBelief
from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.policies.laws import known_law
from priorwise.serve.operations import Operations
from priorwise.serve.rows import COUNTED, Decided, Event, State, Task

BLOCK: Final = 2_000
"""Decisions whose laws are computed together."""


class Laws(NamedTuple):
    """Of decisions: probability of each arm, which could be played, and the posterior means."""

    probs: FloatArray | None  # (decision, arm); None: this policy's law is not known
    there: BoolArray  # (decision, arm)
    means: FloatArray  # (decision, arm); zeros where the belief does not say


def laws_of(
    operations: Operations, version: int, arms: tuple[str, ...], rows: Sequence[Decided],
    states: Sequence[State],
) -> Laws:  # fmt: skip
    """Compute again what decisions under one prior with as many arms were drawn from."""
    parts = [
        _laws(operations, version, arms, rows[at : at + BLOCK], states[at : at + BLOCK])
        for at in range(0, len(rows), BLOCK)
    ]
    probs = [each.probs for each in parts]
    known = [each for each in probs if each is not None]
    return Laws(
        np.concatenate(known) if len(known) == len(probs) else None,
        np.concatenate([each.there for each in parts]),
        np.concatenate([each.means for each in parts]),
    )


def _laws(
    operations: Operations, version: int, arms: tuple[str, ...], rows: Sequence[Decided],
    states: Sequence[State],
) -> Laws:  # fmt: skip
    width = len(arms)
    chooser = operations.chooser(version, width)
    there = np.array([[c == "1" for c in row.mask or "1" * width] for row in rows])
    shared = {
        mask: operations.shares.of(arms, np.array(mask, dtype=np.float64))
        for mask in {tuple(each) for each in there.tolist()}
    }
    each = [shared[tuple(mask)] for mask in there.tolist()]
    promised = np.array([pair[0] for pair in each])
    free = np.array([pair[1] for pair in each], dtype=bool)
    some = np.asarray(free.any(axis=1))
    left = np.where(some, np.maximum(0.0, 1.0 - promised.sum(axis=1)), 0.0)
    belief = chooser.belief(*states)
    signal = None
    if rows[0].context is not None:
        signal = np.array([row.context for row in rows], dtype=np.float64)
    horizon = operations.horizon
    step = np.minimum([row.step for row in rows], horizon)
    playable = np.where(some[:, None], free, there)
    mask = None if playable.all() else playable
    seen = Seen(step, horizon, width, signal, mask)
    law = known_law(operations.policy, belief, seen)
    probs = None
    if law is not None and law.source != "sampling":
        wanted = np.maximum(law.probs, 0.0)
        probs = promised + left[:, None] * (wanted / wanted.sum(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
    means = np.zeros((len(rows), width))
    if isinstance(belief, MeanBelief):
        means = np.asarray(belief.mean(Seen(step, horizon, width, signal)))
    return Laws(probs, there, means)


@final
@dataclass
class Trail:
    """The decisions of one task with what each was drawn from; grows as the task goes on."""

    task: str
    arms: tuple[str, ...] = ()
    rows: list[Decided] = field(default_factory=list)  # of single pulls, in order
    laws: list[Laws] = field(default_factory=list)  # of some rows each
    batched: int = 0  # pulls that were decided in batches: they have no propensities
    _upto: int = 0  # the last step that was read
    _state: State | None = None
    _folded: int = 0  # events in it

    def extend(
        self,
        operations: Operations,
        task: Task,
        decisions: Sequence[Decided],
        events: Sequence[Event],
    ) -> None:
        """Read the decisions that are new."""
        new = [each for each in decisions if each.step > self._upto]
        self.arms = task.arms
        if not new:
            return
        self._upto = new[-1].step
        self.batched += sum(each.pulls for each in new if each.counts is not None)
        single = [each for each in new if each.counts is None]
        by_step = {each.step: each for each in decisions}
        groups: dict[tuple[int, bool], tuple[list[Decided], list[State]]] = {}
        for row in single:
            ours = row.settings == operations.settings
            rows, states = groups.setdefault((row.width, ours), ([], []))
            rows.append(row)
            states.append(self._known(operations, task, row, events, by_step))
        for (width, ours), (rows, states) in groups.items():
            found = laws_of(operations, task.version, task.arms[:width], rows, states)
            self.rows.extend(rows)
            # under other settings another policy decided
            self.laws.append(found if ours else found._replace(probs=None))

    def _known(
        self, operations: Operations, task: Task, row: Decided, events: Sequence[Event],
        by_step: Mapping[int, Decided],
    ) -> State:  # fmt: skip
        """Return the statistics that a decision knew of."""
        fold = operations.fold(task.version)
        if self._state is None:
            self._state = fold.empty(row.width)
        if isinstance(self._state, np.ndarray):
            self._state = fold.grown(self._state, row.width)
        news = [each for each in events[self._folded : row.seen] if each.kind in COUNTED]
        if any(e.kind == "correction" for e in news) or any(
            each.kind == "sealed" for each in events[self._folded : row.seen]
        ):
            self._state = operations.folded_from(
                task, row.width, events[: row.seen], lambda _, step: by_step.get(step)
            )
        else:
            for event in news:
                context = None if event.step is None else by_step[event.step].context
                self._state = fold.add(
                    self._state, event.arm, event.pulls, event.value or 0.0, event.squares, context
                )
        self._folded = max(self._folded, row.seen)
        return copy(self._state)


class Rewards(NamedTuple):
    """How the pulls of a task ended, for the rows of its trail."""

    value: FloatArray  # (decision,), NaN where no reward is known
    came: BoolArray  # by itself, and not because a window closed
    delay: FloatArray  # seconds, NaN where it did not come
    corrected: int
    expired: int  # closed with a default or left out
    settled: BoolArray  # whether anything more is waited for


def rewards_of(trail: Trail, events: Sequence[Event]) -> Rewards:
    """Match rewards with decisions."""
    place = {row.step: at for at, row in enumerate(trail.rows)}
    count = len(trail.rows)
    value, delay = np.full(count, np.nan), np.full(count, np.nan)
    came = np.zeros(count, dtype=bool)
    settled = np.zeros(count, dtype=bool)
    corrected = expired = 0
    for event in events:
        at = None if event.step is None else place.get(event.step)
        if at is None:
            continue
        if event.kind in ("reward", "correction", "expired") and event.value is not None:
            value[at] = event.value
        if event.kind == "reward":
            came[at] = True
            delay[at] = event.time - trail.rows[at].time
        corrected += event.kind == "correction"
        expired += event.kind in ("expired", "left out")
        settled[at] = True
    return Rewards(value, came, delay, corrected, expired, settled)


def uniform_estimate(pairs: Sequence[tuple[Trail, Rewards]]) -> Uniform:
    """Estimate what uniform allocation would have earned with the same tasks and pulls."""
    columns, tasks = [np.zeros((3, 0))], []
    for trail, rewards in pairs:
        p = np.array([np.nan if r.propensity is None else r.propensity for r in trail.rows])
        kept = np.isfinite(rewards.value) & (p > 0.0)
        if not kept.any():
            continue
        arm = np.array([row.arm for row in trail.rows])
        count, average, own = _averages(trail, arm)
        x = average + (rewards.value - own) / (count * np.where(p > 0.0, p, 1.0))
        time = np.array([row.time for row in trail.rows])
        columns.append(np.stack([time, rewards.value, x])[:, kept])
        tasks.append(int(kept.sum()))
    time, reward, x = np.concatenate(columns, axis=1)
    return uniform_of(time, reward, x, tasks)


def _averages(trail: Trail, arm: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each decision: available arms, the average of their means, and the chosen one's."""
    start, out = 0, np.empty((3, len(arm)))
    for law in trail.laws:
        size = len(law.there)
        here = slice(start, start + size)
        out[0, here] = law.there.sum(axis=1)
        out[1, here] = np.where(law.there, law.means, 0.0).sum(axis=1) / out[0, here]
        out[2, here] = law.means[np.arange(size), arm[here]]
        start += size
    return out[0], out[1], out[2]


def judged(ratio: Ratio, trail: Trail, counted: BoolArray, *, shared: bool) -> Ratio:
    """Return the ratio with some more decisions of a task, ``counted`` of its rows.

    ``shared``: arms of the same name are the same in all tasks; otherwise their place in the task
    identifies them.
    """
    start = 0
    for law in trail.laws:
        rows = slice(start, start + len(law.there))
        start = rows.stop
        if law.probs is None or not counted[rows].any():
            continue
        labels = trail.arms[: law.there.shape[1]]
        if not shared:
            labels = tuple(f"arm {place + 1} of its task" for place in range(len(labels)))
        arm = np.array([row.arm for row in trail.rows[rows]])
        ratio = ratio.add(labels, law.probs[counted[rows]], arm[counted[rows]])
    return ratio
