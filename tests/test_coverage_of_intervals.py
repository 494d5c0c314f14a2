"""Intervals of fits to logs that Thompson sampling collected hold the truth as often as said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import priorwise as pw
from priorwise.core.hashing import mix

LOGS, LOWEST, HIGHEST = 200, 178, 198
"""Of 200 intervals at 95 %, 178 to 198 hold the truth: 89 to 99 %. False alarm of each parameter
6e-4.
"""
LAGS = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
GAUSSIAN = pw.GaussianPrior(np.linspace(0.0, 1.0, 6), 0.7**LAGS, noise_var=1.0)
CLICKS = pw.ExchangeableLogitNormalPrior(-2.0, 0.8, 0.6)
STUDIES: dict[str, tuple[Any, Any, Any, int, int]] = {
    "gaussian": (
        GAUSSIAN,
        pw.GaussianMarginalLikelihood("full"),
        pw.GaussianMoments(),
        10,
        2_000,
    ),
    "logit-normal": (CLICKS, pw.LogitNormalMarginalLikelihood(), pw.BetaMoments(), 200, 1_000),
}


def logs(name: str, number: int, seed: int, share: int = 1) -> Any:
    """Logs of tasks that Thompson sampling played, or of some of them."""
    prior, _, _, horizon, tasks = STUDIES[name]
    whole = prior.for_arms(4) if hasattr(prior, "for_arms") else prior
    for log in range(number):
        yield pw.simulate(
            whole,
            pw.ThompsonSampling(),
            horizon=horizon,
            tasks=tasks // share,
            seed=mix(number * seed + log),
            keep=True,
        )


def parameters(name: str, prior: Any) -> Any:
    """What is fitted, each once."""
    if name == "logit-normal":
        return np.array([prior.mean, prior.var, prior.correlation])
    return np.concatenate([prior.mean, prior.cov[np.tril_indices(6)], prior.noise_var[:1]])


def errors(name: str, fit: Any) -> Any:
    """Their standard errors."""
    said = fit.std_errors
    if name == "logit-normal":
        return np.array([said["mean"], said["var"], said["correlation"]])
    return np.concatenate([said["mean"], said["cov"][np.tril_indices(6)], said["noise_var"][:1]])


def off(name: str, number: int, seed: int) -> Any:
    """Distances of estimates from the truth, in standard errors, ``(log, parameter)``."""
    prior, estimator = STUDIES[name][:2]
    truth, found = parameters(name, prior), []
    for log in logs(name, number, seed):
        fit = estimator.fit(log)
        assert fit.converged
        found.append((parameters(name, fit.prior) - truth) / errors(name, fit))
    return np.array(found)


def test_the_limits_have_the_stated_false_alarm() -> None:
    law = stats.binom(LOGS, 0.95)
    assert law.cdf(LOWEST - 1) + law.sf(HIGHEST) == pytest.approx(6e-4, rel=0.2)


@pytest.mark.parametrize("name", STUDIES)
def test_moment_fits_warn_of_chosen_pulls(name: str, seed: int) -> None:
    moments = STUDIES[name][2]
    (log,) = logs(name, 1, seed, share=10)
    assert "not uniform" in " ".join(moments.fit(log).warnings)


@pytest.mark.validate
@pytest.mark.parametrize("name", STUDIES)
def test_intervals_hold_the_truth(
    name: str, seed: int, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control: intervals of half the width hold it too seldom."""
    apart = np.abs(off(name, LOGS, seed))
    share = apart < stats.norm.ppf(0.975)
    with capsys.disabled():
        print(
            f"\n{name}: {share.mean():.1%} of 95 % intervals hold the truth; single parameters "
            f"{share.mean(axis=0).min():.1%} to {share.mean(axis=0).max():.1%}"
        )
    record_property("pooled", float(share.mean()))
    held = share.sum(axis=0)
    assert ((held >= LOWEST) & (held <= HIGHEST)).all()
    assert ((apart < stats.norm.ppf(0.975) / 2.0).sum(axis=0) < LOWEST).all()
