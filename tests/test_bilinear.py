"""Bilinear rewards ``v_a'L x`` as linear ones, against direct computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.stats import multivariate_normal

import priorwise as pw
from priorwise.core.streams import Purpose, Streams
from priorwise.families import NormalContexts, bilinear, matrix_normal
from priorwise.testing import PriorContract
from priorwise.testing.calibration import Forgetful, calibration

ROWS = np.array([[1.0, 0.4], [0.4, 0.5]])
COLUMNS = np.array([[1.0, -0.3, 0.0], [-0.3, 2.0, 0.5], [0.0, 0.5, 1.0]])
MIDDLE = np.array([[0.5, 0.0, -1.0], [0.0, 1.0, 0.2]])
ARMS = np.array([[1.0, 0.0], [0.3, -0.8], [0.0, 0.0], [1.0, 1.0]])
COV = np.array([[1.0, 0.2, 0.0], [0.2, 0.5, 0.0], [0.0, 0.0, 2.0]])


def test_features_give_the_bilinear_form(seed: int) -> None:
    """``vec(v_a x')'vec(L)`` is ``v_a'L x``, for every arm and context; columns in place of rows
    (the control) is not.
    """
    rng = np.random.default_rng(seed)
    x, matrix = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    direct = np.array([[v @ matrix @ each for v in ARMS] for each in x])
    features = bilinear(ARMS, x)
    assert features.shape == (7, 4, 6)
    np.testing.assert_allclose(features @ matrix.ravel(), direct, atol=1e-12)
    assert not np.allclose(features @ matrix.T.ravel(), direct)


def test_matrix_normal_is_the_law_of_a_transformed_matrix(seed: int) -> None:
    """``L = mean + A Z B'``: entry by entry ``Cov(L_ij, L_kl) = row_cov_ik column_cov_jl``, and as
    draws: six standard errors of each entry.
    """
    mean, cov = matrix_normal(MIDDLE, ROWS, COLUMNS)
    for i, k in np.ndindex(2, 2):
        for j, m in np.ndindex(3, 3):
            assert cov[3 * i + j, 3 * k + m] == pytest.approx(ROWS[i, k] * COLUMNS[j, m])
    z = np.random.default_rng(seed).normal(size=(100_000, 2, 3))
    drawn = MIDDLE + np.linalg.cholesky(ROWS) @ z @ np.linalg.cholesky(COLUMNS).T
    flat = drawn.reshape(len(z), -1)
    np.testing.assert_allclose(flat.mean(axis=0), mean, atol=6.0 * np.sqrt(2.0 / len(z)))
    off = np.abs(np.cov(flat.T) - cov)
    assert (off < 6.0 * np.sqrt(2.0 * np.outer(np.diag(cov), np.diag(cov)) / len(z))).all()


def test_posterior_of_the_matrix_is_that_of_regression(seed: int) -> None:
    """Linear rewards: closed form with rows ``kron(v_a, x)`` in each task."""
    pool = np.random.default_rng(seed).normal(size=(5, 3))
    law = matrix_normal(MIDDLE, ROWS, COLUMNS)
    prior = pw.LinearGaussianPrior(*law, 0.5, contexts=bilinear(ARMS, pool))
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=8, tasks=6, seed=seed, keep=True)
    belief = run.belief(prior)
    for task in range(6):
        rows = run.trajectory.log[task]  # type: ignore[union-attr]
        for row, action in zip(rows, run.actions[task], strict=True):
            assert any(np.allclose(row, np.kron(ARMS[action], x)) for x in pool)
        spread = np.linalg.inv(np.linalg.inv(law[1]) + rows.T @ rows / 0.5)
        mean = spread @ (np.linalg.solve(law[1], law[0]) + rows.T @ run.rewards[task] / 0.5)
        np.testing.assert_allclose(belief.m[task], mean, atol=1e-9)


def test_normal_contexts_are_normal_and_know_their_density(seed: int) -> None:
    contexts = NormalContexts(ARMS, COV, mean=[1.0, 0.0, -1.0])
    assert (contexts.arms, contexts.dim) == (4, 6)
    streams = Streams(seed, np.arange(40_000, dtype=np.uint64))
    shown = contexts.draw(streams.at(Purpose.WORLD, 1), 6)
    x = shown[:, 0, :3]  # arm 0 has v = (1, 0)
    np.testing.assert_array_equal(shown, bilinear(ARMS, x))
    np.testing.assert_allclose(x.mean(axis=0), contexts.mean, atol=6.0 * np.sqrt(2.0 / 40_000))
    np.testing.assert_allclose(np.cov(x.T), COV, atol=6.0 * 2.0 * np.sqrt(2.0 / 40_000))
    law = multivariate_normal(contexts.mean, COV)
    np.testing.assert_allclose(contexts.log_density(shown[:50]), law.logpdf(x[:50]), atol=1e-9)
    moved = shown[:50] + 1e-3 * np.arange(6)  # no context shows these
    assert np.isneginf(contexts.log_density(moved)).all()
    assert np.isneginf(contexts.log_density(np.full((2, 4, 6), 1e300))).all()
    assert np.isneginf(contexts.log_density(shown[:2, :, :3])).all()


class TestLinear(PriorContract):
    @pytest.fixture
    def prior(self) -> Any:
        pool = bilinear(ARMS, np.eye(3) + 0.3)
        return pw.LinearGaussianPrior(*matrix_normal(MIDDLE, ROWS, COLUMNS), 0.5, pool)


def test_a_posterior_with_normal_contexts_is_calibrated(seed: int) -> None:
    """False alarms with probability 1e-4; a belief that ignores half of the pulls is rejected."""
    contexts = NormalContexts(ARMS, COV, mean=[0.5, 0.0, 0.0])
    prior = pw.LinearGaussianPrior(*matrix_normal(MIDDLE, ROWS, COLUMNS), 0.5, contexts)
    assert calibration(prior, tasks=4096, pulls=4, seed=seed) > 1e-4
    assert calibration(prior, tasks=4096, pulls=4, seed=seed, wrap=Forgetful) < 1e-4


class TestLogistic(PriorContract):
    pulls = 6

    @pytest.fixture
    def prior(self) -> Any:
        contexts = NormalContexts(ARMS, COV, mean=[0.5, 0.0, 0.0])
        return pw.LogisticPrior(*matrix_normal(MIDDLE, ROWS, COLUMNS), contexts)


def test_what_does_not_fit_is_refused(seed: int) -> None:
    contexts = NormalContexts(ARMS, COV)
    with raises("contexts", "have 6 features, but mean has 3"):
        pw.LinearGaussianPrior(np.zeros(3), np.eye(3), contexts=contexts)
    with raises("contexts", "have 6 features, but mean has 3"):
        pw.LogisticPrior(np.zeros(3), np.eye(3), contexts)
    with raises("cov", "must not be singular"):
        NormalContexts(ARMS, np.ones((2, 2)))
    with raises("arm_features", "must not all be 0"):
        NormalContexts(np.zeros((3, 2)), np.eye(2))
    prior = pw.LinearGaussianPrior(np.zeros(6), np.eye(6), contexts=contexts)
    with raises("contexts", "exact look-ahead"):
        pw.simulate(prior, pw.ExactKnowledgeGradient(), horizon=2, tasks=2, seed=seed)
