"""Bayes-UCB: optimism by posterior quantiles.

It reads the posterior exactly and has no Monte-Carlo constant: posteriors however close may differ
in choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from priorwise.core import doors, validation
from priorwise.core.choosing import pick
from priorwise.core.protocols import QuantileBelief, Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray


@final
@dataclass(frozen=True)
class BayesUCB:
    """Play the arm with the largest posterior quantile at level 1 - 1/(h + 1), h = 1, 2, ...
    (Kaufmann, Cappe, Garivier 2012).

    The first pull compares medians; the level rises with the steps.
    """

    needs: ClassVar[tuple[type, ...]] = (QuantileBelief,)

    def act(self, belief: QuantileBelief, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a Q(1 - 1/(h + 1); mu_a)``."""
        doors.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior quantile, not a number of draws, decides."""
        validation.count("arms", arms)

    def scores(self, belief: QuantileBelief, seen: Seen) -> FloatArray:
        """Posterior quantiles."""
        return seen.masked(belief.quantile(1.0 - 1.0 / (seen.step + 1), seen))
