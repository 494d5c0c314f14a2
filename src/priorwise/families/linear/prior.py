"""Linear rewards in a context: w ~ N(mean, cov), r ~ N(x_a'w, noise_var), with the features x_a
drawn afresh at each pull.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.contexts import (
    Contexts,
    GivenContexts,
    IntegrableContexts,
    SphereContexts,
    best_directions,
    check_weights,
    law_of_contexts,
)
from priorwise.families.linear.environment import LinearEnvironment
from priorwise.families.normal.beliefs import NormalBelief, NormalPrior


@final
@frozen(eq=False, slots=False)
class LinearGaussianPrior(NormalPrior["LinearBelief"]):
    """Normal prior over the weights of a linear contextual bandit.

    Parameters
    ----------
    mean, cov
        Prior mean ``(dim,)`` and covariance ``(dim, dim)`` of the weights; the covariance may be
        singular.
    noise_var
        Variance of a reward around ``x_a'w``, ``(arm,)``, or one for all arms.
    contexts
        Where features come from: `SphereContexts`, `NormalContexts`, `GivenContexts`, an array
        ``(pool, arm, dim)`` or ``(arm, dim)``, or any object with ``arms`` and ``draw(rng, dim)``.
    names
        Names of the arms.

    Examples
    --------
    >>> LinearGaussianPrior(np.ones(3), np.eye(3), contexts=SphereContexts(arms=6)).arms
    6

    """

    family: ClassVar[str] = "linear-gaussian"

    contexts: Contexts = field(default=None, converter=law_of_contexts)

    def __attrs_post_init__(self) -> None:
        check_weights(self.contexts, self.mean.size)

    @property
    def coefficients(self) -> GaussianPrior:
        """Law of the coefficients ``w``, as a prior whose arms they are."""
        return GaussianPrior(self.mean, self.cov)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.contexts.arms

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.mean.size

    def sample(self, rng: Stream, tasks: int) -> LinearEnvironment:
        """``w ~ N(mean, cov)``."""
        argument_checks.batch(rng, tasks)
        weights = self.mean + np.einsum("tj,ij->ti", rng.normal(self.dim), self._root)
        return LinearEnvironment(weights, self.contexts, self.reward_law)

    def laws(self) -> tuple[FloatArray, FloatArray] | None:
        """Laws of the arms' values in each context of a pool; None for other contexts."""
        if not isinstance(self.contexts, GivenContexts):
            return None
        x = self.contexts.features
        return x @ self.mean, x @ self.cov @ x.transpose(0, 2, 1)

    def values(self, weights: FloatArray, seen: Seen) -> FloatArray:
        """``x_a'w`` of the arms given weights ``(task, draw, dim)``."""
        features = argument_checks.features(seen, len(weights), self.arms, self.dim)
        return np.asarray(weights @ features.transpose(0, 2, 1))

    @property
    def _belief(self) -> "type[LinearBelief]":
        return LinearBelief

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Tile functions for the compiled loop; None with a user's own law of contexts."""
        from priorwise.families.gaussian import tiles as gaussian
        from priorwise.families.linear import tiles as linear
        from priorwise.kernels.bandit import bandit_tiles

        if isinstance(self.contexts, GivenContexts):
            pool = self.contexts.features
        elif isinstance(self.contexts, SphereContexts):
            pool = np.empty((0, self.arms, self.dim))
        else:
            return None
        arms, dim = self.arms, self.dim
        worth = best_directions(arms, dim) if "best_after" in uses else np.empty(0)
        p, n = gaussian.At.pack(**self._numbers, pool=len(pool), contexts=pool, worth=worth)
        return bandit_tiles(
            p,
            n,
            linear,
            environment_rows=dim,
            signal_rows=arms * dim,
            belief_rows=dim + dim * dim,
            scratch_rows=linear.scratch_rows(arms, dim, uses),
            sample=gaussian.sample,
            reward=gaussian.reward,
            start=gaussian.start,
        )


@final
@dataclass(frozen=True, eq=False)
class LinearBelief(NormalBelief):
    """Posterior N(m, L L') of each task's weights."""

    prior: LinearGaussianPrior

    def features(self, seen: Seen) -> FloatArray:
        """Features of the arms, ``(task, arm, dim)``."""
        return argument_checks.features(seen, self.tasks, self.arms, self.prior.dim)

    def direction(self, seen: Seen, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """``L'x``, ``(task, dim)``, and ``x'm``, ``(task,)``, of the chosen arms' features x."""
        x = argument_checks.chosen_features(seen, actions, self.arms, self.prior.dim)
        return np.einsum("tij,ti->tj", self.root, x), np.einsum("tj,tj->t", x, self.m)

    def _common(self) -> bool:
        """Whether features come from a pool."""
        return isinstance(self.prior.contexts, GivenContexts)

    def _next(self, rng: Stream, seen: Seen) -> Seen:
        """Show fresh features."""
        return replace(seen, signal=self.prior.contexts.draw(rng, self.prior.dim))

    def best_after(self, seen: Seen) -> FloatArray:
        """Expected best posterior mean over the next, fresh features and the reward of each arm;
        see the contexts' law.
        """
        contexts = self.prior.contexts
        if not isinstance(contexts, IntegrableContexts):
            raise MissingCapability(
                "contexts",
                "must have expected_best(m, gains, seen) for an exact look-ahead",
                got=type(contexts),
                cure="use RecedingHorizon, SphereContexts or GivenContexts",
            )
        return self._best_after(seen, 1)

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """Return the same after several pulls with the same features, exact; an error if features
        change from pull to pull.
        """
        contexts = self.prior.contexts
        if len(getattr(contexts, "features", ())) != 1:
            raise ArgumentError(
                "contexts",
                "must never change for a look-ahead over several pulls",
                got=type(contexts),
                cure="use pulls=1, or GivenContexts of one table",
            )
        return self._best_after(seen, pulls)

    def _best_after(self, seen: Seen, pulls: int) -> FloatArray:
        contexts: Any = self.prior.contexts
        f = self.features(seen) @ self.root  # L'x_a, (task, arm, dim)
        spread = np.sqrt(np.einsum("taj,taj->ta", f, f) + self.prior.noise_var / pulls)
        gains = f @ self.root.transpose(0, 2, 1) / spread[:, :, None]  # S x_a / sqrt(x_a'S x_a + v)
        return seen.masked(contexts.expected_best(self.m, gains, seen))
