"""Tile functions of tasks that are replayed: the k-th pull of an arm earns what a table says.

An environment holds two rows an arm: its value, and how often it was pulled.
"""

from priorwise.core.tiles import FamilyTiles, Layout
from priorwise.core.types import FloatArray
from priorwise.kernels import compiling as kinds
from priorwise.kernels.bandit import bandit_tiles, never_certain
from priorwise.kernels.compiling import LANES, tile


class At(Layout):
    """What the kernels of replayed tasks read."""

    ARMS = 0
    STEPS = 1
    VALUES = 2  # (arm, lane)
    REWARDS = 3  # (arm, step, lane)


@tile(kinds.SAMPLE)
def sample(p, n, keys, environment):
    """Take the values of the arms; none was pulled yet."""
    arms = n[At.ARMS]
    for arm in range(arms):
        for lane in range(LANES):
            environment[arm, lane] = p[n[At.VALUES] + arm * LANES + lane]
            environment[arms + arm, lane] = 0.0


@tile(kinds.REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Deal the next reward of the chosen arm."""
    arms, steps = n[At.ARMS], n[At.STEPS]
    for lane in range(LANES):
        arm = actions[lane]
        place = arm * steps + int(environment[arms + arm, lane])
        rewards[lane] = p[n[At.REWARDS] + place * LANES + lane]
        environment[arms + arm, lane] += 1.0


def replay_tiles(values: FloatArray, rewards: FloatArray) -> FamilyTiles:
    """Return one tile of tasks: ``values`` ``(arm, lane)``, ``rewards`` ``(arm, step, lane)``.

    It is an environment alone: nobody starts a belief from it.
    """
    arms, steps, _ = rewards.shape
    p, n = At.pack(arms=arms, steps=steps, values=values, rewards=rewards)
    unused = dict.fromkeys(("start", "draw", "update"), never_certain)
    empty = {"belief_rows": 0, "scratch_rows": 0, "mean": None, "look": None}
    return bandit_tiles(
        p, n, environment_rows=2 * arms, sample=sample, reward=reward, **unused, **empty
    )
