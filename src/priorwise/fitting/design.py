"""How exploration chose its arms: what it promises, a test of the pull counts, which moment
estimators run before they trust a log, and what the theory says of the tasks that it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtrc, gammainc, gammaincc

from priorwise.core.types import FloatArray

FALSE_ALARM: Final = 1e-3  # probability that uniform pulls are called something else
FEWEST_TASKS: Final = 10


@dataclass(frozen=True)
class Design:
    """Which of the first rounds of a task an exploration surely draws how, whatever happened in
    it.
    """

    horizon: int
    uniform: int = 0  # rounds that are uniform
    one_arm: int = 0  # rounds that pull one arm, each arm in as many tasks as the others
    paired: int = 0  # rounds that pull uniform arms, the same in two consecutive tasks


@dataclass(frozen=True)
class Rate:
    """Tasks that suffice for ``TV <= eps`` with probability ``1 - delta``, up to a factor that the
    theory does not give.
    """

    tasks: float
    formula: str

    def __str__(self) -> str:
        """Formula and its value."""
        return f"C {self.formula}, {self.tasks:.3g} for C = 1"


def least_tasks(certified: Callable[[int], float], eps: float) -> float:
    """Least number of tasks after which a bound that falls with tasks is at most eps; infinite
    where 2^60 tasks are not enough.
    """
    high = 1
    while not certified(high) <= eps:
        high *= 2
        if high > 1 << 60:
            return np.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certified(middle) <= eps else (middle, high)
    return float(high)


def design_sums(pulls: FloatArray, tasks: FloatArray | None = None) -> FloatArray:
    """Sums over tasks that :func:`uniformity_p_value` reads, ``(arm + 3,)``; they add up.
    ``tasks``: how many have each row.

    Pulls of each arm, number of tasks with at least two pulls, and over those the sum of Pearson's
    ``X^2 = sum_a (n_a - n/A)^2 A/n`` and of its variance ``2 (A - 1) (1 - 1/n)`` under uniform
    pulls.
    """
    arms = pulls.shape[1]
    weight = np.ones(len(pulls)) if tasks is None else tasks
    total = pulls.sum(axis=1)
    several = total >= 2
    n = np.where(several, total, 1.0)
    pearson = ((pulls**2).sum(axis=1) * arms / n - n) * several
    variance = 2.0 * (arms - 1) * (1.0 - 1.0 / n)  # 0 for a single pull
    rows = np.stack([several.astype(np.float64), pearson, variance], axis=1)
    return np.concatenate([weight @ pulls, weight @ rows])


def uniformity_p_value(design: FloatArray) -> float:
    """p-value of the hypothesis that every pull was drawn uniformly, whatever was seen before.

    Two tests, with Bonferroni's correction: the arms' totals (chi-square), and how pulls spread
    over arms within tasks (X^2 summed over tasks, against a gamma law with its mean and variance,
    on both sides). A policy that learns repeats arms within a task, one that takes turns repeats
    them too rarely. Where fewer than ten tasks have two pulls, the totals alone; 1 where these say
    too little.
    """
    pulls, (tasks, pearson, variance) = design[:-3], design[-3:]
    arms = pulls.size
    expected = pulls.sum() / arms
    if arms == 1 or expected < 5.0:
        return 1.0
    totals = chdtrc(arms - 1, ((pulls - expected) ** 2).sum() / expected)
    if tasks < FEWEST_TASKS:
        return float(totals)
    mean = tasks * (arms - 1)
    shape, scaled = mean**2 / variance, pearson * mean / variance
    within = 2.0 * min(gammainc(shape, scaled), gammaincc(shape, scaled))
    return float(min(1.0, 2.0 * min(totals, within)))


def uniformity_warnings(design: FloatArray, instead: str) -> tuple[str, ...]:
    """One sentence where the pulls were not uniform (false alarms with probability 1e-3), none
    otherwise.
    """
    p_value = uniformity_p_value(design)
    if p_value >= FALSE_ALARM:
        return ()
    message = (
        f"the pulls were not uniform (p = {p_value:.1e}): moments assume that they were, and "
        "overstate the spread between tasks where pulls followed rewards; "
        f"{instead} does not care how arms were chosen"
    )
    return (message,)
