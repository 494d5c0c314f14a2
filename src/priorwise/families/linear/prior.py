"""Linear rewards in a context: w ~ N(mean, cov), r ~ N(x_a'w, noise_var), with the features x_a
drawn afresh at each pull.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import doors, validation
from priorwise.core.action_laws import ActionLaw
from priorwise.core.family import ask, seen_by
from priorwise.core.protocols import Imagined, Seen, Signal
from priorwise.core.rewards import NormalRewards
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.contexts import (
    Contexts,
    GivenContexts,
    IntegrableContexts,
    SphereContexts,
    best_directions,
    law_of_contexts,
)
from priorwise.families.normal.arithmetic import condition, given, log_normal


@final
@dataclass(frozen=True, eq=False, init=False)
class LinearGaussianPrior(Serializable):
    """Normal prior over the weights of a linear contextual bandit.

    Parameters
    ----------
    mean, cov
        Prior mean ``(dim,)`` and covariance ``(dim, dim)`` of the weights; the covariance may be
        singular.
    noise_var
        Variance of a reward around ``x_a'w``: one for all arms, or ``(arm,)``.
    contexts
        Where features come from: :class:`SphereContexts`, :class:`GivenContexts`, an array ``(pool,
        arm, dim)`` or ``(arm, dim)``, or any object with ``arms`` and ``draw(rng, dim)``.
    names
        Names of the arms.

    Examples
    --------
    >>> LinearGaussianPrior(np.ones(3), np.eye(3), contexts=SphereContexts(arms=6)).arms
    6

    """

    family: ClassVar[str] = "linear-gaussian"

    mean: FloatArray
    cov: FloatArray
    noise_var: FloatArray
    contexts: Contexts
    names: tuple[str, ...] | None = field(repr=False)
    _root: FloatArray = field(repr=False)

    def __init__(
        self,
        mean: ArrayLike,
        cov: ArrayLike,
        noise_var: ArrayLike = 1.0,
        contexts: Contexts | ArrayLike | None = None,
        *,
        names: Any = None,
    ) -> None:
        """Check and freeze the parameters."""
        checked = validation.vector("mean", mean)
        law = law_of_contexts(contexts)
        if isinstance(law, GivenContexts) and law.features.shape[2] != checked.size:
            raise ValueError(
                f"contexts have {law.features.shape[2]} features, but mean has {checked.size} "
                "weights"
            )
        object.__setattr__(self, "mean", checked)
        object.__setattr__(self, "cov", validation.covariance("cov", cov, checked.size))
        noise = validation.positive(
            "noise_var", validation.per_arm("noise_var", noise_var, law.arms)
        )
        object.__setattr__(self, "noise_var", noise)
        object.__setattr__(self, "contexts", law)
        object.__setattr__(self, "names", validation.names(names, law.arms))
        object.__setattr__(self, "_root", validation.square_root(self.cov))

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

    @property
    def reward_law(self) -> NormalRewards:
        """How rewards scatter around their means."""
        return NormalRewards(tuple(self.noise_var.tolist()))

    def sample(self, rng: Stream, tasks: int) -> LinearEnvironment:
        """``w ~ N(mean, cov)``."""
        doors.batch(rng, tasks)
        return LinearEnvironment(
            self.mean + np.einsum("tj,ij->ti", rng.normal(self.dim), self._root),
            self.contexts,
            self.reward_law,
        )

    def values(self, weights: FloatArray, seen: Seen) -> FloatArray:
        """``x_a'w`` of the arms given weights ``(task, draw, dim)``."""
        features = doors.features(seen, len(weights), self.arms, self.dim)
        return np.asarray(weights @ features.transpose(0, 2, 1))

    def belief(self, tasks: int) -> LinearBelief:
        """Start at the prior."""
        tasks = doors.tasks_of(tasks)
        mean = np.broadcast_to(self.mean, (tasks, self.dim))
        return LinearBelief(self, mean, np.broadcast_to(self._root, (tasks, self.dim, self.dim)))

    def belief_given(self, statistics: Any) -> LinearBelief:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding; tasks may have had different
        numbers of pulls.
        """
        information = ask(self, "information", "belief_given")(self, seen_by(self, statistics))
        return LinearBelief(self, *given(self.mean, self._root, *information))

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Tile functions for the compiled loop; None with a user's own law of contexts."""
        from priorwise.families.gaussian import tiles as gaussian
        from priorwise.families.linear import tiles as linear
        from priorwise.families.linear import tiles_exact as exact
        from priorwise.kernels import bandit

        if isinstance(self.contexts, GivenContexts):
            pool = self.contexts.features
        elif isinstance(self.contexts, SphereContexts):
            pool = np.empty((0, self.arms, self.dim))
        else:
            return None
        arms, dim = self.arms, self.dim
        worth = best_directions(arms, dim) if "best_after" in uses else np.empty(0)
        p, n = gaussian.packed(self.mean, self._root, self.noise_var, pool, worth)
        return FamilyTiles(
            p=p,
            n=n,
            arms=arms,
            environment_rows=dim,
            signal_rows=arms * dim,
            belief_rows=dim + dim * dim,
            scratch_rows=max(
                linear.scratch_rows(arms, dim, "look" in uses),
                exact.scratch_rows(arms, dim) if "best_after" in uses else 0,
            ),
            resets_row=-1,
            sample=gaussian.sample,
            signal=linear.signal,
            values=linear.values,
            reward=gaussian.reward,
            start=gaussian.start,
            draw=linear.draw,
            mean=linear.mean,
            update=linear.update,
            look=linear.look,
            certain=bandit.never_certain,
            redraw=linear.redraw,
            quantile=exact.quantile,
            best_after=exact.best_after,
            draw_each=exact.draw_each,
        )


@final
@dataclass(frozen=True, eq=False)
class LinearEnvironment:
    """True weights; the signal is the features of the arms, ``(task, arm, dim)``."""

    actions_influence_signals: ClassVar[bool] = False

    weights: FloatArray  # (task, dim)
    contexts: Contexts
    law: NormalRewards

    def start(self, rng: WorldStreams) -> Signal:
        """Show the first features."""
        return self.contexts.draw(rng.world, self.weights.shape[1])

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Draw the rewards of the chosen arms, and the next features."""
        means = np.einsum("tj,tj->t", self.log(seen.signal, actions), self.weights)
        after = (
            self.contexts.draw(rng.world, self.weights.shape[1])
            if np.any(seen.step < seen.horizon)
            else seen.signal
        )
        return self.law.draw(means, actions, rng.noise), after

    def values(self, signal: Signal) -> FloatArray:
        """Expected rewards of the arms."""
        return np.einsum("taj,tj->ta", signal, self.weights)

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Features of the chosen arms, ``(task, dim)``."""
        return np.asarray(signal[np.arange(len(actions)), actions])


@final
@dataclass(frozen=True, eq=False)
class LinearBelief(SeparableTasks):
    """Posterior N(m, L L') of each task's weights."""

    prior: LinearGaussianPrior
    m: FloatArray  # (task, dim)
    root: FloatArray  # (task, dim, dim)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.m.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.prior.arms

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``x_a'w`` with ``w ~ N(m, S)``, ``(task, draw, arm)``."""
        z = rng.normal(doors.drawing(self, rng, draws), self.prior.dim)
        weights = self.m[:, None, :] + z @ self.root.transpose(0, 2, 1)
        return self.prior.values(weights, seen)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws: itself one draw of the weights, from N(m, S / draws)."""
        z = rng.normal(1, self.prior.dim)
        weights = self.m + (z @ self.root.transpose(0, 2, 1))[:, 0] / np.sqrt(draws)
        return np.einsum("taj,tj->ta", self._features(seen), weights)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means of the arms' values."""
        return np.einsum("taj,tj->ta", self._features(seen), self.m)

    def covariance(self) -> FloatArray:
        """Posterior covariances of the weights, ``(task, dim, dim)``."""
        return self.root @ self.root.transpose(0, 2, 1)

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the arms' values."""
        from scipy.special import ndtri

        f = self._features(seen) @ self.root
        return np.asarray(
            self.mean(seen) + np.sqrt(np.einsum("taj,taj->ta", f, f)) * ndtri(doors.level(level))
        )

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the largest value, or mean of values, of some draws, by lattice quadrature."""
        from priorwise.families.normal.argmax import argmax_law

        x = self._features(seen)
        cov = np.einsum("tai,tij,tbj->tab", x, self.covariance(), x)
        return argmax_law(self.mean(seen), cov, self.prior.cov, draws, rule, seen)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ N(x_a'w, noise_var_a)``."""
        actions, rewards = doors.played(self, seen, actions, rewards)
        return self._given(
            doors.chosen_features(seen, actions, self.arms, self.prior.dim), actions, rewards
        )

    def _given(self, x: FloatArray, actions: IntArray, rewards: FloatArray) -> Self:
        residual = rewards - np.einsum("tj,tj->t", x, self.m)
        f = np.einsum("tij,ti->tj", self.root, x)
        m, root = condition(self.m, self.root, f, self.prior.noise_var[actions], residual)
        return type(self)(self.prior, m, root)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``log N(r; x_a'm, x_a'S x_a + noise_var_a)``, ``(task,)``."""
        x = self._features(seen)[np.arange(len(actions)), actions]
        f = np.einsum("tij,ti->tj", self.root, x)
        variance = np.einsum("tj,tj->t", f, f) + self.prior.noise_var[actions]
        return log_normal(rewards - np.einsum("tj,tj->t", x, self.m), variance)

    def _features(self, seen: Seen) -> FloatArray:
        return doors.features(seen, self.tasks, self.arms, self.prior.dim)

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw ``x_a'w`` and its reward, and the fresh features that would be seen next."""
        z = rng.normal(2)
        x = self._features(seen)[np.arange(len(actions)), actions]
        f = np.einsum("tij,ti->tj", self.root, x)
        value = np.einsum("tj,tj->t", x, self.m) + np.sqrt(np.einsum("tj,tj->t", f, f)) * z[:, 0]
        reward = value + np.sqrt(self.prior.noise_var[actions]) * z[:, 1]
        fresh = self.prior.contexts.draw(rng, self.prior.dim)
        return Imagined(value, self._given(x, actions, reward), replace(seen, signal=fresh))

    def best_after(self, seen: Seen) -> FloatArray:
        """Expected best posterior mean over the next, fresh features and the reward of each arm;
        see the contexts' law.
        """
        contexts = self.prior.contexts
        if not isinstance(contexts, IntegrableContexts):
            raise TypeError(
                "an exact look-ahead needs contexts with expected_best(m, gains, seen), which "
                f"{type(contexts).__name__} lacks; "
                "use RecedingHorizon, or SphereContexts or GivenContexts"
            )
        f = self._features(seen) @ self.root  # L'x_a, (task, arm, dim)
        spread = np.sqrt(np.einsum("taj,taj->ta", f, f) + self.prior.noise_var)
        gains = f @ self.root.transpose(0, 2, 1) / spread[:, :, None]  # S x_a / sqrt(x_a'S x_a + v)
        return seen.masked(contexts.expected_best(self.m, gains, seen))
