"""The particles of one task on their way from one posterior to the next.

Where a reward would leave less than the share ``resample_below`` of the particles effective, it is
taken in by portions (Del Moral, Doucet and Jasra 2006): with the largest power of its density that
leaves as many, particles are resampled systematically, and each takes ``moves`` Metropolis steps
with normal proposals of the particles' own covariance, towards

    log prior + log likelihood of the pulls before + power * log density of the last reward.

The density of the reward is, portion by portion, the mean of the weights that it gave.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Self, final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.core.validation import square_root
from priorwise.families.particle import weights as weighted

MOST_PORTIONS: Final = 100
SCALE: Final = 2.38  # of proposals, over the root of the dimension (Roberts and Rosenthal 2001)
FEW_ACCEPTED: Final = 0.15
MANY_ACCEPTED: Final = 0.5
"""Between these shares of accepted proposals their scale stays as it is."""


@final
@dataclass(frozen=True, eq=False)
class Target:
    """Prior times likelihood of one task's pulls, the last of which counts with a power."""

    prior: Any
    actions: IntArray  # (step,)
    rewards: FloatArray  # (step,)
    shown: FloatArray | None  # (step, arm, dim)

    def last(self, x: FloatArray) -> FloatArray:
        """Log density of the last reward, ``(row,)``."""
        return self._of(x, slice(-1, None))

    def log_density(self, x: FloatArray, power: float) -> FloatArray:
        """Log density up to a constant, ``(row,)``; -inf outside the prior's support, where the
        likelihood is not asked for.
        """
        out: FloatArray = self.prior.log_prior_at(x)
        inside = out > -np.inf
        if inside.any():
            some = x if inside.all() else x[inside]
            out[inside] += self._of(some, slice(-1)) + power * self.last(some)
        return out

    def _of(self, x: FloatArray, steps: slice) -> FloatArray:
        shown = None if self.shown is None else self.shown[steps]
        found: FloatArray = self.prior.reward_law.history(
            x, self.actions[steps], self.rewards[steps], shown
        )
        return found


@final
@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted particles that take a reward in."""

    x: FloatArray  # (particle, d)
    parents: IntArray  # (particle,): which particle of the generation before each comes from
    log_weights: FloatArray  # (particle,)
    gained: FloatArray  # (particle,): log density of the reward
    lineage: IntArray  # (particle,): the same, two generations before; ascending
    log_scale: float = 0.0  # what was taken off the logarithms

    def take_in(self, target: Target, rng: Stream) -> "Cloud":
        """Take the reward in: as much of it as leaves enough particles, then resample and move."""
        prior, power, cloud = target.prior, 0.0, self
        least = prior.resample_below * len(self.x)
        for _ in range(MOST_PORTIONS):
            left = 1.0 - power
            share = weighted.portion(cloud.log_weights, cloud.gained, left, least)
            cloud, power = cloud._weighed(share), power + share
            if share >= left:
                return cloud
            cloud = cloud._resampled(float(rng.uniform()[0]))
            x = moved(cloud.x, target, power, rng, prior.moves)
            cloud = replace(cloud, x=x, gained=target.last(x))
        return cloud._weighed(1.0 - power)

    def _weighed(self, share: float) -> Self:
        weights = self.log_weights + share * self.gained
        best = float(weights.max())
        return replace(self, log_weights=weights - best, log_scale=self.log_scale + best)

    def _resampled(self, uniform: float) -> Self:
        """Draw as many particles by their weights, and give each the mean weight."""
        weights = np.exp(self.log_weights)
        index = weighted.systematic(weights, uniform)
        return replace(
            self,
            x=self.x[index],
            parents=index,
            lineage=self.parents[index],
            log_weights=np.zeros(len(index)),
            log_scale=self.log_scale + float(np.log(weights.mean())),
        )


def moved(x: FloatArray, target: Target, power: float, rng: Stream, moves: int) -> FloatArray:
    """Return particles ``(particle, d)`` after some Metropolis steps, whose scale follows how many
    of them are accepted.
    """
    count, dim = x.shape
    root = square_root(np.atleast_2d(np.cov(x, rowvar=False)))
    scale, now = SCALE / np.sqrt(dim), target.log_density(x, power)
    for _ in range(moves):
        proposal = x + scale * np.einsum("pj,ij->pi", rng.normal(count, dim)[0], root)
        then = target.log_density(proposal, power)
        accepted = np.log(1.0 - rng.uniform(count)[0]) < then - now
        x, now = np.where(accepted[:, None], proposal, x), np.where(accepted, then, now)
        share = float(accepted.mean())
        if not FEW_ACCEPTED <= share <= MANY_ACCEPTED:
            scale *= 0.5 if share < FEW_ACCEPTED else 1.5
    return x
