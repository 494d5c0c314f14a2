"""A simulated day of traffic, for the tutorial and for the tests of the page: campaigns that show
one of four texts to each visitor, who buys or does not, mostly within minutes.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

import priorwise as pw
from priorwise.core import validation

ARMS: Final = ("short", "friendly", "urgent", "with a picture")
DAY: Final = 86_400.0
START: Final = 1_794_787_200.0
"""Midnight of 16 November 2026, when the simulated day begins."""


@final
class Clock:
    """A clock that shows what it is told."""

    def __init__(self, now: float = START) -> None:
        """Start at a time, in seconds."""
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def example_prior() -> Any:
    """Return the prior of the campaigns: buyers are few, and texts differ."""
    return pw.BetaPrior([2.0, 3.0, 2.5, 4.0], [18.0, 17.0, 20.0, 16.0], names=ARMS)


def example_decider(seed: int, *, store: Any = None, clock: Any = None, **options: Any) -> Any:
    """Return a decider for the campaigns, on a simulated clock unless told otherwise."""
    options = {"horizon": 400, "floor": 0.02, **options}
    return pw.serve.Decider(
        example_prior(), pw.ThompsonSampling(), seed=seed, store=store, clock=clock or Clock(),
        **options,
    )  # fmt: skip


@final
@dataclass(frozen=True)
class Played:
    """What a day of traffic did."""

    tasks: int
    decisions: int
    rewards: int
    lost: int
    repeated: int
    earned: float


def play(
    target: Any, *, seed: int, visitors: int = 4_000, campaigns: int = 24,
    closing: float = 0.6, never: float = 0.03, twice: float = 0.02,
    clock: Clock | None = None, prior: Any = None,
    wait: Callable[[float], None] | None = None,
) -> Played:  # fmt: skip
    """Play a day of traffic against a decider, or a client of the service: anything with
    ``decide(task)``, ``reward(token, value)`` and ``close(task)``.

    Parameters
    ----------
    target, seed
        Who decides; and the seed of visitors, delays and what they buy. The same seed and target
        give the same day.
    visitors, campaigns
        Decisions, and tasks that they are spread over.
    closing
        Share of the campaigns that end during the day.
    never, twice
        Share of the rewards that do not come, and that come twice.
    clock
        The target's clock, which this moves on; None where it has a real one.
    prior
        From which the campaigns are drawn; by default that of :func:`example_prior`.
    wait
        Called with the simulated seconds until the next event: ``lambda s: time.sleep(s / 600)``
        plays the day in less than three minutes.

    """
    validation.count("visitors", visitors)
    validation.count("campaigns", campaigns)
    rng = np.random.default_rng(validation.seed(seed))
    truth = _truth(prior or example_prior(), campaigns, rng)
    names = [f"campaign {number:02d}" for number in range(1, campaigns + 1)]
    ends = round(closing * campaigns)
    pulls, begin, gone = 0, START if clock is None else clock.now, 0.0
    rewards = lost = repeated = 0
    earned = 0.0
    waiting: list[tuple[float, int, str, float]] = []  # due, order, token, value
    arrivals = list(_arrivals(visitors, campaigns, ends, rng))
    for moment, place, last in arrivals:
        for due, _, token, value in _due(waiting, moment):
            gone = _pass(clock, wait, begin, gone, due)
            outcome = target.reward(token, value)
            again = str(getattr(outcome, "outcome", outcome)) == "repeated"
            repeated += again
            rewards += not again
            earned += 0.0 if again else value
        gone = _pass(clock, wait, begin, gone, moment)
        decision = target.decide(names[place])
        pulls += 1
        bought = float(rng.uniform() < truth[place][decision.arm])
        delay = float(rng.lognormal(np.log(120.0), 1.2))
        chance = float(rng.uniform())
        if chance < never:
            lost += 1
        else:
            heapq.heappush(waiting, (moment + delay, len(waiting) + pulls, decision.token, bought))
            if chance > 1.0 - twice:
                late = moment + 3.0 * delay
                order = visitors * 9 + pulls
                heapq.heappush(waiting, (late, order, decision.token, bought))
        if last:
            target.close(names[place])
    return Played(campaigns, pulls, rewards, lost, repeated, earned)


def _truth(prior: Any, campaigns: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Chance that a visitor buys, for each campaign and text."""
    from priorwise.core.seen import Seen
    from priorwise.core.streams import Purpose, Streams

    streams = Streams(int(rng.integers(2**31)), np.arange(campaigns, dtype=np.uint64))
    seen = Seen(1, 1, prior.arms)
    drawn = prior.belief(campaigns).sample(streams.at(Purpose.ENVIRONMENT, 0), 1, seen)[:, 0]
    return [dict(zip(prior.names, map(float, row), strict=True)) for row in drawn]


def _arrivals(
    visitors: int, campaigns: int, ends: int, rng: np.random.Generator
) -> Iterator[tuple[float, int, bool]]:
    """Time, campaign, and whether it is the last visitor of a campaign that ends."""
    # more visitors in the evening than at night
    share = (np.arange(visitors) + rng.uniform(size=visitors)) / visitors
    moments = np.sort(DAY * (share - 0.13 * np.sin(2.0 * np.pi * share) / (2.0 * np.pi) * 2.0))
    start = np.linspace(0.0, 0.75 * DAY, campaigns)
    stop = np.where(np.arange(campaigns) < ends, start + 0.3 * DAY, 2.0 * DAY)
    stop = np.minimum(stop, np.where(np.arange(campaigns) < ends, 0.97 * DAY, 2.0 * DAY))
    chosen = []
    for moment in moments:
        running = np.flatnonzero((start <= moment) & (moment < stop))
        chosen.append(int(rng.choice(running)) if len(running) else campaigns - 1)
    last = {place: at for at, place in enumerate(chosen)}
    for at, (moment, place) in enumerate(zip(moments, chosen, strict=True)):
        yield float(moment), place, place < ends and last[place] == at


def _due(waiting: list[Any], moment: float) -> Iterator[Any]:
    while waiting and waiting[0][0] <= moment:
        yield heapq.heappop(waiting)


def _pass(
    clock: Clock | None, wait: Callable[[float], None] | None, begin: float, gone: float, to: float
) -> float:
    """Let time pass; return how much of the day is over."""
    if wait is not None:
        wait(max(0.0, to - gone))
    if clock is not None:
        clock.now = begin + to
    return max(gone, to)


def hurried(speed: float) -> Callable[[float], None]:
    """Return a ``wait`` that plays so many simulated seconds in one."""
    return lambda seconds: time.sleep(seconds / speed)
