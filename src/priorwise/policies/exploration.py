"""Policies that explore: uniform rounds or given arms first, then any policy."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from priorwise.core import doors, sizes, validation
from priorwise.core.choosing import pick
from priorwise.core.protocols import Policy, Seen, monte_carlo_n
from priorwise.core.streams import Stream
from priorwise.core.tiles import CompiledPolicy, FamilyTiles, PolicyTiles
from priorwise.core.types import IntArray
from priorwise.policies.baselines import Uniform


def _then_tiles(
    then: Policy, family: FamilyTiles, horizon: int, masked: bool
) -> PolicyTiles | None:
    return then.tiles(family, horizon, masked) if isinstance(then, CompiledPolicy) else None


class Then(ABC):
    """Rounds that do not look at the posterior, then a policy, if there is one: what it needs and
    takes is what that one does.
    """

    then: Any

    @property
    def needs(self) -> tuple[type, ...]:
        """What the policy after needs of a belief."""
        return getattr(self.then, "needs", ())

    @property
    def looks_ahead(self) -> bool:
        """Whether the policy after looks ahead."""
        return isinstance(self.then, CompiledPolicy) and self.then.looks_ahead

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


@final
@dataclass(frozen=True)
class UniformThen(Then):
    """Play any available arm in the first rounds of an episode, then a policy.

    What the rounds before taught is in the belief that the policy then sees.

    Parameters
    ----------
    rounds
        How many rounds are uniform.
    then
        The policy of the rounds after.

    Examples
    --------
    >>> from priorwise.policies.sampling import ThompsonSampling
    >>> UniformThen(1, ThompsonSampling()).looks_ahead
    False

    """

    rounds: int
    then: Policy

    def __post_init__(self) -> None:
        """Check the number of rounds."""
        validation.count("rounds", self.rounds, least=0)
        doors.policy("then", self.then)

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ Uniform`` while ``h <= rounds``."""
        doors.acting(self, belief, seen, rng)
        return (Uniform() if seen.step <= self.rounds else self.then).act(belief, seen, rng)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None where the policy has none."""
        from priorwise.kernels.exploring import uniform_then

        then = _then_tiles(self.then, family, horizon, masked)
        if then is None:
            return None
        first = Uniform().tiles(family, horizon, masked)
        head = np.array([self.rounds, first.act.address, then.act.address])
        sizes = np.concatenate([head, first.n, then.n])
        return PolicyTiles(
            then.p, sizes, uniform_then, then.uses, blind_pulls=max(self.rounds, then.blind_pulls)
        )


@final
@dataclass(frozen=True)
class PlayArms(Then):
    """Play given arms one after the other, then a policy, or without one the last of them to the
    end.

    A task to which the arm is not available plays any that is.

    Parameters
    ----------
    arms
        The arms of the first rounds, in order.
    then
        The policy of the rounds after.

    """

    arms: tuple[int, ...]
    then: Policy | None = None

    def __post_init__(self) -> None:
        """Check the arms."""
        if not isinstance(self.arms, tuple) or not self.arms:
            raise TypeError(f"arms must be a tuple with at least one arm, got {self.arms!r}")
        for arm in self.arms:
            validation.count("arms", arm, least=0)
        if self.then is not None:
            doors.policy("then", self.then)

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``a_h = arms[h - 1]``."""
        doors.acting(self, belief, seen, rng)
        self._check(seen.arms)
        if self.then is not None and seen.step > len(self.arms):
            return self.then.act(belief, seen, rng)
        wanted = np.arange(seen.arms) == self.arms[min(seen.step, len(self.arms)) - 1]
        return pick(
            seen.masked(np.broadcast_to(wanted.astype(np.float64), (rng.tasks, seen.arms))),
            rng.uniform(),
        )

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None where arms are missing or the policy after has
        none.
        """
        from priorwise.kernels.exploring import arms_then

        self._check(family.arms)
        then = None if self.then is None else _then_tiles(self.then, family, horizon, masked)
        if masked or (self.then is not None and then is None):
            return None
        if then is None:
            return PolicyTiles(
                np.zeros(1), np.array([len(self.arms), 0, *self.arms]), arms_then, frozenset()
            )
        return PolicyTiles(
            then.p,
            np.array([len(self.arms), then.act.address, *self.arms, *then.n]),
            arms_then,
            then.uses,
        )

    def _check(self, arms: int) -> None:
        if max(self.arms) >= arms:
            raise ValueError(f"arms must be among 0..{arms - 1}, got {max(self.arms)}")
