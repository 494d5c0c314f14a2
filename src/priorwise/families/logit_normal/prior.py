"""Bernoulli arms that move together: log odds eta ~ N(mean, cov), r ~ Bernoulli(1 / (1 +
e^-eta_a)).

A belief is a function of the prior and the counts. It is found by expectation propagation
(``propagation``), which every update does anew: the state is the counts. Draws and quantiles are
those of the normal approximation of the log odds; means and variances of rates come from better
laws of single arms (``marginals``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.approximate import WeightedDraws
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Covariance, Names, arrays, words
from priorwise.core.protocols import Imagined
from priorwise.core.rewards import BanditEnvironment, BernoulliRewards
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.logit_normal.extremes import rate_extremes
from priorwise.families.logit_normal.marginals import marginals
from priorwise.families.logit_normal.propagation import Sites, propagated
from priorwise.families.logit_normal.tilted import rates, softplus
from priorwise.families.normal.importance import weighted
from priorwise.families.registry import seen_by
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.enumeration import Outcome, Outcomes

LOOK_AHEAD: Final = {"look", "best_after", "best_after_pulls"}  # tile functions that take room
MOST_MEAN: Final = 40.0
MOST_VAR: Final = 100.0
"""Log odds, and their variance, beyond which rates are 0 or 1 to all digits, or all but."""


@final
@frozen(eq=False, slots=False)
class LogitNormalPrior(Serializable):
    """Joint normal prior over the log odds of the arms' success probabilities, with rewards 0 or 1.

    Parameters
    ----------
    mean
        Mean of each arm's log odds, ``(arm,)``.
    cov
        Their covariance; it may be singular, ``(arm, arm)``.
    names
        Names of the arms.

    Examples
    --------
    >>> prior = LogitNormalPrior(mean=[-4.0, -4.0], cov=[[0.2, 0.18], [0.18, 0.2]])
    >>> prior.arms
    2

    """

    family: ClassVar[str] = "logit-normal"
    mean: FloatArray = field(converter=arrays, validator=Array(("arm",)))
    cov: FloatArray = field(converter=arrays, validator=Covariance())
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names()
    )

    def __attrs_post_init__(self) -> None:
        check_sizes(self.mean, np.diag(self.cov))

    @cached_property
    def _root(self) -> FloatArray:
        """L with ``L L' = cov``."""
        return validation.square_root(self.cov)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    @property
    def microseconds(self) -> dict[str, float]:
        """About what a decision about one task takes, by what its policy asks of the belief."""
        a = self.arms
        return {"draw": 0.3, "mean": 1.5 * a + 0.6 * a**2, "look": 2.0 * a**3} | {
            "repeated": 1.5 * a + 0.7 * a**2
        }

    @property
    def reward_law(self) -> BernoulliRewards:
        """How rewards scatter around their means."""
        return BernoulliRewards()

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        """``eta ~ N(mean, cov)``."""
        argument_checks.batch(rng, tasks)
        eta = self.mean + np.einsum("tj,ij->ti", rng.normal(self.arms), self._root)
        return BanditEnvironment(rates(eta), self.reward_law)

    def belief(self, tasks: int) -> LogitNormalBelief:
        """Start at the prior."""
        nothing = np.zeros((argument_checks.tasks_of(tasks), self.arms))
        return LogitNormalBelief(self, nothing, nothing, nothing, nothing)

    def belief_given(self, statistics: Any) -> LogitNormalBelief:
        """Return the belief about tasks of which all that was seen is in their statistics."""
        seen = seen_by(self, statistics)
        return LogitNormalBelief.of(
            self, seen.successes.astype(np.float64), seen.pulls.astype(np.float64)
        )

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles:
        """Tile functions for the compiled loop."""
        from priorwise.families.logit_normal import tiles as kernels
        from priorwise.families.logit_normal import tiles_exact as exact
        from priorwise.families.logit_normal import tiles_repeated as repeated
        from priorwise.kernels.bandit import bandit_tiles

        arms = self.arms
        p, n = packed(self.mean, self._root)
        return bandit_tiles(
            p,
            n,
            kernels,
            exact,
            repeated,
            belief_rows=5 * arms + arms * arms,
            scratch_rows=kernels.scratch_rows(arms, bool(uses & LOOK_AHEAD)),
        )


def packed(mean: FloatArray, root: FloatArray) -> tuple[FloatArray, IntArray]:
    """What the kernels read of a prior."""
    from priorwise.families.gaussian.tiles import At

    arms, none = mean.size, np.zeros(mean.size)
    return At.pack(
        arms=arms,
        dim=arms,
        pool=0,
        lower_root=not np.triu(root, 1).any(),
        same_noise=True,
        mean=mean,
        root=root,
        noise_var=none,
        noise_std=none,
        contexts=np.empty(0),
        worth=np.empty(0),
    )


def check_sizes(mean: FloatArray, var: FloatArray, name: str = "cov") -> None:
    """Raise an error for log odds at which rates are 0 or 1 to all digits."""
    if np.abs(mean).max() > MOST_MEAN:
        raise ArgumentError(
            "mean",
            f"is in log odds and must not exceed {MOST_MEAN:g} in size",
            got=mean[np.abs(mean).argmax()],
            cure="log odds of a rate p are log(p / (1 - p))",
        )
    if var.max() > MOST_VAR:
        raise ArgumentError(
            name, f"is of log odds, whose variances must not exceed {MOST_VAR:g}", got=var.max()
        )


@final
@dataclass(frozen=True, eq=False)
class LogitNormalBelief(SeparableTasks):
    """Posterior of each task: its counts, and the normal factors that stand for them."""

    prior: LogitNormalPrior
    successes: FloatArray  # (task, arm)
    pulls: FloatArray  # (task, arm)
    precision: FloatArray  # (task, arm), of the factors
    shift: FloatArray  # (task, arm)

    @classmethod
    def of(cls, prior: LogitNormalPrior, s: FloatArray, n: FloatArray) -> Self:
        """Return the belief after so many successes and pulls, ``(task, arm)`` each."""
        sites = propagated(s, n, prior.mean, prior._root)
        return cls(prior, s, n, sites.precision, sites.shift)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.pulls.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.pulls.shape[1]

    @property
    def sites(self) -> Sites:
        """The factors."""
        return Sites(self.precision, self.shift, np.zeros(self.tasks))

    @cached_property
    def normal(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``(task, arm)`` and root of the covariance, ``(task, arm, arm)``, of the log
        odds.
        """
        return self.sites.normal(self.prior.mean, self.prior._root)

    @cached_property
    def rates(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each arm's rate, ``(task, arm)`` each."""
        return marginals(self.successes, self.pulls, self.sites, *self.normal).rate_moments()

    def std(self) -> FloatArray:
        """Standard deviations of the log odds, ``(task, arm)``."""
        root = self.normal[1]
        return np.asarray(np.sqrt(np.einsum("taj,taj->ta", root, root)))

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Rates with ``eta ~ N(m, S)``, ``(task, draw, arm)``."""
        m, root = self.normal
        z = rng.normal(argument_checks.drawing(self, rng, draws), self.arms)
        return rates(m[:, None, :] + z @ root.transpose(0, 2, 1))

    @property
    def approximate(self) -> bool:
        """Whether the posterior is more than a point."""
        return bool(self.prior.cov.any())

    def weighted_draws(self, rng: Stream, draws: int, seen: Seen) -> WeightedDraws:
        """Rates with their weights under the posterior and under its normal approximation."""
        mean, root = self.prior.mean, self.prior._root

        def eta(u: FloatArray) -> FloatArray:
            return mean + u @ root.T

        def log_likelihood(u: FloatArray) -> FloatArray:
            each = self.successes[:, None] * eta(u) - self.pulls[:, None] * softplus(eta(u))
            return np.asarray(each.sum(axis=2))

        u, *weights = weighted(*self.sites.units(mean, root), log_likelihood, rng, draws)
        return WeightedDraws(rates(eta(u)), *weights)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws."""
        return self.sample(rng, draws, seen).mean(axis=1)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means of the rates."""
        return self.rates[0]

    def variance(self) -> FloatArray:
        """Posterior variances of the rates, ``(task, arm)``."""
        return self.rates[1]

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the rates, by the normal approximation of the log odds."""
        from scipy.special import ndtri

        return rates(self.normal[0] + self.std() * ndtri(argument_checks.level(level)))

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the arm with the largest log odds in one draw, by quadrature; None for more."""
        from priorwise.families.normal.argmax import argmax_law

        if draws > 1:
            return None
        m, root = self.normal
        cov = root @ root.transpose(0, 2, 1)
        return argmax_law(m, cov, self.prior.cov, draws, rule, seen)

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray] | None:
        """``E[max]`` and ``E[min]`` of the rates of up to six arms before any pull, when the law
        of the log odds is exact; None later, and for more arms.
        """
        if self.pulls.any():
            return None
        cov = np.broadcast_to(self.prior.cov, (self.tasks, self.arms, self.arms))
        return rate_extremes(self.normal[0], cov, seen)

    def outcomes(self, seen: Seen) -> Outcomes:
        """Success and failure of each arm, with their probabilities ``(task,)``."""
        return [
            [Outcome(1.0, None, mean), Outcome(0.0, None, 1.0 - mean)] for mean in self.mean(seen).T
        ]

    def key(self) -> IntArray:
        """Bits of the counts."""
        return np.concatenate([self.successes, self.pulls], axis=1).view(np.int64)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ Bernoulli(mu_a)``; a reward between 0 and 1 counts as that share of a
        success.
        """
        return self._given(*argument_checks.played(self, seen, actions, rewards, low=0.0, high=1.0))

    def _given(self, actions: IntArray, rewards: FloatArray) -> Self:
        chosen = np.arange(self.arms) == actions[:, None]
        s, n = self.successes + chosen * rewards[:, None], self.pulls + chosen
        return type(self).of(self.prior, s, n)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``r log m_a + (1 - r) log(1 - m_a)`` at the posterior mean m, ``(task,)``."""
        mean = self.mean(seen)[np.arange(len(actions)), actions]
        return np.asarray(rewards * np.log(mean) + (1.0 - rewards) * np.log1p(-mean))

    @cached_property
    def log_evidence(self) -> FloatArray:
        """Log probability of the rewards of each task, ``(task,)``, given which arms were
        pulled.
        """
        if not self.pulls.any():
            return np.zeros(self.tasks)
        prior = self.prior
        return self.sites.tilted(self.successes, self.pulls, prior.mean, prior._root)[1]

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw ``mu_a`` and its reward; the other rates of the drawn environment are never looked
        at.
        """
        rows = np.arange(len(actions))
        eta = self.normal[0][rows, actions] + self.std()[rows, actions] * rng.normal(1)[:, 0]
        value = rates(eta)
        reward = (rng.uniform() < value).astype(np.float64)
        return Imagined(value, self._given(actions, reward), seen)

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """Best posterior mean after several pulls of an arm, by a lognormal approximation; see
        :mod:`priorwise.families.logit_normal.repeated`.
        """
        from priorwise.families.logit_normal.repeated import expected_best

        m, root = self.rates, self.normal[1]
        return seen.masked(expected_best(*m, root @ root.transpose(0, 2, 1), pulls, seen.mask))

    def best_after(self, seen: Seen) -> FloatArray:
        """Average the best posterior mean over the two rewards an arm may show, each with a belief
        of its own.
        """
        mean = self.mean(seen)
        best = []
        for reward in (1.0, 0.0):
            # (task, pulled arm, arm)
            s = self.successes[:, None, :] + reward * np.eye(self.arms)
            n = self.pulls[:, None, :] + np.eye(self.arms)
            shape = (-1, self.arms)
            then = type(self).of(self.prior, s.reshape(shape), n.reshape(shape)).rates[0]
            then = then.reshape(s.shape)
            if seen.mask is not None:
                then = np.where(seen.mask[:, None, :], then, -np.inf)
            best.append(then.max(axis=2))
        return seen.masked(mean * best[0] + (1.0 - mean) * best[1])
