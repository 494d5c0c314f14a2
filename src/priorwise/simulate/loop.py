"""A block of tasks in NumPy: what a simulation means."""

from typing import Any

import numpy as np

from priorwise.core import protocols as roles
from priorwise.core.influence import actions_influence_signals
from priorwise.core.runs import Block, Columns
from priorwise.core.streams import Streams
from priorwise.core.types import BoolArray, FloatArray
from priorwise.simulate.steps import environments, steps
from priorwise.simulate.tally import report


def run_numpy(
    prior: roles.Prior,
    believed: roles.Prior,
    policy: roles.Policy | roles.MemoryPolicy,
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
    rewards = np.empty((horizon, tasks))
    actions: list[Any] = []
    worth: list[FloatArray] = []
    regrets: list[FloatArray] = []
    log: list[FloatArray] = []
    has_best = True
    for step in steps(
        environment,
        believed.belief(tasks),
        policy,
        streams,
        horizon=horizon,
        arms=prior.arms,
        available=available,
        actions=getattr(prior, "actions", None),
    ):
        shown, at = step.seen.signal, step.seen.step - 1
        rewards[at] = step.rewards
        if step.worth is not None and step.best is not None:
            # where actions influence signals, what earns most now may not be best; an environment
            # that showed nothing at first has to say later
            if at == 0 or (shown is None and step.after is not None):
                shown = step.after if shown is None else shown
                has_best = not actions_influence_signals(environment, shown)
            worth.append(step.worth)
            regrets += [step.best - step.worth] if has_best else []
        if keep:
            of_arms = step.seen.actions is None
            actions.append(step.actions.astype(np.int32) if of_arms else step.actions)
            log += [] if step.log is None else [step.log.T]
    belief = step.belief
    resets = (
        belief.resets if isinstance(belief, roles.ResettingBelief) else np.zeros(tasks, np.int64)
    )
    # pull by pull: the same bits whatever the number of tasks
    totals = np.cumsum(rewards, axis=0)[-1:].copy()
    curves = [rewards, totals, *([np.stack(worth)] if worth else [])]
    if regrets:
        regret = np.stack(regrets)
        curves += [regret, np.cumsum(regret, axis=0)]
    means, squares = report(np.concatenate(curves))
    columns = Columns(np.stack(actions), rewards, np.stack(log) if log else None) if keep else None
    return Block(means, squares, totals[0], resets, columns)
