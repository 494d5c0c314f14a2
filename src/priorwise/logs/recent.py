"""The level of recent tasks, for a log whose prior changes: how fast old tasks should fade.

The log is cut into parts by time. Each later part is predicted by priors that are fitted to the
tasks before it, where old ones fade with a half-life (:func:`~priorwise.logs.times.faded`), for
several half-lives. The score of a half-life is the log marginal likelihood of a later task. The
longest half-life whose score lies within one standard error of the best is taken, so without a
change nothing fades.

A level that moved may go on moving. Let ``m_i`` be the average mean reward under a prior fitted to
part i alone, ``s_i`` its standard error, and ``d_ij`` the time between parts i and j. Then

    speed^2 = sum_ij d_ij^2 ((m_i - m_j)^2 - s_i^2 - s_j^2) / sum_ij d_ij^4    (0 if negative)

is the least-squares fit of ``E (m_i - m_j)^2 = (speed d_ij)^2 + s_i^2 + s_j^2``, and ``speed d`` is
the error of a promise for tasks that begin a time d after the tasks that the level was fitted to.
"""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import option
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import BoolArray, FloatArray
from priorwise.logs.times import faded, lengths
from priorwise.meta.evidence.likelihood import log_marginal_likelihood

PARTS: Final = 8
"""Parts of the log, of which the later half is predicted."""
HALVINGS: Final = 5
"""Half-lives that are tried: the length of the log, a half of it, and so on."""
LEAST: Final = 50
"""Tasks that have to be left of those that fade."""


@final
@dataclass(frozen=True)
class Recent(Tabular):
    """How old tasks fade, and where the level is then.

    ``gains`` say how much likelier, in log likelihood, a later task is with each of the
    ``half_lives`` than without fading; an infinite one is no fading. ``before`` and ``after`` are
    the average mean reward of the arms without fading and with the chosen ``half_life``. ``speed``
    is how far it moves in a unit of time, and ``lag`` how long before the end of the log the tasks
    began that are kept, on average.
    """

    half_lives: tuple[float, ...]
    gains: tuple[Estimate, ...]
    half_life: float
    kept: int
    tasks: int
    before: float
    after: float
    speed: float
    lag: float
    unit: str

    def error(self, ahead: float = 0.0) -> float:
        """Standard error of the level so long after the end of the log, from its movement alone."""
        return self.speed * (self.lag + ahead)

    def table(self) -> Table:
        """Columns by name, one row for each half-life that was tried."""
        return {
            "half_life": list(self.half_lives),
            "gain": [each.mean for each in self.gains],
            "std_error": [each.std_error for each in self.gains],
            "chosen": [each == self.half_life for each in self.half_lives],
        }

    def __str__(self) -> str:
        """What was done, in words."""
        if np.isinf(self.half_life):
            done = "No half-life predicts later tasks better, so all tasks count alike."
        else:
            done = (
                f"Old tasks fade with a half-life of {self.half_life:g} {self.unit}, chosen by how "
                f"well it predicts later tasks: {self.kept:,} of {self.tasks:,} tasks are kept, "
                f"and the average arm moves from {self.before:.3g} to {self.after:.3g}."
            )
        return (
            f"{done} Standard errors of promises count that it may move on, by ± "
            f"{self.error():.2g} until the end of the log. {option('half_life', 'none')} switches "
            "this off."
        )


def recent_of(
    estimator: Any,
    fit: Any,
    starts: NDArray[Any],
    parts: tuple[FloatArray, FloatArray, FloatArray],
    level: Any,
    unit: str,
    seed: int,
) -> tuple[Recent, Any, BoolArray] | None:
    """Choose a half-life for tasks that began at ``starts``, and fit the tasks that it keeps.

    Returns what was chosen, the fit, and which tasks are kept. ``parts`` are the times, the levels
    and their errors of parts of the log, and ``level`` is a function that gives the level of a
    prior. None if the log is too short.
    """
    data = fit.statistics
    # of a mixture one law: it is many times faster, and its level moves alike
    plain = estimator.estimator if hasattr(estimator, "components") else estimator
    begin = fit if plain is estimator else plain.fit(data)
    ages = lengths(starts.max() - starts)
    order = np.argsort(-ages, kind="stable")
    tried = [np.inf, *(float(f"{ages.max() / 2**k:.2g}") for k in range(HALVINGS))]
    scores = {}
    for half_life in tried if ages.max() > 0.0 else ():
        found = _later_scores(plain, begin, starts, order, half_life, seed)
        if found is not None:
            scores[half_life] = found
    if np.inf not in scores:
        return None
    chosen = _longest(scores)
    kept = _kept(data, starts, chosen, seed)
    if kept is None:
        chosen, kept = np.inf, np.ones(data.tasks, dtype=bool)
    again = fit if kept.all() else estimator.fit(data.take(kept), start=fit)
    recent = Recent(
        half_lives=tuple(scores),
        gains=tuple(mean_estimate(each - scores[np.inf]) for each in scores.values()),
        half_life=chosen,
        kept=int(kept.sum()),
        tasks=data.tasks,
        before=level(fit.prior),
        after=level(again.prior),
        speed=_speed(*parts),
        lag=float(ages[kept].mean()),
        unit=unit,
    )
    return recent, again, kept


def _longest(scores: dict[float, FloatArray]) -> float:
    """Return the longest half-life that predicts as well as the best, up to a standard error."""
    best = max(scores, key=lambda each: float(scores[each].mean()))
    gaps = {each: mean_estimate(scores[best] - own) for each, own in scores.items()}
    return max(each for each, gap in gaps.items() if each == best or gap.mean <= gap.std_error)


def _later_scores(
    estimator: Any, fit: Any, starts: NDArray[Any], order: Any, half_life: float, seed: int
) -> FloatArray | None:
    """Log likelihood of each later task under the prior of the tasks before its part; None if they
    do not tell a prior.
    """
    data, parts = fit.statistics, np.array_split(order, PARTS)
    out = []
    for k in range(PARTS // 2, PARTS):
        before, later = np.sort(np.concatenate(parts[:k])), np.sort(parts[k])
        earlier = data.take(before)
        kept = _kept(earlier, starts[before], half_life, seed)
        if kept is None:
            return None
        try:
            prior = estimator.fit(earlier.take(kept), start=fit).prior
        except ValueError:  # too few repeated pulls to tell the noise, say
            return None
        out.append(log_marginal_likelihood(prior, data.take(later)))
    return np.concatenate(out)


def _kept(data: Any, starts: NDArray[Any], half_life: float, seed: int) -> BoolArray | None:
    """Which tasks do not fade; None if too few, or an arm that tasks share is in none of them."""
    kept = faded(starts, half_life, seed)
    if getattr(data, "names", None) is not None:
        pulls = getattr(data, "seen", data).pulls
        if (pulls[kept].any(axis=0) != pulls.any(axis=0)).any():
            return None
    return kept if kept.sum() >= LEAST else None


def _speed(times: FloatArray, levels: FloatArray, errors: FloatArray) -> float:
    """How far the level moves in a unit of time, without what chance moves it."""
    first, second = np.triu_indices(len(times), 1)
    apart = (times[second] - times[first]) ** 2
    moved = (levels[second] - levels[first]) ** 2 - errors[first] ** 2 - errors[second] ** 2
    scale = float(apart @ apart)
    return float(np.sqrt(max(float(apart @ moved), 0.0) / scale)) if scale > 0.0 else 0.0
