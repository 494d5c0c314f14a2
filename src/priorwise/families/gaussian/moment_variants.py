"""What each variant of the normal moment estimator reads off a task: estimates x of the mean and z
of the second moments.

``gaussian`` has the formulas and what they estimate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal.totals import Contribution
from priorwise.fitting.design import design_sums


@final
@dataclass(frozen=True, eq=False)
class Setup:
    """What is known: the noise, the mean (0 if it is not), and the covariance that no-cov
    assumes.
    """

    noise_var: FloatArray
    mean: FloatArray
    cov: FloatArray


def rows_of(
    statistics: GaussianStatistics, rows: slice
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pulls, sums and squares of some tasks."""
    sums, squares = statistics.sums[rows], statistics.squares
    return statistics.pulls[rows], sums, np.zeros_like(sums) if squares is None else squares[rows]


def second_moments(
    pulls: FloatArray, products: FloatArray, squares: FloatArray, noise: FloatArray | None
) -> FloatArray:
    """Estimates of E[mu mu'], ``(task, arm, arm)``; with ``noise`` the diagonal comes from the
    squares less the noise.
    """
    arms, total = pulls.shape[1], pulls.sum(axis=1)[:, None]
    pairs = arms**2 / (total * (total - 1.0))
    z = pairs[:, :, None] * products
    diagonal = np.einsum("tii->ti", z)
    if noise is None:
        diagonal[:] = pairs * (np.einsum("tii->ti", products) - squares)
    else:
        diagonal[:] = arms / total * squares - noise
    return z


def _all_rounds(
    setup: Setup, pulls: FloatArray, sums: FloatArray, squares: FloatArray, *, noise: bool = False
) -> Contribution:
    used = pulls.sum(axis=1) >= 2
    n, s, q = pulls[used], sums[used], squares[used]
    x = n.shape[1] / n.sum(axis=1)[:, None] * s
    z = second_moments(n, s[:, :, None] * s[:, None, :], q, setup.noise_var if noise else None)
    return Contribution(x, z, len(pulls), design_sums(pulls))


def _known_mean(
    setup: Setup, pulls: FloatArray, sums: FloatArray, squares: FloatArray
) -> Contribution:
    squares = squares - 2.0 * setup.mean * sums + pulls * setup.mean**2
    centred = _all_rounds(setup, pulls, sums - pulls * setup.mean, squares)  # of r - nu
    return replace(centred, x=np.broadcast_to(setup.mean, centred.x.shape))


def _no_cov(setup: Setup, pulls: FloatArray, sums: FloatArray, squares: FloatArray) -> Contribution:
    used = pulls.sum(axis=1) >= 1
    n, s = pulls[used], sums[used]
    arms = n.shape[1]
    z = np.broadcast_to(setup.cov, (len(n), arms, arms))
    return Contribution(arms / n.sum(axis=1)[:, None] * s, z, len(pulls), design_sums(pulls))


def _difference(
    setup: Setup, pulls: FloatArray, sums: FloatArray, squares: FloatArray
) -> Contribution:
    """Pairs of consecutive tasks with equal pulls.

    Off the diagonal ``(S - S~)_a (S - S~)_b``. On it ``S^2 - Q + S~^2 - Q~ - 2 (n - 1)/n S S~``,
    which averages the products of differences over the orders in which the second task could have
    made its n pulls of the arm.
    """
    even = len(pulls) // 2 * 2
    (n, m), (s, t), (q, p) = ((each[:even:2], each[1:even:2]) for each in (pulls, sums, squares))
    used = (n == m).all(axis=1) & (n.sum(axis=1) >= 2)
    design = design_sums(np.concatenate([n, pulls[even:]]))
    n, s, t, q, p = (each[used] for each in (n, s, t, q, p))
    arms, total = n.shape[1], n.sum(axis=1)[:, None]
    pairs = arms**2 / (2.0 * total * (total - 1.0))
    z = pairs[:, :, None] * (s - t)[:, :, None] * (s - t)[:, None, :]
    diagonal = np.arange(arms)
    again = 2.0 * (n - 1.0) / np.maximum(n, 1.0) * s * t
    z[:, diagonal, diagonal] = pairs * (s**2 - q + t**2 - p - again)
    return Contribution(arms / (2.0 * total) * (s + t), z, len(pulls), design)


READERS: Final[dict[str, Callable[[Setup, FloatArray, FloatArray, FloatArray], Contribution]]] = {
    "two-round": _all_rounds,
    "known-mean": _known_mean,
    "difference": _difference,
    "full": partial(_all_rounds, noise=True),
    "no-cov": _no_cov,
}
