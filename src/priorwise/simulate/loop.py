"""A block of tasks in NumPy: what a simulation means."""

from __future__ import annotations

import numpy as np

from priorwise.core.influence import actions_influence_signals
from priorwise.core.protocols import Policy, Prior, ResettingBelief
from priorwise.core.runs import Block, Columns
from priorwise.core.streams import Streams
from priorwise.core.types import BoolArray, FloatArray
from priorwise.simulate.steps import environments, steps
from priorwise.simulate.tally import report


def run_numpy(
    prior: Prior,
    believed: Prior,
    policy: Policy,
    *,
    seed: int,
    first: int,
    tasks: int,
    horizon: int,
    available: BoolArray | None,
    keep: bool,
) -> Block:
    """Run tasks ``first``, ``first + 1``, ... to their horizon."""
    streams = Streams(seed, np.arange(first, first + tasks, dtype=np.uint64))
    environment = environments(prior, streams)
    actions, rewards = np.empty((horizon, tasks), dtype=np.int32), np.empty((horizon, tasks))
    worth: list[FloatArray] = []  # expected rewards of what was chosen
    regrets: list[FloatArray] = []
    log: list[FloatArray] = []
    has_best, rows = True, np.arange(tasks)
    for step in steps(
        environment,
        believed.belief(tasks),
        policy,
        streams,
        horizon=horizon,
        arms=prior.arms,
        available=available,
    ):
        seen, at = step.seen, step.seen.step - 1
        actions[at], rewards[at] = step.actions, step.rewards
        if step.values is not None:
            # where actions influence signals, what earns most now may not be best; an environment
            # that showed nothing at first has to say later
            if at == 0 or (seen.signal is None and step.after is not None):
                shown = step.after if seen.signal is None else seen.signal
                has_best = not actions_influence_signals(environment, shown)
            worth.append(step.values[rows, step.actions])
            if has_best:
                regrets.append(seen.masked(step.values).max(axis=1) - worth[-1])
        if keep and step.log is not None:
            log.append(step.log.T)
    belief = step.belief
    resets = belief.resets if isinstance(belief, ResettingBelief) else np.zeros(tasks, np.int64)
    # pull by pull: the same bits whatever the number of tasks
    totals = np.cumsum(rewards, axis=0)[-1:].copy()
    curves = [rewards, totals, *([np.stack(worth)] if worth else [])]
    if regrets:
        curves += [np.stack(regrets), np.cumsum(regrets, axis=0)]
    means, squares = report(np.concatenate(curves))
    columns = Columns(actions, rewards, np.stack(log) if log else None) if keep else None
    return Block(means, squares, totals[0], resets, columns)
