"""Bayes-UCB: optimism by posterior quantiles."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from priorwise.core.protocols import QuantileBelief
from priorwise.core.seen import Seen
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray
from priorwise.policies.shared import Scored, levelled, plain_tiles


@final
@dataclass(frozen=True)
class BayesUCB(Scored):
    """Play the arm with the largest posterior quantile at level 1 - 1/(h + 1), h = 1, 2, ...
    (Kaufmann, Cappe, Garivier 2012).

    The first pull compares medians; the level rises with the steps.
    """

    needs: ClassVar[tuple[type, ...]] = (QuantileBelief,)
    uses: ClassVar[frozenset[str]] = frozenset({"quantile", "mean_size"})

    def scores(self, belief: QuantileBelief, seen: Seen) -> FloatArray:
        """``Q(1 - 1/(h + 1); mu_a)``, the posterior quantiles."""
        return levelled(belief.quantile(1.0 - 1.0 / (seen.step + 1), seen), belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None for a family without quantiles there."""
        from scipy.special import ndtri

        from priorwise.kernels import policies_exact as kernels

        if family.quantile is None:
            return None
        levels = 1.0 - 1.0 / np.arange(2, horizon + 2)
        p = np.stack([levels, ndtri(levels)], axis=1).ravel()
        return plain_tiles(kernels.bayes_ucb, family, masked, self.uses, p, scored=True)
