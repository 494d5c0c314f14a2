"""How the cost of a wrong prior grows: as the square of the horizon at a fixed distance of the
priors, and as the distance at a fixed horizon, on the instance of the lower bound.

The upper bound is ``2 n H^2 eps``. The lower bound is the one of the theorem, and the cost itself
has a closed form; simulation confirms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from priorwise.core.estimates import Estimate
from priorwise.core.types import FloatArray
from priorwise.experiments.experiment import Arrays, Block, Claim, ranges, stacked
from priorwise.figures.tables import Table
from priorwise.sensitivity.bounds.lower import lower_bound_gap

ARMS: Final = 20_000
DELTA: Final = 0.01
PULLS: Final = (10, 20, 40, 80, 160)
AT_EPS: Final = 2e-4
EPS: Final = (5e-5, 1e-4, 2e-4, 5e-4, 1e-3)
AT_PULLS: Final = 40
DIFFERING: Final = 400
"""Simulated tasks in which the two priors lead to different actions, about: ``H eps`` of all."""

POINTS: Final[dict[str, tuple[tuple[int, float], ...]]] = {
    "H": tuple((pulls, AT_EPS) for pulls in PULLS),
    "eps": tuple((AT_PULLS, eps) for eps in EPS),
}
POWERS: Final = {"H": 2.0, "eps": 1.0}
SLACK: Final = 0.1
SIGMAS: Final = 5.0


def constants() -> str:
    """What the results depend on."""
    return repr((ARMS, DELTA, POINTS, DIFFERING))


def blocks() -> list[Block]:
    """One point at a time, the longest first."""
    return [each for over in POINTS for each in reversed(ranges(f"rates {over}", len(PULLS), 1))]


def run(block: Block, seed: int) -> Arrays:
    """Simulate Thompson sampling at one horizon and distance, and evaluate the bounds there."""
    pulls, eps = POINTS[block.part.removeprefix("rates ")][block.first]
    return cost(1, pulls, ARMS, eps, tasks=round(DIFFERING / (pulls * eps)), seed=seed)


def cost(k: int, pulls: int, arms: int, eps: float, *, tasks: int, seed: int) -> Arrays:
    """Cost of the wrong prior for k-shot Thompson sampling, and its bounds, as one row."""
    bound = lower_bound_gap(k, pulls, arms, eps, DELTA, tasks=tasks, seed=seed)
    names = ("theorem", "improved", "exact", "measured", "std_error", "upper")
    row = {"k": k, "pulls": pulls, "eps": eps} | {name: getattr(bound, name) for name in names}
    return {name: np.array([value]) for name, value in row.items()}


def table(done: Sequence[tuple[Block, Arrays]]) -> Table:
    """Cost and bounds, with ``over`` for what varies: ``H`` or ``eps``."""
    parts = [(over, stacked(done, f"rates {over}")) for over in POINTS]
    over = np.repeat([each for each, _ in parts], [len(arrays["pulls"]) for _, arrays in parts])
    columns = parts[0][1]
    return {"over": over} | {
        name: np.concatenate([arrays[name] for _, arrays in parts]) for name in columns
    }


def power(x: FloatArray, y: FloatArray, std_error: FloatArray) -> Estimate:
    """Slope of ``log y`` in ``log x`` by weighted least squares, with its standard error; the error
    of ``log y`` is ``std_error / y``.
    """
    weight = (y / std_error) ** 2
    logs = np.log(x) - np.average(np.log(x), weights=weight)
    precision = weight @ logs**2
    return Estimate(float(weight @ (logs * np.log(y)) / precision), float(precision**-0.5))


def claims(rates: Table) -> list[Claim]:
    """What the theorems say of the cost: its powers, and that it lies between the bounds."""
    out = []
    for over, grid, what in (("H", "pulls", "H²"), ("eps", "eps", "ε")):
        rows = rates["over"] == over
        x, noise = rates[grid][rows].astype(np.float64), rates["std_error"][rows]
        exact = float(np.polyfit(np.log(x), np.log(rates["exact"][rows]), 1)[0])
        seen = power(x, rates["measured"][rows], noise)
        near = abs(exact - POWERS[over]) <= SLACK
        near &= abs(seen.mean - POWERS[over]) <= SLACK + SIGMAS * seen.std_error
        said = f"power {exact:.3f}; simulated {seen.mean:.3f} ± {seen.std_error:.3f}"
        needed = f"{POWERS[over]:g}, but for {SLACK:g}; simulated also {SIGMAS:g} standard errors"
        statement = f"On the instance of the lower bound a wrong prior costs as {what}"
        out.append(Claim(statement, said, bool(near), "paper", needed))
    between = rates["theorem"] <= rates["exact"]
    between &= rates["exact"] <= rates["upper"]
    between &= rates["theorem"] <= rates["measured"] + SIGMAS * rates["std_error"]
    between &= rates["measured"] <= rates["upper"] + SIGMAS * rates["std_error"]
    said = f"{int(between.sum())} of {between.size} points"
    statement = "That cost lies between the lower and the upper bound"
    out.append(Claim(statement, said, bool(between.all()), "paper", "all, but for noise"))
    return out
