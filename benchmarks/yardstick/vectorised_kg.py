"""The Monte-Carlo knowledge gradient on a finite noiseless prior, vectorised by hand in NumPy.

What a careful NumPy user gets: a few tasks at a time, and the axis (task, arm, i) last everywhere,
so that every comparison runs over long contiguous rows. Ties and collapse follow the paper's
experiments.
"""

import sys
import time

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# tasks per look-ahead: small enough for the cache, and for NumPy to reuse its temporaries
BLOCK = 4


def paper_instance() -> tuple[Floats, Floats]:
    """Means (support, arm) and probabilities of the paper's 16 tasks over 20 arms, as reconstructed
    in the docs.
    """
    means = np.zeros((16, 20))
    for group in range(4):
        for i in range(4):
            # the identifying arm tells the task within its group
            means[4 * group + i, 5 * group] = 0.1 * (1 + i)
            means[4 * group + i, 5 * group + 1 + i] = 1.0
    return means, np.repeat([9 / 40, 1 / 120], [4, 12])


def look_ahead(
    weights: Floats, means: Floats, same: Floats, k1: int, k2: int, rng: np.random.Generator
) -> Floats:
    """V_a = sum_i max_a' mean_j mu^_a'(j) of each task, as (task, arm).

    `weights` is (support, task). `same` is (support, arm * support): whether two support points
    agree on an arm.
    """
    support, tasks = weights.shape
    arms = means.shape[1]
    cdf = weights.cumsum(axis=0)
    uniform = rng.random((tasks, arms * k1)) * cdf[-1][:, None]
    drawn = np.add.reduce(uniform >= cdf[:, :, None], axis=0, dtype=np.intp)  # mu~ ~ posterior
    column = drawn.reshape(tasks, arms, k1) + support * np.arange(arms)[:, None]

    # (support, task * arm * i): points with the same reward
    conditioned = same.take(column.ravel(), axis=1)
    conditioned.reshape(support, tasks, -1)[...] *= weights[:, :, None]
    cdf = np.cumsum(conditioned, axis=0, out=conditioned)
    uniform = rng.random((k2, cdf.shape[1])) * cdf[-1]
    small = np.uint8 if k2 < 256 else np.int64
    # draws up to each point
    up_to = np.add.reduce((uniform[:, None] < cdf).view(np.uint8), axis=0, dtype=small)
    counts = up_to.astype(np.float64)
    counts[1:] -= up_to[:-1]
    values: Floats = (means.T @ counts).max(axis=0).reshape(tasks, arms, k1).sum(axis=2) / k2
    return values


def agreement(means: Floats) -> NDArray[np.bool_]:
    """Whether two support points have the same mean on an arm: (support, arm, support)."""
    agree: NDArray[np.bool_] = means[:, :, None] == means.T[None, :, :]
    return agree


def discrete_kg(
    means: Floats,
    probs: Floats,
    horizon: int,
    tasks: int,
    k1: int,
    k2: int,
    seed: int,
    believed: Floats | None = None,
) -> tuple[Floats, int]:
    """Total reward of each task and number of look-aheads; tasks are drawn from `probs`, without
    noise, and `believed` is held.
    """
    rng = np.random.default_rng(seed)
    agree = agreement(means)
    same = agree.reshape(len(means), -1).astype(np.float64)
    best_arm = means.argmax(axis=1)
    truth = rng.choice(len(means), size=tasks, p=probs)
    # (support, task)
    weights = np.repeat((probs if believed is None else believed)[:, None], tasks, axis=1)
    actions = np.empty(tasks, dtype=np.intp)
    totals = np.zeros(tasks)
    look_aheads = 0
    for _ in range(horizon):
        certain = np.count_nonzero(weights, axis=0) == 1
        actions[certain] = best_arm[weights[:, certain].argmax(axis=0)]
        uncertain = np.flatnonzero(~certain)
        look_aheads += len(uncertain)
        for start in range(0, len(uncertain), BLOCK):
            block = uncertain[start : start + BLOCK]
            values = look_ahead(weights[:, block], means, same, k1, k2, rng)
            tied = values >= values.max(axis=1, keepdims=True) - 1e-9
            actions[block] = np.where(tied, rng.random(tied.shape), -1.0).argmax(axis=1)
        totals += means[truth, actions]
        weights *= agree[:, actions, truth]
        weights /= weights.sum(axis=0)
    return totals, look_aheads


def main() -> None:
    """Print mean total, its standard error, and microseconds per look-ahead and per decision;
    arguments: TASKS SEED.
    """
    tasks, seed = int(sys.argv[1]), int(sys.argv[2])
    means, probs = paper_instance()
    start = time.perf_counter()
    totals, _ = discrete_kg(means, probs, 10, tasks, 10, 10, seed)
    per_decision = 1e6 * (time.perf_counter() - start) / (10 * tasks)

    rng = np.random.default_rng(seed)
    same = agreement(means).reshape(len(means), -1).astype(np.float64)
    weights = np.repeat(probs[:, None], BLOCK, axis=1)
    rounds = 200
    start = time.perf_counter()
    for _ in range(rounds):
        look_ahead(weights, means, same, 10, 10, rng)
    per_look_ahead = 1e6 * (time.perf_counter() - start) / (rounds * BLOCK)
    error = totals.std(ddof=1) / np.sqrt(tasks)
    print(
        f"mean {totals.mean():.5f}  std_error {error:.5f}  us_per_look_ahead {per_look_ahead:.1f}  "
        f"us_per_decision_with_collapsed {per_decision:.1f}"
    )


if __name__ == "__main__":
    main()
