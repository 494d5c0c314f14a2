"""What a wrong covariance costs, as `reproduce ours` measures and judges it."""

from __future__ import annotations

import numpy as np
import pytest

import priorwise as pw
from priorwise.experiments import covariance, problems
from priorwise.experiments.experiment import Block
from priorwise.figures.covariance import covariances


def made(seed, change=None):
    """Rewards of both policies that fall with the distance from the truth, with noise of 0.01 in
    20 replicates; ``change`` is ``(policy, sweep, misspecification, by)``.
    """
    rng = np.random.default_rng(seed)
    rewards = np.empty((20, len(covariance.POLICIES), len(covariance.POINTS)))
    for column, policy in enumerate(covariance.POLICIES):
        for place, (sweep, x) in enumerate(covariance.POINTS):
            far = x - covariance.TRUTH[sweep]
            if sweep == "width":  # Thompson sampling does best at a quarter
                far = np.log(x if policy == covariance.KG else 4.0 * x)
            slope = 0.5 if policy == covariance.KG else 1.0
            rewards[:, column, place] = (9.0 if policy == covariance.KG else 7.0) - slope * abs(far)
            if change is not None and change[:3] == (policy, sweep, x):
                rewards[:, column, place] += change[3]
    rewards += 0.01 * rng.normal(size=rewards.shape)
    return covariance.table([(Block("covariance gaussian", 0, 20), {"rewards": rewards})])


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (None, []),
        ((covariance.KG, "width", 4.0, 2.0), [0]),
        ((covariance.TS, "width", 0.25, -3.0), [1]),
        ((covariance.KG, "correlation", 0.0, -2.5), [2, 3]),
        ((covariance.TS, "one block", 0.2, 0.5), [4]),
    ],
)
def test_claims_can_fail(change, failing, seed):
    """Each claim fails if the reward it is about changes. The gaps are 40 standard errors and
    more.
    """
    verdicts = [claim.holds for claim in covariance.claims(made(seed, change))]
    assert verdicts == [place not in failing for place in range(5)]


@pytest.mark.parametrize("name", covariance.PROBLEMS)
def test_believed_covariances(name):
    """By hand: the truth of each sweep is the true prior; correlations are those asked for."""
    prior = problems.ALL[name]().prior
    for sweep, x in covariance.TRUTH.items():
        assert np.allclose(covariance.believed(prior, sweep, x).cov, prior.cov)
    scale = prior.cov[0, 0]
    one = covariance.believed(prior, "one block", -0.4).cov / scale
    block = np.full((3, 3), -0.4) + 1.4 * np.eye(3)
    truth = np.full((3, 3), 0.9) + 0.1 * np.eye(3)
    np.testing.assert_allclose(one[:3, :3], block)
    np.testing.assert_allclose(one[3:, 3:], truth)
    assert not one[:3, 3:].any()
    both = covariance.believed(prior, "correlation", 0.0).cov
    np.testing.assert_allclose(both, scale * np.eye(6), atol=1e-15)
    np.testing.assert_allclose(covariance.believed(prior, "width", 4.0).cov, 4.0 * prior.cov)


def test_a_block_plays_what_the_table_names(seed, monkeypatch):
    """One cell of the table against a run of its own; all sweeps share the tasks."""
    monkeypatch.setattr(covariance, "TASKS", 30)
    block = Block("covariance gaussian", 1, 1)
    table = covariance.table([(block, covariance.run(block, seed))])
    problem = problems.gaussian()
    run = pw.simulate(
        problem.prior,
        pw.ThompsonSampling(),
        believed=covariance.believed(problem.prior, "correlation", 0.2),
        horizon=problem.horizon,
        tasks=30,
        seed=covariance.replicate_seed(seed, 1),
    )
    (cell,) = covariance.earned(table, "gaussian", covariance.TS, "correlation", 0.2)
    assert cell == run.mean_reward
    right = [
        covariance.earned(table, "gaussian", covariance.KG, sweep, x)[0]
        for sweep, x in covariance.TRUTH.items()
    ]
    assert right == pytest.approx([right[0]] * 3)


def test_the_figure_shows_means_with_bands(drawn, seed):
    """A panel per sweep, a line and a band per policy, the truth marked."""
    table = made(seed)
    covariances(table, covariance.TRUTH)
    assert len(drawn[0].axes) == 3
    for axes, (sweep, grid) in zip(drawn[0].axes, covariance.GRIDS.items(), strict=True):
        curves = axes.lines[: len(covariance.POLICIES)]
        for policy, line in zip(covariance.POLICIES, curves, strict=True):
            means = [covariance.earned(table, "gaussian", policy, sweep, x).mean() for x in grid]
            np.testing.assert_allclose(line.get_xydata(), np.stack([grid, means], axis=1))
        assert len(axes.collections) == len(covariance.POLICIES)
        assert axes.lines[-1].get_xdata()[0] == covariance.TRUTH[sweep]
