"""A few pulls of arms chosen at random: the data on which a belief is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core.protocols import Belief, Environment, Prior, Seen, Signal, ValuedEnvironment
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.baselines import Uniform


@dataclass(frozen=True)
class Pull:
    """One pull of every task."""

    seen: Seen
    actions: IntArray  # (task,)
    rewards: FloatArray  # (task,)


@dataclass(frozen=True)
class Played:
    """A batch of tasks after some pulls."""

    streams: Streams
    environment: Environment
    belief: Belief
    pulls: list[Pull]
    seen: Seen  # before the next pull


def play(
    prior: Prior,
    *,
    tasks: int,
    pulls: int,
    seed: int,
    wrap: Callable[[Any], Belief] = lambda belief: belief,
) -> Played:
    """Draw environments, pull arms at random, and condition the prior's belief (or what ``wrap``
    makes of it) on each reward.
    """
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), tasks)
    belief = wrap(prior.belief(tasks))
    signal = environment.start(streams.world(0))
    history = []
    for step in range(1, pulls + 1):
        seen = Seen(step, pulls + 1, prior.arms, signal)
        actions = Uniform().act(belief, seen, streams.at(Purpose.POLICY, step))
        rewards, signal = environment.step(seen, actions, streams.world(step))
        belief = belief.update(seen, actions, rewards, signal)
        history.append(Pull(seen, actions, rewards))
    return Played(
        streams, environment, belief, history, Seen(pulls + 1, pulls + 1, prior.arms, signal)
    )


def follow(
    prior: Prior, arm: int, *, tasks: int, pulls: int, seed: int
) -> tuple[Environment, list[Signal], list[FloatArray]]:
    """Play one arm throughout; returns the environment, and the signals and the expected rewards
    before each pull.
    """
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), tasks)
    signals, values = [environment.start(streams.world(0))], []
    for step in range(1, pulls + 1):
        if isinstance(environment, ValuedEnvironment):
            values.append(environment.values(signals[-1]).copy())
        seen = Seen(step, pulls + 1, prior.arms, signals[-1])
        signals.append(environment.step(seen, np.full(tasks, arm), streams.world(step))[1])
    return environment, signals, values


def same_signals(prior: Prior, *, tasks: int, pulls: int, seed: int) -> bool:
    """Whether every arm, played throughout on the same streams, meets the same signals and expected
    rewards.
    """
    first, *others = (
        follow(prior, arm, tasks=tasks, pulls=pulls, seed=seed)[1:] for arm in range(prior.arms)
    )
    pairs = [
        pair
        for other in others
        for which in (0, 1)
        for pair in zip(first[which], other[which], strict=True)
    ]
    return all(a is b or np.array_equal(a, b) for a, b in pairs)
