"""What simulation under the learned prior promises of the tasks that are replayed."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from priorwise.advise.backtest_result import Line
from priorwise.advise.replay import Player, Recorded
from priorwise.core.estimates import Estimate
from priorwise.core.family import for_arms
from priorwise.core.runs import Run
from priorwise.logs.fitting import LogFit
from priorwise.policies.uniform import Uniform
from priorwise.simulate.run import compare

PREDICTED: Final = 4_000
"""Simulated tasks, at least, from which a reward is predicted."""
PLAUSIBLE, PLAUSIBLE_TASKS = 16, 256
"""Priors that the fit leaves plausible, and tasks of each, that tell how sure a prediction is."""
ANY: Final = "\0any arm"  # no name that a policy can have


def predicted(
    lines: dict[str, Line],
    players: dict[str, Player],
    fit: LogFit,
    recorded: Recorded,
    horizon: int,
    batch: int,
    seed: int,
) -> dict[str, Line]:
    """Simulate tasks of the learned prior with as many arms as those replayed, and of priors that
    the fit leaves plausible.
    """
    there = recorded.available
    width = there.shape[1]
    how: Any = {"horizon": horizon, "batch": batch, "seed": seed, "progress": False}
    pairs = {name: (each.policy, each.believed) for name, each in players.items()}
    learned = for_arms(fit.prior, width)
    many = np.tile(there, (-(-PREDICTED // len(there)), 1))
    asked = {**pairs, ANY: (Uniform(), learned)}
    runs = compare(learned, asked, tasks=len(many), available=many, **how).runs
    few = there[np.arange(PLAUSIBLE_TASKS) * len(there) // PLAUSIBLE_TASKS]
    spread = dict.fromkeys(players, 0.0)
    if fit.fit.uncertainty is not None:
        drawn = []
        for prior in fit.draw(np.random.default_rng(seed), PLAUSIBLE):
            truth = for_arms(prior, width)
            some = compare(truth, pairs, tasks=len(few), available=few, **how).runs
            drawn.append([some[name].mean_reward for name in players])
        spread = dict(zip(players, np.std(drawn, axis=0, ddof=1).tolist(), strict=True))
    return {
        name: replace(
            line,
            predicted=Estimate(
                runs[name].mean_reward, float(np.hypot(runs[name].std_error, spread[name]))
            ),
            predicted_share=_closed(runs[name], runs[ANY]),
        )
        for name, line in lines.items()
    }


def _closed(run: Run, uniform: Run) -> Estimate | None:
    """Share of the gap between any arm and the truly best one that a simulated policy closes; the
    standard error does without the pairs, and so is not too small.
    """
    if run.mean_regret is None or not uniform.mean_regret:
        return None
    lost = run.mean_regret / uniform.mean_regret
    errors = run.regret_std_error or 0.0, lost * (uniform.regret_std_error or 0.0)
    return Estimate(1.0 - lost, float(np.hypot(*errors)) / uniform.mean_regret)
