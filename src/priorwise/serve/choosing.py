"""One decision: a function of the seed, the task, the step, its statistics, the prior, the arms
that are available, the context and the shares that arms are promised.

Without propensities the policy acts by itself. With them, the law w of its action is computed
first, ``p = f + (1 - sum(f)) w`` is what the promised shares f make of it, and the arm is drawn
from p: so the propensity that is logged is that of the draw, whatever the error of w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, cast, final

import numpy as np

from priorwise.core import hashing, validation
from priorwise.core.protocols import ScoredPolicy
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.registry import ask, offers
from priorwise.policies.allocation import ROWS, allocate, player_at
from priorwise.policies.laws import action_law, known_law
from priorwise.policies.thompson import ThompsonSampling
from priorwise.serve.ahead import Until
from priorwise.theory.action_laws import ActionLaw

DRAWS: Final = 1024
"""Decisions from which the law of a policy is sampled that is not known otherwise."""
SINGLE: Final = 10_000_000
"""Arms times pulls of an allocation whose pulls are chosen one by one. Larger ones are drawn at
once, from the law of a pull.
"""
AT_ONCE: Final = 64e6
"""Bytes of the copies of a belief that are made at a time."""


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

    def of(self, arms: tuple[str, ...], mask: FloatArray) -> tuple[FloatArray, FloatArray]:
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
            raise ValueError(
                f"floor and control promise {total:g} of the pulls to the {int(mask.sum())} "
                "available arms: lower them, their sum must not exceed 1"
            )
        return promised, free


def _share(name: str, value: Any) -> None:
    if not 0.0 <= validation.number(name, value) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value:g}")


class Choice(NamedTuple):
    """What was chosen, with its probability; ``error`` is how far the law that it was drawn from
    may be from the policy's, in total variation.
    """

    arm: int
    propensity: float | None = None
    error: float | None = None


@final
@dataclass(frozen=True, eq=False)
class Chooser:
    """Decides for tasks of one prior with a fixed number of arms."""

    prior: Any
    fold: Any
    policy: Any
    horizon: int
    seed: int
    shares: Shares = field(default_factory=Shares)
    propensities: bool = True

    def __post_init__(self) -> None:
        quick = drawn = None
        if type(self.policy) is ThompsonSampling and offers(self.prior, "live"):
            quick = ask(self.prior, "live", "Decider")(self.prior)
            drawn = quick.drawn if self.propensities else None
            quick = quick if self.shares.none or drawn is not None else None
        arms = self.prior.arms
        object.__setattr__(self, "live", quick)
        object.__setattr__(self, "full", np.ones(arms, dtype=np.uint8))
        object.__setattr__(self, "nothing", np.zeros(arms))
        # called without looking up each time whether it is compiled
        if drawn is not None:
            object.__setattr__(self, "drawn", drawn._compiled())
        elif quick is not None:
            object.__setattr__(self, "one", quick.one._compiled())

    def quick(self, key: int, step: int, state: Any, mask: Any) -> int:
        """Choose by compiled Thompson sampling."""
        live = self.live  # type: ignore[attr-defined]
        return self.one(live.p, live.n, state, key, step, mask)  # type: ignore[attr-defined]

    def choose(
        self, task: Any, step: int, state: Any, mask: Any = None, context: Any = None,
        until: Until | None = None,
    ) -> Choice:  # fmt: skip
        """Choose the arm of one pull; ``until`` limits the time."""
        mask = self.full if mask is None else mask  # type: ignore[attr-defined]
        if not self.propensities and self.live is not None:  # type: ignore[attr-defined]
            return Choice(self.quick(task.key, step, state, mask))
        if hasattr(self, "drawn"):
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

    def _quickly_drawn(self, task: Any, step: int, state: Any, mask: Any) -> Choice | None:
        """Choose from a compiled law; None where there is none."""
        live, promised, left, free = self.live, self.nothing, 1.0, mask  # type: ignore[attr-defined]
        if not self.shares.none:
            promised, allowed = self.shares.of(task.arms, mask)
            if not allowed.any():
                return None
            left, free = max(0.0, 1.0 - float(promised.sum())), allowed.astype(np.uint8)
        law = np.empty(len(promised))
        place, error = self.drawn(  # type: ignore[attr-defined]
            live.p, live.n, state, task.key, step, free, promised, left, law
        )
        return None if place < 0.0 else Choice(int(place), float(law[int(place)]), left * error)

    def _sampled(self, key: int, step: int, belief: Any, seen: Seen, until: Until) -> ActionLaw:
        """Return the law of a policy that does not know it, from many decisions at once."""
        world = self._stream(key, Purpose.WORLD, step)
        if not hasattr(belief, "take"):
            return action_law(self.policy, belief, seen, world, draws=DRAWS)
        bits, size = world.bits(DRAWS)[0], _rows(belief, DRAWS)
        counts = np.zeros((1, seen.arms))
        for start in range(0, DRAWS, size):
            until.check()
            some = bits[start : start + size]
            same = np.zeros(len(some), dtype=np.int64)
            arms = self.policy.act(belief.take(same), seen.take(same), Stream(some, step))
            counts += np.bincount(arms, minlength=seen.arms)
        near = (counts + 1.0) / (DRAWS + 2.0)
        return ActionLaw(counts / DRAWS, "sampling", np.sqrt(near * (1.0 - near) / DRAWS))

    def _drawn(self, law: FloatArray, stream: Stream, error: float) -> Choice:
        law = law / law.sum()
        arm = int(hashing.invert(law[None], stream.uniform(1))[0, 0])
        return Choice(arm, float(law[arm]), error)

    def allocate(
        self, task: Any, step: int, state: Any, mask: Any, pulls: int, until: Until | None = None
    ) -> IntArray:
        """Choose how many of the next pulls each arm gets, all from what is known now.

        Pulls are chosen one by one up to :data:`SINGLE` arms times pulls. Beyond, Thompson sampling
        and policies that play the largest score have the same law at every pull, so the counts are
        one multinomial draw from it. Other policies raise an error.
        """
        promised, free = self.shares.of(task.arms, self.full if mask is None else mask)  # type: ignore[attr-defined]
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

    def _law_of_all(self, belief: Any, seen: Seen, pulls: int) -> FloatArray:
        """Return the law that all of these pulls have."""
        first, _ = player_at(self.policy, int(seen.step))
        last, _ = player_at(self.policy, int(seen.step) + pulls - 1)
        law = None
        if first is last and (type(first) is ThompsonSampling or isinstance(first, ScoredPolicy)):
            law = known_law(first, belief, seen)
        if law is None:
            raise ValueError(
                f"pulls must be at most {SINGLE // seen.arms:,} for a task with {seen.arms:,} arms "
                f"and this policy, whose law is not known, got {pulls:,}"
            )
        wanted = np.maximum(law.probs[0], 0.0)
        return cast("FloatArray", wanted / wanted.sum())

    def belief(self, state: Any) -> Any:
        """Return what the statistics of a task leave to believe."""
        return self.prior.belief_given(
            self.fold.statistics([state], getattr(self.prior, "names", None))
        )

    def _seen(self, step: int, free: Any, context: Any, horizon: int | None = None) -> Seen:
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


def _rows(belief: Any, most: int) -> int:
    """Return how many copies of a belief about one task are made at a time."""
    size = sum(each.nbytes for each in vars(belief).values() if isinstance(each, np.ndarray))
    return int(min(most, max(1.0, AT_ONCE // max(size, 1))))


def has_features(prior: Any) -> bool:
    """Whether decisions need a context."""
    return getattr(prior, "contexts", None) is not None


def task_key(seed: int, name: str) -> int:
    """Key of a task's random numbers, from its name."""
    from hashlib import blake2b

    number = int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    keys = hashing.task_keys(seed, Purpose.POLICY, np.array([number], dtype=np.uint64))
    return int(keys[0])
