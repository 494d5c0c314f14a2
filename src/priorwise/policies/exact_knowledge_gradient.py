"""The knowledge gradient without draws: exact expectations in place of averages over k1 and k2."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from priorwise.core.choosing import level, ties
from priorwise.core.protocols import LookaheadBelief, Seen
from priorwise.core.separable import by_step
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray
from priorwise.policies import shared


@final
@dataclass(frozen=True)
class ExactKnowledgeGradient(shared.Scored):
    """Receding horizon with k1, k2 -> infinity: ``(1 - alpha) E[mu_a] + alpha E[max_a' E[mu_a'
    given r_a]]``, computed exactly.

    Parameters
    ----------
    alpha
        As in :class:`~priorwise.policies.receding_horizon.RecedingHorizon`. ``"online"`` is the
        online knowledge gradient of Ryzhov, Powell and Frazier (2012): this pull's mean plus what
        it teaches, times the pulls left.

    """

    needs: ClassVar[tuple[type, ...]] = (LookaheadBelief,)
    uses: ClassVar[frozenset[str]] = frozenset({"mean", "mean_size", "best_after"})

    alpha: shared.Alpha = "online"

    def __post_init__(self) -> None:
        shared.check_alpha(self.alpha)

    @by_step
    def scores(self, belief: LookaheadBelief, seen: Seen) -> FloatArray:
        """Posterior means of the arms with the largest value, -inf for the others: where the
        look-ahead ties, the larger mean decides.
        """
        alpha = shared.alpha_at(self.alpha, seen.step, seen.horizon)
        now = seen.masked(belief.mean(seen))
        size = np.broadcast_to(shared.mean_sizes(belief, seen), now.shape)
        if alpha == 0.0:
            return level(now, size)
        ahead = belief.best_after(seen)
        # of what the best mean is a sum of
        largest = np.maximum(seen.masked(size).max(axis=1, keepdims=True), np.abs(ahead))
        total = level(
            seen.masked((1.0 - alpha) * belief.mean(seen) + alpha * ahead),
            (1.0 - alpha) * size + alpha * largest,
        )
        return level(np.where(ties(total), now, -np.inf), size)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None for a family without look-ahead there."""
        from priorwise.kernels import policies_exact as kernels

        if family.best_after is None:
            return None
        act, alphas = kernels.exact_knowledge_gradient, shared.alphas_to(self.alpha, horizon)
        return shared.plain_tiles(act, family, masked, self.uses, alphas, scored=True)
