"""Play the arm that looks best, as the posterior mean says; it never explores."""

from dataclasses import dataclass
from typing import ClassVar, final

from priorwise.core.protocols import MeanBelief
from priorwise.core.seen import Seen
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray
from priorwise.policies.shared import Scored, levelled, plain_tiles


@final
@dataclass(frozen=True)
class Greedy(Scored):
    """Play the arm with the largest posterior mean."""

    needs: ClassVar[tuple[type, ...]] = (MeanBelief,)
    uses: ClassVar[frozenset[str]] = frozenset({"mean", "mean_size"})

    def scores(self, belief: MeanBelief, seen: Seen) -> FloatArray:
        """``E[mu_a]``, the posterior means."""
        return levelled(belief.mean(seen), belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        from priorwise.kernels import policies as kernels

        uses = self.uses if family.means_tie else self.uses - {"mean_size"}
        return plain_tiles(kernels.greedy, family, masked, uses, scored=True)
