"""Arms with unknown mean and variance: lambda_a ~ Gamma(shape_a, rate_a), mu_a given it ~
N(mean_a, 1 / (pulls_a lambda_a)), r ~ N(mu_a, 1 / lambda_a), arms independent.

By itself mu_a is ``mean_a + sqrt(rate_a / (shape_a pulls_a)) T`` with T of Student's law with ``2
shape_a`` degrees of freedom. Policies look at means only, so a posterior draw is one such number
for each arm; no precision is drawn. An environment is both, mean and precision: given them the
reward law is known, so that the theorems hold with distances over both (the paper names this case
among those of its general theorem).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Names, arrays, words
from priorwise.core.protocols import Imagined
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal_gamma import student
from priorwise.families.normal_gamma.environment import (
    DrawnNormalGamma,
    NormalGammaEnvironment,
    NormalRewardsOfUnknownVariance,
)
from priorwise.families.registry import seen_by
from priorwise.theory import largest
from priorwise.theory.action_laws import ActionLaw

LIMITS: Final = {"pulls": (1e-6, 1e12), "shape": (0.1, 1e12), "rate": (1e-50, 1e50)}
"""Of the parameters: beyond them squares of rewards leave the range of floats, or all is known."""


SMALLEST_GAMMA: Final = 1e-200
"""Precisions are drawn from here on: squares of rewards stay within the range of floats."""


@final
@frozen(eq=False, slots=False)
class NormalGammaPrior(Serializable):
    """Independent normal-gamma priors over the arms' means and precisions, with normal rewards.

    A number stands for all arms of the others.

    Parameters
    ----------
    mean
        Center of each arm's mean: its mean if ``shape > 1/2``, its median always, ``(arm,)``, or
        one for all arms.
    pulls
        How many pulls the mean is known by: given the precision ``lambda`` of a reward, it has
        variance ``1 / (pulls lambda)``, ``(arm,)``, or one for all arms.
    shape
        Shape of the Gamma distribution of the precision, which is as well known as after ``2
        shape`` pulls, ``(arm,)``, or one for all arms.
    rate
        Its rate: the variance of a reward is about ``rate / shape``, ``(arm,)``, or one for all
        arms.
    names
        Names of the arms.

    Examples
    --------
    >>> prior = NormalGammaPrior(mean=[0.5, 0.0, 0.0], pulls=1.0, shape=3.0, rate=3.0)
    >>> prior.arms, prior.freedom.tolist()
    (3, [6.0, 6.0, 6.0])

    """

    family: ClassVar[str] = "normal-gamma"

    mean: FloatArray = field(converter=arrays, validator=Array(("arm",), spread=1))
    pulls: FloatArray = field(
        converter=arrays, validator=Array(("arm",), *LIMITS["pulls"], spread=1)
    )
    shape: FloatArray = field(
        converter=arrays, validator=Array(("arm",), *LIMITS["shape"], spread=1)
    )
    rate: FloatArray = field(converter=arrays, validator=Array(("arm",), *LIMITS["rate"], spread=1))
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names()
    )

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom of each arm's mean, ``(arm,)``."""
        return np.asarray(2.0 * self.shape)

    @property
    def scale(self) -> FloatArray:
        """``sqrt(rate / (shape pulls))``: what Student's t is multiplied by, ``(arm,)``."""
        return np.asarray(np.sqrt(self.rate / (self.shape * self.pulls)))

    @property
    def microseconds(self) -> dict[str, float]:
        """About what a decision about one task takes, by what its policy asks of the belief."""
        return {"repeated": 10.0 * self.arms}

    @property
    def reward_law(self) -> NormalRewardsOfUnknownVariance:
        """How rewards scatter around their means."""
        return NormalRewardsOfUnknownVariance()

    def sample(self, rng: Stream, tasks: int) -> NormalGammaEnvironment:
        """Precisions, then the means given them."""
        shape = np.broadcast_to(self.shape, (argument_checks.batch(rng, tasks), self.arms))
        noise_std = np.sqrt(self.rate / rng.gamma(shape)[:, 0])
        means = self.mean + noise_std / np.sqrt(self.pulls) * rng.normal(self.arms)
        return NormalGammaEnvironment(means, noise_std)

    def sample_size_biased(self, rng: Stream, tasks: int) -> NormalGammaEnvironment:
        """Environments with density proportional to ``G = c + sum_a |mu_a - mean_a|``.

        With probability ``c / E[G]`` a task of the prior. Otherwise one arm is drawn in proportion
        to its ``E|mu_a - mean_a|``, its precision from Gamma(shape - 1/2, rate), and ``|mu_a -
        mean_a| = R / sqrt(pulls lambda)`` with R of Rayleigh's law.
        """
        plain = self.sample(rng, tasks)
        constant, deviations = self._size
        ends = np.cumsum([constant, *deviations])
        arm = np.searchsorted(ends, rng.uniform() * ends[-1]) - 1  # -1: leave the task as it is
        rows = np.flatnonzero((arm >= 0) & (arm < self.arms))
        arm = arm[rows]
        shape = np.broadcast_to(np.maximum(self.shape - 0.5, 0.0), (tasks, self.arms))
        gamma = rng.gamma(np.maximum(shape, np.finfo(np.float64).tiny))[:, 0][rows, arm]
        noise_std = np.sqrt(self.rate[arm] / np.maximum(gamma, SMALLEST_GAMMA))
        rayleigh = np.hypot(*rng.normal(2)[rows].T)
        side = np.where(rng.uniform()[rows] < 0.5, -1.0, 1.0)
        means, stds = plain.means.copy(), plain.noise_std.copy()
        means[rows, arm] = self.mean[arm] + side * rayleigh * noise_std / np.sqrt(self.pulls[arm])
        stds[rows, arm] = noise_std
        return NormalGammaEnvironment(means, stds)

    def size_ratio(self, belief: NormalGammaBelief) -> FloatArray:
        """``E[G given the history] / E[G]``, ``(task,)``."""
        constant, deviations = self._size
        apart, freedom = np.abs(belief.m - self.mean), 2.0 * belief.a
        # E|X - c| = |m - c| + 2 E(X - c)^+ beyond it
        size = apart + 2.0 * belief.scale * student.expected_excess(freedom, apart / belief.scale)
        return np.asarray((constant + size.sum(axis=1)) / (constant + deviations.sum()))

    @property
    def _size(self) -> tuple[float, FloatArray]:
        """The constant c, and ``E|mu_a - mean_a|`` of each arm."""
        deviations = 2.0 * self.scale * student.beyond(self.freedom, np.zeros(self.arms))
        return max(float(np.ptp(self.mean)), float(deviations.sum())), np.asarray(deviations)

    def belief(self, tasks: int) -> NormalGammaBelief:
        """Start at the prior."""
        shape = (argument_checks.tasks_of(tasks), self.arms)
        start = (self.mean, self.pulls, self.shape, self.rate)
        return NormalGammaBelief(*(np.broadcast_to(each, shape) for each in start))

    def belief_given(self, statistics: Any) -> NormalGammaBelief:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding: statistics hold squares, of which a
        large mean leaves few digits.
        """
        seen = seen_by(self, statistics)
        return NormalGammaBelief(*given(self, seen))

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Tile functions for the compiled loop; None where it cannot have what a policy uses."""
        from priorwise.families.normal_gamma import tiles as kernels
        from priorwise.families.normal_gamma import tiles_exact as exact
        from priorwise.kernels.bandit import bandit_tiles
        from priorwise.kernels.special import kept_rows

        arms = self.arms
        if uses & {"best_after", "best_after_pulls"}:
            _check_mean(self.shape)
        inverse, cumulative = exact.addresses()
        p, n = kernels.At.pack(
            arms=arms,
            mean=self.mean,
            pulls=self.pulls,
            shape=self.shape,
            rate=self.rate,
            inverse=np.array([inverse or 0]).view(np.float64),
            cumulative=np.array([cumulative or 0]).view(np.float64),
        )
        kept = kept_rows(arms * horizon * (horizon + 1)) if "quantile" in uses else 0
        return bandit_tiles(
            p,
            n,
            kernels,
            exact,
            environment_rows=2 * arms,
            sample_calls=2,
            belief_rows=kernels.ROWS_PER_ARM * arms + kept,
            scratch_rows=kernels.scratch_rows(arms),
            quantile=exact.quantile if inverse else None,
            best_after=exact.best_after if cumulative else None,
            best_after_pulls=exact.best_after_pulls if cumulative else None,
        )


def given(prior: NormalGammaPrior, seen: GaussianStatistics) -> tuple[FloatArray, ...]:
    """Mean, pulls, shape and rate after what was seen, ``(task, arm)``; in rewards minus the prior
    mean.
    """
    if seen.squares is None:
        raise ArgumentError(
            "statistics",
            "must have squares where the variance of rewards is unknown",
            cure="pass GaussianStatistics(pulls, sums, squares)",
        )
    by = seen.shifted(prior.mean)
    assert by.squares is not None
    pulls = prior.pulls + by.pulls
    spread = np.maximum(by.squares - by.sums * by.sums / pulls, 0.0)
    return (
        prior.mean + by.sums / pulls,
        pulls,
        prior.shape + 0.5 * by.pulls,
        prior.rate + 0.5 * spread,
    )


def _check_mean(shape: FloatArray) -> None:
    if shape.min() <= 0.5:
        raise ArgumentError(
            "shape",
            "must be above 1/2 for an exact look-ahead, as the best mean after a pull is infinite",
            got=shape.min(),
        )


@final
@dataclass(frozen=True, eq=False)
class NormalGammaBelief(SeparableTasks):
    """Posterior NormalGamma(m, k, a, b) of each arm of each task."""

    m: FloatArray  # (task, arm), mean
    k: FloatArray  # (task, arm), pulls
    a: FloatArray  # (task, arm), shape
    b: FloatArray  # (task, arm), rate

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.m.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.m.shape[1]

    @property
    def scale(self) -> FloatArray:
        """What Student's t of ``2 a`` degrees of freedom is multiplied by, ``(task, arm)``."""
        return np.asarray(np.sqrt(self.b / (self.a * self.k)))

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``mu_a ~ m + sqrt(b / (a k)) T_(2a)``, ``(task, draw, arm)``."""
        t = rng.student(2.0 * self.a, argument_checks.drawing(self, rng, draws))
        return self.m[:, None, :] + self.scale[:, None, :] * t

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnNormalGamma:
        """Draw the means of :meth:`sample`, then the precisions given them, ``lambda_a ~ Gamma(a +
        1/2, b + k (mu_a - m)^2 / 2)``.
        """
        means = self.sample(rng, draws, seen)
        gamma = np.maximum(rng.gamma(self.a + 0.5, draws), SMALLEST_GAMMA)
        rate = self.b[:, None] + 0.5 * self.k[:, None] * (means - self.m[:, None]) ** 2
        return DrawnNormalGamma(means, rate / gamma)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws."""
        return self.sample(rng, draws, seen).mean(axis=1)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means; medians where there is no mean, at ``a <= 1/2``."""
        return self.m

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the means."""
        return self.m + self.scale * student.quantile(2.0 * self.a, argument_checks.level(level))

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the largest of some draws, by quadrature; None for the mean of several."""
        if rule == "mean" and draws > 1:
            return None
        standard = student.StandardStudent(2.0 * self.a)
        law = largest.argmax_probabilities(self.m, self.scale, standard, draws, seen.mask)
        return ActionLaw(law, "quadrature", 1e-9)

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """``E[max]`` and ``E[min]`` by quadrature; infinite if an arm has ``a <= 1/2``."""
        standard = student.StandardStudent(2.0 * self.a)
        return largest.expected_extremes(self.m, self.scale, standard, seen.mask)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ N(mu_a, 1 / lambda_a)``."""
        return self._given(*argument_checks.played(self, seen, actions, rewards))

    def _given(self, actions: IntArray, rewards: FloatArray) -> Self:
        chosen = np.arange(self.arms) == actions[:, None]
        residual = np.where(chosen, rewards[:, None] - self.m, 0.0)
        move = residual / (self.k + 1.0)
        return type(self)(
            self.m + move,
            self.k + chosen,
            self.a + 0.5 * chosen,
            self.b + 0.5 * self.k * residual * move,
        )

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """Log density of ``r = m + sqrt(b (k + 1) / (a k)) T_(2a)``, ``(task,)``."""
        m, k, a, b = self._of(actions)
        scale = np.sqrt(b * (k + 1.0) / (a * k))
        return student.log_density(2.0 * a, (rewards - m) / scale) - np.log(scale)

    def _of(self, actions: IntArray) -> tuple[FloatArray, ...]:
        """What is known of one arm of each task, ``(task,)`` each."""
        rows = np.arange(len(actions))
        return tuple(each[rows, actions] for each in (self.m, self.k, self.a, self.b))

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw ``mu_a`` and its reward, which given ``mu_a`` is Student's with one degree of
        freedom more; the other means of the drawn environment are never looked at.
        """
        m, k, a, b = self._of(actions)
        t = rng.student(np.stack([2.0 * a, 2.0 * a + 1.0], axis=1))[:, 0]
        value = m + np.sqrt(b / (a * k)) * t[:, 0]
        spread = np.sqrt((2.0 * b + k * (value - m) ** 2) / (2.0 * a + 1.0))
        return Imagined(value, self._given(actions, value + spread * t[:, 1]), seen)

    def best_after(self, seen: Seen) -> FloatArray:
        """``E max(c, m + sqrt(b / (a k (k + 1))) T_(2a))`` for each pulled arm, c the best of the
        other means; exact, and infinite (an error) without a mean.
        """
        return self.best_after_pulls(seen, 1)

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """Return the same after several pulls, n: the mean moves by ``sqrt(b n / (a k (k + n)))
        T_(2a)``; exact.
        """
        _check_mean(self.a)
        masked = seen.masked(self.m)
        # best of the rest, by pulled arm
        others = np.where(np.eye(self.arms, dtype=bool), -np.inf, masked[:, None, :]).max(axis=2)
        scale = self.scale / np.sqrt(self.k / pulls + 1.0)
        alone = np.isneginf(others)
        apart = np.abs(np.where(alone, 0.0, others) - self.m)
        gain = scale * student.expected_excess(2.0 * self.a, apart / scale)
        best = np.maximum(others, self.m) + np.where(alone, 0.0, gain)
        return np.where(np.isfinite(masked), best, -np.inf)
