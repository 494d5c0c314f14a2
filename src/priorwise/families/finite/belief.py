"""Beliefs about which of finitely many tasks it is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from priorwise.core import argument_checks
from priorwise.core.drawn import DrawnPoints
from priorwise.core.protocols import ControlledEnvironments, DrawnEnvironments, Imagined
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.streams import Stream
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.theory.enumeration import Outcomes, expected_outcomes, rounded_logs
from priorwise.theory.numerics import rescaled

if TYPE_CHECKING:
    from priorwise.families.finite.prior import FinitePrior

HERMITE_NODES: Final = 64


@dataclass(frozen=True, eq=False)
class Candidates(SeparableTasks):
    """Posterior weights of finitely many candidates, as logarithms with a largest of 0."""

    prior: Any
    log_weights: FloatArray  # (task, candidate)
    resets: IntArray  # (task,)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.log_weights.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.prior.arms)

    def weights(self) -> FloatArray:
        """Posterior probabilities up to a factor, ``(task, candidate)``."""
        return np.exp(self.log_weights)

    def probabilities(self) -> FloatArray:
        """Posterior probabilities, ``(task, candidate)``."""
        weights = self.weights()
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def key(self) -> IntArray:
        """Logarithms of the weights, rounded."""
        return rounded_logs(self.log_weights)

    def certain(self) -> BoolArray:
        """Whether one candidate is left."""
        return np.asarray((self.weights() > 0.0).sum(axis=1) == 1)

    def environments(
        self, points: IntArray, seen: Seen
    ) -> DrawnEnvironments | ControlledEnvironments:
        """Return the candidates of these numbers, ``(task, draw)``, as if drawn."""
        raise NotImplementedError

    def sample_environments(
        self, rng: Stream, draws: int, seen: Seen
    ) -> DrawnEnvironments | ControlledEnvironments:
        """Draw candidates; the draws of ``sample``."""
        drawn = rng.choice(self.weights(), argument_checks.drawing(self, rng, draws))
        return self.environments(drawn, seen)

    def _learned(self, log_likelihood: FloatArray) -> Self:
        """Add what was seen; where no candidate is left, start again from the prior."""
        start = log_probs(self.prior.probs)
        weights, impossible = rescaled(self.log_weights + log_likelihood, start)
        return type(self)(self.prior, weights, self.resets + impossible)


@final
@dataclass(frozen=True, eq=False)
class FiniteBelief(Candidates):
    """Beliefs about mean vectors."""

    prior: "FinitePrior"

    def points(self, seen: Seen) -> FloatArray:
        """Mean vectors of the possible tasks, ``(support, arm)``."""
        return self.prior.means

    def environments(self, points: IntArray, seen: Seen) -> DrawnPoints:
        """Return the possible tasks of these numbers."""
        return DrawnPoints(points, self.prior.means[points])

    def likelihoods(self, arm: int) -> list[tuple[float, FloatArray]] | None:
        """Those of the prior."""
        return self.prior.likelihoods(arm)

    def outcomes(self, seen: Seen) -> Outcomes | None:
        """For each arm the rewards that it may show next, with their probabilities ``(task,)``;
        None for normal rewards.
        """
        return expected_outcomes(self.prior.outcomes(None, 1), self.probabilities())

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean vectors of drawn tasks, ``(task, draw, arm)``."""
        return self.prior.means[
            rng.choice(self.weights(), argument_checks.drawing(self, rng, draws))
        ]

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` drawn mean vectors, from how often each task is drawn."""
        return _average(rng.counts(self.weights(), draws) / draws, self.prior.means)

    def sample_mean_and_size(
        self, rng: Stream, draws: int, seen: Seen
    ) -> tuple[FloatArray, FloatArray]:
        """Mean of ``draws`` drawn mean vectors, and of their absolute values."""
        return self._mean_and_size(rng.counts(self.weights(), draws) / draws)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means."""
        return _average(self.probabilities(), self.prior.means)

    def mean_size(self, seen: Seen) -> FloatArray:
        """Posterior means of the absolute means."""
        return self._mean_and_size(self.probabilities())[1]

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """Posterior means of the largest and of the smallest mean, exact."""
        there = True if seen.mask is None else seen.mask[:, None, :]
        high, low = (
            sign * np.where(there, sign * self.prior.means[None], -np.inf).max(axis=2)
            for sign in (1.0, -1.0)
        )
        p = self.probabilities()
        return (p * high).sum(axis=1), (p * low).sum(axis=1)

    def _mean_and_size(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Averages of the means, and of their absolute values, where these differ."""
        mean = _average(weights, self.prior.means)
        return mean, _average(weights, np.abs(self.prior.means)) if self.prior._signed else mean

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the means: the least value with at least that much probability at
        or below it.
        """
        level = np.reshape(argument_checks.level(level), (-1, 1, 1))
        order = np.argsort(self.prior.means, axis=0, kind="stable")
        cumulative = np.cumsum(self.probabilities()[:, order], axis=1)  # (task, support, arm)
        place = np.minimum((cumulative < level - 1e-12).sum(axis=1), self.prior.support - 1)
        ordered = np.take_along_axis(self.prior.means, order, axis=0)
        return ordered[place, np.arange(self.prior.arms)]

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward; where no task is left that could have given it, start again from
        the prior.
        """
        binary = self.prior.noise == "bernoulli"
        return self._given(*argument_checks.played(self, seen, actions, rewards, binary=binary))

    def _given(self, actions: IntArray, rewards: FloatArray) -> Self:
        return self._learned(self.prior.log_likelihood(actions, rewards))

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``log sum_s p_s p(r given s, a)``, ``(task,)``; minus infinity for impossible rewards."""
        from scipy.special import logsumexp

        joint = logsumexp(self.log_weights + self.prior.log_density(actions, rewards), axis=1)
        return np.asarray(joint - logsumexp(self.log_weights, axis=1))

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw a task and its reward."""
        value = self.prior.means[rng.choice(self.weights()), actions]
        reward = self.prior.reward_law.draw(value, actions, rng)
        return Imagined(value, self._given(actions, reward), seen)

    def best_after(self, seen: Seen) -> FloatArray:
        """Average the best posterior mean over the rewards an arm may show.

        Exact for noiseless and Bernoulli rewards, by enumeration; by Gauss-Hermite quadrature
        around each possible mean for normal ones.
        """
        return self.best_after_pulls(seen, 1)

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """Return the same for several rewards of an arm: their number of successes, or their mean.

        Noiseless rewards repeat themselves. The cost for Bernoulli rewards grows with ``pulls``.
        """
        prior, p = self.prior, self.probabilities()
        out = np.zeros((len(p), prior.arms))
        for arm in range(prior.arms):
            shown = prior.likelihoods(arm)
            if prior.noise_var is not None:
                std = float(np.sqrt(prior.noise_var[arm] / pulls))
                out[:, arm] = self._best_after_normal(p, arm, std, seen)
            several = shown or ()
            if shown and pulls > 1 and prior.noise == "bernoulli":
                several = repeated(prior.means[:, arm], pulls)
            for _, likelihood in several:
                joint = p * likelihood
                best = seen.masked(_average(_normalised(joint), prior.means)).max(axis=1)
                out[:, arm] += joint.sum(axis=1) * best
        return seen.masked(out)

    def _best_after_normal(self, p: FloatArray, arm: int, std: float, seen: Seen) -> FloatArray:
        """Average the best posterior mean over normal rewards around each possible mean."""
        column = self.prior.means[:, arm]
        nodes, weights = hermegauss(HERMITE_NODES)
        total = np.zeros(len(p))
        for s, centre in enumerate(column):
            # (node, support)
            log_likelihood = -0.5 * ((centre - column) / std + nodes[:, None]) ** 2
            likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
            posterior = _normalised(p[:, None, :] * likelihood)
            best = seen.masked(posterior @ self.prior.means).max(axis=2)  # (task, node)
            total += p[:, s] * np.einsum("tn,n->t", best, weights / weights.sum())
        return total


def repeated(rates: FloatArray, pulls: int) -> list[tuple[float, FloatArray]]:
    """Return numbers of successes with their probabilities given each rate, ``(support,)``."""
    from scipy.stats import binom

    chances = binom.pmf(np.arange(pulls + 1)[:, None], pulls, rates)
    return [(float(s), each) for s, each in enumerate(chances) if each.max() > 1e-17]


def _average(weights: FloatArray, table: FloatArray) -> FloatArray:
    return np.einsum("ts,sa->ta", weights, table)


def _normalised(weights: FloatArray) -> FloatArray:
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights / np.where(total > 0.0, total, 1.0))


def log_probs(probs: FloatArray) -> FloatArray:
    """Logarithms of probabilities, shifted to a largest of 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs / probs.max()))
