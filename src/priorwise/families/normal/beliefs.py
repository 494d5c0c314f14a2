"""Normal priors over the means of arms or the weights of features, and their beliefs.

A belief is the mean m and a square root L of the covariance, S = L L', updated by Potter's formula;
S stays positive semi-definite whatever the rounding, and singular priors need nothing special.
Costs O(dim^2) per pull. Arms are features of length one: where no features are shown, an arm's
value is a weight, and L'x a row of L.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.drawn import DrawnWeights
from priorwise.core.parameters import Array, Covariance, Names, arrays, words
from priorwise.core.protocols import Imagined
from priorwise.core.rewards import NormalRewards
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.normal.arithmetic import condition, given, log_normal
from priorwise.families.registry import family_for, seen_by
from priorwise.theory.action_laws import ActionLaw

B = TypeVar("B")


@frozen(eq=False, slots=False)
class NormalPrior(Serializable, Generic[B]):
    """What normal priors share: weights ``w ~ N(mean, cov)``, rewards with normal noise, and how
    beliefs start.
    """

    mean: FloatArray = field(converter=arrays, validator=Array(("dim",)))
    cov: FloatArray = field(
        converter=arrays,
        validator=Covariance(("dim", "dim")),
    )
    noise_var: FloatArray = field(
        default=1.0,
        converter=arrays,
        validator=Array(("arm",), 1e-100, spread=1, size="arms"),
    )
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names()
    )

    @cached_property
    def _root(self) -> FloatArray:
        """L with ``L L' = cov``."""
        return validation.square_root(self.cov)

    @property
    def reward_law(self) -> NormalRewards:
        """How rewards scatter around their means."""
        return NormalRewards(tuple(self.noise_var.tolist()))

    def laws(self) -> tuple[FloatArray, FloatArray] | None:
        """Means ``(context, arm)`` and covariances ``(context, arm, arm)`` of the arms' values in
        each context that there is; None where these are not finitely many.
        """
        return self.mean[None], self.cov[None]

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        """What tile functions read of any normal prior, by the names of their layout."""
        root, noise_var = self._root, self.noise_var
        same = bool((noise_var == noise_var[0]).all())
        sizes = {"arms": noise_var.size, "dim": self.mean.size, "same_noise": same}
        noise = {"noise_var": noise_var, "noise_std": np.sqrt(noise_var)}
        lower = not np.triu(root, 1).any()
        return {**sizes, "lower_root": lower, "mean": self.mean, "root": root, **noise}

    def belief(self, tasks: int) -> B:
        """Start at the prior."""
        tasks, dim = argument_checks.tasks_of(tasks), self.mean.size
        root = np.broadcast_to(self._root, (tasks, dim, dim))
        return self._belief(self, np.broadcast_to(self.mean, (tasks, dim)), root)

    def belief_given(self, statistics: Any) -> B:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding; tasks may have had different
        numbers of pulls.
        """
        information = family_for(self, "belief_given").information(self, seen_by(self, statistics))
        return self._belief(self, *given(self.mean, self._root, *information))

    @property
    def _belief(self) -> Callable[[Any, FloatArray, FloatArray], B]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class NormalBelief(SeparableTasks):
    """Posterior N(m, L L') of each task."""

    prior: Any
    m: FloatArray  # (task, dim)
    root: FloatArray  # (task, dim, dim)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.m.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.prior.arms)

    def features(self, seen: Seen) -> FloatArray | None:
        """Features of the arms, ``(task, arm, dim)``; None where arms have weights of their own."""
        return None

    def direction(self, seen: Seen, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """``L'x``, ``(task, dim)``, and ``x'm``, ``(task,)``, of the chosen arms' features x."""
        rows = np.arange(len(actions))
        return self.root[rows, actions], self.m[rows, actions]

    def _values(self, weights: FloatArray, seen: Seen) -> FloatArray:
        """Values of the arms for weights ``(task, dim)``."""
        x = self.features(seen)
        return weights if x is None else np.einsum("taj,tj->ta", x, weights)

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Values of the arms with ``w ~ N(m, S)``, ``(task, draw, arm)``."""
        return np.asarray(self.prior.values(self._weights(rng, draws), seen))

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnWeights:
        """Draw weights; the draws of :meth:`sample`."""
        return DrawnWeights(self._weights(rng, draws), self.prior)

    def _weights(self, rng: Stream, draws: int) -> FloatArray:
        """``w ~ N(m, S)``, ``(task, draw, dim)``."""
        z = rng.normal(argument_checks.drawing(self, rng, draws), self.m.shape[1])
        weights = z @ self.root.transpose(0, 2, 1)
        weights += self.m[:, None, :]
        return np.asarray(weights)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws: itself one draw of the weights, from N(m, S / draws)."""
        z = rng.normal(1, self.m.shape[1])
        weights = self.m + (z @ self.root.transpose(0, 2, 1))[:, 0] / np.sqrt(draws)
        return self._values(weights, seen)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means of the arms' values."""
        return self._values(self.m, seen)

    def covariance(self) -> FloatArray:
        """Posterior covariances of the weights, ``(task, dim, dim)``."""
        return self.root @ self.root.transpose(0, 2, 1)

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the arms' values."""
        from scipy.special import ndtri

        x = self.features(seen)
        f = self.root if x is None else x @ self.root
        deviation = np.sqrt(np.einsum("taj,taj->ta", f, f))
        return np.asarray(
            self._values(self.m, seen) + deviation * ndtri(argument_checks.level(level))
        )

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the largest value, or mean of values, of some draws, by lattice quadrature."""
        from priorwise.families.normal.argmax import argmax_law

        mean, cov = self._values(self.m, seen), self._value_covariance(seen)
        return argmax_law(mean, cov, self.prior.cov, draws, rule, seen, self._common())

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray] | None:
        """``E[max]`` and ``E[min]`` for independent arms, or few; None for others."""
        from priorwise.families.normal.argmax import normal_extremes

        mean, cov = self._values(self.m, seen), self._value_covariance(seen)
        return normal_extremes(mean, cov, seen, self._common())

    def _common(self) -> bool:
        """Whether tasks have the same few laws before they differ in what was seen."""
        return True

    def _value_covariance(self, seen: Seen) -> FloatArray:
        """Posterior covariances of the arms' values, ``(task, arm, arm)``."""
        x, cov = self.features(seen), self.covariance()
        return cov if x is None else np.einsum("tai,tij,tbj->tab", x, cov, x)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ N(x_a'w, noise_var_a)``."""
        actions, rewards = argument_checks.played(self, seen, actions, rewards)
        return self._given(actions, rewards, *self.direction(seen, actions))

    def _given(
        self, actions: IntArray, rewards: FloatArray, f: FloatArray, centre: FloatArray
    ) -> Self:
        noise = self.prior.noise_var[actions]
        m, root = condition(self.m, self.root, f, noise, rewards - centre)
        return type(self)(self.prior, m, root)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``log N(r; x_a'm, x_a'S x_a + noise_var_a)``, ``(task,)``."""
        f, centre = self.direction(seen, actions)
        variance = np.einsum("tj,tj->t", f, f) + self.prior.noise_var[actions]
        return log_normal(rewards - centre, variance)

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw the value of an arm and its reward, and what would be seen next; the values of the
        other arms are never looked at.
        """
        z = rng.normal(2)
        f, centre = self.direction(seen, actions)
        value = centre + np.sqrt(np.einsum("tj,tj->t", f, f)) * z[:, 0]
        reward = value + np.sqrt(self.prior.noise_var[actions]) * z[:, 1]
        return Imagined(value, self._given(actions, reward, f, centre), self._next(rng, seen))

    def _next(self, rng: Stream, seen: Seen) -> Seen:
        return seen
