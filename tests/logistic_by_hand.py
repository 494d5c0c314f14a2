"""Logistic posteriors without any approximation: dense grids, and exact draws by rejection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.types import FloatArray

NODES = 37
REACH = 11.0  # standard deviations on each side


@dataclass(frozen=True)
class OnAGrid:
    """Posterior of one task's weights on a grid around the law that is to be judged, which only
    says where and how wide: weights ``(point, dim)`` and their probabilities.
    """

    weights: FloatArray
    probs: FloatArray
    log_mass: float

    @classmethod
    def of(cls, prior: Any, x: Any, r: Any, m: Any, root: Any) -> OnAGrid:
        dim = len(m)
        z = np.linspace(-REACH, REACH, NODES)
        points = np.stack(np.meshgrid(*[z] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
        w = m + points @ root.T
        eta = w @ np.asarray(x).T
        log_p = (r * log_expit(eta) + (1.0 - np.asarray(r)) * log_expit(-eta)).sum(axis=1)
        apart = np.linalg.solve(np.linalg.cholesky(prior.cov), (w - prior.mean).T)
        log_p += -0.5 * (apart**2).sum(axis=0) - 0.5 * dim * np.log(2.0 * np.pi)
        log_p -= 0.5 * np.linalg.slogdet(prior.cov)[1]
        p = np.exp(log_p - log_p.max())
        edge = (np.abs(points) == REACH).any(axis=1)
        assert p[edge].max() < 1e-9
        cell = (z[1] - z[0]) ** dim * abs(np.linalg.det(root))
        return cls(w, p / p.sum(), float(log_p.max() + np.log(p.sum() * cell)))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the weights."""
        mean = self.probs @ self.weights
        away = self.weights - mean
        return mean, away.T @ (away * self.probs[:, None])

    def rates(self, features: Any) -> FloatArray:
        """Posterior means of the success probabilities of arms with features ``(arm, dim)``."""
        return np.asarray(self.probs @ expit(self.weights @ np.asarray(features).T))


def exact_weights(belief: Any, rng: Any, draws: int) -> FloatArray:
    """Draw weights ``(task, draw, dim)`` of the exact posterior by rejection.

    In units of the prior the log likelihood l is concave, so that it lies below its tangent at the
    mode u*, whose slope is u* there: prior times likelihood is at most a multiple of N(u*, I), and
    a draw from that is kept with probability ``exp(l(u) - l(u*) - u*'(u - u*))``.
    """
    prior, (tasks, dim) = belief.prior, belief.m.shape
    z, shift = belief.x @ prior._root, belief.x @ prior.mean

    def likelihood(u: Any) -> Any:  # (task, draw, dim)
        eta = shift[:, None, :] + u @ z.transpose(0, 2, 1)
        won = belief.r[:, None, :]
        return (won * log_expit(eta) + (1.0 - won) * log_expit(-eta)).sum(axis=2)

    top = belief.u[:, None, :]
    found, left = np.empty((tasks, draws, dim)), np.ones((tasks, draws), dtype=bool)
    while left.any():
        u = top + rng.normal(draws, dim)
        log_kept = likelihood(u) - likelihood(top) - ((u - top) * top).sum(axis=2)
        assert log_kept.max() < 1e-9
        kept = left & (np.log(rng.uniform(draws)) < log_kept)
        found[kept], left = u[kept], left & ~kept
    return np.asarray(prior.mean + np.einsum("tdj,ij->tdi", found, prior._root))


@dataclass(frozen=True, eq=False)
class ExactBelief:
    """Draws from the exact posterior; the approximation only says where to look."""

    near: Any

    def sample(self, rng: Any, draws: int, seen: Seen) -> FloatArray:
        weights = exact_weights(self.near, rng, draws)
        return np.asarray(expit(weights @ seen.signal.transpose(0, 2, 1)))

    def update(self, seen: Seen, actions: Any, rewards: Any, after: Any) -> Self:
        return replace(self, near=self.near.update(seen, actions, rewards, after))


@dataclass(frozen=True)
class ExactPrior:
    """The same prior with exact beliefs, to be believed."""

    prior: pw.LogisticPrior

    def __getattr__(self, name: str) -> Any:
        return getattr(self.prior, name)

    def sample(self, rng: Any, tasks: int) -> Any:
        return self.prior.sample(rng, tasks)

    def belief(self, tasks: int) -> ExactBelief:
        return ExactBelief(self.prior.belief(tasks))
