"""Beliefs that look ahead exactly, as rewards have few possible values; and which belief a prior
starts with.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.particle import weights as weighted
from priorwise.families.particle.belief import ParticleBelief
from priorwise.families.particle.environment import DrawnParticles
from priorwise.families.particle.moving import MovingBelief
from priorwise.families.particle.parts import Part
from priorwise.theory.enumeration import Outcomes, expected_outcomes, rounded_logs

if TYPE_CHECKING:
    from priorwise.families.particle.prior import ParticlePrior


class LooksAhead:
    """Adds the exact look-ahead of one pull to a belief about rewards of few values."""

    def best_after(self: Any, seen: Seen) -> FloatArray:
        """Average the best posterior mean over the rewards that each arm may show: ``sum_r P(r)
        max_b E[mu_b given r]``, ``(task, arm)``.
        """

        def of(part: Part) -> FloatArray:
            own = seen.take(part.tasks)
            out = np.zeros((len(part.tasks), self.arms))
            for arm in range(self.arms):
                for chance in self._model.chances(part.parameters, arm):
                    joint = part.probs * chance
                    # of max_b sum_i w_i p_i(r) mu_ib, which is P(r) max_b E[mu_b given r]
                    out[:, arm] += own.masked(weighted.average(joint, part.values)).max(axis=1)
            return out

        found: FloatArray = self._filled(seen, of, self.arms)
        return seen.masked(found)


@final
@dataclass(frozen=True, eq=False)
class LookingBelief(LooksAhead, ParticleBelief):
    """Weights of particles, with a look-ahead."""


@final
@dataclass(frozen=True, eq=False)
class LookingMovingBelief(LooksAhead, MovingBelief):
    """Particles that move, with a look-ahead."""


@final
@dataclass(frozen=True, eq=False)
class EnumerableParticleBelief(LooksAhead, ParticleBelief):
    """Weights of particles that are the prior itself, with rewards of few values: all that finitely
    many environments allow, exactly.
    """

    def points(self, seen: Seen) -> FloatArray:
        """Mean rewards in each possible environment, ``(particle, arm)``."""
        assert self.prior.values is not None
        return self.prior.values.T

    def environments(self, points: IntArray, seen: Seen) -> DrawnParticles:
        """Return the particles of these numbers, ``(task, draw)``, as if drawn."""
        return DrawnParticles(self.prior.parameters[points], self._model)

    def likelihoods(self, arm: int) -> list[tuple[float, FloatArray]]:
        """Rewards that an arm may show, with their probabilities in each environment."""
        return self.prior.likelihoods(arm)

    def outcomes(self, seen: Seen) -> Outcomes | None:
        """For each arm the rewards that it may show next, with their probabilities ``(task,)``."""
        return expected_outcomes(self.prior.outcomes(None, 1), self.probabilities())

    def key(self) -> IntArray:
        """Logarithms of the weights, rounded."""
        return rounded_logs(self.log_weights)

    def certain(self) -> BoolArray:
        """Whether one environment is left."""
        return np.asarray((self.log_weights > -np.inf).sum(axis=1) == 1)


def begun(prior: "ParticlePrior", tasks: int) -> ParticleBelief:
    """Return the belief about so many tasks before any pull, of the kind that the prior allows."""
    few = prior.reward_law.rewards is not None and prior.contexts is None
    start: dict[str, Any] = {
        "prior": prior,
        "log_weights": np.broadcast_to(prior.log_probs, (tasks, prior.particles)),
        "log_scale": np.full(tasks, -np.log(np.exp(prior.log_probs).sum())),
        "resets": np.zeros(tasks, dtype=np.int64),
    }
    if prior.log_prior is None or prior.moves == 0:
        if few:
            return (EnumerableParticleBelief if prior.given else LookingBelief)(**start)
        return ParticleBelief(**start)
    shown = None if prior.contexts is None else np.zeros((tasks, 0, prior.arms, prior.dim))
    return (LookingMovingBelief if few else MovingBelief)(
        **start,
        own=np.full(tasks, None, dtype=object),
        actions=np.zeros((tasks, 0), dtype=np.int64),
        rewards=np.zeros((tasks, 0)),
        shown=shown,
        trail=np.zeros(tasks, dtype=np.uint64),
    )
