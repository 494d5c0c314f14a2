"""Arms with a joint normal prior: mu ~ N(mean, cov), r ~ N(mu_a, noise_var_a)."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from attrs import frozen

from priorwise.core import argument_checks
from priorwise.core.choosing import TIE_TOLERANCE
from priorwise.core.rewards import BanditEnvironment
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray
from priorwise.families.normal.arithmetic import expected_maximum
from priorwise.families.normal.beliefs import NormalBelief, NormalPrior


@final
@frozen(eq=False, slots=False)
class GaussianPrior(NormalPrior["GaussianBelief"]):
    """Joint normal prior over the arms' means, with normal rewards.

    Parameters
    ----------
    mean
        Prior mean of each arm, ``(arm,)``.
    cov
        Prior covariance, ``(arm, arm)``, symmetric positive semi-definite; it may be singular.
    noise_var
        Variance of a reward around its arm's mean, ``(arm,)``, or one for all arms.
    names
        Names of the arms.

    Examples
    --------
    >>> prior = GaussianPrior(mean=[0.5, 0.0], cov=[[1.0, 0.9], [0.9, 1.0]], noise_var=1.0)
    >>> prior.arms
    2

    """

    family: ClassVar[str] = "gaussian"

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        """``mu ~ N(mean, cov)``."""
        argument_checks.batch(rng, tasks)
        means = self.mean + np.einsum("tj,aj->ta", rng.normal(self.arms), self._root)
        return BanditEnvironment(means, self.reward_law)

    @cached_property
    def _mean_size(self) -> FloatArray:
        """``(arm,)``: |mean| + a row of |root|, of which posterior means are sums."""
        return np.abs(self.mean) + np.abs(self._root).sum(axis=1)

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

    @property
    def _belief(self) -> "type[GaussianBelief]":
        return GaussianBelief

    def tiles(self, horizon: int, uses: frozenset[str], *, roots: bool = False) -> FamilyTiles:
        """Tile functions for the compiled loop; with many arms and few pulls those that keep the
        root as a product, unless a root for each task is asked for.
        """
        from priorwise.families.gaussian import tiles as kernels
        from priorwise.families.gaussian import tiles_exact as exact
        from priorwise.families.gaussian import tiles_wide as wide
        from priorwise.kernels.bandit import bandit_tiles

        arms = self.arms
        # the product form is cheaper than a root for each task
        short = arms >= wide.FROM_ARMS and 2 * horizon <= arms and not roots
        short = short and uses <= {"draw", "mean", "mean_size", "certain"}
        none = np.empty(0)
        p, n = kernels.At.pack(**self._numbers, pool=0, contexts=none, worth=none)
        return bandit_tiles(
            p,
            n,
            *((kernels, exact, wide) if short else (kernels, exact)),
            belief_rows=wide.belief_rows(arms, horizon) if short else arms + arms * arms,
            scratch_rows=arms
            + 2
            + (arms * (arms + 1) if uses & {"look", "best_after_pulls"} else 0),
            means_tie=self._means_may_tie,
            redraw=None if short else kernels.redraw,
        )


@final
@dataclass(frozen=True, eq=False)
class GaussianBelief(NormalBelief):
    """Posterior N(m, L L') of each task's means."""

    prior: GaussianPrior

    def mean_size(self, seen: Seen) -> FloatArray:
        """What the posterior means are sums of, but for the observations: the prior's mean, and a
        row of its root; ``(1, arm)``.
        """
        return self.prior._mean_size[None, :]

    def variance(self) -> FloatArray:
        """Posterior variances, ``(task, arm)``."""
        return np.einsum("taj,taj->ta", self.root, self.root)

    def best_after(self, seen: Seen) -> FloatArray:
        """E[max_b m_b + g_b Z] for each pulled arm, exact: ``g = S[:, a] / sqrt(S_aa + v_a)`` is
        the slope of the posterior means in the standardised reward.
        """
        return self.best_after_pulls(seen, 1)

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """Return the same for the mean of several rewards, whose noise has the variance ``v_a /
        pulls``; exact.
        """
        cov = self.covariance()
        spread = np.sqrt(np.einsum("taa->ta", cov) + self.prior.noise_var / pulls)
        return expected_maximum(seen.masked(self.m)[:, None, :], cov / spread[:, :, None])
