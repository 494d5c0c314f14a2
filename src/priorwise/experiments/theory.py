"""The theory, measured: how the cost of a wrong prior grows, the ladder over a grid of
misspecifications, estimators against the number of tasks, tasks needed against arms, the lower
bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.hashing import mix
from priorwise.core.protocols import Policy
from priorwise.core.trajectories import Trajectory
from priorwise.experiments import needs, problems, rates
from priorwise.experiments.experiment import Arrays, Block, Claim, Files, Tables, ranges, stacked
from priorwise.experiments.rates import cost
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.figures.tables import Table, tidy
from priorwise.figures.theory import (
    estimator_errors,
    gaps,
    gaps_over_draws,
    ladders,
    rates_of_growth,
    tasks_needed,
)
from priorwise.fitting.fits import Estimator
from priorwise.fitting.runs import as_run
from priorwise.policies.receding_horizon import KnowledgeGradient
from priorwise.policies.thompson import KShotThompson, ThompsonSampling
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.ladder import ladder as rungs
from priorwise.sensitivity.ladder.ladder import sensitivity_ladder
from priorwise.simulate.run import simulate

# the ladder, on the Gaussian problem of the paper with the mean of the first arm raised
SHIFTS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 1.0)
POLICIES: Final[dict[str, Policy]] = {
    "Thompson sampling": ThompsonSampling(),
    "2-shot Thompson sampling": KShotThompson(2),
    "knowledge gradient, k = 2": KnowledgeGradient(2, 2),
}
LADDER_TASKS: Final = 200_000
LADDER_HISTORIES: Final = dict(zip(POLICIES, (500, 250, 50), strict=True))
RUNGS: Final = (
    rungs.WORST, rungs.POSTERIORS, rungs.ACTIONS, rungs.COUPLED, rungs.LIKELIHOOD, rungs.COMMON
)  # fmt: skip

# estimators, on the same problem
TASKS: Final = (100, 300, 1000, 3000, 10_000)
HORIZON: Final = 10
ESTIMATORS: Final[dict[str, Estimator]] = {
    "two-round moments": GaussianMoments("two-round", noise_var=1.0),
    "all-rounds moments": GaussianMoments("full", noise_var=1.0),
    "marginal likelihood": GaussianMarginalLikelihood(noise_var=1.0, regulariser=0.0),
}

# the (N + 1)-arm instance
PULLS: Final = (5, 10, 20, 40, 80)
ARMS: Final = 2000
EXPECTED: Final = 0.04  # k H eps
GAP_TASKS: Final = 20_000
DRAWS: Final = (1, 2, 4, 8, 16)  # k, at one horizon and distance
DRAWS_PULLS: Final = 40
DRAWS_EPS: Final = 2.5e-4

SIZE: Final = 5  # replicates in a block
FEW: Final = 20  # replicates of a smoke run
MOST_REPLICATES: Final = 40  # for the estimators
MASK: Final = (1 << 64) - 1


@final
@dataclass(frozen=True)
class Theory:
    """The ladder over misspecifications, error of estimators, lower and upper bound."""

    name: str = "theory"
    title: str = "The theory, measured"

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        return {
            "ladder": repr((SHIFTS, POLICIES, LADDER_TASKS, LADDER_HISTORIES)),
            "estimators": repr((TASKS, HORIZON, ESTIMATORS)),
            "gap": repr((PULLS, ARMS, EXPECTED, rates.DELTA, GAP_TASKS)),
            "draws": repr((DRAWS, DRAWS_PULLS, DRAWS_EPS)),
            "needs": needs.constants(),
            "rates": rates.constants(),
        }

    def blocks(self, replicates: int) -> Sequence[Block]:
        """One ladder, one horizon, or a few replicates of the estimators at a time."""
        shifts = range(0, len(SHIFTS), 3 if replicates < FEW else 1)
        ladders = [Block(f"ladder {name}", index, 1) for name in POLICIES for index in shifts]
        estimators = ranges("estimators", min(replicates, MOST_REPLICATES), SIZE)
        gaps = [*ranges("gap", len(PULLS), 1), *ranges("draws", len(DRAWS), 1)]
        return [
            *reversed(ladders), *rates.blocks(), *needs.blocks(replicates), *estimators, *gaps
        ]  # fmt: skip

    def run(self, block: Block, seed: int) -> Arrays:
        """Do a block of work."""
        if block.part == "gap":
            pulls = PULLS[block.first]
            return cost(1, pulls, ARMS, EXPECTED / pulls, tasks=GAP_TASKS, seed=seed)
        if block.part == "draws":
            k = DRAWS[block.first]
            return cost(k, DRAWS_PULLS, ARMS, DRAWS_EPS, tasks=GAP_TASKS, seed=seed)
        if block.part.startswith("rates "):
            return rates.run(block, seed)
        if block.part.startswith("needs "):
            return needs.run(block, seed)
        if block.part == "estimators":
            return {"errors": np.stack([_errors(each, seed) for each in block.replicates])}
        return _ladder(block.part.removeprefix("ladder "), SHIFTS[block.first], seed)

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Return ``rates``, ``ladder``, ``estimators``, ``needs``, ``gaps`` and ``draws``."""
        names = {"estimator": (1, list(ESTIMATORS)), "tasks": (2, TASKS)}
        columns = {**names, "of": (3, ("mean", "covariance")), "replicate": (0, None)}
        return {
            "ladder": _ladder_table(done),
            "rates": rates.table(done),
            "estimators": tidy(columns, "error", stacked(done, "estimators")["errors"]),
            "needs": needs.table(done),
            "gaps": stacked(done, "gap"),
            "draws": stacked(done, "draws"),
        }

    def figures(self, tables: Tables) -> dict[str, Files]:
        """How the cost grows, the ladder over misspecifications, the estimators, tasks needed, the
        lower bound.
        """
        return {
            "rates": rates_of_growth(tables["rates"]),
            "ladder": ladders(tables["ladder"]),
            "estimators": estimator_errors(tables["estimators"]),
            "tasks_needed": tasks_needed(tables["needs"]),
            "lower_bound": gaps(tables["gaps"]),
            "lower_bound_draws": gaps_over_draws(tables["draws"]),
        }

    def claims(self, tables: Tables) -> list[Claim]:
        """What the theory says."""
        ladder, gaps, table = (tables[name] for name in ("ladder", "gaps", "estimators"))
        out = rates.claims(tables["rates"])
        for policy in dict.fromkeys(ladder["policy"].tolist()):
            chosen = (ladder["policy"] == policy) & (ladder["rung"] == ladder["rung"][0])
            chain = "the rungs of the chain (not those beside it) bound one another"
            statement = f"{policy}: {chain}, at every misspecification"
            ordered = ladder["in_order"][chosen] == 1.0
            out.append(_all(statement, ordered, "ladders in order", "all, but for noise"))
        draws = tables["draws"]
        low = draws["measured"] >= draws["theorem"] - 5 * draws["std_error"]
        low &= (draws["exact"] >= draws["theorem"]) & (draws["exact"] <= draws["upper"])
        out.append(_all("The bounds hold for every number of draws k", low, "numbers of draws"))
        power = float(np.polyfit(np.log(draws["k"]), np.log(draws["exact"]), 1)[0])
        statement, said = "The cost grows as k, as both bounds do", f"power {power:.2f}"
        out.append(Claim(statement, said, abs(power - 1.0) <= 0.1, "paper", "1, but for 0.1"))
        out += needs.claims(tables["needs"])
        low = gaps["measured"] >= gaps["theorem"] - 5 * gaps["std_error"]
        low &= gaps["exact"] >= gaps["theorem"]
        out.append(_all("The lower bound holds on its instance", low, "horizons"))
        high = gaps["measured"] <= gaps["upper"]
        out.append(_all("The upper bound holds there too", high, "horizons"))
        ratio = gaps["upper"] / gaps["exact"]
        statement = "The upper bound is within a small factor there"
        said = f"{ratio.min():.1f} to {ratio.max():.1f} times the exact gap"
        out.append(Claim(statement, said, bool(ratio.max() < 8.0), "paper", "less than 8"))
        far = float((np.abs(gaps["measured"] - gaps["exact"]) / gaps["std_error"]).max())
        statement, said = "The simulated gap is the exact one", f"within {far:.1f} standard errors"
        out.append(Claim(statement, said, far <= 5.0, "ours", "within 5"))
        for estimator in dict.fromkeys(table["estimator"].tolist()):
            for of in ("mean", "covariance"):
                slope = log_log_slope(table, estimator, of)
                statement = f"{estimator}: the error of the {of} falls as T^(-1/2)"
                said = f"slope {slope.mean:.3f} ± {slope.std_error:.3f}"
                near = abs(slope.mean + 0.5) <= 0.05 + 4 * slope.std_error
                needed = "-0.5, but for 0.05 and 4 standard errors"
                out.append(Claim(statement, said, near, "paper", needed))
        return out


def _all(statement: str, true: np.ndarray, of: str, needed: str = "all") -> Claim:
    """Claim that something is always true."""
    said = f"{int(true.sum())} of {true.size} {of}"
    return Claim(statement, said, bool(true.all()), "paper", needed)


def log_log_slope(table: Table, estimator: str, of: str) -> Estimate:
    """Slope of the log error in the log number of tasks, with its standard error over replicates;
    from 300 tasks on.
    """
    chosen = (table["estimator"] == estimator) & (table["of"] == of) & (table["tasks"] >= 300)
    slopes = []
    for replicate in np.unique(table["replicate"][chosen]):
        rows = chosen & (table["replicate"] == replicate)
        slopes.append(np.polyfit(np.log(table["tasks"][rows]), np.log(table["error"][rows]), 1)[0])
    return mean_estimate(np.array(slopes))


def _ladder(policy: str, shift: float, seed: int) -> Arrays:
    problem = problems.gaussian()
    true = problem.prior
    believed = GaussianPrior(true.mean + shift * np.eye(true.arms)[0], true.cov, true.noise_var)
    size: Any = {"tasks": LADDER_TASKS, "histories": LADDER_HISTORIES[policy]}
    pair = true, believed, POLICIES[policy], problem.horizon
    ladder = sensitivity_ladder(*pair, seed=seed, **size)
    rows = np.full((len(RUNGS), 4), np.nan)
    for each in ladder.rungs:
        if each.name in RUNGS:
            numbers = (each.delta, each.std_error, each.reward, each.reward_std_error)
            rows[RUNGS.index(each.name)] = numbers
    rest = [ladder.gap.mean, ladder.gap.std_error, ladder.trivial, float(ladder.in_order)]
    return {"rungs": rows[None], "rest": np.array([rest])}


def _ladder_table(done: Sequence[tuple[Block, Arrays]]) -> Table:
    names = ["policy", "shift", "rung", "delta", "std_error", "reward", "reward_std_error"]
    names += ["gap", "gap_std_error", "trivial", "in_order"]
    rows = [
        (policy, SHIFTS[block.first], rung, *numbers, *arrays["rest"][0])
        for policy in POLICIES
        for block, arrays in sorted(done, key=lambda each: each[0].first)
        if block.part == f"ladder {policy}"
        for rung, numbers in zip(RUNGS, arrays["rungs"][0], strict=True)
    ]
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def _errors(replicate: int, seed: int) -> np.ndarray:
    """Errors of mean and covariance, ``(estimator, tasks, 2)``: Euclidean and Frobenius norms."""
    prior = problems.gaussian().prior
    own = mix(mix(seed) + replicate & MASK)
    run = simulate(prior, Uniform(), horizon=HORIZON, tasks=max(TASKS), seed=own, keep=True)
    out = np.empty((len(ESTIMATORS), len(TASKS), 2))
    for column, tasks in enumerate(TASKS):
        few = as_run(Trajectory(run.actions[:tasks], run.rewards[:tasks], None))
        for row, estimator in enumerate(ESTIMATORS.values()):
            fitted = estimator.fit(few).prior
            out[row, column, 0] = np.linalg.norm(fitted.mean - prior.mean)
            out[row, column, 1] = np.linalg.norm(fitted.cov - prior.cov)
    return out


EXPERIMENT: Final = Theory()
