"""A learning-curve experiment: policies that believe a fixed prior, and explore-then-commit
learners for many exploration lengths T0.

Episode e of replicate r has the task number that
:func:`~priorwise.meta.learners.simulate_meta.simulate_meta` gives it, so each configuration earns,
bit for bit, what it would earn there alone. The work that configurations share is done once:

* The exploration of T0 episodes is the start of the longest one, because neither its actions nor
  its tasks depend on T0.
* All priors are fitted in one pass over the exploration, from sums that run along.
* Learners that explore alike (one estimator, several policies afterwards) share the exploration and
  the fits.
* One policy under many priors plays the same episodes with the same random numbers: these are
  drawn once.

What is left, the belief and the choice in the episodes after T0, is each configuration's own.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core import trajectories
from priorwise.core.protocols import Policy, Prior
from priorwise.core.types import FloatArray, IntArray
from priorwise.experiments.experiment import Arrays, Block, Claim, Files, Tables, ranges, stacked
from priorwise.experiments.problems import Problem
from priorwise.figures.tables import Table, tidy
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.runs import Run, as_run
from priorwise.meta.learners.simulate_meta import NUMBERS
from priorwise.simulate.engine import Engine, choose
from priorwise.simulate.together import run_together


class PrefixEstimator(Protocol):
    """An estimator that fits the first tasks of a run for several numbers of them at once."""

    def fit_prefixes(self, data: Run, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size."""
        ...


@dataclass(frozen=True)
class Exploring:
    """How a learner explores and what it fits; ``learners`` are the policies that then believe the
    fitted prior, by name.
    """

    exploration: Policy
    believed: Prior | None  # while exploring; None: the misspecified prior
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
        return tuple(dict.fromkeys(name for name, _ in self.configurations))

    @property
    def configurations(self) -> tuple[tuple[str, int], ...]:
        """Algorithm and T0 (0: none) of every learning curve, fixed priors first."""
        fixed = [(name, 0) for name in (*self.oracle, *self.misspecified)]
        learners = [name for each in self.meta for name in each.learners]
        return (*fixed, *((name, size) for name in learners for size in self.sizes))


@final
@dataclass(frozen=True)
class LearningCurves:
    """Runs a sweep, and puts what comes out into tables, figures and claims."""

    name: str
    title: str
    sweep: Sweep
    figures: Callable[[Tables], dict[str, Files]]
    claims: Callable[[Tables], list[Claim]]
    given: Callable[[], dict[str, Table]] = dict  # tables of what is given, not measured
    block: int = 5  # replicates
    engine: Engine = "auto"  # of the episodes; the numbers do not depend on it

    @cached_property
    def problem(self) -> Problem[Any]:
        """The problem of the sweep."""
        return self.sweep.problem()

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        s, problem = self.sweep, self.problem
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            algorithms = repr((s.oracle, s.misspecified, s.meta))
        return {
            "prior": problem.prior.to_json(),
            "misspecified": problem.misspecified.to_json(),
            "horizon": problem.horizon,
            "episodes": s.episodes,
            "sizes": list(s.sizes),
            "grid": list(s.grid),
            "test": [s.test_size, s.test_episodes, s.first_pull_size],
            "pulls": list(s.pulls_of),
            "algorithms": algorithms,
        }

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Few replicates at a time."""
        return ranges("curves", replicates, self.block)

    def run(self, block: Block, seed: int) -> Arrays:
        """Run each replicate; see the module."""
        rows = [self._replicate(replicate, seed) for replicate in block.replicates]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def warm_up(self, seed: int) -> None:
        """Run a few episodes of every algorithm, the last policy first: it takes longest to
        compile, while another process compiles what all of them need.
        """
        for policy in reversed(list(self.sweep.oracle.values())):
            self._play(policy, self.problem.prior, range(1), seed)
        few: dict[str, Any] = {"episodes": 4, "sizes": (3,), "grid": (4,), "test_size": 3}
        few |= {"test_episodes": 1, "first_pull_size": None, "pulls_of": ()}
        replace(self, sweep=replace(self.sweep, **few)).run(Block("curves", 0, 1), seed)

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Return the tables ``curves`` and ``test``, and what is given. If pulls are counted, also
        ``first_pulls`` of all episodes, ``first_pulls_later`` without exploration, and ``pulls``.
        """
        arrays, s = stacked(done, "curves"), self.sweep
        algorithm, t0 = (np.array(each) for each in zip(*s.configurations, strict=True))
        names, fixed = np.array(s.algorithms), {*s.oracle, *s.misspecified}
        sizes = np.array([0 if name in fixed else s.test_size for name in names])
        row = {"algorithm": (1, algorithm), "t0": (1, t0), "replicate": (0, None)}
        test = {"algorithm": (1, names), "t0": (1, sizes), "replicate": (0, None)}
        out = {
            "curves": tidy({**row, "episode": (2, s.grid)}, "average", arrays["curves"]),
            "test": tidy(test, "reward", arrays["test"]),
        }
        if s.first_pull_size is not None:
            first = {"algorithm": (0, names), "arm": (1, None)}
            for name in ("first_pulls", "first_pulls_later"):
                out[name] = tidy(first, "count", arrays[name].sum(axis=0))
        if s.pulls_of:
            own = np.isin(algorithm, s.pulls_of)
            pulls = {"algorithm": (0, algorithm[own]), "t0": (0, t0[own]), "arm": (1, None)}
            out["pulls"] = tidy(pulls, "count", arrays["pulls"].sum(axis=0))
        return out | self.given()

    def _replicate(self, replicate: int, seed: int) -> Arrays:
        s = self.sweep
        tasks = range(replicate * NUMBERS, replicate * NUMBERS + s.episodes)
        configurations = self._configurations(tasks, seed)
        shared = self._totals([each for each in configurations if not each.counted], tasks, seed)
        out: Arrays = {"curves": np.empty((len(configurations), len(s.grid)))}
        test: dict[str, float] = {}
        first: dict[str, IntArray] = {}
        later: dict[str, IntArray] = {}
        pulls: list[IntArray] = []
        for row, each in enumerate(configurations):
            if each.counted:
                played = self._play(each.policy, each.believed, tasks[each.begin :], seed)
                totals, actions = played.totals, _actions(played)
                if each.begin in (0, s.first_pull_size):
                    later[each.name] = first[each.name] = self._counts(actions[0])
                    if each.explored is not None:
                        explored = self._counts(_actions(each.explored)[0, : each.begin])
                        first[each.name] = later[each.name] + explored
                if each.name in s.pulls_of:
                    pulls.append(self._counts(actions.ravel()))
            else:
                totals = next(shared)
            if each.explored is not None:
                totals = np.concatenate([each.explored.totals[: each.begin], totals])
            out["curves"][row] = np.cumsum(totals)[np.array(s.grid) - 1] / np.array(s.grid)
            if each.begin in (0, s.test_size):
                test[each.name] = float(totals[-s.test_episodes :].mean())
        out["test"] = np.array([test[name] for name in s.algorithms])
        if s.first_pull_size is not None:
            out["first_pulls"] = np.stack([first[name] for name in s.algorithms])
            out["first_pulls_later"] = np.stack([later[name] for name in s.algorithms])
        if s.pulls_of:
            out["pulls"] = np.stack(pulls)
        return out

    def _configurations(self, tasks: range, seed: int) -> "list[_Configuration]":
        """What every configuration believes, in their order: explores, fits."""
        s, problem = self.sweep, self.problem
        count = s.first_pull_size is not None
        fixed = (s.oracle, problem.prior), (s.misspecified, problem.misspecified)
        out = [
            _Configuration(name, policy, believed, 0, None, count or name in s.pulls_of)
            for policies, believed in fixed
            for name, policy in policies.items()
        ]
        for each in s.meta:
            believed = each.believed or problem.misspecified
            explored = self._play(each.exploration, believed, tasks[: max(s.sizes)], seed)
            fits = each.estimator.fit_prefixes(
                as_run(trajectories.trajectory_of([explored])), s.sizes
            )
            for name, policy in each.learners.items():
                for size, fit in zip(s.sizes, fits, strict=True):
                    counted = size == s.first_pull_size or name in s.pulls_of
                    out.append(_Configuration(name, policy, fit.prior, size, explored, counted))
        return out

    def _totals(
        self, configurations: "Sequence[_Configuration]", tasks: range, seed: int
    ) -> Iterator[FloatArray]:
        """What each earns in its episodes, those of one policy together."""
        earned: dict[int, FloatArray] = {}
        for policy in {id(each.policy): each.policy for each in configurations}.values():
            own = {at: each for at, each in enumerate(configurations) if each.policy is policy}
            totals = run_together(
                self.problem.prior,
                [each.believed for each in own.values()],
                policy,
                seed=seed,
                first=tasks.start,
                tasks=len(tasks),
                horizon=self.problem.horizon,
                begins=[each.begin for each in own.values()],
                engine=self.engine,
            )
            earned |= zip(own, totals, strict=True)
        return iter([earned[place] for place in range(len(configurations))])

    def _play(self, policy: Policy, believed: Prior, tasks: range, seed: int) -> trajectories.Block:
        """Play tasks of these numbers."""
        prior, horizon = self.problem.prior, self.problem.horizon
        chosen = choose(prior, believed, policy, horizon, masked=False, engine=self.engine)
        place = {"seed": seed, "first": tasks.start, "tasks": len(tasks)}
        return chosen.run(**place, horizon=horizon, available=None, keep=True)

    def _counts(self, actions: NDArray[np.int32]) -> IntArray:
        """How often each arm was pulled."""
        return np.bincount(actions, minlength=self.problem.prior.arms)


@final
@dataclass(frozen=True)
class _Configuration:
    """What plays from which episode on, what it believes, and the exploration before."""

    name: str
    policy: Policy
    believed: Prior
    begin: int
    explored: trajectories.Block | None
    counted: bool  # whether its pulls are


def _actions(ran: trajectories.Block) -> NDArray[np.int32]:
    assert ran.columns is not None
    return ran.columns.actions
