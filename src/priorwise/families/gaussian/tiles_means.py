"""Running means of first pulls, compiled."""

from __future__ import annotations

from numba import types

from priorwise.kernels.compiling import INTS, ROW, ROWS, F, entry


@entry(types.void(INTS, ROW, ROW, F, ROWS))
def running_means(actions, rewards, total, episodes, means):
    """Write the mean for each task, (task, arm), from the total of ``A r e_a`` over the episodes
    before it.
    """
    arms = total.size
    for task in range(actions.size):
        for arm in range(arms):
            means[task, arm] = total[arm] / max(episodes, 1.0)
        total[actions[task]] += arms * rewards[task]
        episodes += 1.0
