"""A learning-curve experiment: policies that hold a fixed prior, and explore-then-commit learners for many exploration lengths T0.

Episode e of replicate r has the task number that :func:`~priorwise.meta.simulate_meta.simulate_meta` gives it, so each
configuration earns, bit for bit, what it would earn there alone. The work that configurations share is done once:

* The exploration of T0 episodes is the start of the longest one, because neither its actions nor its tasks depend on T0.
* All priors are fitted in one pass over the exploration, from sums that run along.
* Learners that explore alike (one estimator, several policies afterwards) share the exploration and the fits.

What is left, the episodes after T0, runs with its own fitted prior for every T0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from priorwise.core.protocols import Policy, Prior
from priorwise.core.types import FloatArray, IntArray
from priorwise.experiments.problems import Problem
from priorwise.experiments.work import Arrays, Block, Table, ranges, stacked
from priorwise.kernels.loop import Block as Ran
from priorwise.meta.fit import PriorFit
from priorwise.meta.learner import as_run
from priorwise.meta.simulate_meta import NUMBERS
from priorwise.simulate.engine import Engine, plan
from priorwise.simulate.results import Run, Trajectory


class PrefixEstimator(Protocol):
    """An estimator that fits the first tasks of a run for several numbers of them at once."""

    def fit_prefixes(self, data: Run, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size."""
        ...


@dataclass(frozen=True)
class Exploring:
    """How a learner explores and what it fits; ``learners`` are the policies that then hold the fitted prior, by name."""

    exploration: Policy
    held: Prior | None  # while exploring; None: the misspecified prior
    estimator: PrefixEstimator
    learners: Mapping[str, Policy]


@dataclass(frozen=True)
class Sweep:
    """Everything that defines the experiment: data, nothing else."""

    problem: Callable[[], Problem[Any]]
    episodes: int
    sizes: tuple[int, ...]  # T0
    grid: tuple[int, ...]  # episode numbers at which the learning curves are kept
    test_size: int  # T0 of the test
    test_episodes: int  # the last so many
    oracle: Mapping[str, Policy]
    misspecified: Mapping[str, Policy]
    meta: tuple[Exploring, ...]
    first_pull_size: int | None = None  # T0 at which first pulls are counted

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names, fixed priors first."""
        return (*self.oracle, *self.misspecified, *(name for each in self.meta for name in each.learners))

    @property
    def configurations(self) -> tuple[tuple[str, int], ...]:
        """Algorithm and T0 (0: none) of every learning curve."""
        fixed = [(name, 0) for name in (*self.oracle, *self.misspecified)]
        return (*fixed, *((name, size) for each in self.meta for name in each.learners for size in self.sizes))


@dataclass(frozen=True)
class LearningCurves:
    """Runs a sweep, and puts what comes out into tables."""

    sweep: Sweep
    block: int = 5  # replicates
    engine: Engine = "auto"  # of the episodes; the numbers do not depend on it

    @cached_property
    def problem(self) -> Problem[Any]:
        """The problem of the sweep."""
        return self.sweep.problem()

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        s, problem = self.sweep, self.problem
        return {
            "prior": problem.prior.to_json(),
            "misspecified": problem.misspecified.to_json(),
            "horizon": problem.horizon,
            "episodes": s.episodes,
            "sizes": list(s.sizes),
            "grid": list(s.grid),
            "test": [s.test_size, s.test_episodes, s.first_pull_size],
            "algorithms": repr((s.oracle, s.misspecified, s.meta)),
        }

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Few replicates at a time."""
        return ranges("curves", replicates, self.block)

    def run(self, block: Block, seed: int) -> Arrays:
        """Run each replicate; see the module."""
        rows = [self._replicate(replicate, seed) for replicate in range(block.first, block.first + block.count)]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def warm_up(self, seed: int) -> None:
        """Run a few episodes of every algorithm."""
        few = replace(self.sweep, episodes=4, sizes=(3,), grid=(4,), test_size=3, test_episodes=1, first_pull_size=None)
        replace(self, sweep=few).run(Block("curves", 0, 1), seed)

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Return the tables ``curves`` and ``test``, and ``first_pulls`` where they are counted."""
        arrays, s = stacked(done, "curves"), self.sweep
        names, sizes = (np.array([each[i] for each in s.configurations]) for i in (0, 1))
        out = {
            "curves": _long(arrays["curves"], algorithm=names, t0=sizes, last=("episode", np.array(s.grid)), value="average"),
            "test": _long(arrays["test"], algorithm=np.array(s.algorithms), t0=self._test_sizes(s.test_size), value="reward"),
        }
        if s.first_pull_size is not None:
            counts = arrays["first_pulls"].sum(axis=0)
            algorithm, arm = (index.ravel() for index in np.indices(counts.shape))
            out["first_pulls"] = {"algorithm": np.array(s.algorithms)[algorithm], "arm": arm, "count": counts.ravel()}
        return out

    def _test_sizes(self, size: int) -> IntArray:
        fixed = {*self.sweep.oracle, *self.sweep.misspecified}
        return np.array([0 if name in fixed else size for name in self.sweep.algorithms])

    def _replicate(self, replicate: int, seed: int) -> Arrays:
        s, problem = self.sweep, self.problem
        curves: list[FloatArray] = []
        test: dict[str, float] = {}
        first: dict[str, IntArray] = {}
        held = [(s.oracle, problem.prior), (s.misspecified, problem.misspecified)]
        for name, policy, prior in [(name, policy, prior) for policies, prior in held for name, policy in policies.items()]:
            ran = self._play(policy, prior, seed, replicate, 0, s.episodes, keep=s.first_pull_size is not None)
            curves.append(self._curve(ran.totals))
            test[name] = float(ran.totals[-s.test_episodes :].mean())
            first[name] = self._first_pulls(ran)
        for each in s.meta:
            explored = self._play(each.exploration, each.held or problem.misspecified, seed, replicate, 0, max(s.sizes), keep=True)
            fits = each.estimator.fit_prefixes(as_run(_trajectory(explored)), s.sizes)
            for name, policy in each.learners.items():
                for size, fit in zip(s.sizes, fits, strict=True):
                    counted = size == s.first_pull_size
                    ran = self._play(policy, fit.prior, seed, replicate, size, s.episodes - size, keep=counted)
                    totals = np.concatenate([explored.totals[:size], ran.totals])
                    curves.append(self._curve(totals))
                    if size == s.test_size:
                        test[name] = float(totals[-s.test_episodes :].mean())
                    if counted:
                        first[name] = self._first_pulls(explored, size) + self._first_pulls(ran)
        out: Arrays = {"curves": np.stack(curves), "test": np.array([test[name] for name in s.algorithms])}
        if s.first_pull_size is not None:
            out["first_pulls"] = np.stack([first[name] for name in s.algorithms])
        return out

    def _play(self, policy: Policy, held: Prior, seed: int, replicate: int, first: int, count: int, *, keep: bool) -> Ran:
        """Play episodes ``first``, ``first + 1``, ... of a replicate."""
        problem = self.problem
        chosen = plan(problem.prior, held, policy, problem.horizon, masked=False, engine=self.engine)
        number = replicate * NUMBERS + first
        return chosen.run(seed=seed, first=number, tasks=count, horizon=problem.horizon, available=None, keep=keep)

    def _curve(self, totals: FloatArray) -> FloatArray:
        """Cumulative average per-episode reward at the grid."""
        grid = np.array(self.sweep.grid)
        return np.asarray(np.cumsum(totals)[grid - 1] / grid)

    def _first_pulls(self, ran: Ran, episodes: int | None = None) -> IntArray:
        """How often each arm was pulled first."""
        if ran.columns is None:
            return np.zeros(self.problem.prior.arms, dtype=np.int64)
        return np.bincount(ran.columns.actions[0, :episodes], minlength=self.problem.prior.arms)


def _trajectory(ran: Ran) -> Trajectory:
    columns = ran.columns
    assert columns is not None
    log = None if columns.log is None else columns.log.transpose(2, 0, 1)
    return Trajectory(columns.actions.T.astype(np.int64), columns.rewards.T, log)


def _long(values: FloatArray, *, algorithm: Any, t0: IntArray, value: str, last: tuple[str, IntArray] | None = None) -> Table:
    """Put ``(replicate, configuration[, place])`` into one row a number."""
    index = [each.ravel() for each in np.indices(values.shape)]
    table: Table = {"algorithm": algorithm[index[1]], "t0": t0[index[1]], "replicate": index[0]}
    if last is not None:
        table[last[0]] = last[1][index[2]]
    return table | {value: values.ravel()}
