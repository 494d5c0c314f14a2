"""Normal priors whose mean is linear in features of tasks: ``mu ~ N(nu + B z, Psi)``.

Given B, the rewards minus ``B z`` follow a plain normal prior, which
:class:`GaussianMarginalLikelihood` fits. Given Psi and the noise, ``(nu, B)`` are weighted least
squares. The two take turns, each uphill in the same likelihood, until least squares promise a rise
below the tolerance; as means and covariances are nearly independent of each other, a few turns do.

With ``P = V^-1`` and ``g = V^-1 (y - nu - B z)`` of a task, zero for arms that it did not pull, the
slope in B is ``sum g z'``, the information about it ``sum P (x) z z'``, and that about B and
another parameter that moves nu by dm and V by dV ``sum P (dV g + dm) z'``. What the other
parameters leave open widens the law of B by these, the observed ones, however arms were chosen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from priorwise.core.protocols import for_arms
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.fitting.coordinates import Regression
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.newton import positive_root

BLOCK: Final = 2**20  # entries of the tasks' matrices at a time


class _Sums(NamedTuple):
    """Sums over tasks; b is 1 for all arms that share their effects."""

    score: FloatArray  # (1 + feature, b): g x', x = (1, z)
    information: FloatArray  # (1 + feature, b, 1 + feature, b): P (x) x x'
    with_mean: FloatArray  # (feature, b, arm): P z
    with_cov: FloatArray  # (feature, b, arm, arm): P z (x) g
    with_noise: FloatArray  # (feature, b, arm): P g z / n


def regressed(
    estimator: Any, data: GaussianStatistics, z: FloatArray, start: Any, effects: FloatArray | None
) -> Regression:
    """Fit statistics with features z ``(task, feature)`` from a plain fit or prior and effects.

    The regulariser adds to what is known of the effects so many tasks, average ones with a feature
    of one standard deviation, in which it had no effect: this decides where the data do not.
    """
    alike, arms, k = estimator.structure == "exchangeable", data.arms, z.shape[1]
    wide = 1 if alike else arms
    B = np.zeros((k, wide)) if effects is None else effects.reshape(-1, k).T
    fit = estimator.fit(data.shifted(z @ B), start=start)
    pulled = np.ones(1, dtype=bool) if alike else np.asarray(data.pulls.any(axis=0))
    seen = data.pulls.any(axis=1).sum() if alike else np.maximum((data.pulls > 0.0).sum(axis=0), 1)
    weak, rise, turns = None, np.inf, 0
    while True:
        sums = _sums(for_arms(fit.prior, arms), data, z, B, alike)
        if weak is None:  # of an average task, once and for all
            known = np.einsum("bb->b", sums.information[0, :, 0])
            weak = np.zeros((1 + k, wide))
            weak[1:] = estimator.regulariser * known / seen
        slope = np.vstack([np.zeros(wide), sums.score[1:] - weak[1:] * B])  # nu is at its best
        information = sums.information.reshape((1 + k) * wide, -1) + np.diag(weak.ravel())
        step = _solved(information, slope.ravel()).reshape(1 + k, wide)
        rise = 0.5 * float((slope * step).sum())
        if rise < estimator.tolerance or turns >= estimator.max_iterations:
            break
        turns, B = turns + 1, B + step[1:]
        mean = fit.prior.mean + (float(step[0, 0]) if alike else step[0])
        fit = estimator.fit(data.shifted(z @ B), start=fit.prior.replaced(mean=mean))
    fit = replace(fit, iterations=turns)
    return _certain(estimator, fit, sums, B, weak[1:], pulled, rise < estimator.tolerance)


def _solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solution of least norm; arms that were never pulled have none."""
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    found = np.linalg.lstsq(matrix / size / size[:, None], vector / size, rcond=1e-10)[0]
    return np.asarray(found / size)


def _sums(prior: Any, data: GaussianStatistics, z: FloatArray, B: FloatArray, alike: bool) -> _Sums:
    arms, k = data.arms, z.shape[1]
    wide, step = 1 if alike else arms, max(BLOCK // arms**2, 1)
    score, information = np.zeros((1 + k, wide)), np.zeros(((1 + k) ** 2, wide**2))
    with_mean, with_cov = np.zeros((k, wide * arms)), np.zeros((k, wide * arms, arms))
    with_noise = np.zeros((k, wide * arms))
    for first in range(0, data.tasks, step):
        at = slice(first, first + step)
        n, own = data.pulls[at], z[at]
        there = n > 0.0
        both = there[:, :, None] & there[:, None, :]
        V = np.where(both, prior.cov, 0.0)
        share = np.where(there, prior.noise_var / np.where(there, n, 1.0), 1.0)
        V[:, np.arange(arms), np.arange(arms)] += share
        P = np.where(both, np.linalg.inv(V), 0.0)
        y = data.sums[at] / np.where(there, n, 1.0)
        g = np.einsum("tab,tb->ta", P, np.where(there, y - prior.mean - own @ B, 0.0))
        part = P.sum(axis=1, keepdims=True) if alike else P  # (task, b, arm)
        inner = part.sum(axis=2, keepdims=True) if alike else P
        x = np.hstack([np.ones((len(own), 1)), own])
        score += x.T @ (g.sum(axis=1, keepdims=True) if alike else g)
        pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        information += pairs.T @ inner.reshape(len(x), -1)
        flat, noisy = part.reshape(len(x), -1), np.where(there, g / np.where(there, n, 1.0), 0.0)
        with_mean += own.T @ flat
        with_noise += own.T @ (part * noisy[:, None, :]).reshape(len(x), -1)
        for j in range(k):
            with_cov[j] += (flat * own[:, j : j + 1]).T @ g
    whole = information.reshape(1 + k, 1 + k, wide, wide).transpose(0, 2, 1, 3)
    sizes = k, wide, arms
    return _Sums(
        score, whole, with_mean.reshape(sizes), with_cov.reshape(*sizes, arms),
        with_noise.reshape(sizes),
    )  # fmt: skip


def _certain(
    estimator: Any,
    fit: PriorFit,
    sums: _Sums,
    B: FloatArray,
    weak: FloatArray,
    pulled: BoolArray,
    rested: bool,
) -> Regression:
    """Covariance of the effects, from the information that is left when all else is estimated."""
    law: Any = fit.uncertainty  # NormalUncertainty
    alike = estimator.structure == "exchangeable"
    k, wide = B.shape
    arms = sums.with_mean.shape[2]
    size = k * wide
    known = sums.information[1:, :, 1:].reshape(size, size) + np.diag(weak.ravel())
    slope = np.zeros((arms, size))
    if law is not None:
        active = law.active.astype(bool)
        moves = np.einsum("acz,bc->zab", law.root_moves, law.root)
        moves = moves + moves.transpose(0, 2, 1)  # of the covariance
        noise = law.noise_moves * (law.noise[active] if law.noise.ndim else law.noise)[:, None]
        cross = (
            np.einsum("jba,az->zjb", sums.with_mean[:, :, active], law.mean_moves)
            + np.einsum("jbac,zac->zjb", sums.with_cov[:, :, active][:, :, :, active], moves)
            + np.einsum("jba,az->zjb", sums.with_noise[:, :, active], noise)
        ).reshape(-1, size)
        known = known - cross.T @ cross
        slope[active] = -law.mean_moves @ cross
    on = np.tile(pulled, k)
    covariance = np.zeros((size, size))
    root, determined = positive_root(known[np.ix_(on, on)])
    covariance[np.ix_(on, on)] = root @ root.T
    # arms that were never pulled take the average of the others
    others = np.eye(wide)
    others[~pulled] = pulled / pulled.sum()
    across = np.kron(np.eye(k), others)
    order = np.arange(size).reshape(k, wide).T.ravel()  # arm by arm
    covariance = (across @ covariance @ across.T)[np.ix_(order, order)]
    covariance = (covariance + covariance.T) / 2.0
    slope = slope[:, order]
    errors = dict(fit.std_errors)
    more = np.einsum("ai,ij,aj->a", slope, covariance, slope)
    if "mean" in errors and law is not None:
        errors["mean"] = np.hypot(errors["mean"], np.sqrt(more[0] if alike else more))
    notes = [*fit.warnings]
    if not determined:
        notes.append("the data leave some effects of the task features undetermined")
    if not rested:
        notes.append("effects of the task features have not converged; raise max_iterations")
    done = fit.converged and rested
    fit = replace(fit, std_errors=errors, warnings=notes, converged=done)
    effects = (B @ others.T).T
    return Regression(fit, effects[0] if alike else effects, covariance, slope)
