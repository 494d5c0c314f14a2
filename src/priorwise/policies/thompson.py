"""Thompson sampling and its k-shot form, Algorithm 1 of the paper."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from attrs import field, frozen

from priorwise.core.choosing import pick
from priorwise.core.parameters import Checked
from priorwise.core.protocols import offers
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import sampling_law
from priorwise.policies.posterior_sampling import SamplingPolicy, sampling_tiles
from priorwise.policies.shared import draws_of
from priorwise.theory.action_laws import ActionLaw, BestActionBelief, RealActionLaw


@final
@dataclass(frozen=True)
class ThompsonSampling(SamplingPolicy):
    """Play the best arm of one posterior draw; where actions are real numbers, the best action of
    one drawn environment.

    Examples
    --------
    >>> ThompsonSampling().monte_carlo_n(arms=6)
    1

    """

    draws = 1
    acts_on_reals = True
    rule: ClassVar = "max"
    tiles = sampling_tiles

    def select(self, values: FloatArray, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a mu_a``."""
        return pick(values[:, 0], rng.uniform())

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the largest of one draw."""
        return sampling_law(1, "max", belief, seen)

    def real_action_law(self, belief: Any, seen: Seen) -> RealActionLaw | None:
        """Law of the best action of one drawn environment, if these are finitely many."""
        return belief.best_action_law(seen) if offers(belief, BestActionBelief) else None


@final
@frozen(slots=False)
class KShotThompson(SamplingPolicy):
    """Play the arm that looks best in any of k posterior draws; more optimistic with larger k."""

    k: int = field(validator=Checked(draws_of))

    rule: ClassVar = "max"
    tiles = sampling_tiles

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
