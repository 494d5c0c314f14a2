"""What a fit of a log may be told: the noise, where it is known; and what its prior shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app


@pytest.fixture
def frame(seed: int) -> pd.DataFrame:
    """60 tasks that share 3 arms, which move together, 2 pulls of each; noise of variance 4."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 3))
    rewards = means[:, :, None] + 2.0 * rng.normal(size=(60, 3, 2))
    task, arm, _ = np.indices(rewards.shape)
    names = np.array(["blue", "green", "red"])
    return pd.DataFrame(
        {"task": task.ravel(), "action": names[arm.ravel()], "reward": rewards.ravel()}
    )


def test_a_known_noise_is_taken_and_needs_no_squares(frame: pd.DataFrame, seed: int) -> None:
    sums = frame.assign(n=1).groupby(["task", "action"], as_index=False).sum()
    found = pw.fit_prior(sums, "gaussian:diagonal", pulls="n", noise_var=4.0, seed=seed)
    statistics = pw.GaussianStatistics(
        pulls=np.full((60, 3), 2.0), sums=sums.reward.to_numpy().reshape(60, 3)
    )
    by_hand = pw.GaussianMarginalLikelihood("diagonal", noise_var=4.0).fit(statistics).prior
    np.testing.assert_allclose(found.prior.cov, by_hand.cov, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.prior.noise_var, 4.0)
    with raises("squares", "real rewards in 'reward'"):
        pw.fit_prior(sums, "gaussian:diagonal", pulls="n", seed=seed)


def test_families_that_learn_the_noise_do_not_compete_with_one_that_is_known(
    frame: pd.DataFrame, tmp_path: Path, seed: int
) -> None:
    found = pw.fit_prior(frame, noise_var=4.0, seed=seed)
    assert found.models is not None
    assert {name.partition(":")[0] for name in found.models.scores} == {"gaussian"}
    clicks = frame.assign(reward=(frame.reward > 0.0).astype(int))
    for wrong, words in ((clicks, ("family", "noise_var= is for")), (frame, "noise_var")):
        with raises(words):
            pw.fit_prior(wrong, noise_var=4.0 if wrong is clicks else 0.0, seed=seed)
    frame.to_csv(tmp_path / "log.csv", index=False)
    command = ["fit", str(tmp_path / "log.csv"), "--seed", "0", "--json"]
    done = CliRunner().invoke(app, [*command, "--noise-var", "-1"])
    assert (done.exit_code, "--noise-var must be positive" in done.output) == (2, True)


def test_arms_keep_their_names_where_one_law_for_all_is_chosen(
    frame: pd.DataFrame, seed: int
) -> None:
    found = pw.fit_prior(frame, "gaussian:exchangeable", seed=seed)
    drawn = found.draw(np.random.default_rng(seed), 2)
    for prior in (found.prior, *drawn):
        assert prior.names == ("blue", "green", "red")
    whole = found.fit.prior.for_arms(3)
    np.testing.assert_array_equal(found.prior.cov, whole.cov)
    new = pw.fit_prior(frame, "gaussian:exchangeable", arms="new", seed=seed).prior
    assert isinstance(new, pw.ExchangeableGaussianPrior)


def test_the_figure_shows_names_and_correlations(drawn: list[Figure]) -> None:
    def texts(prior: Any) -> list[str]:
        pw.PriorFit(prior, "by hand", 3).figure()
        figure = drawn[-1]
        found = [text.get_text() for axes in figure.axes for text in axes.texts]
        ticks = [tick.get_text() for axes in figure.axes for tick in axes.get_yticklabels()]
        return [*found, *ticks, *(text.get_text() for text in figure.texts)]

    cov = [[1.0, 0.6], [0.6, 4.0]]  # a correlation of 0.3
    shown = texts(pw.GaussianPrior([0.0, 1.0], cov, names=["red", "blue"]))
    assert shown.count("0.30") == 2
    assert {"red", "blue"} <= set(shown)
    apart = texts(pw.GaussianPrior([0.0, 1.0], np.eye(2)))
    assert len(drawn[-1].axes) == 1
    assert any("do not correlate" in each for each in apart)
    one = texts(pw.ExchangeableGaussianPrior(0.0, 1.0, 0.9))
    assert any("one task: 0.90" in each for each in one)
