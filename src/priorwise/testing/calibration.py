"""Simulation-based calibration: whether the posterior is the law of the truth given the data.

If it is, the truth and the posterior's draws are exchangeable, and the rank of the one among the
others is uniform, for every quantity of environment and data (Talts et al. 2018). Ranks of the
environment alone cannot see a belief that ignores data, since the prior is calibrated too. So one
quantity here is the distance between a value and the reward it gave (Modrak et al. 2023).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from priorwise.core import protocols
from priorwise.core.errors import MissingCapability
from priorwise.core.protocols import (
    Belief,
    DrawnEnvironments,
    Environment,
    EnvironmentBelief,
    PlannedEnvironment,
    Prior,
)
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Purpose, Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.testing.laws import bonferroni, randomised_ranks, uniform_p_value
from priorwise.testing.playing import Played, Wrap, play, unchanged

Pair = tuple[FloatArray, FloatArray]  # of the truth (task,) and of draws (task, draw)

DRAWS: Final = 15  # posterior draws a task, so 16 ranks


def calibration(
    prior: Prior, *, tasks: int, pulls: int, seed: int, wrap: Wrap = unchanged
) -> float:
    """P-value of the hypothesis that the belief is the posterior, over ``tasks`` tasks after
    ``pulls`` pulls of random arms.

    Ranks the value of each arm, the best value, the range of the values, and for each pull the
    distance between the pulled arm's value and its reward (with a state: also between that value
    and the reward plus the best value after it); Bonferroni over all of them. The
    environment must offer ``values``, or ``planned`` where actions influence later signals.
    """
    played = play(prior, tasks=tasks, pulls=pulls, seed=seed, wrap=wrap)
    true = _values_of(played.environment)
    rng = played.streams.at(Purpose.POLICY, pulls + 1)
    truth = true(played.seen)
    values = played.belief.sample(rng, DRAWS, played.seen)
    pairs = [(truth[:, arm], values[:, :, arm]) for arm in range(prior.arms)]
    pairs += [
        (truth.max(axis=1), values.max(axis=2)),
        (np.ptp(truth, axis=1), np.ptp(values, axis=2)),
    ]
    rows = np.arange(tasks)
    for pull in played.pulls:
        then = true(pull.seen)[rows, pull.actions]
        drawn = played.belief.sample(rng, DRAWS, pull.seen)[rows, :, pull.actions]
        pairs.append((np.abs(then - pull.rewards), np.abs(drawn - pull.rewards[:, None])))
    if isinstance(played.environment, PlannedEnvironment):
        pairs += _surprises(played, true)
    return bonferroni(
        [uniform_p_value(randomised_ranks(*pair, rng.uniform()), DRAWS + 1) for pair in pairs]
    )


def _surprises(played: Played, true: Callable[[Seen], FloatArray]) -> list[Pair]:
    """For each pull, how far the value of the action lies from its reward and the best value after
    it: what a state tells beyond rewards.
    """
    out: list[Pair] = []
    rows = np.arange(played.streams.tasks)
    for pull, after in zip(
        played.pulls, [*(each.seen for each in played.pulls[1:]), played.seen], strict=True
    ):

        def drawn(seen: Seen, at: int = 2 * len(played.pulls) + len(out)) -> FloatArray:
            # one stream twice: one environment at two times
            return played.belief.sample(played.streams.at(Purpose.POLICY, at), DRAWS, seen)

        then = true(pull.seen)[rows, pull.actions] - true(after).max(axis=1)
        guess = drawn(pull.seen)[rows, :, pull.actions] - drawn(after).max(axis=2)
        out.append((np.abs(then - pull.rewards), np.abs(guess - pull.rewards[:, None])))
    return out


def _values_of(environment: Environment) -> Callable[[Seen], FloatArray]:
    """Return the true values of the actions as a function of what is seen."""
    if isinstance(environment, PlannedEnvironment):
        return environment.planned
    if not isinstance(environment, protocols.ValuedEnvironment):
        raise MissingCapability("prior", "must have environments with values(signal)")
    return lambda seen: environment.values(seen.signal)


@dataclass(frozen=True)
class _Wrong:
    """A belief that is wrong on purpose."""

    belief: Belief

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Draw from what is remembered."""
        return self.belief.sample(rng, draws, seen)

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnEnvironments:
        """Draw environments from what is remembered."""
        assert isinstance(self.belief, EnvironmentBelief)
        return self.belief.sample_environments(rng, draws, seen)


class Forgetful(_Wrong):
    """A wrong belief, to check the check: it ignores every other observation."""

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the first, third, ... pull."""
        if seen.step % 2 == 0:
            return self
        return type(self)(self.belief.update(seen, actions, rewards, after))


class Gullible(_Wrong):
    """Another wrong belief: it counts every observation twice, and so is too sure."""

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition twice."""
        once = self.belief.update(seen, actions, rewards, after)
        return type(self)(once.update(seen, actions, rewards, after))
