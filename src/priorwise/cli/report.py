"""What ``priorwise simulate`` says: the numbers as data and as a figure."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from priorwise.cli.inputs import Entry
from priorwise.cli.output import counted
from priorwise.core.estimates import Estimate
from priorwise.core.protocols import Prior, monte_carlo_n
from priorwise.core.runs import Run
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray
from priorwise.figures.curves import Curve, learning_curves
from priorwise.simulate.results import Comparison
from priorwise.simulate.run import simulate

TIMED_SECONDS: Final = 0.05
MOST_TIMED_TASKS: Final = 1 << 14


@dataclass(frozen=True)
class Line:
    """One policy with one prior: its run, and its paired differences."""

    entry: Entry
    run: Run
    from_best: Estimate
    wrong_prior_gain: Estimate | None  # believed minus true prior, for the same policy
    monte_carlo_n: int | None
    ns_per_pull: float


def lines(prior: Prior, entries: Sequence[Entry], result: Comparison) -> list[Line]:
    """Gather the lines, best first."""
    out = [
        Line(
            entry,
            result.runs[entry.name],
            result.difference(entry.name, result.best),
            None if entry.true_prior else result.difference(entry.name, entry.word),
            monte_carlo_n(entry.policy, prior.arms),
            ns_per_pull(prior, entry, result.runs[entry.name]),
        )
        for entry in entries
    ]
    return sorted(out, key=lambda line: -line.run.mean_reward)


def ns_per_pull(prior: Prior, entry: Entry, run: Run) -> float:
    """Time a short separate run on one thread, everything compiled already."""
    tasks = 64
    while True:
        start = time.perf_counter()
        simulate(
            prior,
            entry.policy,
            horizon=run.horizon,
            tasks=tasks,
            seed=run.seed,
            believed=entry.held,
            threads=1,
            progress=False,  # of the run itself there is one
        )
        seconds = time.perf_counter() - start
        if seconds >= TIMED_SECONDS or tasks >= MOST_TIMED_TASKS:
            return 1e9 * seconds / (tasks * run.horizon)
        tasks *= 4


def as_json(prior: Prior, believed: Prior | None, lines: Sequence[Line]) -> str:
    """Return all numbers as JSON text; None where a number does not exist."""
    run = lines[0].run
    content = {
        "priorwise": 1,
        "command": "simulate",
        "horizon": run.horizon,
        "tasks": run.tasks,
        "seed": run.seed,
        "prior": _prior(prior),
        "believed": None if believed is None else _prior(believed),
        "policies": [_line(line) for line in lines],
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _prior(prior: Prior) -> Any:
    return json.loads(prior.to_json()) if isinstance(prior, Serializable) else repr(prior)


def _line(line: Line) -> dict[str, Any]:
    run, steps = line.run, line.run.by_step
    return {
        "name": line.entry.name,
        "policy": line.entry.word,
        "prior_held": line.entry.held_name,
        "mean_reward": run.mean_reward,
        "std_error": _or_none(run.std_error),
        "mean_regret": run.mean_regret,
        "regret_std_error": None
        if run.regret_std_error is None
        else _or_none(run.regret_std_error),
        "from_best": _estimate(line.from_best),
        "wrong_prior_gain": None
        if line.wrong_prior_gain is None
        else _estimate(line.wrong_prior_gain),
        "monte_carlo_n": line.monte_carlo_n,
        "engine": run.engine,
        "ns_per_pull_one_thread": line.ns_per_pull,
        "resets": run.resets,
        "by_step": {
            name: None if curve is None else _list(curve) for name, curve in vars(steps).items()
        },
    }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _list(values: FloatArray) -> list[float | None]:
    return [_or_none(float(value)) for value in values]


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"mean": _or_none(estimate.mean), "std_error": _or_none(estimate.std_error)}


def as_figure(lines: Sequence[Line]) -> dict[str, bytes]:
    """Return the learning curves, as the content of files by suffix."""
    run = lines[0].run
    curves = [
        Curve(line.entry.name, line.run, line.entry.word, dashed=not line.entry.true_prior)
        for line in lines
    ]
    wrong = next((line.entry.held_name for line in lines if not line.entry.true_prior), None)
    note = (
        ""
        if wrong is None
        else f"Dashed: policies that hold the prior “{wrong}” instead of the true one."
    )
    return learning_curves(
        curves, f"{run.tasks:,} tasks of {counted(run.horizon, 'pull')}, seed {run.seed}", note
    )
