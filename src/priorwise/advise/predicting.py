"""What simulation under the learned prior promises of the tasks that are replayed.

A policy's reward is that of random choice plus what the policy gains over it:

    E[reward] = E[reward of random choice] + E[reward - reward of random choice].

Where the prior knows the means of its arms, the first part is exact. The second is a paired
difference on the same tasks, so few tasks suffice.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from priorwise.advise.backtest_result import Line
from priorwise.advise.replay import Player, Recorded
from priorwise.core.estimates import Estimate
from priorwise.core.progress import progress_of
from priorwise.core.protocols import MeanBelief, for_arms
from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray
from priorwise.fitting.runs import Run
from priorwise.logs.fitting import LogFit
from priorwise.policies.uniform import Uniform
from priorwise.simulate.results import Comparison
from priorwise.simulate.run import compare

PREDICTED: Final = 1_024
"""Simulated tasks, at least, from which a reward is predicted."""
PLAUSIBLE, PLAUSIBLE_TASKS = 16, 64
"""Plausible priors, and tasks of each, from which the error of a prediction is estimated."""
RANDOM: Final = "\0random"  # no name that a policy can have


def predicted(
    lines: dict[str, Line],
    players: dict[str, Player],
    fit: LogFit,
    recorded: Recorded,
    horizon: int,
    batch: int,
    seed: int,
    moves: float = 0.0,
    progress: bool | None = False,
) -> dict[str, Line]:
    """Simulate tasks of the learned prior with as many arms as those replayed, and of priors that
    the fit leaves plausible. The level of a pull may have moved by ``moves`` since.
    """
    there = recorded.available
    width = there.shape[1]
    how: Any = {"horizon": horizon, "batch": batch, "seed": seed, "progress": False}
    learned = for_arms(fit.prior, width)
    pairs: dict[str, Any] = {name: (each.policy, each.believed) for name, each in players.items()}
    pairs[RANDOM] = (Uniform(), learned)
    many = np.tile(there, (-(-PREDICTED // len(there)), 1))
    few = there[np.arange(PLAUSIBLE_TASKS) * len(there) // PLAUSIBLE_TASKS]
    spread = dict.fromkeys(players, 0.0)
    plausible: list[Any] = []
    if fit.fit.uncertainty is not None:
        plausible = fit.draw(np.random.default_rng(seed), PLAUSIBLE)
    total = len(many) + len(plausible) * len(few)
    with progress_of(total, "predicting rewards", shown=progress) as bar:
        drawn = []
        for prior in plausible:
            truth = for_arms(prior, width)
            some = compare(truth, pairs, tasks=len(few), available=few, **how)
            earned = _rewards(truth, some, few, horizon)
            drawn.append([earned[name].mean for name in players])
            bar.advance(len(few))
        result = compare(learned, pairs, tasks=len(many), available=many, **how)
    rewards = _rewards(learned, result, many, horizon)
    if drawn:
        spread = dict(zip(players, np.std(drawn, axis=0, ddof=1).tolist(), strict=True))
    return {
        name: replace(
            line,
            predicted=Estimate(
                rewards[name].mean,
                float(np.linalg.norm([rewards[name].std_error, spread[name], horizon * moves])),
            ),
            predicted_share=_closed(result.difference(name, RANDOM), result.runs[RANDOM]),
        )
        for name, line in lines.items()
    }


def _rewards(
    truth: Any, result: Comparison, available: BoolArray, horizon: int
) -> dict[str, Estimate]:
    """Return the reward of each policy, with the exact reward of random choice if it is known."""
    belief = truth.belief(1)
    if not isinstance(belief, MeanBelief):
        return {name: Estimate(run.mean_reward, run.std_error) for name, run in result.runs.items()}
    means = belief.mean(Seen(1, horizon, available.shape[1]))[0]
    by_task = np.where(available, means, 0.0).sum(axis=1) / available.sum(axis=1)
    exact = horizon * float(by_task.mean())
    gains = {name: result.difference(name, RANDOM) for name in result.runs}
    return {name: Estimate(exact + gain.mean, gain.std_error) for name, gain in gains.items()}


def _closed(gain: Estimate, random: Run) -> Estimate | None:
    """Share of the gap between random choice and the truly best arm that a policy's gain closes
    (delta method, without the covariance of the two).
    """
    if not random.mean_regret:
        return None
    share = gain.mean / random.mean_regret
    errors = gain.std_error, share * (random.regret_std_error or 0.0)
    return Estimate(share, float(np.hypot(*errors)) / random.mean_regret)
