"""Top-two Thompson sampling: for finding the best arm rather than for earning."""

import math
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.choosing import pick
from priorwise.core.parameters import Checked, Number
from priorwise.core.protocols import Belief, SeparableBelief, offers
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.allocation import Allocates
from priorwise.policies.laws import sampling_law
from priorwise.policies.shared import draws_of
from priorwise.theory.action_laws import ActionLaw


@final
@frozen(slots=False)
class TopTwoThompson(Allocates):
    """Play the best arm of a posterior draw, or with probability 1 - share that of a draw which
    disagrees (Russo 2016).

    Parameters
    ----------
    share
        Probability of playing the first draw's best arm.
    most_draws
        How many draws to try; if all agree on the best arm, it is played.

    """

    uses: ClassVar[frozenset[str]] = frozenset({"draw", "draw_each"})

    share: float = field(default=0.5, validator=Number(0.0, 1.0, ends="(]"))
    most_draws: int = field(default=256, validator=Checked(draws_of))

    def monte_carlo_n(self, arms: int) -> int:
        """Return ``1 + (1 - share) most_draws``, rounded up: one draw, and with probability 1 -
        share at most so many more.
        """
        validation.count("arms", arms)
        return math.ceil(1.0 + (1.0 - self.share) * self.most_draws)

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull at most, for the estimate of work."""
        return self.most_draws + 1

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return max(8, self.most_draws // 2)

    @property
    def slow_because(self) -> str:
        """Why a run may take long."""
        return f"draws up to {self.most_draws:,} times per pull until another arm is best"

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Draw until the best arm differs from the first draw's."""
        argument_checks.acting(self, belief, seen, rng)
        stay = rng.uniform() < self.share
        first = self._best(belief, seen, rng, 1)[:, 0]
        chosen, at, left, tried = first.copy(), np.arange(rng.tasks), ~stay, 0
        while tried < self.most_draws and left.any():
            if offers(belief, SeparableBelief):  # draw for the tasks that search only
                belief, seen, rng = belief.take(left), seen.take(left), rng.take(left)
                at, left = at[left], left[left]
            draws = min(max(8, tried), self.most_draws - tried)
            best = self._best(belief, seen, rng, draws)
            differs = best != first[at][:, None]
            found = differs.any(axis=1) & left
            chosen[at[found]] = best[found, differs[found].argmax(axis=1)]
            left = left & ~found
            tried += draws
        return chosen

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """From the law b of one draw's best arm: given the first arm f, all m further draws agree
        with probability ``b_f^m``, and otherwise the first other one has law b given not f.
        """
        one = sampling_law(1, "max", belief, seen)
        if one is None:
            return None
        b, m, other = one.probs, self.most_draws, 1.0 - self.share
        rest = 1.0 - b
        # b_f (1 - b_f^m) / (1 - b_f), m where b_f is 1
        after = np.where(rest > 0.0, b * (1.0 - b**m) / np.where(rest > 0.0, rest, 1.0), m)
        second = b**m + after.sum(axis=1, keepdims=True) - after
        law = b * (self.share + other * second)
        # an error e of b moves the first arm by e, the law of the second by e / (1 - b_f)
        moved = np.minimum(1.0, one.error / np.maximum(rest, 1e-300))
        error = one.error + other * (b * moved).sum(axis=1, keepdims=True)
        law /= law.sum(axis=1, keepdims=True)
        return ActionLaw(law, one.source, 0.0 if one.source == "exact" else error)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None for a family that cannot draw so there."""
        from priorwise.kernels import policies_exact as kernels

        if family.draw_each is None:
            return None
        sizes = [family.arms, self.most_draws, 0, masked, family.belief_rows, family.signal_rows]
        return PolicyTiles(np.array([self.share]), np.array(sizes), kernels.top_two, self.uses)

    @staticmethod
    def _best(belief: Belief, seen: Seen, rng: Stream, draws: int) -> IntArray:
        """Best arm of each draw, ``(task, draw)``."""
        values: FloatArray = seen.masked(belief.sample(rng, draws, seen))
        flat = values.reshape(-1, values.shape[2])
        return pick(flat, rng.uniform(draws).reshape(-1)).reshape(values.shape[:2])
