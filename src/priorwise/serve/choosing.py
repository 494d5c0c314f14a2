"""One decision: a function of the seed, the task, the step, its statistics, the prior, the arms
that are available, the context and the shares that arms are promised.

Without propensities the policy acts by itself. With them, the law w of its action is computed
first, ``p = f + (1 - sum(f)) w`` is what the promised shares f make of it, and the arm is drawn
from p: so the propensity that is logged is that of the draw, whatever the error of w.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, Literal, Protocol, Self, TypeAlias, final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from priorwise.core import hashing, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.live import LiveDraws
from priorwise.core.protocols import Belief, Policy, Prior, ScoredPolicy
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Stream
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.registry import family_for, has_part
from priorwise.fitting.statistics import PerTask
from priorwise.policies.allocation import ROWS, allocate, player_at
from priorwise.policies.laws import action_law, known_law
from priorwise.policies.thompson import ThompsonSampling
from priorwise.serve.ahead import Until
from priorwise.serve.folding import Fold
from priorwise.serve.rows import State, Task
from priorwise.theory.action_laws import ActionLaw

DRAWS: Final = 1024
"""Decisions from which the law of a policy is sampled that is not known otherwise."""
SINGLE: Final = 10_000_000
"""Arms times pulls of an allocation whose pulls are chosen one by one. Larger ones are drawn at
once, from the law of a pull.
"""
AT_ONCE: Final = 64e6
"""Bytes of the copies of a belief that are made at a time."""


Mask: TypeAlias = NDArray[np.uint8] | None
"""Which arms are available, 1 or 0 each; None: all."""


class LivePrior(Prior, Protocol):
    """A prior whose tasks can be decided about while they run."""

    def belief_given(self, statistics: PerTask) -> Belief:
        """Return what the statistics of tasks leave to believe."""
        ...

    def replaced(self, **parameters: object) -> Self:
        """Return the prior with other parameters."""
        ...

    def to_json(self) -> str:
        """Return the prior as JSON."""
        ...


@final
@dataclass(frozen=True)
class Shares:
    """What arms are promised whatever the policy wants.

    ``floor`` is the least probability of each available arm, a number or one by name; ``control``
    is an arm that gets exactly ``share`` of the pulls and that the policy does not play.
    """

    floor: float | Mapping[str, float] = 0.0
    control: str | None = None
    share: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.floor, Mapping):
            for arm, least in self.floor.items():
                validation.text("an arm of floor", arm)
                _share(f"floor[{arm!r}]", least)
            object.__setattr__(self, "floor", dict(self.floor))
        else:
            _share("floor", self.floor)
        if self.control is not None:
            validation.text("control", self.control)
            _share("the share of control", self.share)

    @property
    def none(self) -> bool:
        """Whether nothing is promised."""
        return self.control is None and not self.floor

    def of(self, arms: tuple[str, ...], mask: NDArray[np.generic]) -> tuple[FloatArray, BoolArray]:
        """Return the promised probability of each arm, and which arms the policy may play."""
        floor = self.floor
        each = (
            np.array([floor.get(arm, 0.0) for arm in arms])
            if isinstance(floor, Mapping)
            else np.full(len(arms), float(floor))
        )
        free = mask.astype(bool)
        promised = np.where(free, each, 0.0)
        if self.control in arms and free[(at := arms.index(str(self.control)))]:
            promised[at] = self.share
            free[at] = False
        if not free.any():  # nobody but the control is there
            promised = promised / promised.sum() if promised.sum() else mask / mask.sum()
        elif (total := promised.sum()) > 1.0 + 1e-12:
            raise ArgumentError(
                "floor",
                f"and control promise {total:g} of the pulls to the {int(mask.sum())} available "
                "arms",
                cure="lower them, their sum must not exceed 1",
            )
        return promised, free


@final
@dataclass(frozen=True)
class Rules:
    """How tasks are decided about, whatever their prior: see the parameters of a ``Decider``."""

    policy: Policy
    horizon: int
    seed: int
    shares: Shares
    propensities: bool
    window: float | None
    missing: float | Literal["leave out"]

    def text(self) -> str:
        """Return them as JSON, by which a store knows them again."""
        control, share = self.shares.control, self.shares.share
        given = {**vars(self), "policy": repr(self.policy), "floor": self.shares.floor}
        del given["shares"]
        given["control"] = None if control is None else [control, share]
        return json.dumps(given, sort_keys=True)


def _share(name: str, value: float) -> None:
    if not 0.0 <= validation.number(name, value) <= 1.0:
        raise ArgumentError(name, "must lie in [0, 1]", got=value)


@final
class Choice(Struct, frozen=True):
    """What was chosen, with its probability; ``error`` is how far the law that it was drawn from
    may be from the policy's, in total variation.
    """

    arm: int
    propensity: float | None = None
    error: float | None = None


class One(Protocol):
    """Compiled Thompson sampling of one task."""

    def __call__(
        self, p: FloatArray, n: IntArray, state: State, key: int, step: int, mask: Mask
    ) -> int:
        """Return the arm."""
        ...


class Drawn(Protocol):
    """The same from its law, which is computed first."""

    def __call__(
        self, p: FloatArray, n: IntArray, state: State, key: int, step: int, mask: Mask,
        promised: FloatArray, left: float, law: FloatArray,
    ) -> tuple[float, float]:  # fmt: skip
        """Write the law; return the arm and the error of the law."""
        ...


@final
class Chooser:
    """Decides for tasks of one prior with a fixed number of arms."""

    def __init__(
        self, prior: LivePrior, fold: Fold, policy: Policy, horizon: int, seed: int,
        shares: Shares | None = None, propensities: bool = True,
    ) -> None:  # fmt: skip
        """Look up what is compiled."""
        self.prior, self.fold, self.policy, self.horizon = prior, fold, policy, horizon
        self.seed, self.shares, self.propensities = seed, shares or Shares(), propensities
        self.live: LiveDraws | None = None
        self.one: One | None = None
        self.drawn: Drawn | None = None
        if type(policy) is ThompsonSampling and has_part(prior, "live"):
            live: LiveDraws = family_for(prior, "Decider").live(prior)
            if propensities and live.drawn is not None:
                self.live, self.drawn = live, live.drawn._compiled()
            elif self.shares.none and not propensities:
                self.live, self.one = live, live.one._compiled()
        self.full = np.ones(prior.arms, dtype=np.uint8)
        self.nothing = np.zeros(prior.arms)

    def choose(
        self, task: Task, step: int, state: State, mask: Mask = None,
        context: list[list[float]] | None = None, until: Until | None = None,
    ) -> Choice:  # fmt: skip
        """Choose the arm of one pull; ``until`` limits the time."""
        mask = self.full if mask is None else mask
        if self.live is not None:
            live = self.live
            if self.one is not None:
                return Choice(self.one(live.p, live.n, state, task.key, step, mask))
            choice = self._quickly_drawn(task, step, state, mask)
            if choice is not None:
                return choice
        promised, free = self.shares.of(task.arms, mask)
        stream = self._stream(task.key, Purpose.POLICY, step)
        if not free.any():
            choice = self._drawn(promised, stream, 0.0)
            return choice if self.propensities else Choice(choice.arm)
        seen, belief = self._seen(step, free, context), self.belief(state)
        left = max(0.0, 1.0 - float(promised.sum()))
        if not self.propensities:
            if self.shares.none:
                return Choice(int(self.policy.act(belief, seen, stream)[0]))
            lot = float(self._stream(task.key, Purpose.WORLD, step).uniform()[0])
            if lot < 1.0 - left:
                return Choice(int(np.searchsorted(np.cumsum(promised), lot, side="right")))
            return Choice(int(self.policy.act(belief, seen, stream)[0]))
        if free.sum() == 1:
            return self._drawn(promised + left * free, stream, 0.0)
        law = known_law(self.policy, belief, seen)
        if law is None:
            law = self._sampled(task.key, step, belief, seen, until or Until())
        wanted = np.maximum(law.probs[0], 0.0)
        total = float(np.max(law.error)) if law.source != "sampling" else float(law.error.sum() / 2)  # type: ignore[union-attr]
        return self._drawn(promised + left * (wanted / wanted.sum()), stream, left * total)

    def _quickly_drawn(
        self, task: Task, step: int, state: State, mask: NDArray[np.uint8]
    ) -> Choice | None:
        """Choose from a compiled law; None where there is none."""
        live, promised, left = self.live, self.nothing, 1.0
        assert live is not None
        assert self.drawn is not None
        if not self.shares.none:
            promised, free = self.shares.of(task.arms, mask)
            if not free.any():
                return None
            left, mask = max(0.0, 1.0 - float(promised.sum())), free.astype(np.uint8)
        law = np.empty(len(promised))
        place, error = self.drawn(live.p, live.n, state, task.key, step, mask, promised, left, law)
        return None if place < 0.0 else Choice(int(place), float(law[int(place)]), left * error)

    def _sampled(self, key: int, step: int, belief: Belief, seen: Seen, until: Until) -> ActionLaw:
        """Return the law of a policy that does not know it, from many decisions at once."""
        world = self._stream(key, Purpose.WORLD, step)
        take: Callable[..., Belief] | None = getattr(belief, "take", None)
        if take is None:
            return action_law(self.policy, belief, seen, world, draws=DRAWS)
        bits, size = world.bits(DRAWS)[0], _rows(belief, DRAWS)
        counts = np.zeros((1, seen.arms))
        for start in range(0, DRAWS, size):
            until.check()
            some = bits[start : start + size]
            same = np.zeros(len(some), dtype=np.int64)
            arms = self.policy.act(take(same), seen.take(same), Stream(some, step))
            counts += np.bincount(arms, minlength=seen.arms)
        near = (counts + 1.0) / (DRAWS + 2.0)
        return ActionLaw(counts / DRAWS, "sampling", np.sqrt(near * (1.0 - near) / DRAWS))

    def _drawn(self, law: FloatArray, stream: Stream, error: float) -> Choice:
        law = law / law.sum()
        arm = int(hashing.invert(law[None], stream.uniform(1))[0, 0])
        return Choice(arm, float(law[arm]), error)

    def allocate(
        self, task: Task, step: int, state: State, mask: Mask, pulls: int,
        until: Until | None = None,
    ) -> IntArray:  # fmt: skip
        """Choose how many of the next pulls each arm gets, all from what is known now.

        Pulls are chosen one by one up to :data:`SINGLE` arms times pulls. Beyond, Thompson sampling
        and policies that play the largest score have the same law at every pull, so the counts are
        one multinomial draw from it. Other policies raise an error.
        """
        promised, free = self.shares.of(task.arms, self.full if mask is None else mask)
        counts = np.zeros(len(task.arms), dtype=np.int64)
        left = max(0.0, 1.0 - float(promised.sum()))
        if not free.any():
            promised, left = promised / promised.sum(), 0.0
        rest, until = pulls, until or Until()
        if promised.any():
            # each pull is a promised one with probability 1 - left
            weights = np.append(promised, left)
            world = self._stream(task.key, Purpose.WORLD, step)
            large = pulls * len(weights) > SINGLE
            draw = partial(_counted, until=until) if large else _counted_at_once
            drawn = draw(weights / weights.sum(), world, step, pulls)
            counts += drawn[:-1]
            rest = int(drawn[-1])
        if rest:
            horizon = max(self.horizon, step + rest - 1)
            seen = self._seen(step, free, None, horizon)
            stream = self._stream(task.key, Purpose.POLICY, step)
            belief = self.belief(state)
            if rest * len(counts) > SINGLE:
                law = self._law_of_all(belief, seen, rest)
                return counts + _counted(law, stream, step, rest, until)
            rows = _rows(belief, ROWS)
            arms = allocate(
                self.policy, belief, seen, stream, pulls=rest, rows=rows, before=until.check
            )[0]
            counts += np.bincount(arms, minlength=len(counts))
        return counts

    def _law_of_all(self, belief: Belief, seen: Seen, pulls: int) -> FloatArray:
        """Return the law that all of these pulls have."""
        first, _ = player_at(self.policy, int(seen.step))
        last, _ = player_at(self.policy, int(seen.step) + pulls - 1)
        law = None
        if first is last and (type(first) is ThompsonSampling or isinstance(first, ScoredPolicy)):
            law = known_law(first, belief, seen)
        if law is None:
            raise ArgumentError(
                "pulls",
                f"must be at most {SINGLE // seen.arms:,} for a task with {seen.arms:,} arms and "
                "this policy, whose law is not known",
                got=pulls,
            )
        wanted: FloatArray = np.maximum(law.probs[0], 0.0)
        return wanted / wanted.sum()

    def belief(self, *states: State) -> Belief:
        """Return what the statistics of tasks leave to believe."""
        return self.prior.belief_given(self.fold.statistics(states, names_of(self.prior)))

    def _seen(
        self, step: int, free: BoolArray, context: list[list[float]] | None,
        horizon: int | None = None,
    ) -> Seen:  # fmt: skip
        horizon = self.horizon if horizon is None else horizon
        signal = None if context is None else np.asarray(context, dtype=np.float64)[None]
        mask = None if free.all() else free[None]
        return Seen(min(step, horizon), horizon, self.prior.arms, signal, mask)

    def _stream(self, key: int, purpose: Purpose, step: int) -> Stream:
        if purpose is not Purpose.POLICY:  # the task's key is that of decisions
            key = hashing.mix(key ^ int(purpose))
        return Stream(np.array([key], dtype=np.uint64), step)


def _counted_at_once(law: FloatArray, stream: Stream, step: int, pulls: int) -> IntArray:
    """Return how often each arm comes in independent draws."""
    return stream.counts(law[None], pulls)[0]


def _counted(law: FloatArray, stream: Stream, step: int, pulls: int, until: Until) -> IntArray:
    """Return the same for many draws, ``ROWS`` at a time: those from pull ``k`` on are of the
    stream of pull ``k``.
    """
    tops, counts = np.cumsum(law)[:-1], np.zeros(len(law), dtype=np.int64)
    for start in range(0, pulls, ROWS):
        until.check()
        draws = stream.at(step + start).uniform(min(ROWS, pulls - start))[0]
        counts += np.bincount(np.searchsorted(tops, draws, side="right"), minlength=len(law))
    return counts


def _rows(belief: Belief, most: int) -> int:
    """Return how many copies of a belief about one task are made at a time."""
    size = sum(each.nbytes for each in vars(belief).values() if isinstance(each, np.ndarray))
    return int(min(most, max(1.0, AT_ONCE // max(size, 1))))


def has_features(prior: LivePrior) -> bool:
    """Whether decisions need a context."""
    return getattr(prior, "contexts", None) is not None


def dim_of(prior: LivePrior) -> int:
    """Return how many features an arm has, 0 without features."""
    return int(getattr(prior, "dim", 0)) if has_features(prior) else 0


def names_of(prior: LivePrior) -> tuple[str, ...] | None:
    """Names of the arms, where a prior has some."""
    return getattr(prior, "names", None)


def task_key(seed: int, name: str) -> int:
    """Key of a task's random numbers, from its name."""
    number = int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    keys = hashing.task_keys(seed, Purpose.POLICY, np.array([number], dtype=np.uint64))
    return int(keys[0])
