"""What a prior that was learned from clicks promises, beside what then happens: tests of headlines
of one story, whose log odds have correlation 0.76.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import priorwise as pw

pd = pytest.importorskip("pandas")
pytest.importorskip("ibis")

TRUE = pw.ExchangeableLogitNormalPrior(-3.0, 0.64, 0.76)
TESTS, SHOWN, MOST = 2_000, 200, 6
POLICIES: dict[str, Any] = {
    "Uniform": pw.Uniform(),
    "TopTwoThompson": pw.TopTwoThompson(),
    "ThompsonSampling": pw.ThompsonSampling(),
    "BayesUCB": pw.BayesUCB(),
    "Greedy": pw.Greedy(),
    "ExactKnowledgeGradient": pw.ExactKnowledgeGradient("online", pulls="best"),
}


def log(seed: int) -> Any:
    """Tests of 2 to 6 new headlines that share 200 impressions."""
    rng = np.random.default_rng(seed)
    rows = []
    for test in range(TESTS):
        arms = int(rng.integers(2, MOST + 1))
        whole = TRUE.for_arms(arms)
        shown = SHOWN // arms
        clicks = rng.binomial(shown, expit(rng.multivariate_normal(whole.mean, whole.cov)))
        rows += [(test, f"{test}-{arm}", shown, int(each)) for arm, each in enumerate(clicks)]
    return pd.DataFrame(rows, columns=["test", "headline", "impressions", "clicks"])


@pytest.mark.slow
def test_independent_arms_are_doubted_and_correlated_ones_chosen(seed: int) -> None:
    """The check speaks of arms that move together; the prior that knows it is taken, and not
    doubted.
    """
    table = log(seed)
    alone = pw.fit_prior(table, "beta", seed=seed).check
    assert alone is not None
    assert {"between tasks", "between arms"} <= set(alone.doubts)
    assert "The arms of one task move together" in alone.verdict
    fit = pw.fit_prior(table, seed=seed)
    assert fit.chosen == "logit-normal:exchangeable"
    assert fit.check is not None
    assert "move together" not in fit.check.verdict


def totals(prior: Any, believed: Any, tasks: int, seed: int) -> dict[str, Any]:
    """Clicks of each test under each policy; the same seed gives the same tests but for the
    prior.
    """
    arms = np.random.default_rng(seed).integers(2, MOST + 1, tasks)
    runs = pw.compare(
        prior,
        POLICIES,
        horizon=SHOWN,
        tasks=tasks,
        seed=seed,
        believed=believed,
        available=np.arange(MOST) < arms[:, None],
        keep=True,
    ).runs
    return {name: run.rewards.sum(axis=1) for name, run in runs.items()}


def broken(promised: dict[str, Any], true: dict[str, Any]) -> tuple[list[str], float]:
    """Pairs of policies whose promised difference is off by more than 20 % and more than 4 standard
    errors, and the largest standard error as a share of the largest difference.
    """
    wrong, errors, gaps = [], [], []
    for one, other in combinations(POLICIES, 2):
        said, happened = promised[one] - promised[other], true[one] - true[other]
        apart = said - happened
        error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
        gap = abs(float(happened.mean()))
        errors.append(error)
        gaps.append(gap)
        if abs(apart.mean()) > max(0.2 * gap, 4.0 * error):
            wrong.append(f"{one} over {other}: {said.mean():.2f}, truth {happened.mean():.2f}")
    return wrong, max(errors) / max(gaps)


@pytest.mark.validate
def test_promised_differences_are_those_of_the_truth(seed: int) -> None:
    """Control: the promises of the Beta prior, which takes arms as independent, are broken."""
    table, tasks = log(seed), 1_000
    found = {}
    for family in ("logit-normal", "beta"):
        believed = pw.fit_prior(table, family, seed=seed).prior.for_arms(MOST)
        promised = totals(believed, believed, tasks, seed)
        found[family] = broken(promised, totals(TRUE.for_arms(MOST), believed, tasks, seed))
    wrong, share = found["logit-normal"]
    assert share <= 0.05
    assert wrong == []
    assert found["beta"][0] != []
