"""Play the arm that looks best, as the posterior mean says; it never explores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from priorwise.core import doors, validation
from priorwise.core.action_laws import ActionLaw
from priorwise.core.choosing import pick
from priorwise.core.protocols import MeanBelief, Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import scored_law
from priorwise.policies.shared import levelled, plain_tiles


@final
@dataclass(frozen=True)
class Greedy:
    """Play the arm with the largest posterior mean."""

    needs: ClassVar[tuple[type, ...]] = (MeanBelief,)
    uses: ClassVar[frozenset[str]] = frozenset({"mean", "mean_size"})

    def act(self, belief: MeanBelief, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a E[mu_a]``."""
        doors.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior mean, not a number of draws, decides."""
        validation.count("arms", arms)

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw:
        """Uniform on the arms with the largest score."""
        return scored_law(self, belief, seen)

    def scores(self, belief: MeanBelief, seen: Seen) -> FloatArray:
        """Posterior means."""
        return levelled(belief.mean(seen), belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        from priorwise.kernels import policies as kernels

        uses = self.uses if family.means_tie else self.uses - {"mean_size"}
        return plain_tiles(kernels.greedy, family, masked, uses)
