"""The ladder of ``fit_prior``: a mixture is taken where the log needs one, and only there."""

from typing import Any

import numpy as np
import pandas as pd

import priorwise as pw
from priorwise.fitting.fits import PriorFit
from priorwise.logs.choosing import _free


def log_of(seed: int, *, far: float, tasks: int = 250) -> pd.DataFrame:
    """New arms in every task; a quarter of the tasks lies higher by ``far``."""
    rng = np.random.default_rng(seed)
    level = far * (rng.random(tasks) < 0.25) + 0.5 * rng.standard_normal(tasks)
    means = level[:, None] + 0.5 * rng.standard_normal((tasks, 3))
    rewards = means[:, :, None] + rng.standard_normal((tasks, 3, 4))
    task, arm, _ = np.indices(rewards.shape)
    names = [f"{t}-{a}" for t, a in zip(task.ravel(), arm.ravel(), strict=True)]
    return pd.DataFrame({"task": task.ravel(), "action": names, "reward": rewards.ravel()})


def fitted(log: Any, seed: int) -> Any:
    return pw.fit_prior(log, seed=seed, noise_var=1.0)


def test_two_groups_of_tasks_are_two_components(seed: int) -> None:
    found = fitted(log_of(seed, far=6.0), seed)
    assert found.chosen == "two of gaussian:exchangeable"
    assert found.models is not None
    gap = found.models.difference(found.chosen, "gaussian:exchangeable")
    assert gap.mean > 5.0 * gap.std_error
    assert not found.check.doubts
    np.testing.assert_allclose(found.prior.probs, [0.75, 0.25], atol=0.15)
    means = [part.mean for part in found.prior.components]
    np.testing.assert_allclose(means, [0.0, 6.0], atol=0.6)
    assert PriorFit.load(found.fit.to_json()).prior == found.prior
    assert len(found.draw(np.random.default_rng(seed), 2)) == 2
    assert "two of gaussian:exchangeable" in str(found)


def test_one_group_is_one_law(seed: int) -> None:
    """The control: without a second group there is nothing to mix."""
    found = fitted(log_of(seed, far=0.0), seed)
    assert found.chosen == "gaussian:exchangeable"


def test_a_mixture_counts_all_its_parameters(seed: int) -> None:
    """One probability and three numbers for each component, against three of one law."""
    log = log_of(seed, far=6.0)
    found = fitted(log, seed)
    assert _free(found.fit) == 1 + 3 + 3
    named = pw.fit_prior(log, "gaussian:exchangeable", seed=seed, noise_var=1.0)
    assert named.chosen == "gaussian:exchangeable"  # who names a family gets it


def test_a_mixture_is_backtested(seed: int) -> None:
    log = log_of(seed, far=6.0)
    found = pw.backtest(log, {"greedy": pw.Greedy()}, horizon=4, noise_var=1.0, seed=seed)
    assert found.fit.chosen == "two of gaussian:exchangeable"
