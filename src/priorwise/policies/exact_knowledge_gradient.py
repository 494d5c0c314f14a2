"""The knowledge gradient without draws: exact expectations in place of averages over k1 and k2, of
one pull or of the best number of them.
"""

from typing import Any, Literal, NamedTuple, final

import numpy as np
from attrs import field, frozen

from priorwise.core.choosing import level, ties
from priorwise.core.errors import ArgumentError
from priorwise.core.lookahead import RepeatedLookaheadBelief, numbers_of_pulls
from priorwise.core.parameters import Checked, Choice
from priorwise.core.protocols import LookaheadBelief
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies import shared


class Plan(NamedTuple):
    """What each arm is worth if it is pulled for a while and the best arm after that."""

    value: FloatArray  # V_a, (task, arm); -inf for arms that are not available
    pulls: IntArray  # the number of pulls that gives it, (task, arm)


@final
@frozen(slots=False)
class ExactKnowledgeGradient(shared.Scored):
    """Receding horizon with k1, k2 -> infinity: ``(1 - alpha) E[mu_a] + alpha E[max_a' E[mu_a'
    given r_a]]``, computed exactly.

    Parameters
    ----------
    alpha
        As in :class:`~priorwise.policies.receding_horizon.RecedingHorizon`. ``'online'`` is the
        online knowledge gradient of Ryzhov, Powell and Frazier (2012): this pull's mean plus what
        it teaches, times the pulls left.
    pulls
        ``'best'``: value an arm by the best number m of further pulls of it, with N left: ``V_a =
        max_m [m E[mu_a] + (N - m) E[max_b E[mu_b given m rewards of a]]]``. For rare events, of
        which a single pull teaches next to nothing; ``alpha`` has to be ``'online'``.

    """

    alpha: shared.Alpha = field(default="online", validator=Checked(shared.check_alpha))
    pulls: Literal[1, "best"] = field(default=1, validator=Choice(Literal[1, "best"]))

    def __attrs_post_init__(self) -> None:
        if self.pulls == "best" and self.alpha != "online":
            raise ArgumentError(
                "alpha",
                "must be 'online' with pulls='best', which counts the pulls left",
                got=self.alpha,
            )

    @property
    def needs(self) -> tuple[type, ...]:
        """What it needs of a belief."""
        return (RepeatedLookaheadBelief,) if self.pulls == "best" else (LookaheadBelief,)

    @property
    def uses(self) -> frozenset[str]:
        """Which tile functions of a belief it calls."""
        if self.pulls == "best":
            return frozenset({"mean_size", "best_after_pulls"})
        return frozenset({"mean", "mean_size", "best_after"})

    @by_step
    def scores(self, belief: Any, seen: Seen) -> FloatArray:
        """Posterior means of the arms with the largest value, -inf for the others: where the
        look-ahead ties, the larger mean decides.
        """
        now = seen.masked(belief.mean(seen))
        size = np.broadcast_to(shared.mean_sizes(belief, seen), now.shape)
        if self.pulls == "best":
            value, value_size, _ = self._plan(belief, seen, now, size)
        else:
            alpha = shared.alpha_at(self.alpha, seen.step, seen.horizon)
            if alpha == 0.0:
                return level(now, size)
            ahead = belief.best_after(seen)
            value, value_size = _weighted(alpha, now, ahead, size, _largest(seen, size))
        total = level(value, value_size)
        return level(np.where(ties(total), now, -np.inf), size)

    def plan(self, belief: Any, seen: Seen) -> Plan:
        """Return the values V_a and the numbers of pulls that give them, with ``pulls="best"``."""
        if self.pulls != "best":
            raise ArgumentError("pulls", "must be 'best' to plan a number of pulls")
        now = seen.masked(belief.mean(seen))
        value, _, pulls = self._plan(belief, seen, now, np.abs(belief.mean(seen)))
        return Plan((seen.horizon - seen.step + 1) * value, pulls)

    def _plan(
        self, belief: Any, seen: Seen, now: FloatArray, size: FloatArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return V_a / N, the size of the numbers it is a sum of, and the pulls; m = N commits to
        an arm, and is worth its mean.
        """
        left, largest = seen.horizon - seen.step + 1, _largest(seen, size)
        best, best_size, pulls = now, size, np.full(now.shape, left)
        for m in numbers_of_pulls(left)[:-1]:
            ahead = belief.best_after_pulls(seen, m)
            value, value_size = _weighted((left - m) / left, now, ahead, size, largest)
            better = value > best
            best = np.where(better, value, best)
            best_size = np.where(better, value_size, best_size)
            pulls = np.where(better, m, pulls)
        return best, best_size, pulls

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None for a family without look-ahead there."""
        from priorwise.kernels import policies_exact as kernels

        best = self.pulls == "best"
        if (family.best_after_pulls if best else family.best_after) is None:
            return None
        act = kernels.best_number_of_pulls if best else kernels.exact_knowledge_gradient
        left = np.arange(horizon, 0, -1.0)
        given = left if best else shared.alphas_to(self.alpha, horizon)
        return shared.plain_tiles(act, family, masked, self.uses, given, scored=True)


def _largest(seen: Seen, size: FloatArray) -> FloatArray:
    """Size of what the best mean is a sum of, at most, ``(task, 1)``."""
    return seen.masked(size).max(axis=1, keepdims=True)


def _weighted(
    alpha: float, now: FloatArray, ahead: FloatArray, size: FloatArray, largest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weigh means and look-ahead, and the sizes of the numbers that they are sums of."""
    there = np.isfinite(now)
    value = np.where(there, (1.0 - alpha) * np.where(there, now, 0.0) + alpha * ahead, -np.inf)
    return value, (1.0 - alpha) * size + alpha * np.maximum(largest, np.abs(ahead))
