"""What a log of decisions says about itself: what uniform allocation would have earned, and whether
arms were chosen as often as their propensities say.

Decision t of a task played arm A with propensity p, from a law p(.) over K available arms, and
earned r. With m(a) the posterior mean of arm a when the decision was made,

    x = (1/K) sum_a m(a)  +  (r - m(A)) / (K p)

has, given all that was known, the mean that a uniformly chosen arm would have earned: whatever m
is, because m does not know A or r. So sums of x are unbiased for uniform allocation; m only makes
them less noisy. It holds if whether a reward comes at all does not depend on it.

The same propensities test the choices. If arms are drawn as they say, then for every arm a and
every tilt d

    M = prod_t exp(d 1[A_t = a]) / (1 - p_t(a) + p_t(a) exp(d))

is a martingale with mean 1, because each factor has mean 1 given all that was known. So is an
average E of such products with fixed weights. By Ville's inequality E reaches 1 / level with
probability at most ``level``, however often one looks. Nothing here needs many decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

import numpy as np
from scipy.special import logsumexp

from priorwise.core.estimates import percent
from priorwise.core.protocols import MeanBelief, offers
from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.policies.laws import known_law
from priorwise.serve.rows import COUNTED, Decided, Event, Task

BLOCK: Final = 2_000
"""Decisions whose laws are computed together."""
LEVEL: Final = 0.001
"""How often a log in which nothing is wrong is ever doubted, at most."""
TILTS: Final = tuple(sign * 0.0025 * 2.0**power for power in range(11) for sign in (-1.0, 1.0))
"""Changes of the log odds of an arm that the test looks for, from 0.25% to a factor of 13."""
FEW: Final = 0.25
"""Share of one decision in the variance of an estimate from which on a reader is warned."""


class Laws(NamedTuple):
    """Of decisions: probability of each arm, which could be played, and the posterior means."""

    probs: FloatArray | None  # (decision, arm); None: this policy's law is not known
    there: BoolArray  # (decision, arm)
    means: FloatArray  # (decision, arm); zeros where the belief does not say


def laws_of(
    operations: Any, version: int, arms: tuple[str, ...], rows: Sequence[Decided],
    states: Sequence[Any],
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
    operations: Any, version: int, arms: tuple[str, ...], rows: Sequence[Decided],
    states: Sequence[Any],
) -> Laws:  # fmt: skip
    width = len(arms)
    chooser = operations.chooser(version, width)
    prior = chooser.prior
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
    belief = prior.belief_given(
        chooser.fold.statistics(list(states), getattr(prior, "names", None))
    )
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
    if offers(belief, MeanBelief):
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
    _state: Any = None
    _folded: int = 0  # events in it

    def extend(
        self, operations: Any, task: Task, decisions: Sequence[Decided], events: Sequence[Event]
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
        groups: dict[tuple[int, bool], tuple[list[Decided], list[Any]]] = {}
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
        self, operations: Any, task: Task, row: Decided, events: Sequence[Event],
        by_step: Mapping[int, Decided],
    ) -> Any:  # fmt: skip
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
                    self._state, event.arm, event.pulls, event.value, event.squares, context
                )
        self._folded = max(self._folded, row.seen)
        return self._state.copy() if isinstance(self._state, np.ndarray) else self._state


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


@final
@dataclass(frozen=True, eq=False)
class Uniform:
    """What was earned, and what uniform allocation would have earned, decision by decision in the
    order of time; ``variance`` is what each decision adds to that of the estimate.
    """

    time: FloatArray
    earned: FloatArray
    uniform: FloatArray
    variance: FloatArray

    @property
    def decisions(self) -> int:
        """Decisions with a reward and a propensity."""
        return len(self.time)

    @property
    def total(self) -> float:
        """Reward so far."""
        return float(self.earned.sum())

    @property
    def estimate(self) -> float:
        """Of what uniform allocation would have earned."""
        return float(self.uniform.sum())

    @property
    def std_error(self) -> float:
        """Of the estimate."""
        return float(np.sqrt(self.variance.sum()))

    @property
    def frail(self) -> bool:
        """Whether one decision makes up much of the variance: then the error may be too small."""
        total = self.variance.sum()
        return bool(total > 0.0 and self.variance.max() > FEW * total)

    def table(self, points: int = 160) -> dict[str, Any]:
        """Columns of running sums, thinned to so many rows, the last one included."""
        last = self.decisions - 1
        at = np.unique(np.linspace(0, last, min(points, last + 1)).round().astype(int))
        if last < 0:
            at = np.zeros(0, dtype=int)
        return {
            "time": self.time[at],
            "decisions": at + 1,
            "earned": np.cumsum(self.earned)[at],
            "uniform": np.cumsum(self.uniform)[at],
            "std_error": np.sqrt(np.cumsum(self.variance))[at],
        }


def uniform_estimate(pairs: Sequence[tuple[Trail, Rewards]]) -> Uniform:
    """Estimate what uniform allocation would have earned with the same tasks and pulls."""
    columns: list[tuple[FloatArray, ...]] = []
    for trail, rewards in pairs:
        if not trail.rows:
            continue
        p = np.array([np.nan if r.propensity is None else r.propensity for r in trail.rows])
        kept = np.isfinite(rewards.value) & (p > 0.0)
        if not kept.any():
            continue
        arm = np.array([row.arm for row in trail.rows])
        count, average, own = _averages(trail, arm)
        x = average + (rewards.value - own) / (count * np.where(p > 0.0, p, 1.0))
        time, x = np.array([row.time for row in trail.rows])[kept], x[kept]
        earned = rewards.value[kept]
        variance = np.full(1, np.nan)
        if len(x) > 1:
            variance = (x - x.mean()) ** 2 * len(x) / (len(x) - 1)
        columns.append((time, earned, x, variance))
    if not columns:
        return Uniform(*(np.zeros(0) for _ in range(4)))
    time, earned, x, variance = (np.concatenate(each) for each in zip(*columns, strict=True))
    # how a single decision of a task varies does not show: take the spread of all
    variance = np.where(np.isnan(variance), x.var(), variance)
    order = np.argsort(time, kind="stable")
    return Uniform(time[order], earned[order], x[order], variance[order])


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


@final
@dataclass(frozen=True, eq=False)
class Ratio:
    """How often arms were chosen, how often their propensities predict, and the evidence that the
    two differ. It grows by :meth:`add`; every decision counts once.
    """

    arms: tuple[str, ...] = ()  # in the order in which they first appeared
    chosen: FloatArray = field(default_factory=lambda: np.zeros(0))  # (arm,)
    expected: FloatArray = field(default_factory=lambda: np.zeros(0))  # (arm,)
    variance: FloatArray = field(default_factory=lambda: np.zeros(0))  # (arm,), of chosen
    log_ratios: FloatArray = field(default_factory=lambda: np.zeros((0, len(TILTS))))
    decisions: int = 0

    def add(self, trail: Trail, counted: BoolArray, *, shared: bool) -> Ratio:
        """Return the ratio with some more decisions of a task, ``counted`` of its rows.

        ``shared``: arms of the same name are the same in all tasks; otherwise their place in the
        task identifies them.
        """
        grown, start = self, 0
        for law in trail.laws:
            rows = slice(start, start + len(law.there))
            start = rows.stop
            if law.probs is None or not counted[rows].any():
                continue
            labels = trail.arms[: law.there.shape[1]]
            if not shared:
                labels = tuple(f"arm {place + 1} of its task" for place in range(len(labels)))
            arm = np.array([row.arm for row in trail.rows[rows]])
            grown = grown._with(labels, law.probs[counted[rows]], arm[counted[rows]])
        return grown

    def _with(self, labels: tuple[str, ...], probs: FloatArray, arm: IntArray) -> Ratio:
        arms = (*self.arms, *(label for label in labels if label not in self.arms))
        at = [arms.index(label) for label in labels]
        sums = np.zeros((len(arms), 3 + len(TILTS)))
        sums[: len(self.arms)] = np.column_stack(
            [self.chosen, self.expected, self.variance, self.log_ratios]
        )
        counts = np.bincount(arm, minlength=len(labels))
        sums[at, 0] += counts
        sums[at, 1] += probs.sum(axis=0)
        sums[at, 2] += (probs * (1.0 - probs)).sum(axis=0)
        for column, tilt in enumerate(TILTS, start=3):
            # log of the factors of M, of all decisions together
            sums[at, column] += tilt * counts - np.log1p(probs * np.expm1(tilt)).sum(axis=0)
        chosen, expected, variance = sums[:, :3].T
        return Ratio(arms, chosen, expected, variance, sums[:, 3:], self.decisions + len(arm))

    @property
    def p_value(self) -> float:
        """The smallest level at which the test doubts the log, valid however often one looks.

        The weight of arm k, in order of appearance, is 1 / (k (k + 1)): an arm may join at any
        time, and arms that have not appeared yet keep the remaining weight with M = 1.
        """
        k = np.arange(1.0, len(self.arms) + 1.0)
        weights = -np.log(k * (k + 1.0) * len(TILTS))[:, None]
        unused = -np.log(len(self.arms) + 1.0)
        return float(np.exp(-max(0.0, logsumexp([unused, *(weights + self.log_ratios).flat]))))

    @property
    def doubtful(self) -> bool:
        """Whether the log contradicts its propensities."""
        return self.p_value <= LEVEL

    def verdict(self, what: str = "chosen") -> str:
        """What to think of it, in words."""
        if not self.decisions:
            return "No decision has known probabilities yet."
        p = self.p_value
        test = f"p = {p:.2g}, valid however often you look"
        if p >= 0.05:
            return f"Arms are {what} as often as their propensities say ({test})."
        worst = int(np.argmax(np.abs(self.deviations)))
        more = "more" if self.chosen[worst] > self.expected[worst] else "less"
        apart = abs(self.chosen[worst] - self.expected[worst]) / max(self.expected[worst], 1e-9)
        odd = f"{self.arms[worst]} is {what} {percent(apart)} {more} often than expected ({test})"
        if p > LEVEL:
            return f"Nothing to act on: {odd}. This may be chance."
        return f"Something is wrong: {odd}. Look for lost or repeated requests and rewards."

    @property
    def deviations(self) -> FloatArray:
        """How many standard deviations each arm's count is off."""
        std = np.sqrt(np.maximum(self.variance, 1e-12))
        return np.where(self.variance > 1e-9, (self.chosen - self.expected) / std, 0.0)

    def table(self) -> dict[str, Any]:
        """Columns by name, one row for each arm."""
        return {
            "arm": list(self.arms),
            "chosen": self.chosen,
            "expected": self.expected,
            "std_dev": np.sqrt(self.variance),
        }
