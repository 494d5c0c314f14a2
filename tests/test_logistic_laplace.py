"""Laplace's approximation of logistic posteriors against dense grids and exact draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from logistic_by_hand import ExactPrior, OnAGrid, exact_weights
from scipy import optimize
from scipy.special import expit, log_expit

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.families import LogisticStatistics
from priorwise.families.logistic.belief import mean_rates
from priorwise.families.logistic.corrected import posterior
from priorwise.families.logistic.laplace import TOLERANCE, mode
from priorwise.testing.playing import play

SPHERE = pw.SphereContexts(arms=3)
COV = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, -0.2], [0.0, -0.2, 0.7]])
PRIOR = pw.LogisticPrior([0.5, -0.5, 0.2], COV, SPHERE)
WIDE = PRIOR.replaced(cov=4.0 * COV)
TS = pw.ThompsonSampling()
TASKS = 4


def after(prior: pw.LogisticPrior, pulls: int, tasks: int, seed: int) -> Any:
    """Beliefs about tasks after some pulls of arms at random."""
    return play(prior, tasks=tasks, pulls=pulls, seed=seed).belief


def test_means_of_rates_are_within_the_error_of_the_mixture() -> None:
    """At any mean and variance, by quadrature; 2.2e-9 is said."""
    for m in (-30.0, -4.0, -0.3, 0.0, 1.0, 7.0):
        for std in (0.0, 0.05, 1.0, 4.0, 40.0):
            found = mean_rates(np.array([m]), np.array([std**2]))[0]
            exact = expit(m)
            if std:  # the trapezoidal rule, much finer than a standard deviation and a log odd
                eta = np.linspace(m - 9.0 * std, m + 9.0 * std, 20_001)
                mass = np.exp(-0.5 * ((eta - m) / std) ** 2)
                exact = mass @ expit(eta) / mass.sum()
            assert abs(found - exact) < 2.5e-9
    probit = expit(1.0 / np.sqrt(1.0 + np.pi / 8.0 * 16.0))  # control: the usual formula
    assert abs(mean_rates(np.array([1.0]), np.array([16.0]))[0] - probit) > 1e-3


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_newton_converges_from_anywhere(scale: float, seed: int) -> None:
    """To the mode that another optimiser finds, however steep the log odds are and however far the
    start.
    """
    rng = np.random.default_rng(seed)
    x = scale * rng.uniform(-1.0, 1.0, (200, 20, 3))
    r = (rng.random((200, 20)) < expit(x @ rng.normal(size=3))).astype(float)
    r[:60] = rng.random((60, 20)) < 0.5  # nothing that these weights would do
    z, shift = 10.0 * x, x @ np.array([40.0, -40.0, 0.0])  # as wide and far as priors may be
    cold, far = (mode(z, shift, r, np.full((200, 3), start)) for start in (0.0, 30.0))
    assert max(cold.left.max(), far.left.max()) <= TOLERANCE
    np.testing.assert_allclose(cold.u, far.u, atol=1e-9)
    for task in range(0, 200, 40):
        eta = lambda u, t=task: shift[t] + z[t] @ u  # noqa: E731

        def lost(u: Any, t: int = task, eta: Any = eta) -> float:
            won = r[t] * log_expit(eta(u)) + (1.0 - r[t]) * log_expit(-eta(u))
            return float(0.5 * u @ u - won.sum())

        best = optimize.minimize(lost, cold.u[task] + 0.01, method="Nelder-Mead", tol=1e-12)
        assert lost(cold.u[task]) <= best.fun + 1e-9


def errors(prior: pw.LogisticPrior, pulls: int, seed: int) -> dict[str, Any]:
    """Against a grid: means in exact standard deviations, standard deviations as shares, rates and
    log likelihoods as they are; ``plain`` is Laplace alone. The largest of some tasks.
    """
    belief = after(prior, pulls, TASKS, seed)
    law = posterior(prior, belief.x, belief.r, belief.u)
    known = LogisticStatistics(belief.x, belief.r)
    evidence = pw.meta.log_marginal_likelihood(prior, known)
    shown = np.random.default_rng(seed).normal(size=(3, 3))
    seen = Seen(1, 1, 3, np.broadcast_to(shown, (TASKS, 3, 3)))
    rates = belief.mean(seen)
    found = mode(belief.x @ prior._root, belief.x @ prior.mean, belief.r, belief.u)
    np.testing.assert_allclose(found.u, law.mode, atol=1e-9)
    out: dict[str, list[float]] = {}
    for t in range(TASKS):
        grid = OnAGrid.of(prior, belief.x[t], belief.r[t], belief.m[t], belief.root[t])
        mean, cov = grid.moments()
        std = np.sqrt(np.diag(cov))
        plain = prior._root @ found.spread[t]
        for name, value in {
            "mean": (belief.m[t] - mean) / std,
            "std": np.sqrt((belief.root[t] ** 2).sum(axis=1)) / std - 1.0,
            "plain mean": (prior.mean + prior._root @ found.u[t] - mean) / std,
            "plain std": np.sqrt((plain**2).sum(axis=1)) / std - 1.0,
            "rates": rates[t] - grid.rates(shown),
            "evidence": np.array([evidence[t] - grid.log_mass]),
            "plain evidence": np.array([found.log_mass[t] - grid.log_mass]),
        }.items():
            out.setdefault(name, []).append(float(np.abs(value).max()))
    return {name: max(each) for name, each in out.items()}


@pytest.mark.parametrize("pulls", [1, 6, 30])
def test_moments_beside_a_grid(pulls: int, seed: int) -> None:
    """Weights of standard deviation 1; the plain approximation is the control."""
    off = errors(PRIOR, pulls, seed)
    assert off["mean"] < 0.02
    assert off["std"] < 0.01
    assert off["rates"] < 0.005
    assert off["evidence"] < 0.006
    assert off["plain mean"] > 1.5 * off["mean"]
    assert off["plain std"] > 1.5 * off["std"]
    assert off["plain evidence"] > 2.0 * off["evidence"]


@pytest.mark.parametrize("pulls", [1, 6, 30])
def test_moments_of_wide_priors_beside_a_grid(pulls: int, seed: int) -> None:
    """Weights of standard deviation 2: the expansion is worse, and still better than without."""
    off = errors(WIDE, pulls, seed)
    assert off["mean"] < 0.1
    assert off["std"] < 0.06
    assert off["rates"] < 0.02
    assert off["evidence"] < 0.03
    assert off["plain mean"] > 1.5 * off["mean"]


def test_very_wide_priors_stay_within_bounds(seed: int) -> None:
    """Where the expansion fails, corrections are kept small and the covariance positive."""
    prior = PRIOR.replaced(cov=100.0 * COV)
    for pulls in (1, 4, 12):
        belief = after(prior, pulls, 200, seed)
        law = posterior(prior, belief.x, belief.r, belief.u)
        found = mode(belief.x @ prior._root, belief.x @ prior.mean, belief.r, belief.u)
        y = np.linalg.solve(found.spread, (law.u - law.mode)[:, :, None])[:, :, 0]
        assert np.linalg.norm(y, axis=1).max() <= 1.0 + 1e-9
        ratio = np.linalg.solve(found.spread, law.spread)
        values = np.linalg.svd(ratio, compute_uv=False) ** 2
        assert values.min() >= 0.7 - 1e-9
        assert values.max() <= 1.4 + 1e-9
        assert (np.linalg.norm(y, axis=1) > 0.5).any()  # there is something to bound


def test_many_features_move_the_mean_alone(seed: int) -> None:
    for dim, corrected in ((16, True), (17, False)):
        prior = pw.LogisticPrior(np.zeros(dim), np.eye(dim), pw.SphereContexts(3))
        belief = after(prior, 8, 5, seed)
        law = posterior(prior, belief.x, belief.r, belief.u)
        found = mode(belief.x, np.zeros((5, 8)), belief.r, belief.u)
        assert np.allclose(law.spread, found.spread, atol=1e-9) is not corrected
        assert not np.allclose(law.u, law.mode, atol=1e-6)


def test_exact_draws_are_those_of_the_grid(seed: int) -> None:
    """The check is right itself: moments of 40,000 draws of one task, within 5 standard errors
    (false alarms 1e-5 in all); a draw of the prior is not.
    """
    belief, draws = after(PRIOR, 8, 1, seed), 40_000
    grid = OnAGrid.of(PRIOR, belief.x[0], belief.r[0], belief.m[0], belief.root[0])
    mean, cov = grid.moments()
    drawn = exact_weights(belief, streams(seed, 1)(9), draws)[0]
    off = np.abs(drawn.mean(axis=0) - mean) / np.sqrt(np.diag(cov) / draws)
    assert off.max() < 5.0
    spread = np.abs(np.cov(drawn.T) - cov) / np.sqrt(
        (np.outer(np.diag(cov), np.diag(cov)) + cov**2) / draws
    )
    assert spread.max() < 5.5  # fourth moments of nearly normal laws
    assert np.abs(PRIOR.mean - mean).max() > 5.0 * np.sqrt(np.diag(cov).max() / draws)


class _Prior(ExactPrior):
    """Control: it never learns."""

    def belief(self, tasks: int) -> Any:
        return _Blind(super().belief(tasks).near)


class _Blind:
    def __init__(self, near: Any) -> None:
        self.near = near

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        return self.near.sample(rng, draws, seen)

    def update(self, *args: Any) -> Any:
        return self


@pytest.mark.slow
def test_thompson_sampling_earns_what_exact_draws_earn(seed: int) -> None:
    """3 features, 3 arms, 30 pulls, on the same tasks and noise: within 1.5 % at 4 standard errors
    (false alarms 6e-5 if the truth is 1 % off), and one who never learns is not.
    """
    prior = pw.LogisticPrior(np.zeros(3), np.eye(3), SPHERE)
    options: Any = {"horizon": 30, "tasks": 800, "seed": seed, "keep": True}
    runs = [
        pw.simulate(prior, TS, believed=held, **options).rewards.sum(axis=1)
        for held in (prior, ExactPrior(prior), _Prior(prior))
    ]
    near, never = runs[0] - runs[1], runs[2] - runs[1]
    room = 0.015 * runs[1].mean()
    error = near.std() / np.sqrt(near.size)
    assert error < 0.25 * room
    assert abs(near.mean()) < room + 4.0 * error
    assert never.mean() < -room - 4.0 * never.std() / np.sqrt(never.size)
