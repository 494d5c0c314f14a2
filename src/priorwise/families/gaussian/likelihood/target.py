"""Where a fit to few tasks leans: independent arms with one variance, around what is known of each
arm's mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.normal.likelihood.tasks import NormalTasks

ROUNDS: Final = 12


@dataclass(frozen=True, eq=False)
class Target:
    """Mean and variance of each arm, and the pulls that an average task gave an arm."""

    mean: FloatArray  # (arm,)
    var: FloatArray  # (arm,)
    pulls: float


def target(tasks: NormalTasks, noise: FloatArray, *, alike: bool) -> Target:
    """Fit ``mu_a ~ N(mean_a, var)``, independent over tasks and arms, with one variance for all
    arms.

    ``alike`` arms (exchangeable ones) share one mean. Others have means of their own, ``mean_a ~
    N(centre, between)``: each is shrunk towards the centre as far as the arms' means agree, so that
    an arm with few pulls leans on the others, and an offset between arms does not count as
    variance. With a single task the two cannot be told apart, and all is variance. The variance
    gets one standard error more, and that of the arm's mean, which keeps it positive when few tasks
    happen to agree, and vanishes as tasks come in. With a single mean reward, which tells nothing
    of the variance, it is that of a pull.

    Given ``var``, the variance between arms is the moment estimate of DerSimonian and Laird; given
    that, ``var`` takes a step of Fisher scoring with the arms' means integrated out.
    """
    seen = tasks.pulls > 0.0
    pulls = float((tasks.tasks @ tasks.pulls).sum()) / float(tasks.tasks.sum() * tasks.dim)
    # by group and arm: number of tasks, 0 where an arm was not pulled, sums of squared deviations
    # over them, and noise over pulls
    t, y, s = np.where(seen, tasks.tasks[:, None], 0.0), tasks.means, np.zeros_like(tasks.means)
    if len(tasks.scatter):
        s[-len(tasks.scatter) :] = np.einsum("gaa->ga", tasks.scatter)
    noise_share = noise / np.where(seen, tasks.pulls, 1.0)
    each, total = np.ones(tasks.dim), float(t.sum())
    if total < 2.0:
        return Target(float(y[seen][0]) * each, float(noise.mean()) * each, pulls)
    # all arms with one mean
    mean, pull = float((t * y).sum()) / total, float((t * noise_share).sum()) / total
    var = max(float((t * (y - mean) ** 2 + s).sum()) / total - pull, 0.1 * pull)
    for _ in range(ROUNDS):
        spread = var + noise_share
        mean = float((t * y / spread).sum() / (t / spread).sum())
        score = 0.5 * float(((t * (y - mean) ** 2 + s) / spread**2 - t / spread).sum())
        information = 0.5 * float((t / spread**2).sum())
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    most = var + (0.5 * float((t / (var + noise_share) ** 2).sum())) ** -0.5
    if alike or tasks.dim == 1:
        return Target(mean * each, most * each, pulls)
    # each arm with its own
    count = t.sum(axis=0)  # (arm,)
    freedom = float(np.maximum(count - 1.0, 0.0).sum())
    if freedom > 0.0:
        centred = y - (t * y).sum(axis=0) / count
        var = max(float((t * centred**2 + s).sum()) / freedom - pull, 0.01 * var)
    for _ in range(ROUNDS):
        spread = var + noise_share
        precision = (t / spread).sum(axis=0)
        own = (t * y / spread).sum(axis=0) / precision
        middle = float(precision @ own / precision.sum())
        excess = float(precision @ (own - middle) ** 2) - (len(own) - 1)
        between = max(excess / float(precision.sum() - (precision**2).sum() / precision.sum()), 0.0)
        weight = precision / (1.0 + between * precision)
        centre = float(weight @ own / weight.sum())
        trust = between * weight  # in [0, 1): how far an arm's mean is its own
        means = centre + trust * (own - centre)
        more = between / (1.0 + between * precision) + (1.0 - trust) ** 2 / weight.sum()
        score = 0.5 * float(((t * ((y - means) ** 2 + more) + s) / spread**2 - t / spread).sum())
        information = max(
            0.5 * float(((t / spread**2).sum(axis=0) * (1.0 - trust / count)).sum()), 1e-300
        )
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    return Target(means, min(var + information**-0.5, most) + more, pulls)
