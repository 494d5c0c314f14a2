"""Bayes-UCB: optimism by posterior quantiles.

It reads the posterior exactly and has no Monte-Carlo constant: posteriors however close may differ
in choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.action_laws import ActionLaw
from priorwise.core.choosing import pick
from priorwise.core.protocols import QuantileBelief, Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import scored_law
from priorwise.policies.shared import levelled, plain_tiles


@final
@dataclass(frozen=True)
class BayesUCB:
    """Play the arm with the largest posterior quantile at level 1 - 1/(h + 1), h = 1, 2, ...
    (Kaufmann, Cappe, Garivier 2012).

    The first pull compares medians; the level rises with the steps.
    """

    needs: ClassVar[tuple[type, ...]] = (QuantileBelief,)
    uses: ClassVar[frozenset[str]] = frozenset({"quantile", "mean_size"})

    def act(self, belief: QuantileBelief, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a Q(1 - 1/(h + 1); mu_a)``."""
        doors.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior quantile, not a number of draws, decides."""
        validation.count("arms", arms)

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw:
        """Uniform on the arms with the largest score."""
        return scored_law(self, belief, seen)

    def scores(self, belief: QuantileBelief, seen: Seen) -> FloatArray:
        """Posterior quantiles."""
        return levelled(belief.quantile(1.0 - 1.0 / (seen.step + 1), seen), belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None for a family without quantiles there."""
        from scipy.special import ndtri

        from priorwise.kernels import policies_exact as kernels

        if family.quantile is None:
            return None
        levels = 1.0 - 1.0 / np.arange(2, horizon + 2)
        p = np.stack([levels, ndtri(levels)], axis=1).ravel()
        return plain_tiles(kernels.bayes_ucb, family, masked, self.uses, p)
