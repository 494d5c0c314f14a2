"""The sweep behind ``priorwise reproduce``: which runs, how many tasks, and the values they should give.

The learning-curve experiments of the paper are not part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from priorwise.core.protocols import Policy
from priorwise.experiments import problems
from priorwise.policies.baselines import ExactKnowledgeGradient, Greedy
from priorwise.policies.receding_horizon import KnowledgeGradient, RecedingHorizon
from priorwise.policies.sampling import ThompsonSampling
from priorwise.simulate.results import Run
from priorwise.simulate.run import simulate

MOST_STD_ERRORS: Final = 5.0
SAMPLES: Final = (1, 3, 10, 30)
"""k1 = k2 of the receding horizon."""

PROBLEMS: Final[dict[str, Callable[[], problems.Problem]]] = {
    "gaussian": problems.gaussian,
    "linear": problems.linear,
    "discrete": problems.discrete,
}


@dataclass(frozen=True)
class Known:
    """A value known from elsewhere, and how well: half a unit of the last digit it was quoted with, unless it is exact."""

    value: float
    std_error: float
    text: str


@dataclass(frozen=True)
class Row:
    """A run to make."""

    problem: str
    algorithm: str
    policy: Policy
    tasks: int
    true_prior: bool = True
    known: Known | None = None
    samples: int | None = None
    ns_per_pull: float = 50.0  # about; for the time left

    @property
    def held(self) -> str:
        """Which prior the policy holds."""
        return "true" if self.true_prior else "misspecified"


@dataclass(frozen=True)
class Result:
    """A row with its run."""

    row: Row
    run: Run

    @property
    def agrees(self) -> bool | None:
        """Whether the run is within five combined standard errors of the known value; None if none is known."""
        known = self.row.known
        if known is None:
            return None
        return abs(self.run.mean_reward - known.value) <= MOST_STD_ERRORS * math.hypot(self.run.std_error, known.std_error)

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        known = self.row.known
        return {
            "problem": self.row.problem,
            "algorithm": self.row.algorithm,
            "prior_held": self.row.held,
            "samples": self.row.samples,
            "tasks": self.run.tasks,
            "horizon": self.run.horizon,
            "mean_reward": self.run.mean_reward,
            "std_error": self.run.std_error,
            "known": None if known is None else {"value": known.value, "std_error": known.std_error},
            "agrees": self.agrees,
        }


def rows(share: float = 1.0) -> list[Row]:
    """Return the sweep, with a share of the tasks."""

    def thousands(count: int) -> int:
        return round(1000 * count * share)

    ts, many = ThompsonSampling(), thousands(200)
    exact, some = ExactKnowledgeGradient("online"), thousands(30)
    kg = KnowledgeGradient(10, 10, ties="random", when_certain="best")
    out = [
        Row("gaussian", "Thompson sampling", ts, many, True, Known(5.380, 0.0005, "5.380")),
        Row("gaussian", "Thompson sampling", ts, many, False, Known(3.479, 0.0005, "3.479")),
        Row("gaussian", "greedy", Greedy(), many, True, Known(7.127, 0.0005, "7.127")),
        Row("gaussian", "greedy", Greedy(), many, False),
        Row("gaussian", "exact online KG", exact, some, True, Known(7.25, 0.05, "7.2 to 7.3"), ns_per_pull=9000),
        Row("gaussian", "exact online KG", exact, some, False, ns_per_pull=9000),
    ]
    for true_prior in (True, False):
        for k in SAMPLES:
            known = Known(5.7, 0.05, "5.7") if true_prior and k == 10 else None
            policy = RecedingHorizon(k, k, "online")
            name = f"receding horizon, k = {k}"
            out.append(Row("gaussian", name, policy, thousands(60), true_prior, known, samples=k, ns_per_pull=200 + 120 * k))
    return [
        *out,
        Row("linear", "Thompson sampling", ts, many, True, Known(24.857, 0.0005, "24.857"), ns_per_pull=150),
        Row("linear", "Thompson sampling", ts, many, False, Known(12.403, 0.0005, "12.403"), ns_per_pull=150),
        Row("discrete", "Thompson sampling", ts, many, True, Known(7.4536, 0.00005, "7.4536 exact"), ns_per_pull=120),
        Row("discrete", "Thompson sampling", ts, many, False, Known(55 / 16, 0.0, "55/16 exact"), ns_per_pull=120),
        Row("discrete", "KG, k = 10", kg, thousands(40), True, Known(9.04, 0.005, "9.04"), ns_per_pull=4000),
        Row("discrete", "KG, k = 10", kg, thousands(40), False, Known(7.67, 0.005, "7.67"), ns_per_pull=15000),
    ]


def run_row(row: Row, seed: int) -> Result:
    """Make a run."""
    problem = PROBLEMS[row.problem]()
    believed = problem.prior if row.true_prior else problem.misspecified
    run = simulate(problem.prior, row.policy, horizon=problem.horizon, tasks=row.tasks, seed=seed, believed=believed)
    return Result(row, run)
