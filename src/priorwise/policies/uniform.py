"""Play any arm."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.choosing import pick
from priorwise.core.protocols import Belief
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import IntArray
from priorwise.policies.allocation import Allocates
from priorwise.policies.laws import tasks_of
from priorwise.policies.shared import plain_tiles
from priorwise.theory.action_laws import ActionLaw, tied_law


@final
@dataclass(frozen=True)
class Uniform(Allocates):
    """Play any available arm."""

    uses: ClassVar[frozenset[str]] = frozenset()

    def act(self, belief: Belief, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ Uniform``."""
        argument_checks.acting(self, belief, seen, rng)
        return pick(seen.masked(np.zeros((rng.tasks, seen.arms))), rng.uniform())

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw:
        """Uniform on the available arms."""
        return ActionLaw(tied_law(seen.masked(np.zeros((tasks_of(belief), seen.arms)))))

    def monte_carlo_n(self, arms: int) -> int:
        """Return 0: the posterior is not looked at."""
        validation.count("arms", arms)
        return 0

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        from priorwise.kernels import policies as kernels

        return plain_tiles(kernels.uniform, family, masked, self.uses)
