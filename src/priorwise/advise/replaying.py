"""Recorded tasks, and what policies earn on them, as far as the records last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.advise.backtest_result import Line
from priorwise.advise.replay import Player, Recorded
from priorwise.core.errors import ArgumentError, shown
from priorwise.core.progress import progress_of
from priorwise.core.tiles import LANES
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.logs.options import Arms
from priorwise.logs.reducing import Log
from priorwise.logs.rows import single_rewards
from priorwise.simulate.blocks import in_order
from priorwise.simulate.sizes import threads_of


def recorded_in(log: Log, arms: Arms) -> Recorded:
    """Return what can be replayed."""
    counts, sums = log.grid(log.pulls, arms), log.grid(log.sums, arms)
    empty = counts.sum(axis=1) == 0.0
    if empty.any():
        raise ArgumentError(
            "pulls",
            f"the task {shown(str(log.tasks[np.argmax(empty)]))} has no pull",
            cure="leave its rows out",
        )
    if log.not_binary is None:
        return Recorded(counts, sums)
    if log.columns.summed:
        raise ArgumentError(
            "reward",
            f"a replay draws single rewards, and {log.columns.reward!r} has their sums, which "
            f"do not tell them unless all are 0 or 1 ({log.not_binary})",
            cure="give one row per pull",
        )
    records = single_rewards(log)
    rows = log.grid(records.first.astype(np.float64), arms).astype(np.int64)
    return Recorded(counts, sums, records, rows)


@final
@dataclass(frozen=True, eq=False)
class Played:
    """What players earned in ``horizon`` pulls of the tasks that were ``done``, ``(task,)``: all of
    them, or if the call was ``interrupted`` those of some blocks, drawn at random.
    """

    lines: dict[str, Line]
    beyond: FloatArray  # (player, step): how many pulls came when rewards had run out
    horizon: int
    done: BoolArray
    interrupted: bool


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
) -> Played:
    """Play all tasks, ``horizon`` pulls each, or as many batches, one at least, as leave each
    player at most the share ``limit`` of its pulls beyond records.
    """
    while True:
        played = _play(players, recorded, rates, horizon, batch, seed, progress)
        if limit is None or horizon <= batch:
            return played
        pulls = np.arange(1, horizon + 1)
        most = limit * played.done.sum() * pulls
        fits = np.asarray((np.cumsum(played.beyond, axis=1) <= most).all(axis=0))
        if fits[-1]:
            return played
        if played.interrupted:  # how many pulls fit is not known yet
            raise KeyboardInterrupt
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
) -> Played:
    """Play all tasks, block by block."""
    tasks = len(recorded.pulls)
    rewards = {name: np.empty(tasks) for name in players}
    worth = {name: np.empty(tasks) for name in players}
    # summed in the order of the tasks, whichever thread was first
    beyond = {name: np.zeros((-(-tasks // LANES), horizon)) for name in players}
    probe = recorded.deal(seed, 0, 1, horizon)
    # a user's policy in NumPy need not be safe to call from several threads
    threads = threads_of(None) if all(each.compiled(probe) for each in players.values()) else 1

    def play(at: slice) -> slice:
        dealt = recorded.deal(seed, at.start, at.stop - at.start, horizon)
        for name, player in players.items():
            actions = player.play(dealt, recorded.available[at], seed, at.start, batch)
            counts, late = _counted(actions, recorded.pulls[at])
            rewards[name][at] = dealt.expected(counts)
            worth[name][at] = 0.0 if rates is None else (counts * rates[at]).sum(axis=1)
            beyond[name][at.start // LANES] = late
        return at

    blocks = [slice(at, min(at + LANES, tasks)) for at in range(0, tasks, LANES)]
    order = np.random.default_rng(seed).permutation(len(blocks))
    done, interrupted = np.zeros(tasks, dtype=bool), False
    try:
        with progress_of(tasks, "tasks", shown=progress, parallel=threads) as bar:
            for block in in_order(play, (blocks[each] for each in order), threads):
                done[block] = True
                bar.advance(block.stop - block.start)
    except KeyboardInterrupt:
        if not done.any():
            raise
        interrupted = True
    late = {name: each[done[::LANES]] for name, each in beyond.items()}
    lines = {
        name: Line(
            rewards[name][done],
            None if rates is None else worth[name][done],
            float(late[name].sum() / (done.sum() * horizon)),
        )
        for name in players
    }
    by_step = np.array([each.sum(axis=0) for each in late.values()])
    return Played(lines, by_step, horizon, done, interrupted)


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
