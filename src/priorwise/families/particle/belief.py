"""Beliefs as weights of particles that all tasks share.

A task's posterior is ``sum_i w_i delta(phi_i)`` with ``w_i`` proportional to the likelihood of its
pulls under particle i. Weights are exact for these particles, whatever the order of the pulls; what
is approximate is that the particles stand for the prior.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.protocols import Imagined
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.streams import Stream
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.particle import parts
from priorwise.families.particle import weights as weighted
from priorwise.families.particle.environment import DrawnParticles
from priorwise.families.particle.model import Model
from priorwise.families.particle.parts import Part
from priorwise.theory.action_laws import ActionLaw

if TYPE_CHECKING:
    from priorwise.families.particle.prior import ParticlePrior


@dataclass(frozen=True, eq=False)
class ParticleBelief(SeparableTasks):
    """Weights of the particles of the prior, as logarithms with a largest of 0."""

    prior: "ParticlePrior"
    log_weights: FloatArray  # (task, particle)
    log_scale: FloatArray  # (task,): what was taken off the logarithms; -inf after a reset
    resets: IntArray  # (task,)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.log_weights)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.prior.arms

    @property
    def _model(self) -> Model:
        return self.prior.reward_law

    def weights(self) -> FloatArray:
        """Weights of the particles up to a factor, ``(task, particle)``."""
        return np.exp(self.log_weights)

    def probabilities(self) -> FloatArray:
        """Weights of the particles, ``(task, particle)``; they sum to 1."""
        return weighted.normalised(self.log_weights)

    def particles(self, task: int) -> FloatArray:
        """Parameters of the particles of a task, ``(particle, d)``."""
        return self.prior.parameters

    # -- parts of tasks that share the values of their particles

    def _parts(self, seen: Seen) -> Iterator[Part]:
        yield from self._shared(np.arange(self.tasks), seen)

    def _shared(self, tasks: IntArray, seen: Seen) -> Iterator[Part]:
        """Parts of tasks whose particles are those of the prior."""
        prior, weights = self.prior, self.log_weights
        if prior.values is None:
            features = self._features(seen)
            for task in tasks.tolist():
                values = self._model.means(prior.parameters, features[task]).T
                own = np.ascontiguousarray(values)
                yield Part(np.array([task]), prior.parameters, weights, own)
            return
        for some in weighted.chunks(tasks, weights.shape[1]):
            yield Part(some, prior.parameters, weights, prior.values, prior.orders)

    def _features(self, seen: Seen) -> FloatArray:
        return argument_checks.features(seen, self.tasks, self.arms, self.prior.dim)

    def _filled(self, seen: Seen, of: Any, *shape: int) -> FloatArray:
        """Work something out part by part, ``(task, *shape)``."""
        out = np.empty((self.tasks, *shape))
        for part in self._parts(seen):
            out[part.tasks] = of(part)
        return out

    # -- what policies ask for

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean rewards of drawn particles, ``(task, draw, arm)``."""
        draws = argument_checks.drawing(self, rng, draws)
        index = self._index(rng, draws)
        return self._filled(seen, lambda part: parts.at(part, index), draws, self.arms)

    def _index(self, rng: Stream, draws: int) -> IntArray:
        """Drawn particles, ``(task, draw)``."""
        return weighted.drawn(rng, self.log_weights, draws)

    def sample_parameters(self, rng: Stream, draws: int) -> FloatArray:
        """Parameters of drawn particles, ``(task, draw, d)``: those whose mean rewards
        :meth:`sample` returns on the same stream.
        """
        index = self._index(rng, argument_checks.drawing(self, rng, draws))
        return np.stack([self.particles(task)[index[task]] for task in range(self.tasks)])

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnParticles:
        """Draw particles; the draws of :meth:`sample`."""
        return DrawnParticles(self.sample_parameters(rng, draws), self._model)

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean over ``draws`` drawn particles."""
        return self.sample(rng, draws, seen).mean(axis=1)

    def sample_mean_and_size(
        self, rng: Stream, draws: int, seen: Seen
    ) -> tuple[FloatArray, FloatArray]:
        """Mean over ``draws`` drawn particles, and that of their absolute values."""
        values = self.sample(rng, draws, seen)
        return values.mean(axis=1), np.abs(values).mean(axis=1)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means, ``(task, arm)``."""
        return self._filled(seen, lambda part: weighted.average(part.probs, part.values), self.arms)

    def mean_size(self, seen: Seen) -> FloatArray:
        """Posterior means of the absolute mean rewards."""
        return self._filled(
            seen, lambda part: weighted.average(part.probs, np.abs(part.values)), self.arms
        )

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray] | None:
        """Posterior means of the largest and of the smallest mean reward of an available arm; None
        where particles only stand for the prior.
        """
        if self.approximate:
            return None
        both = self._filled(seen, lambda part: parts.ends(part, seen.mask), 2)
        return both[:, 0], both[:, 1]

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the mean rewards: the least value with at least that much
        probability at or below it.
        """
        levels = np.broadcast_to(np.reshape(argument_checks.level(level), -1), self.tasks)

        def of(part: Part) -> FloatArray:
            orders = part.orders
            if orders is None:
                orders = np.argsort(part.values, axis=1, kind="stable")
            return weighted.quantile(part.probs, part.values, orders, levels[part.tasks])

        return self._filled(seen, of, self.arms)

    def argmax_law(self, draws: int, rule: Literal["max", "mean"], seen: Seen) -> ActionLaw | None:
        """Law of the best arm over ``draws`` draws, exact for these particles: the arm of the
        particle with the largest value of all that are drawn; None of means over several, and where
        particles tie that have different best arms.
        """
        if rule == "mean" and draws > 1:
            return None
        law = self._filled(seen, lambda part: parts.best(part, draws, seen.mask), self.arms)
        if np.isnan(law).any():
            return None
        return ActionLaw(law / law.sum(axis=1, keepdims=True))

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw a particle, its reward for ``actions``, and condition on it."""
        index = self._index(rng, 1)
        own = np.stack([self.particles(task)[index[task, 0]] for task in range(self.tasks)])
        values = self._filled(seen, lambda part: parts.at(part, index)[:, 0], self.arms)
        value = values[np.arange(self.tasks), actions]
        reward = self._model.draw(own, actions, rng, seen.signal)
        after = seen
        if self.prior.contexts is not None:
            after = replace(seen, signal=self.prior.contexts.draw(rng, self.prior.dim))
        return Imagined(value, self._given(actions, reward, seen.signal), after)

    # -- what rewards teach

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Multiply the weights by the density of each task's reward under each particle."""
        low, high = self.prior.reward_range or (-validation.LARGEST, validation.LARGEST)
        actions, rewards = argument_checks.played(self, seen, actions, rewards, low=low, high=high)
        signal = None if self.prior.contexts is None else self._features(seen)
        return self._given(actions, rewards, signal)

    def _given(self, actions: IntArray, rewards: FloatArray, signal: Signal) -> Self:
        return self._weighed(self._likelihoods(actions, rewards, signal), actions, rewards)

    def _likelihoods(self, actions: IntArray, rewards: FloatArray, signal: Signal) -> FloatArray:
        """Log density of each task's reward under its particles, ``(task, particle)``."""
        return self._model.likelihoods(self.prior.parameters, actions, rewards, signal)

    def _weighed(self, gained: FloatArray, actions: IntArray, rewards: FloatArray) -> Self:
        """Add log densities, which are written over, to the weights; a task that no particle could
        have shown starts again from the prior, where that is asked for.
        """
        gained += self.log_weights
        best = gained.max(axis=1)
        impossible = np.isneginf(best)
        if impossible.any():
            self.prior.refuse_impossible(int(np.argmax(impossible)), actions, rewards)
            gained[impossible], best[impossible] = self.prior.log_probs, 0.0
        gained -= best[:, None]
        scale = np.where(impossible, -np.inf, self.log_scale + best)
        return replace(self, log_weights=gained, log_scale=scale, resets=self.resets + impossible)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``log sum_i w_i p(r given particle i)``, ``(task,)``."""
        from scipy.special import logsumexp

        signal = None if self.prior.contexts is None else self._features(seen)
        gained = self._likelihoods(actions, rewards, signal)
        joint = logsumexp(self.log_weights + gained, axis=1)
        return np.asarray(joint - logsumexp(self.log_weights, axis=1))

    def log_evidence(self) -> FloatArray:
        """Log density of all rewards so far given the actions, ``(task,)``; -inf for a task that
        started again.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(self.log_scale + np.log(self.weights().sum(axis=1)))

    # -- how good an approximation it is

    def mean_error(self, seen: Seen) -> FloatArray:
        """Standard error of each posterior mean, ``(task, arm)``, as particles stand for a law;
        see :func:`~priorwise.families.particle.weights.errors`.
        """
        return np.sqrt(self._errors(seen)[1])

    def effective_sample_size(self, seen: Seen) -> FloatArray:
        """How many independent draws would give means as accurate, ``(task,)``: posterior variance
        over squared error, of the arm where that is least.
        """
        spread, error = self._errors(seen)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(error > 0.0, spread / error, self.log_weights.shape[1])
        return np.maximum(size.min(axis=1), 1.0)

    def _errors(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        def of(part: Part) -> FloatArray:
            return np.stack(weighted.errors(part.probs, part.values, part.starts), axis=1)

        both = self._filled(seen, of, 2, self.arms)
        return both[:, 0], both[:, 1]

    def rough(self, seen: Seen) -> BoolArray:
        """Whether fewer than 100 effective particles are left; never of particles that are the
        prior itself.
        """
        if self.prior.given:
            return np.zeros(self.tasks, dtype=bool)
        return np.asarray(self.effective_sample_size(seen) < weighted.FEWEST)

    @property
    def approximate(self) -> bool:
        """Whether particles only stand for the prior, or are it."""
        return not self.prior.given

    @property
    def rough_because(self) -> str:
        """What to do."""
        few = f"fewer than {weighted.FEWEST} of {self.prior.particles:,} particles count"
        known = self.prior.log_prior is not None  # with moves=0 the user decided
        return f"{few}: raise particles{'' if known else ', or pass log_prior to move them'}"
