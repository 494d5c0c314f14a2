"""Measures what the theory speaks of, in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.episodes import as_run
from priorwise.core.fits import Estimator
from priorwise.core.runs import Run, Trajectory
from priorwise.core.streams import mix
from priorwise.experiments import problems
from priorwise.experiments.theory import sweep
from priorwise.experiments.theory.claims import claims
from priorwise.experiments.theory.figures import figures
from priorwise.experiments.work import Arrays, Block, Claim, Files, Table, Tables, ranges, stacked
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.policies.baselines import Uniform
from priorwise.sensitivity.bounds.lower import lower_bound_gap
from priorwise.sensitivity.ladder.ladder import (
    ACTIONS,
    COMMON,
    COUPLED,
    POSTERIORS,
    WORST,
    sensitivity_ladder,
)
from priorwise.simulate.run import simulate

RUNGS: Final = (WORST, POSTERIORS, ACTIONS, COUPLED, COMMON)
LADDER_COLUMNS: Final = (
    "policy",
    "shift",
    "rung",
    "delta",
    "std_error",
    "reward",
    "reward_std_error",
)
ESTIMATORS: Final[dict[str, Estimator]] = {
    "two-round moments": GaussianMoments("two-round", noise_var=1.0),
    "all-rounds moments": GaussianMoments("full", noise_var=1.0),
    "marginal likelihood": GaussianMarginalLikelihood(noise_var=1.0, regulariser=0.0),
}
SIZE: Final = 5  # replicates in a block
FEW: Final = 20  # replicates of a smoke run
MASK: Final = (1 << 64) - 1
MOST_REPLICATES: Final = 40  # for the estimators


@final
@dataclass(frozen=True)
class Theory:
    """The ladder over misspecifications, error of estimators, lower and upper bound."""

    name: str = "theory"
    title: str = "The theory, measured"

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        return {name: repr(value) for name, value in vars(sweep).items() if name.isupper()} | {
            "estimators": repr(ESTIMATORS)
        }

    def blocks(self, replicates: int) -> Sequence[Block]:
        """One ladder, one horizon, or a few replicates of the estimators at a time."""
        shifts = range(0, len(sweep.SHIFTS), 3 if replicates < FEW else 1)
        ladders = [Block(f"ladder {name}", index, 1) for name in sweep.POLICIES for index in shifts]
        gaps = [Block("gap", index, 1) for index in range(len(sweep.PULLS))]
        return [
            *reversed(ladders),
            *ranges("estimators", min(replicates, MOST_REPLICATES), SIZE),
            *gaps,
        ]

    def run(self, block: Block, seed: int) -> Arrays:
        """Do a block of work."""
        if block.part == "gap":
            return _gap(sweep.PULLS[block.first], seed)
        if block.part == "estimators":
            rows = [
                _errors(replicate, seed)
                for replicate in range(block.first, block.first + block.count)
            ]
            return {"errors": np.stack(rows)}
        return _ladder(block.part.removeprefix("ladder "), sweep.SHIFTS[block.first], seed)

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Return the tables ``ladder``, ``estimators`` and ``gaps``."""
        return {
            "ladder": _ladder_table(done),
            "estimators": _estimator_table(done),
            "gaps": stacked(done, "gap"),
        }

    def figures(self, tables: Tables) -> dict[str, Files]:
        """Draw."""
        return figures(tables)

    def claims(self, tables: Tables) -> list[Claim]:
        """Judge."""
        return claims(tables)


def _ladder(policy: str, shift: float, seed: int) -> Arrays:
    problem = problems.gaussian()
    true = problem.prior
    held = GaussianPrior(true.mean + shift * np.eye(true.arms)[0], true.cov, true.noise_var)
    ladder = sensitivity_ladder(
        true,
        held,
        sweep.POLICIES[policy],
        problem.horizon,
        seed=seed,
        tasks=sweep.LADDER_TASKS,
        histories=sweep.LADDER_HISTORIES[policy],
    )
    names = {rung.name: rung for rung in ladder.rungs}
    rows = [
        (names[name].delta, names[name].std_error, names[name].reward, names[name].reward_std_error)
        if name in names
        else (np.nan,) * 4
        for name in RUNGS
    ]
    rest = [ladder.gap.mean, ladder.gap.std_error, ladder.trivial, float(ladder.in_order)]
    return {"rungs": np.array([rows]), "rest": np.array([rest])}


def _ladder_table(done: Sequence[tuple[Block, Arrays]]) -> Table:
    done = sorted(done, key=lambda each: each[0].first)
    names = (*LADDER_COLUMNS, "gap", "gap_std_error", "trivial", "in_order")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for policy in sweep.POLICIES:
        for block, arrays in done:
            if block.part == f"ladder {policy}":
                for rung, numbers in zip(RUNGS, arrays["rungs"][0], strict=True):
                    row = (policy, sweep.SHIFTS[block.first], rung, *numbers, *arrays["rest"][0])
                    for column, value in zip(columns.values(), row, strict=True):
                        column.append(value)
    return {name: np.array(column) for name, column in columns.items()}


def _errors(replicate: int, seed: int) -> np.ndarray:
    """Errors of mean and covariance, ``(estimator, tasks, 2)``: Euclidean and Frobenius norms."""
    prior = problems.gaussian().prior
    run = simulate(
        prior,
        Uniform(),
        horizon=sweep.HORIZON,
        tasks=max(sweep.TASKS),
        seed=mix(mix(seed) + replicate & MASK),
        keep=True,
    )
    out = np.empty((len(ESTIMATORS), len(sweep.TASKS), 2))
    for row, estimator in enumerate(ESTIMATORS.values()):
        for column, tasks in enumerate(sweep.TASKS):
            fitted = estimator.fit(_first(run, tasks)).prior
            out[row, column] = (
                np.linalg.norm(fitted.mean - prior.mean),
                np.linalg.norm(fitted.cov - prior.cov),
            )
    return out


def _first(run: Run, tasks: int) -> Run:
    """Return the first tasks of a kept run."""
    return as_run(Trajectory(run.actions[:tasks], run.rewards[:tasks], None))


def _estimator_table(done: Sequence[tuple[Block, Arrays]]) -> Table:
    errors = stacked(done, "estimators")["errors"]  # (replicate, estimator, tasks, 2)
    replicate, estimator, size, what = (index.ravel() for index in np.indices(errors.shape))
    return {
        "estimator": np.array(list(ESTIMATORS))[estimator],
        "tasks": np.array(sweep.TASKS)[size],
        "of": np.array(["mean", "covariance"])[what],
        "replicate": replicate,
        "error": errors.ravel(),
    }


def _gap(pulls: int, seed: int) -> Arrays:
    found = lower_bound_gap(
        1, pulls, sweep.ARMS, sweep.EXPECTED / pulls, sweep.DELTA, seed=seed, tasks=sweep.GAP_TASKS
    )
    numbers = (
        pulls,
        found.theorem,
        found.improved,
        found.exact,
        found.measured,
        found.std_error,
        found.upper,
    )
    names = ("pulls", "theorem", "improved", "exact", "measured", "std_error", "upper")
    return {name: np.array([number]) for name, number in zip(names, numbers, strict=True)}
