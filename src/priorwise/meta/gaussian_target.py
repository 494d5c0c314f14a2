"""Where a fit to few tasks leans: arms with one mean and one variance, estimated from all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.meta.gaussian_data import GaussianData

ROUNDS: Final = 12


@dataclass(frozen=True)
class Target:
    """Mean and variance of every arm, and the pulls that an average task gave an arm."""

    mean: float
    var: float
    pulls: float


def pooled(data: GaussianData, noise: FloatArray) -> Target:
    """Fit ``mu_a ~ N(mean, var)``, independent over tasks and arms, and add one standard error to the variance.

    Fisher scoring on ``y ~ N(mean, var + noise_a / n)``. The standard error keeps the variance positive when few tasks happen to
    agree, and vanishes as tasks come in. With a single mean reward, which tells nothing of the variance, it is that of a pull.
    """
    seen = data.pulls > 0.0
    t = np.broadcast_to(data.tasks[:, None], seen.shape)[seen]
    y = data.means[seen]
    s = np.einsum("gaa->ga", data.scatter)[seen]
    error = (noise / np.where(seen, data.pulls, 1.0))[seen]
    pulls = float((data.tasks @ data.pulls).sum()) / (data.total * data.arms)
    mean, cells = float(t @ y / t.sum()), float(t.sum())
    if cells < 2.0:
        return Target(mean, float(noise.mean()), pulls)
    var = max(float((t @ (y - mean) ** 2 + s.sum() - t @ error) / cells), 0.1 * float(t @ error) / cells)
    for _ in range(ROUNDS):
        total = var + error
        mean = float((t * y / total).sum() / (t / total).sum())
        score = 0.5 * float((((y - mean) ** 2 * t + s) / total**2 - t / total).sum())
        information = 0.5 * float((t / total**2).sum())
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    information = 0.5 * float((t / (var + error) ** 2).sum())
    return Target(mean, var + information**-0.5, pulls)
