"""How a meta-learner explores: policies that collect data for an estimator, and which episodes play which of them.

Moment estimators know the law of the pulls: uniform in all rounds (:class:`~priorwise.policies.baselines.Uniform`), uniform in the
first rounds only (:class:`UniformThen`), one arm a block of episodes (:class:`OneArmBlocks`), or the same two arms in two
consecutive episodes (:class:`PairedArms`). The last two differ from episode to episode, which a policy cannot see: they are an
:class:`Exploration`, and say through ``segments`` which policy plays how many episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core import validation
from priorwise.core.choosing import pick
from priorwise.core.protocols import Policy, Seen
from priorwise.core.streams import Purpose, Stream, Streams, mix
from priorwise.core.types import IntArray
from priorwise.kernels.compiling import ACT, LANES, caller, tile
from priorwise.kernels.loop import CompiledPolicy, FamilyTiles, PolicyTiles
from priorwise.policies.baselines import Uniform

call_policy = caller(ACT)

PAIRS: Final = 0x5061697273
"""Sets the draw of pairs of arms apart from what else a seed is used for."""

Segment = tuple[Policy, int]
"""A policy and the number of episodes it plays."""


@runtime_checkable
class Exploration(Protocol):
    """A plan of exploration whose policy changes between episodes."""

    def segments(self, episodes: int, *, seed: int) -> Sequence[Segment]:
        """Policies in the order of play, with how many episodes each; their numbers add up to ``episodes``.

        ``seed`` is for what is drawn at random about the plan; a learner passes another one in each replicate.
        """
        ...


def segments(exploration: Policy | Exploration, episodes: int, *, seed: int) -> Sequence[Segment]:
    """Segments of any exploration; a plain policy plays all episodes."""
    episodes = validation.count("episodes", episodes, least=0)
    if not isinstance(exploration, Exploration):
        if isinstance(exploration, type) or not hasattr(exploration, "act"):
            raise TypeError(f"exploration must be a policy or have segments(episodes, seed=...), got {exploration!r}")
        return [(exploration, episodes)] if episodes else []
    plan = [(policy, number) for policy, number in exploration.segments(episodes, seed=seed) if number]
    if sum(number for _, number in plan) != episodes:
        raise ValueError(f"the segments of {type(exploration).__name__} must add up to {episodes} episodes")
    return plan


@tile(ACT)
def _uniform_then(  # type: ignore[no-untyped-def]  # Numba infers the types
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """Rounds, the two addresses, the four sizes of the uniform policy, the sizes of the other."""
    if step <= pn[0]:
        call_policy(pn[1], pp, pn[3:7], keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)
    else:
        call_policy(pn[2], pp, pn[7:], keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)


@tile(ACT)
def _arms_then(  # type: ignore[no-untyped-def]  # Numba infers the types
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """Length of the sequence, address of the policy after it or 0, the sequence, the sizes of that policy."""
    length = pn[0]
    if step <= length or pn[1] == 0:
        arm = pn[1 + min(step, length)]
        for lane in range(LANES):
            actions[lane] = arm
    else:
        call_policy(pn[1], pp, pn[2 + length :], keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)


def _then_tiles(then: Policy, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
    return then.tiles(family, horizon, masked) if isinstance(then, CompiledPolicy) else None


@final
@dataclass(frozen=True)
class UniformThen:
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

    @property
    def needs(self) -> tuple[type, ...]:
        """What the policy needs of a belief."""
        return getattr(self.then, "needs", ())

    @property
    def looks_ahead(self) -> bool:
        """Whether the policy looks ahead."""
        return isinstance(self.then, CompiledPolicy) and self.then.looks_ahead

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ Uniform`` while ``h <= rounds``."""
        return (Uniform() if seen.step <= self.rounds else self.then).act(belief, seen, rng)

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None where the policy has none."""
        then = _then_tiles(self.then, family, horizon, masked)
        if then is None:
            return None
        first = Uniform().tiles(family, horizon, masked)
        head = np.array([self.rounds, first.act.address, then.act.address])
        sizes = np.concatenate([head, first.n, then.n])
        return PolicyTiles(then.p, sizes, _uniform_then, then.uses, blind_pulls=max(self.rounds, then.blind_pulls))


@final
@dataclass(frozen=True)
class PlayArms:
    """Play given arms one after the other, then a policy, or without one the last of them to the end.

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

    @property
    def needs(self) -> tuple[type, ...]:
        """What the policy after needs of a belief."""
        return getattr(self.then, "needs", ())

    @property
    def looks_ahead(self) -> bool:
        """Whether the policy after looks ahead."""
        return isinstance(self.then, CompiledPolicy) and self.then.looks_ahead

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``a_h = arms[h - 1]``."""
        self._check(seen.arms)
        if self.then is not None and seen.step > len(self.arms):
            return self.then.act(belief, seen, rng)
        wanted = np.arange(seen.arms) == self.arms[min(seen.step, len(self.arms)) - 1]
        return pick(seen.masked(np.broadcast_to(wanted.astype(np.float64), (rng.tasks, seen.arms))), rng.uniform())

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None where arms are missing or the policy after has none."""
        self._check(family.arms)
        then = None if self.then is None else _then_tiles(self.then, family, horizon, masked)
        if masked or (self.then is not None and then is None):
            return None
        if then is None:
            return PolicyTiles(np.zeros(1), np.array([len(self.arms), 0, *self.arms]), _arms_then, frozenset())
        return PolicyTiles(then.p, np.array([len(self.arms), then.act.address, *self.arms, *then.n]), _arms_then, then.uses)

    def _check(self, arms: int) -> None:
        if max(self.arms) >= arms:
            raise ValueError(f"arms must be among 0..{arms - 1}, got {max(self.arms)}")


@final
@dataclass(frozen=True)
class OneArmBlocks:
    """Arm 1 in the first T/A episodes, arm 2 in the next T/A, and so on (the exploration of the Beta theorem).

    Where A does not divide T, the first blocks have one episode more.

    Parameters
    ----------
    arms
        Number of arms.
    rounds
        Rounds at the start of an episode that pull the block's arm; by default all.
    then
        The policy of the rounds after; fit on the first ``rounds`` pulls only if there is one.

    """

    arms: int
    rounds: int | None = None
    then: Policy | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        validation.count("arms", self.arms)
        if self.rounds is not None:
            validation.count("rounds", self.rounds)
        if (self.rounds is None) != (self.then is None):
            raise ValueError("rounds and then belong together: then plays the rounds after the first ones; give both or none")

    def segments(self, episodes: int, *, seed: int) -> Sequence[Segment]:
        """One block an arm; nothing is drawn."""
        size, more = divmod(episodes, self.arms)
        return [(PlayArms((arm,) * (self.rounds or 1), self.then), size + (arm < more)) for arm in range(self.arms)]


@final
@dataclass(frozen=True)
class PairedArms:
    """Two arms drawn uniformly, the same in two consecutive episodes (the exploration of the difference estimator).

    Tasks are exchangeable, so the order in which the pairs of arms come does not matter to an estimate from all episodes. It is
    drawn how often each pair comes, ``Multinomial(T/2; 1/A^2, ...)``, and those episodes are played together. An odd episode at the
    end plays a pair on its own, which the estimator leaves out.

    Parameters
    ----------
    arms
        Number of arms.
    then
        The policy from the third round on; by default the second arm goes on to the end. Fit on the first two pulls either way.

    """

    arms: int
    then: Policy | None = None

    def __post_init__(self) -> None:
        """Check the number of arms."""
        validation.count("arms", self.arms)

    def segments(self, episodes: int, *, seed: int) -> Sequence[Segment]:
        """One segment a pair of arms that was drawn."""
        streams = Streams(mix(validation.seed(seed) ^ PAIRS), np.arange((episodes + 1) // 2, dtype=np.uint64))
        drawn = streams.at(Purpose.POLICY, 0).integers(self.arms**2) if episodes else np.empty(0, dtype=np.int64)
        last = int(drawn[-1]) if episodes % 2 else -1
        counts = 2 * np.bincount(drawn[: episodes // 2], minlength=self.arms**2)
        plan: list[Segment] = [(self._policy(pair), int(counts[pair])) for pair in np.flatnonzero(counts).tolist()]
        return [*plan, (self._policy(last), 1)] if last >= 0 else plan

    def _policy(self, pair: int) -> PlayArms:
        return PlayArms(divmod(pair, self.arms), self.then)
