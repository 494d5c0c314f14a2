"""Beliefs about the weights of logistic rewards: every pull, and Laplace's normal law."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np

from priorwise.core import argument_checks
from priorwise.core.approximate import WeightedDraws
from priorwise.core.protocols import Imagined
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.contexts import GivenContexts
from priorwise.families.logistic.corrected import posterior
from priorwise.families.logistic.statistics import check_features, widened
from priorwise.families.logit_normal.extremes import rate_extremes
from priorwise.families.logit_normal.tilted import rates, softplus
from priorwise.families.normal.beliefs import NormalBelief
from priorwise.families.normal.importance import weighted
from priorwise.theory.action_laws import ActionLaw

if TYPE_CHECKING:
    from priorwise.families.logistic.prior import LogisticPrior

SHARES: Final = np.array([
    0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
    0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354,
])  # fmt: skip
SLOPES: Final = np.array([
    1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
    0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306,
])  # fmt: skip
"""``1 / (1 + e^-t)`` is the mixture ``sum_k share_k Phi(slope_k t)`` of normal distribution
functions, within 2.2e-9 at every t (Monahan and Stefanski 1992).
"""


def mean_rates(m: FloatArray, var: FloatArray) -> FloatArray:
    """``E 1 / (1 + e^-eta)`` with ``eta ~ N(m, var)``, within 2.2e-9: ``E Phi(s eta) = Phi(s m /
    sqrt(1 + s^2 var))`` for each part of the mixture.
    """
    from scipy.special import ndtr

    total = np.zeros(np.broadcast_shapes(m.shape, var.shape))
    for share, slope in zip(SHARES, SLOPES, strict=True):
        total += share * ndtr(slope * m / np.sqrt(1.0 + slope * slope * var))
    return total


@dataclass(frozen=True, eq=False)
class LogisticBelief(NormalBelief):
    """The normal law N(m, L L') that stands for the posterior of each task's weights, by Laplace's
    approximation (:mod:`~priorwise.families.logistic.corrected`), and the pulls that it stands for.
    """

    prior: "LogisticPrior"
    u: FloatArray  # (task, dim): the mode in units of the prior, where the next search starts
    x: FloatArray  # (task, row, dim): features of the pulled arms; zeros in rows beyond the pulls
    r: FloatArray  # (task, row): their rewards
    pulls: IntArray  # (task,)

    @classmethod
    def of(
        cls, prior: Any, start: FloatArray, x: FloatArray, r: FloatArray, pulls: IntArray
    ) -> Self:
        """Return the belief after these pulls, whose mode is looked for from ``start``."""
        found = posterior(prior, x, r, start)
        m = prior.mean + np.einsum("tj,ij->ti", found.u, prior._root)
        root = np.einsum("ij,tjk->tik", prior._root, found.spread)
        return cls(prior, m, root, found.mode, x, r, pulls)

    def features(self, seen: Seen) -> FloatArray:
        """Features of the arms, ``(task, arm, dim)``."""
        return argument_checks.features(seen, self.tasks, self.arms, self.prior.dim)

    def direction(self, seen: Seen, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """``L'x``, ``(task, dim)``, and ``x'm``, ``(task,)``, of the chosen arms' features x."""
        x = self._chosen(seen, actions)
        return np.einsum("tij,ti->tj", self.root, x), np.einsum("tj,tj->t", x, self.m)

    def _chosen(self, seen: Seen, actions: IntArray) -> FloatArray:
        x = argument_checks.chosen_features(seen, actions, self.arms, self.prior.dim)
        check_features("seen.signal", x)
        return x

    @property
    def approximate(self) -> bool:
        """Whether the posterior is more than a point."""
        return bool(self.prior.cov.any())

    def weighted_draws(self, rng: Stream, draws: int, seen: Seen) -> WeightedDraws:
        """Success probabilities with their weights under the posterior and under its normal
        approximation.
        """
        prior = self.prior
        z, shift = self.x @ prior._root, np.einsum("tnj,j->tn", self.x, prior.mean)
        pulled = (np.arange(self.x.shape[1]) < self.pulls[:, None])[:, None]

        def log_likelihood(u: FloatArray) -> FloatArray:
            eta = shift[:, None] + u @ z.transpose(0, 2, 1)
            each = self.r[:, None] * eta - softplus(eta)
            return np.asarray(np.where(pulled, each, 0.0).sum(axis=2))

        law = posterior(prior, self.x, self.r, self.u)
        u, *weights = weighted(law.u, law.spread, log_likelihood, rng, draws)
        return WeightedDraws(prior.values(prior.mean + u @ prior._root.T, seen), *weights)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws."""
        return np.asarray(self.sample(rng, draws, seen).mean(axis=1))

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means of the success probabilities; see :func:`mean_rates`."""
        f = self.features(seen) @ self.root
        return mean_rates(self._values(self.m, seen), np.einsum("taj,taj->ta", f, f))

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the success probabilities."""
        return rates(super().quantile(level, seen))

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the arm with the largest log odds in one draw, by quadrature; None for more."""
        return None if draws > 1 else super().argmax_law(draws, rule, seen)

    def _common(self) -> bool:
        """Whether features come from a pool."""
        return isinstance(self.prior.contexts, GivenContexts)

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray] | None:
        """``E[max]`` and ``E[min]`` of the rates of up to six arms before any pull, when the law
        of the weights is exact; None later, for more arms, and for many different contexts.
        """
        if self.pulls.any():
            return None
        return rate_extremes(self._values(self.m, seen), self._value_covariance(seen), seen)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ Bernoulli``; a reward between 0 and 1 counts as that share of a
        success.
        """
        actions, rewards = argument_checks.played(self, seen, actions, rewards, low=0.0, high=1.0)
        return self._seen_too(self._chosen(seen, actions), rewards)

    def _seen_too(self, x: FloatArray, rewards: FloatArray) -> Self:
        """Add a pull of each task, with features ``(task, dim)``."""
        width = int(self.pulls.max(initial=0)) + 1
        if (self.pulls == self.x.shape[1]).all():
            rows = np.concatenate([self.x, x[:, None]], axis=1)
            earned = np.concatenate([self.r, rewards[:, None]], axis=1)
        else:
            kept = widened({"features": self.x.copy(), "rewards": self.r.copy()}, width)
            rows, earned = kept["features"], kept["rewards"]
            task = np.arange(self.tasks)
            rows[task, self.pulls], earned[task, self.pulls] = x, rewards
        return self.of(self.prior, self.u, rows, earned, self.pulls + 1)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``r log m_a + (1 - r) log(1 - m_a)`` at the posterior mean m, ``(task,)``."""
        f, centre = self.direction(seen, actions)
        var = np.einsum("tj,tj->t", f, f)
        won, lost = mean_rates(centre, var), mean_rates(-centre, var)
        return np.asarray(rewards * np.log(won) + (1.0 - rewards) * np.log(lost))

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw the success probability of an arm and its reward, and what would be seen next."""
        f, centre = self.direction(seen, actions)
        spread = np.sqrt(np.einsum("tj,tj->t", f, f))
        value = rates(centre + spread * rng.normal(1)[:, 0])
        reward = (rng.uniform() < value).astype(np.float64)
        then = self._seen_too(self._chosen(seen, actions), reward)
        signal = self.prior.contexts.draw(rng, self.prior.dim)
        return Imagined(value, then, replace(seen, signal=signal))

    def join(self, *others: Self) -> Self:
        """Return these tasks, then those of the others."""
        every = [each for each in (self, *others) if type(each) is type(self)]
        widths = {each.x.shape[1] for each in every}
        if len(widths) == 1 or len(every) <= len(others):  # super raises the error about classes
            return super().join(*others)
        wide = []
        for each in every:
            rows = widened({"features": each.x, "rewards": each.r}, max(widths))
            wide.append(replace(each, x=rows["features"], r=rows["rewards"]))
        return wide[0].join(*wide[1:])


@final
@dataclass(frozen=True, eq=False)
class PoolLogisticBelief(LogisticBelief):
    """The same where features come from a pool, over which the best mean can be averaged."""

    def best_after(self, seen: Seen) -> FloatArray:
        """Average the best posterior mean over the next features and the two rewards that an arm
        may show, each with a belief of its own.
        """
        contexts = self.prior.contexts
        assert isinstance(contexts, GivenContexts)
        mean, best = self.mean(seen), np.zeros((2, self.tasks, self.arms))
        for arm in range(self.arms):
            x = self._chosen(seen, np.full(self.tasks, arm))
            for reward in (0, 1):
                then = self._seen_too(x, np.full(self.tasks, float(reward)))
                for table in contexts.features:
                    shown = np.broadcast_to(table, (self.tasks, *table.shape))
                    means = then.mean(replace(seen, signal=shown))
                    best[reward, :, arm] += seen.masked(means).max(axis=1)
        best /= len(contexts.features)
        return seen.masked((1.0 - mean) * best[0] + mean * best[1])
