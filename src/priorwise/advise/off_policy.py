"""What a policy would have earned, from recorded pulls as they were made and how likely they were.

Let ``w_h = pi_h(a_h) / p_h(a_h)`` be how much likelier the policy was to make pull h of a task than
whoever made it, after the same pulls before. Then, with products and sums over h = 1, ..., H,

    inverse propensities:  sum_h (w_1 ... w_h) r_h
    doubly robust:         D_h = V_h + w_h (r_h + D_{h+1} - Q_h(a_h)),  D_1 the estimate

are unbiased if the propensities are right, for any guesses Q_h(a) of the reward from pull h on that
read no later pull, and V_h = sum_a pi_h(a) Q_h(a). Here Q_h(a) is the policy's posterior mean of a,
and for each pull after it the mean of what the policy would do now.
"""

from dataclasses import replace
from typing import Any, Final, final

import numpy as np

from priorwise.advise.backtest_result import Weighted
from priorwise.advise.replay import Player, Recorded
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import mean_estimate
from priorwise.core.protocols import MeanBelief, MemoryPolicy, ScoredPolicy
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Stream, Streams, WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.logs.options import Arms
from priorwise.logs.reducing import Log
from priorwise.logs.rows import ordered_pulls
from priorwise.policies.laws import action_law
from priorwise.simulate.steps import steps

DRAWS: Final = 256
"""Decisions from which a law is sampled that is not known; estimates stay unbiased."""


@final
class _AsRecorded:
    """The recorded pulls, as an environment and as the policy that made them."""

    def __init__(self, actions: IntArray, rewards: FloatArray) -> None:
        self._actions, self._rewards = actions, rewards  # (task, step)

    def start(self, rng: WorldStreams) -> None:
        """Nothing is shown."""

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, None]:
        """Return what was earned."""
        return self._rewards[:, seen.step - 1], None

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Return what was done."""
        return self._actions[:, seen.step - 1]

    def monte_carlo_n(self, arms: int) -> int:
        """Return 0: it does not look."""
        return 0


def off_policy(
    log: Log,
    players: dict[str, Player],
    recorded: Recorded,
    arms: Arms,
    *,
    horizon: int,
    batch: int,
    seed: int,
) -> dict[str, Weighted]:
    """Estimate what policies would have earned in the first ``horizon`` pulls of the tasks that
    have so many; those that remember are left out, as their law is not known.

    Arms that are the same in all tasks are taken for available in each.
    """
    pulls = ordered_pulls(log)
    place, width, _ = log.places(arms)
    counts = np.bincount(pulls.task, minlength=len(log.tasks))
    long = counts >= horizon
    if not long.any():
        raise ArgumentError(
            "horizon",
            f"must be at most the pulls of a later task, {counts.max():,}",
            cure="lower it, or leave propensity out",
        )
    at = (np.cumsum(counts) - counts)[long][:, None] + np.arange(horizon)
    actions, rewards = place[pulls.row[at]], pulls.rewards[at]
    there = None if arms == "same" else recorded.available[long]
    return {
        name: _weighted(player, actions, rewards, pulls.propensity[at], width, there, batch, seed)
        for name, player in players.items()
        if not isinstance(player.policy, MemoryPolicy)
    }


def _weighted(
    player: Player,
    actions: IntArray,
    rewards: FloatArray,
    propensity: FloatArray,
    arms: int,
    available: BoolArray | None,
    batch: int,
    seed: int,
) -> Weighted:
    tasks, horizon = actions.shape
    rows = np.arange(tasks)
    streams = Streams(seed, rows.astype(np.uint64))
    made = _AsRecorded(actions, rewards)
    ratio, guess, value = np.empty((3, tasks, horizon))
    size: Any = {"horizon": horizon, "arms": arms, "available": available, "batch": batch}
    scored = isinstance(player.policy, ScoredPolicy)
    for step in steps(made, player.believed.belief(tasks), made, streams, **size):
        h = step.seen.step - 1
        # a policy of scores decides once a batch
        seen = replace(step.seen, step=h - h % batch + 1) if scored else step.seen
        chance = streams.at(Purpose.WORLD, h + 1)
        law = action_law(player.policy, step.belief, seen, chance, draws=DRAWS).probs
        means = np.zeros((tasks, arms))
        if isinstance(step.belief, MeanBelief):
            means = step.belief.mean(seen)
        now = np.where(law > 0.0, law * means, 0.0).sum(axis=1)
        ratio[:, h] = law[rows, actions[:, h]] / propensity[:, h]
        guess[:, h] = means[rows, actions[:, h]] + (horizon - h - 1) * now
        value[:, h] = (horizon - h) * now
    weight = np.cumprod(ratio, axis=1)
    robust = np.zeros(tasks)
    for h in reversed(range(horizon)):
        robust = value[:, h] + ratio[:, h] * (rewards[:, h] + robust - guess[:, h])
    last = weight[:, -1]
    effective = float(last.sum() ** 2 / (last**2).sum()) if last.any() else 0.0
    return Weighted(
        mean_estimate((weight * rewards).sum(axis=1)), mean_estimate(robust), effective, tasks
    )
