"""Does the prior change over time? A test on a log whose tasks have times.

If tasks are draws of one prior, a draw from a task's posterior has the law of that prior, however
much the log saw of the task and however its arms were chosen. So each task is placed in the prior:
draws of its posterior are compared with draws of the prior by a number y, such as the average over
arms, and

    u_i = P(y of the posterior of task i is above y of the prior) - 1/2

has the mean 0. Sums over the tasks before a time c are judged by what they add up to under random
signs of the tasks: with V_c the sum of u_i^2 over these tasks and V that over all,

    T = max_c B_c^2 / (V_c (1 - V_c / V)),     B_c = sum_{i <= c} u_i - (V_c / V) sum_i u_i.

The last term takes out that the prior was fitted to the same tasks (Zeileis and Hornik 2007). T is
the largest over several numbers y too, and its law is that of normal multipliers of the tasks. As u
is bounded, it is well behaved in small parts, and a jump of any size is seen: T rises to about the
number of tasks.

The law of T is that of a large log. In short ones, and where late tasks were pulled much more often
than early ones, T is large somewhat more often, so that the alarm is raised at a fifth of the level
that is promised. The promise holds for tasks that are independent, if the family fits, or else if
tasks are alike in everything, also in how often their arms were pulled.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import option
from priorwise.core.frames import Table, Tabular
from priorwise.core.hashing import mix
from priorwise.core.protocols import for_arms
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import BoolArray, FloatArray
from priorwise.logs.recent import Recent, recent_of
from priorwise.logs.times import lengths

LEVEL: Final = 0.01
"""How often a log with one prior is said to drift, at most."""
RAISED: Final = LEVEL / 5.0
"""P-value at which it is: see above."""
SUSPECTED: Final = 0.05
"""P-value at which old tasks may fade, and promises count that the level may move on."""
PARTS: Final = 16
LEAST: Final = 25
"""Tasks of a part."""
SHOWN: Final = 8
"""Parts whose priors are told."""
MOST: Final = 20_000
"""Tasks that are placed in the prior, evenly over time if there are more."""
MOST_SINGLE: Final = 2_000
"""The same where each task has a prior of its own."""
DRAWS: Final = 16
"""Draws of the posterior of each task."""
PLACES: Final = 2_000
"""Draws of the prior, in which they are placed."""
SIGNS: Final = 20_000
"""Draws of the law of T."""
PLAUSIBLE: Final = 32
"""Plausible priors of a part, for the standard error of its level."""

LEVEL_OF_TASKS: Final = "the average arm"
SPREAD: Final = "how far tasks lie apart"
WITHIN: Final = "how far the arms of a task lie apart"


@final
@dataclass(frozen=True)
class Drift(Tabular):
    """Whether the prior changes over time: how often a log without a change looks as much like one,
    what changes most clearly, and the average mean reward of the arms under priors fitted to each
    part of the log, with their standard errors; ``times`` are the average times of the parts.

    ``recent`` says how old tasks fade, if a half-life was chosen. Where the order of the log stands
    for time, it is ``ordered``.
    """

    p_value: float
    what: str
    means: tuple[float, ...]  # (part,)
    errors: tuple[float, ...] = ()  # (part,)
    times: tuple[float, ...] = ()  # (part,)
    ordered: bool = False
    recent: Recent | None = None

    @property
    def raised(self) -> bool:
        """Whether there is a change, as at most one log in a hundred says without one."""
        return self.p_value <= RAISED

    @property
    def suspected(self) -> bool:
        """Whether there may be a change, as at most one log in twenty says without one."""
        return self.p_value <= SUSPECTED

    @property
    def verdict(self) -> str:
        """What to think of it, in words."""
        ends = f"{self.means[0]:.3g} in the first part of the log, {self.means[-1]:.3g} in the last"
        clock = " The order of the tasks in the log stands for time." if self.ordered else ""
        if not self.suspected:
            return f"No sign that the prior changes over time (average arm: {ends}).{clock}"
        says, often = "The prior changes", "one log in a hundred"
        if not self.raised:
            says, often = "The prior may change", "one log in twenty"
        cure = (
            f"Learn from late tasks only, with {option('since')}, or let old ones fade, with "
            f"{option('half_life')}."
            if self.recent is None
            else str(self.recent)
        )
        return (
            f"{says} over time, most clearly {self.what} (average arm: {ends}). (At most {often} "
            f"says so without a change, if tasks are independent.){clock} {cure}"
        )

    def table(self) -> Table:
        """Columns by name, one row for each part of the log."""
        found: Table = {"part": list(range(1, len(self.means) + 1)), "mean": list(self.means)}
        return found | ({"std_error": list(self.errors)} if self.errors else {})

    def __str__(self) -> str:
        """The verdict."""
        return self.verdict


def drift_of(
    estimator: Any,
    fit: Any,
    starts: NDArray[Any],
    exists: BoolArray,
    *,
    seed: int,
    ordered: bool = False,
) -> Drift | None:
    """Test whether tasks that began at ``starts`` follow one prior; None where there are too few,
    or a part does not tell a prior. ``exists`` says which arms they have, ``(task, arm)``; with
    ``ordered`` tasks began in the order of the log.
    """
    data = fit.statistics
    if data.tasks < 3 * LEAST:
        return None
    order = np.argsort(starts, kind="stable")
    shown = np.array_split(order, min(SHOWN, data.tasks // LEAST))
    try:
        levels = [_level(estimator.fit(data.take(np.sort(part))), seed) for part in shown]
    except ValueError:  # a part without a repeated pull does not tell the noise, say
        return None
    most = MOST_SINGLE if hasattr(fit.prior, "of_rows") else MOST
    if len(order) > most:
        order = order[np.linspace(0, len(order) - 1, most).astype(np.int64)]
    u, names = _placed(fit.prior, data.take(order), exists[order], seed)
    p_value, largest = _judged(u, min(PARTS, len(order) // LEAST), seed)
    ages = lengths(starts - starts.min())
    times = tuple(float(ages[part].mean()) for part in shown)
    means, errors = zip(*levels, strict=True)
    return Drift(p_value, names[largest], means, errors, times, ordered)


def faded_by(
    drift: Drift, estimator: Any, fit: Any, starts: NDArray[Any], *, unit: str, seed: int
) -> tuple[Drift, Any, BoolArray]:
    """Choose how old tasks fade, where the prior changes: see :mod:`priorwise.logs.recent`. Returns
    what is known of the change then, the fit to the tasks that are kept, and which these are.
    """
    parts: Any = tuple(map(np.array, (drift.times, drift.means, drift.errors)))
    arms = fit.statistics.arms
    found = recent_of(estimator, fit, starts, parts, lambda prior: _mean(prior, arms), unit, seed)
    if found is None:
        return drift, fit, np.ones(fit.statistics.tasks, dtype=bool)
    recent, again, kept = found
    return replace(drift, recent=recent), again, kept


def _judged(u: FloatArray, parts: int, seed: int) -> tuple[float, int]:
    """P-value of the largest T, and the column of ``u``, ``(task, number)``, that it is of."""
    pieces = np.array_split(u, parts)
    squares = np.array([each.T @ each for each in pieces])  # (part, number, number)
    own = np.diagonal(squares, axis1=1, axis2=2)
    share = own.cumsum(axis=0)[:-1] / np.maximum(own.sum(axis=0), 1e-300)
    scale = share * (1.0 - share) * own.sum(axis=0)

    def largest(sums: FloatArray) -> FloatArray:  # (..., part, number) -> (..., number)
        bridge = sums.cumsum(axis=-2)[..., :-1, :] - share * sums.sum(axis=-2, keepdims=True)
        found: FloatArray = (bridge**2 / np.where(scale > 0.0, scale, np.inf)).max(axis=-2)
        return found

    found = largest(np.array([each.sum(axis=0) for each in pieces]))
    rng = np.random.Generator(np.random.Philox(key=seed))
    values, axes = np.linalg.eigh(squares)
    roots = axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    drawn = np.einsum("pij,spj->spi", roots, rng.standard_normal((SIGNS, *own.shape)))
    above = int((largest(drawn).max(axis=-1) >= found.max()).sum())
    return (1 + above) / (1 + SIGNS), int(found.argmax())


def _placed(prior: Any, data: Any, exists: BoolArray, seed: int) -> tuple[FloatArray, list[str]]:
    """Where each task lies in the prior, ``(task, number)``, and what the numbers are of."""
    tasks, arms = exists.shape
    if hasattr(prior, "of_rows"):  # each task has a prior of its own
        groups = [(own, data.seen, np.array([i])) for i, own in enumerate(prior.of_rows(data.x))]
    else:
        of_pattern = np.unique(exists, axis=0, return_inverse=True)[1].ravel()
        groups = [
            (prior, data, np.flatnonzero(of_pattern == k)) for k in range(of_pattern.max() + 1)
        ]
    shared = getattr(data, "names", None) is not None
    names = [LEVEL_OF_TASKS, SPREAD, WITHIN, *(data.names if shared else ())]
    out = np.zeros((tasks, len(names)))
    for own, statistics, rows in groups:
        whole, here, seen = for_arms(own, arms), exists[rows[0]], Seen(1, 1, arms)
        belief = whole.belief_given(statistics.take(rows))
        streams = Streams(seed, rows.astype(np.uint64))
        learned = belief.sample(streams.at(Purpose.POLICY, 1), DRAWS, seen)[..., here]
        start = Streams(mix(seed), np.zeros(1, dtype=np.uint64)).at(Purpose.ENVIRONMENT, 0)
        drawn = whole.belief(1).sample(start, PLACES, seen)[0][:, here]
        middle = float(np.median(drawn.mean(axis=-1)))
        pairs = zip(_numbers(learned, middle, shared), _numbers(drawn, middle, shared), strict=True)
        for number, (mine, theirs) in enumerate(pairs):
            out[rows, number] = _above(mine, np.sort(theirs)).mean(axis=1) - 0.5
    return out, names


def _numbers(means: FloatArray, middle: float, shared: bool) -> list[FloatArray]:
    """What is compared, of means ``(..., arm)``."""
    level = means.mean(axis=-1)
    every = [means[..., arm] for arm in range(means.shape[-1])] if shared else []
    return [level, np.abs(level - middle), means.std(axis=-1), *every]


def _above(values: FloatArray, places: FloatArray) -> FloatArray:
    """Share of the sorted places below each value, where those that tie count half."""
    both = [np.searchsorted(places, values, side=side) for side in ("left", "right")]
    share: FloatArray = (both[0] + both[1]) / (2.0 * len(places))
    return share


def _level(fit: Any, seed: int) -> tuple[float, float]:
    """Average mean reward of the arms under a fitted prior, and its standard error; 0 where the fit
    has no law of plausible priors.
    """
    arms, error = fit.statistics.arms, 0.0
    if fit.uncertainty is not None:
        drawn = fit.draw(np.random.Generator(np.random.Philox(key=seed)), PLAUSIBLE)
        error = float(np.std([_mean(each, arms) for each in drawn], ddof=1))
    return _mean(fit.prior, arms), error


def _mean(prior: Any, arms: int) -> float:
    # of average tasks, where it depends on features
    whole = for_arms(getattr(prior, "base", prior), arms)
    return float(np.mean(whole.belief(1).mean(Seen(1, 1, whole.arms))))
