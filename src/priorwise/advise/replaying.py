"""Recorded tasks, and what policies earn on them, as far as the records last."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from priorwise.advise.backtest_result import Line
from priorwise.advise.replay import NUMPY_TASKS, Player, Recorded
from priorwise.core import validation
from priorwise.core.progress import progress_of
from priorwise.core.tiles import LANES
from priorwise.core.types import FloatArray, IntArray
from priorwise.logs.reducing import Arms, Log
from priorwise.logs.rows import single_rewards
from priorwise.simulate.blocks import in_order
from priorwise.simulate.sizes import threads_of


def recorded_in(log: Log, arms: Arms) -> Recorded:
    """Return what can be replayed."""
    counts, sums = log.grid(log.pulls, arms), log.grid(log.sums, arms)
    empty = counts.sum(axis=1) == 0.0
    if empty.any():
        name = validation.shown(str(log.tasks[np.argmax(empty)]))
        raise ValueError(f"pulls: the task {name} has no pull; leave its rows out")
    if log.not_binary is None:
        return Recorded(counts, sums)
    if log.columns.summed:
        raise ValueError(
            f"reward: a replay draws single rewards, and {log.columns.reward!r} has their sums, "
            f"which do not tell them unless all are 0 or 1 ({log.not_binary}); give one row per "
            "pull"
        )
    records = single_rewards(log)
    rows = log.grid(records.first.astype(np.float64), arms).astype(np.int64)
    return Recorded(counts, sums, records, rows)


def replayed(
    players: Mapping[str, Player],
    recorded: Recorded,
    rates: FloatArray | None,
    *,
    horizon: int,
    batch: int,
    limit: float | None,
    seed: int,
    progress: bool | None,
) -> tuple[dict[str, Line], int]:
    """Play all tasks; returns what players earned and the number of pulls: ``horizon``, or as many
    batches, one at least, as leave each at most the share ``limit`` of its pulls beyond records.
    """
    while True:
        lines, beyond = _play(players, recorded, rates, horizon, batch, seed, progress)
        if limit is None or horizon <= batch:
            return lines, horizon
        pulls = np.arange(1, horizon + 1)
        most = limit * len(recorded.pulls) * pulls
        fits = np.asarray((np.cumsum(beyond, axis=1) <= most).all(axis=0))
        if fits[-1]:
            return lines, horizon
        # a policy may play otherwise where fewer pulls are left, so that this is tried
        enough = int(pulls[fits].max(initial=0))
        horizon = max(min(enough, horizon - 1) // batch * batch, batch)


def _play(
    players: Mapping[str, Player],
    recorded: Recorded,
    rates: FloatArray | None,
    horizon: int,
    batch: int,
    seed: int,
    progress: bool | None,
) -> tuple[dict[str, Line], FloatArray]:
    """Play all tasks, block by block: what they earned, the same by shrunken rates, and how many
    pulls of each step came when rewards had run out, ``(player, step)``.
    """
    tasks = len(recorded.pulls)
    rewards = {name: np.empty(tasks) for name in players}
    worth = {name: np.empty(tasks) for name in players}
    # summed in the order of the tasks, whichever thread was first
    beyond = {name: np.zeros((-(-tasks // LANES), horizon)) for name in players}
    probe = recorded.deal(seed, 0, 1, horizon)

    def play(some: Mapping[str, Player], at: slice) -> slice:
        dealt = recorded.deal(seed, at.start, at.stop - at.start, horizon)
        there = recorded.available[at]
        for name, player in some.items():
            actions = player.play(dealt, there, seed, at.start, batch)
            counts, late = _counted(actions, recorded.pulls[at])
            rewards[name][at] = dealt.expected(counts)
            worth[name][at] = 0.0 if rates is None else (counts * rates[at]).sum(axis=1)
            beyond[name][at.start // LANES] = late
        return at

    with progress_of(tasks * len(players), "tasks", shown=progress) as bar:
        for compiled, size in {True: LANES, False: NUMPY_TASKS}.items():
            some = {n: each for n, each in players.items() if each.compiled(probe) == compiled}
            parts = [
                slice(at, min(at + size, tasks)) for at in range(0, tasks if some else 0, size)
            ]
            # a user's policy in NumPy need not be safe to call from several threads
            threads = threads_of(None) if compiled else 1
            for at in in_order(partial(play, some), parts, threads):
                bar.advance((at.stop - at.start) * len(some))
    lines = {
        name: Line(
            rewards[name],
            None if rates is None else worth[name],
            float(beyond[name].sum() / (tasks * horizon)),
        )
        for name in players
    }
    return lines, np.array([each.sum(axis=0) for each in beyond.values()])


def _counted(actions: IntArray, pulls: FloatArray) -> tuple[IntArray, FloatArray]:
    """How often each task pulled each arm, ``(task, arm)``, and how many pulls of each step came
    after the recorded ones of their arm, ``(step,)``; actions are ``(step, task)``.
    """
    counts = np.empty(pulls.shape, dtype=np.int64)
    late = np.zeros(len(actions))
    for arm in range(pulls.shape[1]):
        played = actions == arm
        so_far = np.cumsum(played, axis=0)
        counts[:, arm] = so_far[-1]
        late += (played & (so_far > pulls[:, arm])).sum(axis=1)
    return counts, late
