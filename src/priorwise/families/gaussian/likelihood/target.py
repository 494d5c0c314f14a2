"""Where a fit to few tasks leans: independent arms with one variance, around what is known of each
arm's mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.gaussian.likelihood.data import GaussianData

ROUNDS: Final = 12


@dataclass(frozen=True, eq=False)
class Target:
    """Mean and variance of each arm, and the pulls that an average task gave an arm."""

    mean: FloatArray  # (arm,)
    var: FloatArray  # (arm,)
    pulls: float


@dataclass(frozen=True, eq=False)
class _Cells:
    """Mean rewards by group and arm; ``tasks`` is 0 where an arm was not pulled."""

    tasks: FloatArray
    means: FloatArray
    scatter: FloatArray  # sum of squared deviations over the tasks of the group
    error: FloatArray  # noise over pulls


def target(data: GaussianData, noise: FloatArray, *, alike: bool) -> Target:
    """Fit ``mu_a ~ N(mean_a, var)``, independent over tasks and arms, with one variance for all
    arms.

    ``alike`` arms (exchangeable ones) share one mean. Others have means of their own, ``mean_a ~
    N(centre, between)``: each is shrunk towards the centre as far as the arms' means agree, so that
    an arm with few pulls leans on the others, and an offset between arms does not count as
    variance. With a single task the two cannot be told apart, and all is variance. The variance
    gets one standard error more, and that of the arm's mean, which keeps it positive when few tasks
    happen to agree, and vanishes as tasks come in. With a single mean reward, which tells nothing
    of the variance, it is that of a pull.
    """
    seen = data.pulls > 0.0
    pulls = float((data.tasks @ data.pulls).sum()) / (data.total * data.arms)
    cells = _Cells(
        np.where(seen, data.tasks[:, None], 0.0),
        data.means,
        np.einsum("gaa->ga", data.scatter),
        noise / np.where(seen, data.pulls, 1.0),
    )
    each = np.ones(data.arms)
    if cells.tasks.sum() < 2.0:
        return Target(float(cells.means[seen][0]) * each, float(noise.mean()) * each, pulls)
    mean, var, error = _one_mean(cells)
    if alike or data.arms == 1:
        return Target(mean * each, (var + error) * each, pulls)
    means, more, own_var, own_error = _own_means(cells, var)
    return Target(means, min(own_var + own_error, var + error) + more, pulls)


def _one_mean(cells: _Cells) -> tuple[float, float, float]:
    """Mean, variance and its standard error, by Fisher scoring on ``y ~ N(mean, var + error)``."""
    t, y, s = cells.tasks, cells.means, cells.scatter
    total = float(t.sum())
    mean, noise = float((t * y).sum()) / total, float((t * cells.error).sum()) / total
    var = max(float((t * (y - mean) ** 2 + s).sum()) / total - noise, 0.1 * noise)
    for _ in range(ROUNDS):
        spread = var + cells.error
        mean = float((t * y / spread).sum() / (t / spread).sum())
        score = 0.5 * float(((t * (y - mean) ** 2 + s) / spread**2 - t / spread).sum())
        information = 0.5 * float((t / spread**2).sum())
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    return mean, var, (0.5 * float((t / (var + cells.error) ** 2).sum())) ** -0.5


def _own_means(cells: _Cells, overall: float) -> tuple[FloatArray, FloatArray, float, float]:
    """Each arm's mean and its variance given the data, the variance of tasks around them and its
    standard error.

    Given ``var``, the variance between arms is the moment estimate of DerSimonian and Laird; given
    that, ``var`` takes a step of Fisher scoring with the arms' means integrated out.
    """
    t, y, s = cells.tasks, cells.means, cells.scatter
    count = t.sum(axis=0)  # (arm,)
    freedom = float(np.maximum(count - 1.0, 0.0).sum())
    var = overall
    if freedom > 0.0:
        centred = y - (t * y).sum(axis=0) / count
        var = max(
            float((t * centred**2 + s).sum()) / freedom
            - float((t * cells.error).sum() / count.sum()),
            0.01 * overall,
        )
    for _ in range(ROUNDS):
        spread = var + cells.error
        precision = (t / spread).sum(axis=0)
        own = (t * y / spread).sum(axis=0) / precision
        middle = float(precision @ own / precision.sum())
        excess = float(precision @ (own - middle) ** 2) - (len(own) - 1)
        between = max(excess / float(precision.sum() - (precision**2).sum() / precision.sum()), 0.0)
        weight = precision / (1.0 + between * precision)
        centre = float(weight @ own / weight.sum())
        trust = between * weight  # in [0, 1): how far an arm's mean is its own
        mean = centre + trust * (own - centre)
        more = between / (1.0 + between * precision) + (1.0 - trust) ** 2 / weight.sum()
        score = 0.5 * float(((t * ((y - mean) ** 2 + more) + s) / spread**2 - t / spread).sum())
        information = max(
            0.5 * float(((t / spread**2).sum(axis=0) * (1.0 - trust / count)).sum()), 1e-300
        )
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    return mean, more, var, information**-0.5
