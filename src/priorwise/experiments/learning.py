"""A learning-curve experiment: policies that hold a fixed prior, and explore-then-commit learners
for many exploration lengths T0.

Episode e of replicate r has the task number that
:func:`~priorwise.meta.learners.simulate_meta.simulate_meta` gives it, so each configuration earns,
bit for bit, what it would earn there alone. The work that configurations share is done once:

* The exploration of T0 episodes is the start of the longest one, because neither its actions nor
  its tasks depend on T0.
* All priors are fitted in one pass over the exploration, from sums that run along.
* Learners that explore alike (one estimator, several policies afterwards) share the exploration and
  the fits.
* One policy that holds many priors meets the same episodes with the same random numbers: these are
  drawn once.

What is left, the belief and the choice in the episodes after T0, is each configuration's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from priorwise.core.episodes import as_run
from priorwise.core.fits import PriorFit
from priorwise.core.protocols import Policy, Prior
from priorwise.core.runs import Run, Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.experiments.problems import Problem
from priorwise.experiments.work import Arrays, Block, Table, ranges, stacked
from priorwise.kernels.loop import Block as Ran
from priorwise.meta.learners.simulate_meta import NUMBERS
from priorwise.simulate.engine import Engine, plan, run_held


class PrefixEstimator(Protocol):
    """An estimator that fits the first tasks of a run for several numbers of them at once."""

    def fit_prefixes(self, data: Run, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size."""
        ...


@dataclass(frozen=True)
class Exploring:
    """How a learner explores and what it fits; ``learners`` are the policies that then hold the
    fitted prior, by name.
    """

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
    # algorithms whose pulls are counted arm by arm, for every T0, without the exploration
    pulls_of: tuple[str, ...] = ()

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names, fixed priors first."""
        return (
            *self.oracle,
            *self.misspecified,
            *(name for each in self.meta for name in each.learners),
        )

    @property
    def configurations(self) -> tuple[tuple[str, int], ...]:
        """Algorithm and T0 (0: none) of every learning curve."""
        fixed = [(name, 0) for name in (*self.oracle, *self.misspecified)]
        return (
            *fixed,
            *((name, size) for each in self.meta for name in each.learners for size in self.sizes),
        )


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
            "pulls": list(s.pulls_of),
            "algorithms": _exact_repr((s.oracle, s.misspecified, s.meta)),
        }

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Few replicates at a time."""
        return ranges("curves", replicates, self.block)

    def run(self, block: Block, seed: int) -> Arrays:
        """Run each replicate; see the module."""
        rows = [
            self._replicate(replicate, seed)
            for replicate in range(block.first, block.first + block.count)
        ]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def warm_up(self, seed: int) -> None:
        """Run a few episodes of every algorithm."""
        few = replace(
            self.sweep,
            episodes=4,
            sizes=(3,),
            grid=(4,),
            test_size=3,
            test_episodes=1,
            first_pull_size=None,
            pulls_of=(),
        )
        replace(self, sweep=few).run(Block("curves", 0, 1), seed)

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Return the tables ``curves`` and ``test``, and ``first_pulls`` and ``pulls`` where they
        are counted.
        """
        arrays, s = stacked(done, "curves"), self.sweep
        names, sizes = (np.array([each[i] for each in s.configurations]) for i in (0, 1))
        out = {
            "curves": _long(
                arrays["curves"],
                algorithm=names,
                t0=sizes,
                last=("episode", np.array(s.grid)),
                value="average",
            ),
            "test": _long(
                arrays["test"],
                algorithm=np.array(s.algorithms),
                t0=self._test_sizes(s.test_size),
                value="reward",
            ),
        }
        if s.first_pull_size is not None:
            counts = arrays["first_pulls"].sum(axis=0)
            algorithm, arm = (index.ravel() for index in np.indices(counts.shape))
            out["first_pulls"] = {
                "algorithm": np.array(s.algorithms)[algorithm],
                "arm": arm,
                "count": counts.ravel(),
            }
        if s.pulls_of:
            counted = np.array([name in s.pulls_of for name in names])
            counts = arrays["pulls"].sum(axis=0)
            row, arm = (index.ravel() for index in np.indices(counts.shape))
            out["pulls"] = {
                "algorithm": names[counted][row],
                "t0": sizes[counted][row],
                "arm": arm,
                "count": counts.ravel(),
            }
        return out

    def _test_sizes(self, size: int) -> IntArray:
        fixed = {*self.sweep.oracle, *self.sweep.misspecified}
        return np.array([0 if name in fixed else size for name in self.sweep.algorithms])

    def _replicate(self, replicate: int, seed: int) -> Arrays:
        s = self.sweep
        played = self._played(replicate, seed)
        ran = self._totals([each for each in played if not each.counted], replicate, seed)
        out: Arrays = {"curves": np.empty((len(played), len(s.grid)))}
        test: dict[str, float] = {}
        first: dict[str, IntArray] = {}
        pulls: list[IntArray] = []
        for row, each in enumerate(played):
            alone = (
                self._play(each.policy, each.held, seed, replicate, each.begin, keep=True)
                if each.counted
                else None
            )
            totals = next(ran) if alone is None else alone.totals
            if each.explored is not None:
                totals = np.concatenate([each.explored.totals[: each.begin], totals])
            if alone is not None and each.begin in (0, s.first_pull_size):
                first[each.name] = self._first_pulls(alone) + self._first_pulls(
                    each.explored, each.begin
                )
            if alone is not None and each.name in s.pulls_of:
                pulls.append(self._pulls(alone))
            out["curves"][row] = np.cumsum(totals)[np.array(s.grid) - 1] / np.array(s.grid)
            if each.begin in (0, s.test_size):
                test[each.name] = float(totals[-s.test_episodes :].mean())
        out["test"] = np.array([test[name] for name in s.algorithms])
        if s.first_pull_size is not None:
            out["first_pulls"] = np.stack([first[name] for name in s.algorithms])
        if s.pulls_of:
            out["pulls"] = np.stack(pulls)
        return out

    def _played(self, replicate: int, seed: int) -> list[_Played]:
        """What every configuration holds, in their order: explores, fits."""
        s, problem = self.sweep, self.problem
        fixed = [(s.oracle, problem.prior), (s.misspecified, problem.misspecified)]
        out = [
            _Played(
                name, policy, held, 0, None, s.first_pull_size is not None or name in s.pulls_of
            )
            for policies, held in fixed
            for name, policy in policies.items()
        ]
        for each in s.meta:
            held = each.held or problem.misspecified
            explored = self._play(
                each.exploration, held, seed, replicate, 0, max(s.sizes), keep=True
            )
            fits = each.estimator.fit_prefixes(as_run(_trajectory(explored)), s.sizes)
            for name, policy in each.learners.items():
                for size, fit in zip(s.sizes, fits, strict=True):
                    out.append(
                        _Played(
                            name,
                            policy,
                            fit.prior,
                            size,
                            explored,
                            size == s.first_pull_size or name in s.pulls_of,
                        )
                    )
        return out

    def _totals(self, played: Sequence[_Played], replicate: int, seed: int) -> Iterator[FloatArray]:
        """What each earns in its episodes, those of one policy together."""
        problem, tasks, first = self.problem, self.sweep.episodes, replicate * NUMBERS
        earned: dict[int, FloatArray] = {}
        for policy in {id(each.policy): each.policy for each in played}.values():
            places = [place for place, each in enumerate(played) if each.policy is policy]
            held, begins = (
                [played[place].held for place in places],
                [played[place].begin for place in places],
            )
            totals = run_held(
                problem.prior, held, policy,
                seed=seed, first=first, tasks=tasks, horizon=problem.horizon, begins=begins,
                engine=self.engine,
            )  # fmt: skip
            earned |= zip(places, totals, strict=True)
        return iter([earned[place] for place in range(len(played))])

    def _play(
        self,
        policy: Policy,
        held: Prior,
        seed: int,
        replicate: int,
        first: int,
        end: int | None = None,
        *,
        keep: bool,
    ) -> Ran:
        """Play episodes ``first``, ``first + 1``, ... of a replicate, to the end."""
        problem = self.problem
        chosen = plan(
            problem.prior, held, policy, problem.horizon, masked=False, engine=self.engine
        )
        count = (self.sweep.episodes if end is None else end) - first
        number = replicate * NUMBERS + first
        return chosen.run(
            seed=seed, first=number, tasks=count, horizon=problem.horizon, available=None, keep=keep
        )

    def _first_pulls(self, ran: Ran | None, episodes: int | None = None) -> IntArray:
        """How often each arm was pulled first."""
        if ran is None or ran.columns is None:
            return np.zeros(self.problem.prior.arms, dtype=np.int64)
        return np.bincount(ran.columns.actions[0, :episodes], minlength=self.problem.prior.arms)

    def _pulls(self, ran: Ran) -> IntArray:
        """How often each arm was pulled."""
        assert ran.columns is not None
        return np.bincount(ran.columns.actions.ravel(), minlength=self.problem.prior.arms)


@dataclass(frozen=True)
class _Played:
    """A configuration: what plays from which episode on, what it holds, and the exploration
    before.
    """

    name: str
    policy: Policy
    held: Prior
    begin: int
    explored: Ran | None
    counted: bool  # whether its pulls are


def _exact_repr(value: Any) -> str:
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return repr(value)


def _trajectory(ran: Ran) -> Trajectory:
    columns = ran.columns
    assert columns is not None
    log = None if columns.log is None else columns.log.transpose(2, 0, 1)
    return Trajectory(columns.actions.T.astype(np.int64), columns.rewards.T, log)


def _long(
    values: FloatArray,
    *,
    algorithm: Any,
    t0: IntArray,
    value: str,
    last: tuple[str, IntArray] | None = None,
) -> Table:
    """Put ``(replicate, configuration[, place])`` into one row per number."""
    index = [each.ravel() for each in np.indices(values.shape)]
    table: Table = {"algorithm": algorithm[index[1]], "t0": t0[index[1]], "replicate": index[0]}
    if last is not None:
        table[last[0]] = last[1][index[2]]
    return table | {value: values.ravel()}
