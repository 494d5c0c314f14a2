"""A few pulls of arms chosen at random: the data on which a belief is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core.protocols import Belief, Environment, Prior, Seen
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


def play(prior: Prior, *, tasks: int, pulls: int, seed: int, wrap: Callable[[Any], Belief] = lambda belief: belief) -> Played:
    """Draw environments, pull arms at random, and condition the prior's belief (or what ``wrap`` makes of it) on each reward."""
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
    return Played(streams, environment, belief, history, Seen(pulls + 1, pulls + 1, prior.arms, signal))
