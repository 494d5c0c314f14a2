"""Numbers that a change of the code must keep: ``python tests/golden.py`` writes them anew.

Actions of compiled runs and of live decisions are compared exactly, fits to 1e-8 and their errors
to 1e-5. Write them anew only when a number was wrong, and say so in the commit.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from registry import (
    COMPILED,
    COMPILED_WITH_A_STATE,
    POLICIES,
    PRIORS,
    SAMPLING_POLICIES,
    STATE_PRIORS,
    VALUES,
)

import priorwise as pw
from priorwise.families.registry import statistics_of

FILE: Final = Path(__file__).with_name("golden.json.gz")
SEED: Final = 2024
TASKS: Final = 70  # more than one tile
HORIZON: Final = 4
OTHER_NOISE: Final = (
    *("gaussian-singular", "gaussian-noise-per-arm", "finite-gaussian"),
    *("linear-sphere", "linear-pool", "linear-singular"),
)
NOT_FROZEN: Final = ("particle", "particle-with-contexts", "particle-of-draws", "finite-statistics")

SPREAD: Final = np.array([[1.0, 0.6, 0.2], [0.6, 0.8, 0.1], [0.2, 0.1, 0.5]])
SPHERE: Final = pw.SphereContexts(arms=3)
CANDIDATES: Final = pw.FinitePrior(
    [[0.9, 0.1], [0.2, 0.7], [0.5, 0.5]], [0.5, 0.3, 0.2], "bernoulli"
)


def digest(*arrays: Any) -> str:
    """A short hash of the bytes of arrays."""
    key = hashlib.sha256()
    for array in arrays:
        key.update(np.ascontiguousarray(array).tobytes())
    return key.hexdigest()[:16]


def runs() -> dict[str, Any]:
    """Actions of compiled runs, exactly, and their mean reward."""
    result = {}
    policies = SAMPLING_POLICIES | POLICIES
    problems = [(PRIORS, COMPILED), (STATE_PRIORS, COMPILED_WITH_A_STATE)]
    for priors, names in problems:
        for prior_name, (prior, believed) in priors.items():
            for name in sorted(names):
                run = pw.simulate(
                    prior,
                    policies[name],
                    horizon=HORIZON,
                    tasks=TASKS,
                    seed=SEED,
                    believed=believed,
                    keep=True,
                )
                result[f"{prior_name}/{name}"] = [digest(run.actions), run.mean_reward]
    return result


def estimators() -> Iterator[tuple[str, Any, Any, int]]:
    """A name, the prior of the tasks, an estimator, and the pulls of a task."""
    beta = pw.BetaPrior([2.0, 5.0, 0.8], [8.0, 3.0, 1.2])
    normal = pw.GaussianPrior([0.5, 0.0, -0.3], SPREAD, [1.0, 0.5, 2.0])
    gamma = pw.NormalGammaPrior([0.5, 0.0], [1.0, 2.0], [3.0, 4.0], [2.0, 1.0])
    clicks = pw.LogitNormalPrior([-1.0, 0.0, 0.5], SPREAD)
    linear = pw.LinearGaussianPrior([0.5, -0.2, 0.1], SPREAD, 0.5, contexts=SPHERE)
    mdp = STATE_PRIORS["mdp"][0]
    fit = pw.families
    yield "beta", beta, pw.BetaMarginalLikelihood(), 9
    yield "beta:exchangeable", beta, pw.BetaMarginalLikelihood("exchangeable"), 9
    yield "beta:moments", beta, pw.BetaMoments(), 9
    for structure in ("full", "diagonal", "exchangeable", "factor"):
        yield f"gaussian:{structure}", normal, pw.GaussianMarginalLikelihood(structure), 9
    yield "gaussian:noise", normal, pw.GaussianMarginalLikelihood(noise_var="per-arm"), 9
    yield "gaussian:moments", normal, pw.GaussianMoments("full", 1.0), 9
    for structure in ("separate", "exchangeable"):
        yield f"normal-gamma:{structure}", gamma, fit.NormalGammaMarginalLikelihood(structure), 12
    for structure in ("exchangeable", "diagonal", "full"):
        yield f"logit-normal:{structure}", clicks, fit.LogitNormalMarginalLikelihood(structure), 12
    for structure in ("full", "diagonal"):
        estimator = fit.LinearMarginalLikelihood(SPHERE, structure)
        yield f"linear:{structure}", linear, estimator, 9
    yield "linear:moments", linear, fit.LinearMoments(SPHERE, 0.5), 9
    yield "finite", CANDIDATES, fit.FiniteMarginalLikelihood(CANDIDATES), 5
    yield "finite:counts", CANDIDATES, pw.FiniteCounts(CANDIDATES), 5
    yield "mdp", mdp, fit.DirichletMdpMarginalLikelihood(mdp), 8
    two = fit.MixtureMarginalLikelihood(pw.BetaMarginalLikelihood(), seed=SEED, starts=2)
    yield "two of beta", beta, two, 9


def numbers(value: Any) -> list[float]:
    """Every number in what JSON holds, in order; infinities are written as words."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return [float(value)] if isinstance(value, (int, float)) else []


def fits() -> dict[str, Any]:
    """Parameters, standard errors, flags, and the mean of eight plausible priors."""
    result = {}
    for name, prior, estimator, pulls in estimators():
        for case in range(15 if "two of" not in name else 4):
            tasks = (12, 30, 60)[case % 3]
            run = pw.simulate(
                prior, pw.Uniform(), horizon=pulls, tasks=tasks, seed=SEED + case, keep=True
            )
            fit = estimator.fit(statistics_of(prior, run, "golden"))
            record = json.loads(fit.to_json())
            rng = np.random.default_rng(case)
            drawn = [numbers(json.loads(one.to_json())) for one in draws_of(fit, rng)]
            result[f"{name}/{case}"] = {
                "prior": numbers(record["prior"]),
                "errors": numbers(record.get("std_errors")),
                "likelihood": numbers(record.get("log_likelihood")),
                "flags": [record["at_boundary"], record["converged"], record["left_out"]],
                "draws": np.mean(drawn, axis=0).tolist() if drawn else [],
            }
    return result


def draws_of(fit: Any, rng: Any) -> list[Any]:
    """Eight plausible priors; none if the fit has no uncertainty."""
    try:
        return list(fit.draw(rng, 8))
    except (TypeError, ValueError):
        return []


def theory() -> dict[str, Any]:
    """Distances, tails and bounds; some believed priors have other noise, and no distance."""
    result = {}
    for name, (prior, believed) in PRIORS.items():
        for p in (0.003, 0.01, 0.1, 0.5):
            tail = pw.tail_expectation(prior, p, seed=SEED, draws=20_000)
            result[f"tail/{name}/{p}"] = vars_of(tail)
        if name in OTHER_NOISE:
            continue
        result[f"distance/{name}"] = vars_of(pw.total_variation(prior, believed, seed=SEED))
        for policy in (pw.ThompsonSampling(), pw.KShotThompson(3)):
            bound = pw.reward_bound(prior, believed, policy, 3, estimate=True, seed=SEED)
            result[f"bound/{name}/{policy}"] = vars_of(bound)
    return result


def vars_of(value: Any) -> list[float]:
    """The numbers among the attributes of a result."""
    result = []
    for name in ("value", "std_error", "tail", "tv"):
        part = getattr(value, name, None)
        result += numbers(part) if part is None or np.isscalar(part) else vars_of(part)
    return result


def decisions(folder: Path | None = None) -> dict[str, Any]:
    """Arms, propensities and tokens of a seeded decider, in memory or on files in a folder."""
    result = {}
    for name in ("beta", "gaussian", "logit-normal", "normal-gamma", "finite-bernoulli"):
        for propensities in (True, False):
            store = None if folder is None else folder / f"{name}-{propensities}.db"
            with pw.Decider(
                PRIORS[name][0],
                pw.ThompsonSampling(),
                horizon=20,
                seed=SEED,
                propensities=propensities,
                store=store,
            ) as decider:
                made = []
                for step in range(12):
                    decision = decider.decide(f"task {step % 3}")
                    decider.reward(decision.token, float(step % 2))
                    made.append([decision.arm, decision.propensity, decision.token])
                result[f"{name}/{propensities}"] = made
    return result


def documents() -> dict[str, str]:
    """The JSON of every value."""
    return {name: value.to_json() for name, value in VALUES.items() if name not in NOT_FROZEN}


PARTS: Final = {
    "runs": runs,
    "fits": fits,
    "theory": theory,
    "decisions": decisions,
    "documents": documents,
}


def frozen() -> dict[str, Any]:
    """What was written."""
    return dict(json.loads(gzip.decompress(FILE.read_bytes())))


if __name__ == "__main__":
    known = frozen() if FILE.exists() else {}
    for part in sys.argv[1:] or PARTS:
        known[part] = PARTS[part]()
        print(part, len(known[part]), "values")
    text = json.dumps(known, sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
