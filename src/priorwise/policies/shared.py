"""What several policies share: scores, weights of a look-ahead, sizes, rounds before a policy."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, final

import numpy as np

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.choosing import level, pick
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Number
from priorwise.core.protocols import SizedMeanBelief, monte_carlo_n, offers
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.tiles import CompiledPolicy, FamilyTiles, PolicyTiles, Tile
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.allocation import Allocates
from priorwise.theory.action_laws import ActionLaw, tied_law

Alpha = float | Literal["online"] | Callable[[int, int], float]


def alpha_at(alpha: Alpha, step: int, horizon: int) -> float:
    """Weight of the look-ahead at a step: a number, a function of (step, horizon), or (H - h) / (H
    - h + 1) for ``"online"``.
    """
    if alpha == "online":
        return (horizon - step) / (horizon - step + 1)
    return _check_alpha(alpha(step, horizon) if callable(alpha) else alpha)


def alphas_to(alpha: Alpha, horizon: int) -> FloatArray:
    """Weights of the look-ahead at all steps, ``(step,)``."""
    return np.array([alpha_at(alpha, step, horizon) for step in range(1, horizon + 1)])


def check_alpha(name: str, alpha: Alpha) -> None:
    """Check the parameter when a policy is made."""
    if callable(alpha):
        argument_checks.function(name, alpha, "step", "horizon")
    elif not (isinstance(alpha, str) and alpha == "online"):
        _check_alpha(alpha)


def _check_alpha(value: object) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)):
        what = "must be a number, 'online' or a function of (step, horizon)"
        raise ArgumentError("alpha", what, got=value)
    return Number(0.0, 1.0).checked("alpha", value, None)


def draws_of(name: str, value: int) -> int:
    """Return a number of draws that fits into memory."""
    draws = validation.count(name, value)
    sizes.check_draws(name, draws)
    return draws


def mean_sizes(belief: Any, seen: Seen) -> FloatArray:
    """Sizes of the numbers that the posterior means are sums of, ``(task, arm)`` or ``(1,
    arm)``.
    """
    return belief.mean_size(seen) if offers(belief, SizedMeanBelief) else np.abs(belief.mean(seen))


def levelled(values: FloatArray, belief: Any, seen: Seen) -> FloatArray:
    """Set values as large as the posterior means that tie with the best to it; -inf on arms that
    are not available.
    """
    sizes = belief.mean_size(seen) if offers(belief, SizedMeanBelief) else None
    return level(seen.masked(values), sizes)


def plain_tiles(
    act: Tile,
    family: FamilyTiles,
    masked: bool,
    uses: frozenset[str],
    p: FloatArray | None = None,
    *,
    scored: bool = False,
) -> PolicyTiles:
    """Tile function that needs no sizes but the number of arms and whether some are missing."""
    sizes = np.array([family.arms, 0, 0, masked])
    return PolicyTiles(np.zeros(1) if p is None else p, sizes, act, uses, scored=int(scored))


class Scored(Allocates, ABC):
    """Plays the arm with the largest score, any of them where several tie.

    It reads the posterior exactly and has no Monte-Carlo constant: posteriors however close may
    differ in choice.
    """

    @abstractmethod
    def scores(self, belief: Any, seen: Seen) -> FloatArray:
        """Score of each arm, ``(task, arm)``; -inf for those that are not available."""

    @final
    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Return the arms with the largest score."""
        argument_checks.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    @final
    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior itself, not a number of draws, decides."""
        validation.count("arms", arms)

    @final
    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw:
        """Uniform on the arms with the largest score."""
        return ActionLaw(tied_law(self.scores(belief, seen)))


class Then(Allocates, ABC):
    """Rounds that do not look at the posterior, then a policy, if there is one: what it needs and
    takes is what that one does.
    """

    rounds: Any  # how many, which a policy may also compute
    then: Any

    @property
    def needs(self) -> tuple[type, ...]:
        """What the policy after needs of a belief."""
        return getattr(self.then, "needs", ())

    @property
    def uses(self) -> frozenset[str]:
        """Which tile functions of a belief the policy after calls."""
        return self.then.uses if isinstance(self.then, CompiledPolicy) else frozenset()

    @property
    def slow_because(self) -> str:
        """Why a run may take long; "" where nothing says so."""
        return getattr(self.then, "slow_because", "")

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull at most, for the estimate of work."""
        return sizes.draws_per_pull(self.then, arms)

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return sizes.drawn_at_once(self.then)

    def monte_carlo_n(self, arms: int) -> int | None:
        """Return the constant of the policy after, 0 without one: the rounds before do not look at
        the posterior.
        """
        validation.count("arms", arms)
        return 0 if self.then is None else monte_carlo_n(self.then, arms)

    def tiles_after(
        self, first: PolicyTiles, rounds: int, family: FamilyTiles, horizon: int, masked: bool
    ) -> PolicyTiles | None:
        """Tile function of rounds of a policy that does not look, then of the policy after; None
        where that one has none.
        """
        from priorwise.kernels.policies_exact import first_then

        if not isinstance(self.then, CompiledPolicy):
            return None
        then = self.then.tiles(family, horizon, masked)
        if then is None:
            return None
        head = [rounds, first.act.address, then.act.address, first.n.size]
        scored = max(then.scored, rounds + 1) if then.scored else 0
        sizes = np.concatenate([head, first.n, then.n])
        return PolicyTiles(then.p, sizes, first_then, then.uses, scored=scored)
