"""Explore at random first, then any policy."""

from typing import Any, final

from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.parameters import Checked, Count
from priorwise.core.protocols import Policy
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import IntArray
from priorwise.policies.laws import known_law
from priorwise.policies.shared import Then
from priorwise.policies.uniform import Uniform
from priorwise.theory.action_laws import ActionLaw


@final
@frozen(slots=False)
class UniformThen(Then):
    """Play any available arm in the first rounds of an episode, then a policy.

    What the rounds before taught is in the belief that the policy then sees.

    Parameters
    ----------
    rounds
        How many rounds are uniform.
    then
        The policy of the rounds after.

    Examples
    --------
    >>> from priorwise.policies.thompson import ThompsonSampling
    >>> UniformThen(1, ThompsonSampling()).monte_carlo_n(arms=6)
    1

    """

    rounds: int = field(validator=Count(0))
    then: Policy = field(validator=Checked(argument_checks.policy))

    @by_step
    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ Uniform`` while ``h <= rounds``."""
        argument_checks.acting(self, belief, seen, rng)
        return (Uniform() if seen.step <= self.rounds else self.then).act(belief, seen, rng)

    @by_step
    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Uniform in the first rounds, then that of the policy."""
        return known_law(Uniform() if seen.step <= self.rounds else self.then, belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None where the policy has none."""
        first = Uniform().tiles(family, horizon, masked)
        return self.tiles_after(first, self.rounds, family, horizon, masked)
