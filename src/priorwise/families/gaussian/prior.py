"""Arms with a joint normal prior: mu ~ N(mean, cov), r ~ N(mu_a, noise_var_a).

The belief is the mean m and a square root L of the covariance, S = L L', updated by Potter's
formula; S stays positive semi-definite whatever the rounding, and singular priors need nothing
special. Costs O(arms^2) per pull.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import doors, validation
from priorwise.core.action_laws import ActionLaw
from priorwise.core.choosing import TIE_TOLERANCE
from priorwise.core.family import ask, seen_by
from priorwise.core.protocols import Imagined, Seen, Signal
from priorwise.core.rewards import BanditEnvironment, NormalRewards
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.normal.arithmetic import (
    condition,
    expected_maximum,
    expected_maximum_gains,
    given,
    log_normal,
)


@final
@dataclass(frozen=True, eq=False, init=False)
class GaussianPrior(Serializable):
    """Joint normal prior over the arms' means, with normal rewards.

    Parameters
    ----------
    mean
        Prior mean of each arm, ``(arm,)``.
    cov
        Prior covariance, ``(arm, arm)``, symmetric positive semi-definite; may be singular.
    noise_var
        Variance of a reward around its arm's mean: one for all arms, or ``(arm,)``.
    names
        Names of the arms.

    Examples
    --------
    >>> prior = GaussianPrior(mean=[0.5, 0.0], cov=[[1.0, 0.9], [0.9, 1.0]], noise_var=1.0)
    >>> prior.arms
    2

    """

    family: ClassVar[str] = "gaussian"

    mean: FloatArray
    cov: FloatArray
    noise_var: FloatArray
    names: tuple[str, ...] | None = field(repr=False)
    _root: FloatArray = field(repr=False)
    # (arm,): |mean| + a row of |root|, of which posterior means are sums
    _mean_size: FloatArray = field(repr=False)

    def __init__(
        self, mean: ArrayLike, cov: ArrayLike, noise_var: ArrayLike = 1.0, *, names: Any = None
    ) -> None:
        """Check and freeze the parameters."""
        checked = validation.vector("mean", mean)
        object.__setattr__(self, "mean", checked)
        object.__setattr__(self, "cov", validation.covariance("cov", cov, checked.size))
        noise = validation.positive(
            "noise_var", validation.per_arm("noise_var", noise_var, checked.size)
        )
        object.__setattr__(self, "noise_var", noise)
        object.__setattr__(self, "names", validation.names(names, checked.size))
        object.__setattr__(self, "_root", validation.square_root(self.cov))
        object.__setattr__(self, "_mean_size", np.abs(self.mean) + np.abs(self._root).sum(axis=1))

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    @property
    def reward_law(self) -> NormalRewards:
        """How rewards scatter around their means."""
        return NormalRewards(tuple(self.noise_var.tolist()))

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        """``mu ~ N(mean, cov)``."""
        doors.batch(rng, tasks)
        return BanditEnvironment(
            self.mean + np.einsum("tj,aj->ta", rng.normal(self.arms), self._root), self.reward_law
        )

    @cached_property
    def _means_may_tie(self) -> bool:
        """Whether two arms start with one mean but for rounding, and learn from others: then they
        may learn the same.
        """
        close = np.diff(np.sort(self.mean)) <= 2.0 * TIE_TOLERANCE * self._mean_size.max()
        return bool(close.any() and (self.cov != np.diag(np.diag(self.cov))).any())

    def values(self, means: FloatArray, seen: Seen) -> FloatArray:
        """Return the values of the arms given their means: these themselves."""
        return means

    def belief(self, tasks: int) -> GaussianBelief:
        """Start at the prior."""
        tasks = doors.tasks_of(tasks)
        mean = np.broadcast_to(self.mean, (tasks, self.arms))
        return GaussianBelief(
            self, mean, np.broadcast_to(self._root, (tasks, self.arms, self.arms))
        )

    def belief_given(self, statistics: Any) -> GaussianBelief:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding; tasks may have had different
        numbers of pulls.
        """
        information = ask(self, "information", "belief_given")(self, seen_by(self, statistics))
        return GaussianBelief(self, *given(self.mean, self._root, *information))

    def tiles(self, horizon: int, uses: frozenset[str], *, roots: bool = False) -> FamilyTiles:
        """Tile functions for the compiled loop; with many arms and few pulls those that keep the
        root as a product, unless a root for each task is asked for.
        """
        from priorwise.families.gaussian import tiles as kernels
        from priorwise.families.gaussian import tiles_exact as exact
        from priorwise.families.gaussian import tiles_look as ahead
        from priorwise.families.gaussian import tiles_wide as wide
        from priorwise.kernels import bandit

        arms = self.arms
        short = wide.pays(arms, horizon) and uses <= {"draw", "mean", "mean_size", "certain"}
        short = short and not roots
        p, n = kernels.packed(
            self.mean, self._root, self.noise_var, np.empty((0, arms, arms)), np.empty(0)
        )
        return FamilyTiles(
            p=p,
            n=n,
            arms=arms,
            environment_rows=arms,
            signal_rows=0,
            belief_rows=wide.belief_rows(arms, horizon) if short else arms + arms * arms,
            scratch_rows=kernels.arm_scratch_rows(arms, "look" in uses),
            resets_row=-1,
            sample=kernels.sample,
            signal=bandit.no_signal,
            values=bandit.arm_values,
            reward=kernels.reward,
            start=wide.start if short else kernels.start,
            draw=wide.draw if short else kernels.arm_draw,
            mean=wide.mean if short else kernels.arm_mean,
            update=wide.update if short else kernels.arm_update,
            look=ahead.arm_look,
            certain=bandit.never_certain,
            mean_size=kernels.arm_mean_size,
            means_tie=self._means_may_tie,
            quantile=exact.arm_quantile,
            best_after=exact.arm_best_after,
            draw_each=exact.arm_draw_each,
            redraw=None if short else kernels.arm_redraw,
        )


@final
@dataclass(frozen=True, eq=False)
class GaussianBelief(SeparableTasks):
    """Posterior N(m, L L') of each task."""

    prior: GaussianPrior
    m: FloatArray  # (task, arm)
    root: FloatArray  # (task, arm, arm)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.m.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.m.shape[1]

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``mu ~ N(m, S)``, ``(task, draw, arm)``."""
        z = rng.normal(doors.drawing(self, rng, draws), self.prior.arms)
        return self.m[:, None, :] + z @ self.root.transpose(0, 2, 1)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws: itself one draw, from N(m, S / draws)."""
        z = rng.normal(1, self.prior.arms)
        return self.m + (z @ self.root.transpose(0, 2, 1))[:, 0] / np.sqrt(draws)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means."""
        return self.m

    def mean_size(self, seen: Seen) -> FloatArray:
        """What the posterior means are sums of, but for the observations: the prior's mean, and a
        row of its root; ``(1, arm)``.
        """
        return self.prior._mean_size[None, :]

    def variance(self) -> FloatArray:
        """Posterior variances, ``(task, arm)``."""
        return np.einsum("taj,taj->ta", self.root, self.root)

    def covariance(self) -> FloatArray:
        """Posterior covariances, ``(task, arm, arm)``."""
        return self.root @ self.root.transpose(0, 2, 1)

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the means."""
        from scipy.special import ndtri

        return self.m + np.sqrt(self.variance()) * ndtri(doors.level(level))

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the largest value, or mean of values, of some draws, by lattice quadrature."""
        from priorwise.families.normal.argmax import argmax_law

        return argmax_law(self.m, self.covariance(), self.prior.cov, draws, rule, seen)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ N(mu_a, noise_var_a)``."""
        return self._given(*doors.played(self, seen, actions, rewards))

    def _given(self, actions: IntArray, rewards: FloatArray) -> Self:
        rows = np.arange(len(actions))
        residual = rewards - self.m[rows, actions]
        m, root = condition(
            self.m, self.root, self.root[rows, actions], self.prior.noise_var[actions], residual
        )
        return type(self)(self.prior, m, root)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``log N(r; m_a, S_aa + noise_var_a)``, ``(task,)``."""
        rows = np.arange(len(actions))
        f = self.root[rows, actions]
        return log_normal(
            rewards - self.m[rows, actions],
            np.einsum("tj,tj->t", f, f) + self.prior.noise_var[actions],
        )

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw ``mu_a`` and its reward; the other means of the drawn environment are never looked
        at.
        """
        rows = np.arange(len(actions))
        z = rng.normal(2)
        f = self.root[rows, actions]
        value = self.m[rows, actions] + np.sqrt(np.einsum("tj,tj->t", f, f)) * z[:, 0]
        reward = value + np.sqrt(self.prior.noise_var[actions]) * z[:, 1]
        return Imagined(value, self._given(actions, reward), seen)

    def best_after(self, seen: Seen) -> FloatArray:
        """E[max_b m_b + g_b Z] for each pulled arm, exact: g is the slope of the posterior means in
        the standardised reward.
        """
        gains = expected_maximum_gains(self.covariance(), self.prior.noise_var)
        return expected_maximum(seen.masked(self.m)[:, None, :], gains)
