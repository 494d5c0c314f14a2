"""Whether a fitted prior generates tasks like those of the log.

If the prior is right, the means of a task drawn from its posterior given what the log saw of it
have, over many tasks, the law of the prior itself; this holds however arms were chosen. So the
tasks of the log, drawn from their posteriors, are compared with tasks drawn from the prior: how far
tasks lie apart, how far the arms of one task do, and how heavy the tails are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.frames import Table, Tabular
from priorwise.core.hashing import mix
from priorwise.core.protocols import for_arms
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import BoolArray, FloatArray
from priorwise.figures.predictive import predictive_figure
from priorwise.figures.style import Picture

MOST_TASKS: Final = 5_000
"""Tasks of the log that are compared; the first ones if it has more."""
MOST_SINGLE: Final = 300
"""The same where each task has a prior of its own."""
DRAWS: Final = 8
"""Draws of each task of the log."""
LEVEL: Final = 0.01
"""How often a prior that is right is doubted, for each of the numbers."""
MATTERS: Final = 0.05
"""By how much of its size a number has to be off to be spoken of."""

NAMES: Final = ("mean", "between tasks", "between arms", "tails")
TOO: Final = {
    "mean": ("lower rewards", "higher rewards"),
    "between tasks": ("tasks that resemble each other more", "tasks that differ more"),
    "between arms": (
        "arms of one task that resemble each other more",
        "arms of one task that differ more",
    ),
    "tails": ("fewer outstanding arms", "more outstanding arms"),
}
"""What the log has, compared with the prior, where a number is too small and too large."""


@final
@dataclass(frozen=True, eq=False)
class PredictiveCheck(Tabular):
    """Numbers of the log's tasks, ``observed[name]``, beside those of tasks that the prior
    generates, ``drawn[name]`` ``(replicate,)``.

    ``mean`` is the average over all arms of all tasks; ``between tasks`` the standard deviation of
    the tasks' averages; ``between arms`` that of the arms of one task around its average; ``tails``
    the kurtosis of all arms.
    """

    observed: dict[str, float]
    drawn: dict[str, FloatArray]

    def p_value(self, name: str) -> float:
        """How often a log is as far out as the real one, on either side: twice the smaller share of
        the generated logs and the real one itself, so that with 200 of them it is at least 2 / 201.
        """
        drawn, own = self.drawn[name], self.observed[name]
        beyond = min(int((drawn >= own).sum()), int((drawn <= own).sum()))
        return min(1.0, 2.0 * (1 + beyond) / (1 + len(drawn)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Names of the numbers that the prior does not explain, and that are off by enough to
        matter.
        """
        return tuple(
            name
            for name in self.observed
            if self.p_value(name) < LEVEL
            and abs(self.observed[name] - np.median(self.drawn[name]))
            > MATTERS * abs(np.median(self.drawn[name]))
        )

    @property
    def verdict(self) -> str:
        """What to think of the prior, in words."""
        return self.verdict_on("those of the log", "The log has")

    def verdict_on(self, tasks: str, have: str) -> str:
        """Say the same of tasks that are called so."""
        if not self.doubts:
            return f"The prior generates tasks like {tasks}."
        expected = {name: float(np.median(self.drawn[name])) for name in self.doubts}
        more = {name: self.observed[name] > expected[name] for name in self.doubts}
        found = [
            f"{TOO[name][more[name]]} ({self.observed[name]:.3g}; the prior expects "
            f"{expected[name]:.3g})"
            for name in self.doubts
        ]
        text = f"{have} {', and '.join(found)}."
        several = self.observed["between arms"] > 0.0
        if several and more.get("between tasks") and not more.get("between arms"):
            text += (
                " The arms of one task move together, which this prior does not know: it will "
                "overstate what choosing between them is worth. Take a family with correlated arms."
            )
        return text

    def table(self) -> Table:
        """Columns by name, one row for each number."""
        low, median, high = (
            [float(np.quantile(self.drawn[name], level)) for name in self.observed]
            for level in (0.025, 0.5, 0.975)
        )
        return {
            "number": list(self.observed),
            "observed": list(self.observed.values()),
            "expected": median,
            "low": low,
            "high": high,
            "p_value": [self.p_value(name) for name in self.observed],
        }

    def figure(self, title: str = "") -> Picture:
        """Draw where the log lies among the logs that the prior generates."""
        return predictive_figure(self.observed, self.drawn, validation.text("title", title))

    def __str__(self) -> str:
        """A table and the verdict."""
        rows = self.table()
        lines = [f"{'':14}  {'log':>10}  {'prior, middle 95 %':>23}  {'p':>7}"]
        for i, name in enumerate(self.observed):
            span = f"{rows['low'][i]:.4g} to {rows['high'][i]:.4g}"
            lines.append(
                f"{name:14}  {rows['observed'][i]:10.4g}  {span:>23}  {rows['p_value'][i]:7.3g}"
            )
        return "\n".join([*lines, self.verdict])


def predictive_check(
    prior: Any, statistics: Any, exists: BoolArray, *, seed: int, replicates: int = 200
) -> PredictiveCheck:
    """Compare the tasks of a log with those that a prior generates.

    Parameters
    ----------
    prior
        Of arms; one without a fixed number of arms gets as many as the statistics have.
    statistics
        What the log saw of its tasks.
    exists
        Which arms the tasks have, ``(task, arm)``.
    seed, replicates
        Seed of the draws, and number of generated logs.

    """
    replicates = validation.count("replicates", replicates, least=20)
    if hasattr(prior, "of_rows"):
        return _task_by_task(prior, statistics, exists, validation.seed(seed), replicates)
    rows = np.arange(min(len(exists), MOST_TASKS))
    exists, whole = exists[rows], for_arms(prior, exists.shape[1])
    belief, seen = whole.belief_given(statistics.take(rows)), Seen(1, 1, whole.arms)
    streams = Streams(validation.seed(seed), rows.astype(np.uint64))
    # (draw, task, arm)
    learned = belief.sample(streams.at(Purpose.POLICY, 1), DRAWS, seen).transpose(1, 0, 2)
    found = [_numbers(each, exists) for each in learned]
    drawn = []
    for replicate in range(replicates):
        apart = Streams(mix(seed + 1 + replicate), rows.astype(np.uint64))
        means = whole.belief(len(rows)).sample(apart.at(Purpose.ENVIRONMENT, 0), 1, seen)[:, 0]
        drawn.append(_numbers(means, exists))
    return _check(found, drawn)


def _check(found: list[dict[str, float]], drawn: list[dict[str, float]]) -> PredictiveCheck:
    return PredictiveCheck(
        {name: float(np.mean([each[name] for each in found])) for name in NAMES},
        {name: np.array([each[name] for each in drawn]) for name in NAMES},
    )


def _task_by_task(
    prior: Any, statistics: Any, exists: BoolArray, seed: int, replicates: int
) -> PredictiveCheck:
    """The same where each task has a prior of its own, by its features."""
    exists = exists[:MOST_SINGLE]
    tasks, arms = exists.shape
    learned, drawn = np.empty((DRAWS, tasks, arms)), np.empty((replicates, tasks, arms))
    seen = Seen(1, 1, arms)
    for task, own in enumerate(prior.of_rows(statistics.x[:tasks])):
        whole, streams = for_arms(own, arms), Streams(seed, np.array([task], dtype=np.uint64))
        belief = whole.belief_given(statistics.seen.take([task]))
        learned[:, task] = belief.sample(streams.at(Purpose.POLICY, 1), DRAWS, seen)[0]
        start = streams.at(Purpose.ENVIRONMENT, 0)
        drawn[:, task] = whole.belief(1).sample(start, replicates, seen)[0]
    return _check(
        [_numbers(each, exists) for each in learned], [_numbers(m, exists) for m in drawn]
    )


def _numbers(means: FloatArray, exists: BoolArray) -> dict[str, float]:
    """What is compared, of the means ``(task, arm)`` of the arms that exist."""
    arms = exists.sum(axis=1)
    of_task = np.where(exists, means, 0.0).sum(axis=1) / arms
    off = np.where(exists, means - of_task[:, None], 0.0)
    several = arms > 1
    within = (off**2).sum(axis=1)[several].sum() / max((arms - 1)[several].sum(), 1)
    each = means[exists]
    centred = each - each.mean()
    second = float(np.mean(centred**2))
    return {
        "mean": float(each.mean()),
        "between tasks": float(np.std(of_task)),
        "between arms": float(np.sqrt(within)),
        "tails": float(np.mean(centred**4) / second**2) if second > 0.0 else 0.0,
    }
