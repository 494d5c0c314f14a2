"""Play what would be best if the posterior means were the truth; it never explores."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from priorwise.core import argument_checks
from priorwise.core.protocols import MeanEnvironmentBelief
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.theory.action_laws import RealActionLaw


@final
@dataclass(frozen=True)
class CertaintyEquivalence:
    """Play the best action of the environment of the posterior means: what engineers do who fit a
    model and then control it. For real-valued actions; among arms it is
    :class:`~priorwise.policies.Greedy`.
    """

    needs: ClassVar[tuple[type, ...]] = (MeanEnvironmentBelief,)

    def act(self, belief: MeanEnvironmentBelief, seen: Seen, rng: Stream) -> FloatArray:
        """Plan in the mean environment."""
        argument_checks.acting(self, belief, seen, rng, real=True)
        return belief.mean_environment(seen).best_actions(seen)[:, 0]

    def real_action_law(self, belief: MeanEnvironmentBelief, seen: Seen) -> RealActionLaw:
        """Return the one action that it takes."""
        actions = belief.mean_environment(seen).best_actions(seen)
        return RealActionLaw(actions, np.ones(actions.shape[:2]))

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: it looks at the posterior itself, not at draws."""
