"""Thompson sampling and its k-shot form, Algorithm 1 of the paper."""

from dataclasses import dataclass
from typing import Any, final

from priorwise.core import sizes, validation
from priorwise.core.action_laws import ActionLaw
from priorwise.core.choosing import pick
from priorwise.core.protocols import Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import sampling_law
from priorwise.policies.posterior_sampling import SamplingPolicy, sampling_tiles


@final
@dataclass(frozen=True)
class ThompsonSampling(SamplingPolicy):
    """Play the best arm of one posterior draw.

    Examples
    --------
    >>> ThompsonSampling().monte_carlo_n(arms=6)
    1

    """

    draws = 1

    def select(self, values: FloatArray, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a mu_a``."""
        return pick(values[:, 0], rng.uniform())

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the largest of one draw."""
        return sampling_law(1, "max", belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        return sampling_tiles(family, 1, "max", masked)


@final
@dataclass(frozen=True)
class KShotThompson(SamplingPolicy):
    """Play the arm that looks best in any of k posterior draws; more optimistic with larger k."""

    k: int

    def __post_init__(self) -> None:
        sizes.check_draws("k", validation.count("k", self.k))

    @property
    def draws(self) -> int:  # type: ignore[override]
        """Number of posterior draws."""
        return self.k

    def select(self, values: FloatArray, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a max_i mu_a^(i)``."""
        return pick(values.max(axis=1), rng.uniform())

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the largest of k draws."""
        return sampling_law(self.k, "max", belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        return sampling_tiles(family, self.k, "max", masked)
