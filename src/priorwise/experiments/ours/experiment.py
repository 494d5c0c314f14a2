"""Runs the learners of the sweep on the paper's tasks, and puts what they earn into tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.experiments.ours.claims import claims
from priorwise.experiments.ours.figures import figures
from priorwise.experiments.ours.sweep import SWEEPS, Sweep
from priorwise.experiments.work import Arrays, Block, Claim, Files, Table, Tables, ranges, stacked
from priorwise.meta.learners.simulate_meta import simulate_meta

SIZE: Final = 5  # replicates in a block


@final
@dataclass(frozen=True)
class Ours:
    """Empirical Bayes and better policies beside the paper's learners, each on the same tasks and
    noise.
    """

    name: str = "ours"
    title: str = "Beyond the paper: learners that never stop learning"

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        return {
            part: [repr(each.learners), each.episodes, list(each.grid)]
            for part, each in SWEEPS.items()
        }

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Few replicates of each problem at a time."""
        return [block for part in SWEEPS for block in ranges(part, replicates, SIZE)]

    def run(self, block: Block, seed: int) -> Arrays:
        """Run every learner on the replicates of a block."""
        sweep = SWEEPS[block.part]
        problem = sweep.problem()
        runs = [
            simulate_meta(
                problem.prior,
                learner,
                episodes=sweep.episodes,
                replicates=block.count,
                first=block.first,
                horizon=problem.horizon,
                seed=seed,
                jobs=1,
            ).rewards
            for learner in sweep.learners.values()
        ]
        rewards = np.stack(runs, axis=1)  # (replicate, learner, episode)
        return {"curves": _averages(rewards, sweep), "rewards": rewards}

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Learning curves, and the paired shortfall from the oracle that plays the same policy, by
        problem.
        """
        curves: list[Table] = []
        falls: list[Table] = []
        for part, sweep in SWEEPS.items():
            arrays = stacked(done, part)
            if arrays:
                curves.append(_curves(part, sweep, arrays["curves"]))
                falls.append(_shortfalls(part, sweep, arrays["rewards"]))
        return {"curves": _joined(curves), "shortfalls": _joined(falls)}

    def figures(self, tables: Tables) -> dict[str, Files]:
        """Draw."""
        return figures(tables)

    def claims(self, tables: Tables) -> list[Claim]:
        """Judge."""
        return claims(tables)


def _averages(rewards: np.ndarray, sweep: Sweep) -> np.ndarray:
    grid = np.array(sweep.grid)
    return np.cumsum(rewards, axis=2)[:, :, grid - 1] / grid


def _curves(part: str, sweep: Sweep, values: np.ndarray) -> Table:
    names = np.array(list(sweep.learners))
    replicate, learner, place = (index.ravel() for index in np.indices(values.shape))
    sizes = np.array([sweep.sizes.get(name, 0) for name in names])
    return {
        "problem": np.full(replicate.size, part),
        "algorithm": np.array([_plain(name) for name in names])[learner],
        "t0": sizes[learner],
        "ours": np.array([name in sweep.ours for name in names])[learner],
        "replicate": replicate,
        "episode": np.array(sweep.grid)[place],
        "average": values.ravel(),
    }


def _plain(name: str) -> str:
    """``MetaTS:full 200`` is ``MetaTS:full`` with T0 = 200."""
    head, _, tail = name.rpartition(" ")
    return head if tail.isdigit() and head.startswith("Meta") else name


def _shortfalls(part: str, sweep: Sweep, rewards: np.ndarray) -> Table:
    """Paired shortfall from the oracle with the same policy, averaged over windows of episodes."""
    rows: dict[str, list[Any]] = {
        name: []
        for name in ("problem", "algorithm", "first", "last", "replicate", "shortfall", "oracle")
    }
    names = list(sweep.learners)
    for name, oracle, first, last in sweep.windows:
        mine, best = (
            rewards[:, names.index(each), first - 1 : last].mean(axis=1) for each in (name, oracle)
        )
        for replicate, (own, top) in enumerate(zip(mine, best, strict=True)):
            values = (part, name, first, last, replicate, top - own, top)
            for column, value in zip(rows.values(), values, strict=True):
                column.append(value)
    return {name: np.array(column) for name, column in rows.items()}


def _joined(parts: Sequence[Table]) -> Table:
    return (
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    )
