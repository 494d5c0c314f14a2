"""Mixtures of one family play compiled, as the NumPy loop does; what a log gives does so whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from headline_logs import headline_log

import priorwise as pw
from priorwise.advise.backtesting import _players, learned_from
from priorwise.advise.candidates import candidates
from priorwise.advise.durations import seconds_of_task
from priorwise.advise.replaying import recorded_in
from priorwise.core.protocols import Seen, for_arms
from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.prior import LogitNormalBelief
from priorwise.simulate.engine import choose
from priorwise.testing.twins import same_run, some_arms

ARMS = 4


def shared(var: float, correlation: float) -> FloatArray:
    """Covariance of arms that move together."""
    return var * (correlation + (1.0 - correlation) * np.eye(ARMS))


def gaussian(mean: list[float], var: float, noise_var: Any) -> pw.GaussianPrior:
    return pw.GaussianPrior(mean, shared(var, 0.5), noise_var)


NOISES = [0.5, 0.2, 0.5, 1.0]
MIXTURES = {
    "beta": pw.MixturePrior(
        [pw.BetaPrior([2, 3, 2, 5], [20, 30, 20, 10]), pw.BetaPrior([9, 8, 0.5, 1], [4, 9, 2, 1])],
        [0.7, 0.3],
    ),
    "gaussian": pw.MixturePrior(
        [gaussian([0, 1, 0, 0], 1.0, 0.5), gaussian([2, 1, 0, -1], 0.1, 0.5)], [0.6, 0.4]
    ),
    "noise per arm": pw.MixturePrior(
        [gaussian([0, 1, 0, 0], 1.0, NOISES), gaussian([2, 1, 0, -1], 0.1, NOISES)], [0.6, 0.4]
    ),
    "normal-gamma": pw.MixturePrior(
        [
            pw.NormalGammaPrior([0, 1, 0, 0], 1.0, 3.0, 1.0),
            pw.NormalGammaPrior([0, 1, 2, 2], [1, 1, 2, 2], [9, 3, 3, 3], [1, 4, 1, 1]),
        ],
        [0.6, 0.4],
    ),
    "three of logit-normal": pw.MixturePrior(
        [
            pw.LogitNormalPrior([-1.0] * ARMS, shared(0.5, 0.7)),
            pw.LogitNormalPrior([0.0, -1.0, -1.0, 1.0], shared(0.5, 0.1)),
            pw.LogitNormalPrior([0.0] * ARMS, shared(0.2, 1.0)),
        ],
        [0.6, 0.3, 0.1],
    ),
    "an impossible one": pw.MixturePrior([pw.BetaPrior([1] * ARMS, 1.0)] * 2, [1.0, 0.0]),
}
PLAYED = {
    "ts": pw.ThompsonSampling(),
    "sum": pw.PosteriorSampling(4, "sum"),
    "greedy": pw.Greedy(),
    "uniform": pw.Uniform(),
    "uniform-then": pw.UniformThen(7, pw.ThompsonSampling()),
}
CLICKS = ("two of beta", "two of logit-normal")
REAL = ("two of gaussian", "two of normal-gamma")


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("policy", PLAYED)
@pytest.mark.parametrize("name", MIXTURES)
def test_both_loops_play_the_same(name: str, policy: str, batch: int, seed: int) -> None:
    how: Any = {"horizon": 20, "tasks": 90, "seed": seed, "keep": True, "batch": batch}
    how["available"] = some_arms(90, ARMS, seed)
    prior, player = MIXTURES[name], PLAYED[policy]
    runs = [pw.simulate(prior, player, engine=each, **how) for each in ("compiled", "numpy")]
    same_run(*runs)


@pytest.mark.parametrize(
    "prior",
    [
        pw.MixturePrior(
            [MIXTURES["beta"].components[0], MIXTURES["three of logit-normal"].components[0]],
            [0.5, 0.5],
        ),
        pw.MixturePrior([MIXTURES["beta"], MIXTURES["beta"]], [0.5, 0.5]),
    ],
    ids=["two families", "a mixture of mixtures"],
)
def test_the_numpy_loop_plays_the_others(prior: Any, seed: int) -> None:
    run = pw.simulate(prior, pw.Greedy(), horizon=3, tasks=4, seed=seed)
    assert run.engine == "numpy"


def test_policies_that_ask_for_more_play_in_numpy(seed: int) -> None:
    run = pw.simulate(MIXTURES["beta"], pw.TopTwoThompson(), horizon=3, tasks=4, seed=seed)
    assert run.engine == "numpy"


def of_log(family: str, seed: int) -> Any:
    """What is learned from the earlier half of a log that the family fits."""
    log = headline_log(seed=seed, tests=60).frame()
    if family in REAL:
        log = log.loc[log.index.repeat(8)].drop(columns="impressions")
        log["clicks"] = log.clicks + np.random.default_rng(seed).normal(size=len(log))
    return learned_from(log, 0.5, family, None, seed, {})


@pytest.mark.slow
@pytest.mark.parametrize("family", [*CLICKS, *REAL])
def test_all_of_advice_plays_compiled(family: str, seed: int) -> None:
    """In NumPy a backtest of 2,000 tests took ten minutes, compiled a few seconds."""
    halves = of_log(family, seed)
    recorded = recorded_in(halves.later, halves.arms)
    width = recorded.pulls.shape[1]
    learned = for_arms(halves.fit.prior, width)
    tried, _ = candidates(learned, 1_000, 20, True)
    assert {"uniform", "ts", "sum:8", "greedy"} < set(tried)
    players, _ = _players(
        {name: each.policy for name, each in tried.items()}, halves.fit, width, []
    )
    dealt = recorded.deal(seed, 0, 8, 5)
    for each in players.values():
        assert each.compiled(dealt)
        runner = choose(learned, each.believed, each.policy, 1_000, masked=True, engine="auto")
        assert runner.engine == "compiled"
    costs = [
        seconds_of_task(each, each, pw.Greedy(), 1_000, 20, masked=True)
        for each in (learned, *learned.components)
    ]
    assert costs[0] >= max(costs[1:])
    if family == "two of logit-normal":
        assert costs[0] > 1.5 * max(costs[1:])


def test_weights_of_a_batch_take_one_evidence(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a mean of the rates at each pull, which takes most of the time."""
    calls = []
    means, prior = LogitNormalBelief.mean, MIXTURES["three of logit-normal"]
    monkeypatch.setattr(
        LogitNormalBelief, "mean", lambda self, seen: calls.append(1) or means(self, seen)
    )
    how: Any = {"horizon": 20, "tasks": 4, "seed": seed, "batch": 5, "engine": "numpy"}
    pw.simulate(prior, pw.ThompsonSampling(), **how)
    assert not calls
    pw.simulate(prior, pw.Greedy(), **how)
    assert len(calls) == 3 * 20 // 5


def test_pulls_weigh_as_their_statistics_do(seed: int) -> None:
    """Within rounding. The control, a product of approximate predictions, is off by more."""
    prior, tasks, pulls = MIXTURES["three of logit-normal"], 50, 60
    run = pw.simulate(prior, pw.Uniform(), horizon=pulls, tasks=tasks, seed=seed, keep=True)
    belief, logs = prior.belief(tasks), prior.log_probs(tasks).copy()
    for step in range(pulls):
        seen = Seen(step + 1, pulls, ARMS)
        actions, rewards = run.actions[:, step], run.rewards[:, step]
        logs += belief._log_predictives(seen, actions, rewards)
        belief = belief.update(seen, actions, rewards, None)
    whole = prior.belief_given(run).probabilities()
    control = np.exp(logs - logs.max(axis=1, keepdims=True))
    control /= control.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(belief.probabilities(), whole, atol=1e-9)
    assert np.abs(control - whole).max() > 1e-7
