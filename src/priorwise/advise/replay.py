"""Recorded tasks as environments: the k-th pull of an arm earns the k-th of its recorded rewards,
in an order drawn once for all policies; beyond them rewards are drawn again, with replacement.

While rewards last, a policy meets rewards with the law that the task had, independent given the
task, so that what it earns is unbiased for what it would have earned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from priorwise.core.errors import ArgumentTypeError
from priorwise.core.seen import Seen
from priorwise.core.sizes import check_memory
from priorwise.core.streams import Purpose, Stream, Streams, WorldStreams
from priorwise.core.tiles import LANES, FamilyTiles
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.logs.rows import Records
from priorwise.simulate.engine import Runner, choose


@final
class ReplayEnvironment:
    """Tasks whose rewards stand in a table; it counts the pulls of each arm."""

    def __init__(self, rewards: FloatArray, values: FloatArray) -> None:
        """``rewards`` are ``(task, arm, step)``, ``values`` ``(task, arm)``."""
        self._rewards, self._values = rewards, values
        self._pulled = np.zeros(values.shape, dtype=np.int64)

    def start(self, rng: WorldStreams) -> None:
        """Nothing is shown."""

    def values(self, signal: None) -> FloatArray:
        """Mean recorded reward of each arm."""
        return self._values

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, None]:
        """Deal the next reward of the chosen arms."""
        rows = np.arange(len(actions))
        rewards = self._rewards[rows, actions, self._pulled[rows, actions]]
        self._pulled[rows, actions] += 1
        return rewards, None


@final
@dataclass(frozen=True, eq=False)
class ReplayedTasks:
    """Some recorded tasks in the role of a prior: it draws just these."""

    rewards: FloatArray  # (task, arm, step)
    means: FloatArray  # (task, arm)
    records: FloatArray  # (task, arm): how many rewards an arm has

    def expected(self, counts: IntArray) -> FloatArray:
        """Return what tasks earned that pulled their arms so often, ``counts`` ``(task, arm)``: the
        sum, over their pulls, of the mean of the rewards that the arm had left.

        Any of these is equally likely to come next, whatever was seen. So this has the mean of what
        was earned, and less noise.
        """
        before = np.cumsum(self.rewards, axis=2) - self.rewards
        left = self.records[:, :, None] - np.arange(self.rewards.shape[2])
        total = (self.means * self.records)[:, :, None]
        of_rest = (total - before) / np.maximum(left, 1.0)
        next_mean = np.where(left > 0.0, of_rest, self.means[:, :, None])
        earned = np.cumsum(next_mean, axis=2)
        last = np.take_along_axis(earned, np.maximum(counts - 1, 0)[:, :, None], axis=2)[:, :, 0]
        return np.asarray(np.where(counts > 0, last, 0.0).sum(axis=1))

    def part(self, task: int) -> "ReplayedTasks":
        """Return one of them."""
        at = slice(task, task + 1)
        return ReplayedTasks(self.rewards[at], self.means[at], self.records[at])

    @property
    def arms(self) -> int:
        """Number of arms, with those that tasks lack."""
        return self.means.shape[1]

    def sample(self, rng: Stream, tasks: int) -> ReplayEnvironment:
        """Return the tasks, before their first pull."""
        return ReplayEnvironment(self.rewards, self.means)

    def belief(self, tasks: int) -> Any:
        """Refuse: what was recorded is no law of tasks."""
        raise ArgumentTypeError(
            "recorded", "tasks have no belief of their own", cure="pass believed="
        )

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Return the tasks for the compiled loop, if they are one tile."""
        if len(self.means) > LANES:
            return None
        from priorwise.kernels.replay import replay_tiles

        pad = [(0, 0), (0, 0), (0, LANES - len(self.means))]
        rewards = np.pad(self.rewards.transpose(1, 2, 0), pad)
        return replay_tiles(np.pad(self.means.T, pad[1:]), rewards)


@final
@dataclass(frozen=True, eq=False)
class Recorded:
    """Recorded rewards of tasks: how many of each arm and their sum, ``(task, arm)``; single
    rewards by place, or None where they are 0 or 1 and the sums tell all.
    """

    pulls: FloatArray  # (task, arm)
    sums: FloatArray  # (task, arm)
    records: Records | None = None
    rows: IntArray | None = None  # (task, arm): where the rewards begin in the records

    @property
    def available(self) -> BoolArray:
        """Arms with a recorded reward."""
        return self.pulls > 0.0

    @property
    def means(self) -> FloatArray:
        """Mean recorded rewards; 0 where there are none."""
        return self.sums / np.maximum(self.pulls, 1.0)

    def deal(self, seed: int, first: int, tasks: int, horizon: int) -> ReplayedTasks:
        """Draw in which order tasks ``first``, ``first + 1``, ... hand out their rewards."""
        check_memory(
            "horizon",
            f"{horizon:,} with {self.pulls.shape[1]:,} arms",
            64.0 * tasks * self.pulls.shape[1] * horizon,
            "lower horizon",
        )
        streams = Streams(seed, np.arange(first, first + tasks, dtype=np.uint64))
        at = slice(first, first + tasks)
        deal = self._binary if self.records is None else self._single
        return ReplayedTasks(deal(streams, at, horizon), self.means[at], self.pulls[at])

    def _binary(self, streams: Streams, at: slice, horizon: int) -> FloatArray:
        """Pull k is a 1 with the share of ones among the rewards that are left."""
        pulls, ones = self.pulls[at], self.sums[at]
        out = np.empty((*pulls.shape, horizon))
        left, ones_left = pulls.copy(), ones.copy()
        for k in range(horizon):
            u = streams.at(Purpose.REWARD, k + 1).uniform(pulls.shape[1])
            some = left > 0.0
            share = np.where(some, ones_left, ones) / np.maximum(np.where(some, left, pulls), 1.0)
            drawn = (u < share).astype(np.float64)
            ones_left -= np.where(some, drawn, 0.0)
            left -= some
            out[:, :, k] = drawn
        return out

    def _single(self, streams: Streams, at: slice, horizon: int) -> FloatArray:
        """The first pulls of a shuffle of each arm's rewards (Fisher and Yates), then any."""
        assert self.records is not None
        assert self.rows is not None
        task, arm = np.nonzero(self.pulls[at])
        count = self.pulls[at][task, arm].astype(np.int64)
        first = self.rows[at][task, arm]
        start = int(first.min())
        deck = self.records.rewards[start : int((first + count).max())].copy()
        first = first - start
        tasks, arms = self.pulls[at].shape
        out = np.zeros((tasks, arms, horizon))
        for k in range(horizon):
            u = streams.at(Purpose.REWARD, k + 1).uniform(arms)[task, arm]
            dealt = np.where(k < count, k, 0)
            left = count - dealt
            drawn = first + dealt + np.minimum((u * left).astype(np.int64), left - 1)
            rewards = deck[drawn]
            out[task, arm, k] = rewards
            some = k < count
            deck[drawn[some]] = deck[first[some] + k]
            deck[first[some] + k] = rewards[some]
        return out


@final
@dataclass(frozen=True, eq=False)
class Player:
    """One policy with what it believes, ready to play recorded tasks."""

    policy: Any
    believed: Any
    own: Sequence[Any] = ()  # priors of single tasks, where each has its own

    def _runner(self, tasks: ReplayedTasks, believed: Any = None) -> Runner:
        horizon = tasks.rewards.shape[2]
        prior = self.believed if believed is None else believed
        return choose(tasks, prior, self.policy, horizon, masked=True, engine="auto")

    def compiled(self, tasks: ReplayedTasks) -> bool:
        """Whether the compiled loop plays these tasks."""
        return self._runner(tasks).engine == "compiled"

    def play(
        self, tasks: ReplayedTasks, available: BoolArray, seed: int, first: int, batch: int
    ) -> IntArray:
        """Play tasks that are numbered from ``first`` on, to the end of what is dealt; returns the
        actions, ``(step, task)``.
        """
        how: Any = {"horizon": tasks.rewards.shape[2], "batch": batch, "seed": seed, "keep": True}
        parts = [(self._runner(tasks), slice(0, len(available)))]
        if self.own:
            parts = [
                (self._runner(tasks.part(each), self.own[first + each]), slice(each, each + 1))
                for each in range(len(available))
            ]
        actions = []
        for runner, at in parts:
            there = available[at]
            run = runner.run(first=first + at.start, tasks=len(there), available=there, **how)
            assert run.columns is not None
            actions.append(run.columns.actions)
        return np.concatenate(actions, axis=1)
