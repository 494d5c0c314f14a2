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

from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
from scipy.special import logsumexp

from priorwise.core.estimates import percent
from priorwise.core.frames import Table
from priorwise.core.types import FloatArray, IntArray

LEVEL: Final = 0.001
"""How often a log in which nothing is wrong is ever doubted, at most."""
TILTS: Final = tuple(sign * 0.0025 * 2.0**power for power in range(11) for sign in (-1.0, 1.0))
"""Changes of the log odds of an arm that the test looks for, from 0.25% to a factor of 13."""
FEW: Final = 0.25
"""Share of one decision in the variance of an estimate from which on a reader is warned."""


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

    def table(self, points: int = 160) -> Table:
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


def uniform_of(
    time: FloatArray, reward: FloatArray, uniform: FloatArray, tasks: list[int]
) -> Uniform:
    """Estimate what uniform allocation would have earned from x of each decision, those of a task
    one after the other; ``tasks`` says how many each has.
    """
    if not len(time):
        return Uniform(*(np.zeros(0) for _ in range(4)))
    variance = np.concatenate(
        [
            (x - x.mean()) ** 2 * len(x) / (len(x) - 1) if len(x) > 1 else np.full(1, np.nan)
            for x in np.split(uniform, np.cumsum(tasks)[:-1])
        ]
    )
    # how a single decision of a task varies does not show: take the spread of all
    variance = np.where(np.isnan(variance), uniform.var(), variance)
    order = np.argsort(time, kind="stable")
    return Uniform(time[order], reward[order], uniform[order], variance[order])


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

    def add(self, labels: tuple[str, ...], probs: FloatArray, arm: IntArray) -> Ratio:
        """Return the ratio with some more decisions among arms with these names."""
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

    def table(self) -> Table:
        """Columns by name, one row for each arm."""
        return {
            "arm": list(self.arms),
            "chosen": self.chosen,
            "expected": self.expected,
            "std_dev": np.sqrt(self.variance),
        }
