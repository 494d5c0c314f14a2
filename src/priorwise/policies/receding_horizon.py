"""Two-step receding-horizon control, 2-RHC(alpha, k1, k2), and its case alpha = 1, the Monte-Carlo
knowledge gradient.

For each arm a and i <= k1: draw an environment, draw its reward at a, condition the posterior on
that reward, draw k2 look-ahead environments. Play the arm with the largest

    V_a = sum_i [ (1 - alpha) mu_a^(a,i) + alpha max_a' mean_j muhat_a'^(a,i,j) ].

In a contextual problem the look-ahead is to fresh contexts, drawn from their law anew for every (a,
i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np

from priorwise.core import doors, sizes, validation
from priorwise.core.action_laws import ActionLaw
from priorwise.core.choosing import level, pick, ties
from priorwise.core.protocols import (
    CollapsingBelief,
    ImaginingBelief,
    Seen,
    SizedDrawsBelief,
    offers,
)
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.receding_law import Look, receding_horizon_law
from priorwise.policies.shared import Alpha, alpha_at, alphas_to, check_alpha

Ties = Literal["draws", "random"]
WhenCertain = Literal["draws", "best"]


@final
@dataclass(frozen=True)
class RecedingHorizon:
    """Two-step receding-horizon control.

    Parameters
    ----------
    k1, k2
        Imagined pulls of each arm, and look-ahead draws after each of them.
    alpha
        Weight of the look-ahead: a number from 0 (none) to 1 (the knowledge gradient); ``"online"``
        for (H - h) / (H - h + 1), the number of pulls left after this one against this one; or a
        function of (step, horizon).
    ties
        ``"draws"``: among arms with the largest V_a the one with the largest sum of drawn values,
        then any. ``"random"``: any.
    when_certain
        ``"best"``: once the posterior has collapsed on one environment, play its best arm.
        ``"draws"``: V_a as always.

    """

    k1: int
    k2: int
    alpha: Alpha
    ties: Ties = "draws"
    when_certain: WhenCertain = "draws"

    def __post_init__(self) -> None:
        """Check the parameters."""
        sizes.check_draws(
            "k1 * k2", validation.count("k1", self.k1) * validation.count("k2", self.k2)
        )
        check_alpha(self.alpha)
        if self.ties not in get_args(Ties):
            raise ValueError(f"ties must be one of {', '.join(get_args(Ties))}, got {self.ties!r}")
        if self.when_certain not in get_args(WhenCertain):
            raise ValueError(
                f"when_certain must be one of {', '.join(get_args(WhenCertain))}, got "
                f"{self.when_certain!r}"
            )

    @property
    def needs(self) -> tuple[type, ...]:
        """What a belief must offer."""
        return (ImaginingBelief,)

    @property
    def uses(self) -> frozenset[str]:
        """Which tile functions of a belief it calls."""
        return frozenset({"look", "mean", "certain"} if self.when_certain == "best" else {"look"})

    def monte_carlo_n(self, arms: int) -> int | None:
        """Return n = A k1 (2 k2 + 3), or A k1 without look-ahead; None with
        ``when_certain="best"``.

        That rule looks at the posterior itself, not only at draws from it. Ties broken by chance
        alone are covered: chance does not depend on the posterior.
        """
        pulls = validation.count("arms", arms) * self.k1
        if self.when_certain == "best":
            return None
        return pulls if self.alpha == 0 else pulls * (2 * self.k2 + 3)

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull, for the estimate of work."""
        return arms * self.k1 * (self.k2 + 1)

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return self.k2

    @property
    def slow_because(self) -> str:
        """Why a run may take long."""
        return f"looks ahead with {self.k1:,} × {self.k2:,} draws for each arm and pull"

    @by_step
    def act(self, belief: ImaginingBelief, seen: Seen, rng: Stream) -> IntArray:
        """Play the arm with the largest V_a."""
        doors.acting(self, belief, seen, rng)
        breaker = rng.uniform()
        alpha = alpha_at(self.alpha, seen.step, seen.horizon)
        now = np.zeros((rng.tasks, seen.arms))
        ahead = np.zeros((rng.tasks, seen.arms))
        now_size, ahead_size = np.zeros_like(now), np.zeros_like(ahead)
        for arm in range(seen.arms):
            actions = np.full(rng.tasks, arm)
            for _ in range(self.k1):
                imagined = belief.imagine(rng, actions, seen)
                best, size = _best_mean(imagined.belief, rng, self.k2, imagined.seen)
                now[:, arm] += imagined.value
                ahead[:, arm] += best
                now_size[:, arm] += np.abs(imagined.value)
                ahead_size[:, arm] += size
        # V_a
        total = level(
            seen.masked((1.0 - alpha) * now + alpha * ahead),
            (1.0 - alpha) * now_size + alpha * ahead_size,
        )
        chosen = pick(
            level(np.where(ties(total), now, -np.inf), now_size) if self.ties == "draws" else total,
            breaker,
        )
        if self.when_certain == "best" and isinstance(belief, CollapsingBelief):
            chosen = np.where(
                belief.certain(), pick(seen.masked(belief.mean(seen)), breaker), chosen
            )
        return chosen

    @by_step
    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the arm with the largest V_a, by enumeration of few draws from finitely many
        points.
        """
        alpha = alpha_at(self.alpha, seen.step, seen.horizon)
        certain = self.when_certain == "best"
        look = Look(
            self.k1, self.k2, alpha, by_draws=self.ties == "draws", best_when_certain=certain
        )
        return receding_horizon_law(look, belief, seen)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None with more look-ahead draws than it can count,
        or keep the keys of.
        """
        from priorwise.kernels import policies as kernels

        if self.k2 > kernels.MOST_COUNTED or (
            family.look_keeps_keys and family.arms * self.k1 * self.k2 > kernels.MOST_KEYED
        ):
            return None
        alphas = alphas_to(self.alpha, horizon)
        sizes = [family.arms, self.k1, self.k2, masked]
        switches = [
            kernels.TIES_RANDOM if self.ties == "random" else kernels.TIES_BY_DRAWS,
            self.when_certain == "best",
            family.draws_cancel,
        ]
        uses = self.uses
        if family.look_many is not None and family.arms * self.k1 >= family.many_pulls:
            uses = uses - {"look"} | {"look_many"}
        return PolicyTiles(alphas, np.array(sizes + switches), kernels.receding_horizon, uses)


def _best_mean(belief: Any, rng: Stream, draws: int, seen: Seen) -> tuple[FloatArray, FloatArray]:
    """Largest mean of look-ahead draws, and the size of the numbers it is a mean of, ``(task,)``
    both.
    """
    if not offers(belief, SizedDrawsBelief):
        best = seen.masked(belief.sample_mean(rng, draws, seen)).max(axis=1)
        return best, np.abs(best)
    means, size = belief.sample_mean_and_size(rng, draws, seen)
    arm = seen.masked(means).argmax(axis=1)[:, None]
    return np.take_along_axis(means, arm, axis=1)[:, 0], np.take_along_axis(size, arm, axis=1)[:, 0]


def KnowledgeGradient(
    k1: int, k2: int, *, ties: Ties = "draws", when_certain: WhenCertain = "draws"
) -> RecedingHorizon:
    """Monte-Carlo knowledge gradient: receding horizon with all the weight on what is learned,
    alpha = 1.

    The experiments of the paper use ``ties="random", when_certain="best"``.
    """
    return RecedingHorizon(k1, k2, 1.0, ties=ties, when_certain=when_certain)
