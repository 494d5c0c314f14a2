"""Explore by given arms first, then any policy."""

from typing import Any, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.choosing import pick
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import Checked
from priorwise.core.protocols import Policy
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import known_law, tasks_of
from priorwise.policies.shared import Then
from priorwise.theory.action_laws import ActionLaw, tied_law


def check_arms(name: str, arms: tuple[int, ...]) -> None:
    """Check that there are arms to play."""
    if not isinstance(arms, tuple) or not arms:
        raise ArgumentTypeError(name, "must be a tuple with at least one arm", got=arms)
    for arm in arms:
        validation.count(name, arm, least=0)


@final
@frozen(slots=False)
class PlayArms(Then):
    """Play given arms one after the other, then a policy, or without one the last of them to the
    end.

    A task to which the arm is not available plays any that is.

    Parameters
    ----------
    arms
        The arms of the first rounds, in order.
    then
        The policy of the rounds after.

    """

    arms: tuple[int, ...] = field(validator=Checked(check_arms))
    then: Policy | None = field(default=None, validator=Checked(argument_checks.policy))

    @property
    def rounds(self) -> int:
        """How many rounds are given."""
        return len(self.arms)

    @by_step
    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``a_h = arms[h - 1]``."""
        argument_checks.acting(self, belief, seen, rng)
        self._check(seen.arms)
        if self.then is not None and seen.step > len(self.arms):
            return self.then.act(belief, seen, rng)
        return pick(self._wanted(seen, rng.tasks), rng.uniform())

    @by_step
    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Certain in the first rounds, then that of the policy."""
        self._check(seen.arms)
        if self.then is not None and seen.step > len(self.arms):
            return known_law(self.then, belief, seen)
        return ActionLaw(tied_law(self._wanted(seen, tasks_of(belief))))

    def _wanted(self, seen: Seen, tasks: int) -> FloatArray:
        """1 for the arm of the step, ``(task, arm)``."""
        wanted = np.arange(seen.arms) == self.arms[min(seen.step, len(self.arms)) - 1]
        return seen.masked(np.broadcast_to(wanted.astype(np.float64), (tasks, seen.arms)))

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None where arms are missing or the policy after has
        none.
        """
        from priorwise.kernels.policies_exact import given_arms

        self._check(family.arms)
        if masked:
            return None
        first = PolicyTiles(np.zeros(1), np.array(self.arms), given_arms, frozenset())
        if self.then is None:
            return first
        return self.tiles_after(first, len(self.arms), family, horizon, masked)

    def _check(self, arms: int) -> None:
        if max(self.arms) >= arms:
            raise ArgumentError("arms", f"must be among 0..{arms - 1}", got=max(self.arms))
