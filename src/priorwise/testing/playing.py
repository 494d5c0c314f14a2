"""A few pulls of arms chosen at random: the data on which a belief is tried."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from priorwise.core.protocols import Belief, Environment, Prior
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.uniform import Uniform
from priorwise.simulate.steps import Step, environments, steps


@dataclass(frozen=True)
class Played:
    """A batch of tasks after some pulls."""

    streams: Streams
    environment: Environment
    belief: Belief
    pulls: list[Step]
    seen: Seen  # before the next pull


Wrap = Callable[[Belief], Belief]


def unchanged(belief: Belief) -> Belief:
    """Return the belief itself."""
    return belief


def play(prior: Prior, *, tasks: int, pulls: int, seed: int, wrap: Wrap = unchanged) -> Played:
    """Draw environments, pull arms at random, and condition the prior's belief (or what ``wrap``
    makes of it) on each reward.
    """
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment, belief = environments(prior, streams), wrap(prior.belief(tasks))
    loop = steps(environment, belief, Uniform(), streams, horizon=pulls + 1, arms=prior.arms)
    done = list(islice(loop, pulls))
    signal = done[-1].after if done else environment.start(streams.world(0))
    belief = done[-1].learned() if done else belief
    return Played(
        streams, environment, belief, done, Seen(pulls + 1, pulls + 1, prior.arms, signal)
    )


@final
@dataclass(frozen=True)
class Always:
    """A policy that plays one arm, whatever happens."""

    arm: int

    def act(self, belief: Belief | None, seen: Seen, rng: Stream) -> IntArray:
        """Play it."""
        return np.full(rng.tasks, self.arm)

    def monte_carlo_n(self, arms: int) -> int:
        """Return 0: it does not look at the posterior."""
        return 0


def follow(
    prior: Prior, arm: int, *, tasks: int, pulls: int, seed: int
) -> tuple[Environment, list[Signal], list[FloatArray]]:
    """Play one arm throughout; returns the environment, and the signals and the expected rewards
    before each pull.
    """
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = environments(prior, streams)
    signals, values = [], []
    for step in steps(environment, None, Always(arm), streams, horizon=pulls + 1, arms=prior.arms):
        signals.append(step.seen.signal)
        if step.values is not None and step.seen.step <= pulls:
            values.append(step.values.copy())
    return environment, signals, values


def same_signals(prior: Prior, *, tasks: int, pulls: int, seed: int) -> bool:
    """Whether every arm, played throughout on the same streams, meets the same signals and expected
    rewards.
    """
    first, *others = (
        follow(prior, arm, tasks=tasks, pulls=pulls, seed=seed)[1:] for arm in range(prior.arms)
    )
    met = [(mine, theirs) for other in others for mine, theirs in zip(first, other, strict=True)]
    pairs = [pair for both in met for pair in zip(*both, strict=True)]
    return all(a is b or np.array_equal(a, b) for a, b in pairs)
