"""A block of tasks in NumPy: what a simulation means."""

from typing import Any

import numpy as np

from priorwise.core import protocols as roles
from priorwise.core.approximate import ApproximateBelief
from priorwise.core.streams import Streams
from priorwise.core.trajectories import Block, Columns
from priorwise.core.types import BoolArray, FloatArray
from priorwise.simulate.steps import environments, steps
from priorwise.simulate.tally import report
from priorwise.theory.influence import actions_influence_signals


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
    batch: int = 1,
) -> Block:
    """Run tasks ``first``, ``first + 1``, ... to their horizon."""
    streams = Streams(seed, np.arange(first, first + tasks, dtype=np.uint64))
    environment = environments(prior, streams)
    # rewards, their total, what was done is worth, regrets and their sums: see Block
    curves = np.empty((4 * horizon + 1, tasks))
    rewards, totals = curves[:horizon], curves[horizon]
    worth, regrets, sums = curves[horizon + 1 :].reshape(3, horizon, tasks)
    used = horizon + 1
    actions: list[Any] = []
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
        batch=batch,
    ):
        shown, at = step.seen.signal, step.seen.step - 1
        rewards[at] = step.rewards
        if step.worth is not None and step.best is not None:
            # where actions influence signals, what earns most now may not be best; an environment
            # that showed nothing at first has to say later
            if at == 0 or (shown is None and step.after is not None):
                shown = step.after if shown is None else shown
                has_best = not actions_influence_signals(environment, shown)
            worth[at] = step.worth
            used = 2 * horizon + 1
            if has_best:
                np.subtract(step.best, step.worth, out=regrets[at])
                used = len(curves)
        if keep:
            of_arms = step.seen.actions is None
            actions.append(step.actions.astype(np.int32) if of_arms else step.actions)
            log += [] if step.log is None else [step.log.T]
    belief = step.belief
    resets = (
        belief.resets if isinstance(belief, roles.ResettingBelief) else np.zeros(tasks, np.int64)
    )
    rough, why = 0, ""
    if isinstance(belief, ApproximateBelief):
        rough, why = int(belief.rough(step.seen).sum()), belief.rough_because
    # pull by pull: the same bits whatever the number of tasks
    totals[:] = rewards[0]
    for earned in rewards[1:]:
        totals += earned
    lost = None
    if used == len(curves):
        lost = np.cumsum(regrets, axis=0, out=sums)[-1].copy()
    means, squares = report(curves[:used])
    columns = None
    if keep:
        columns = Columns(np.stack(actions), rewards.copy(), np.stack(log) if log else None)
    return Block(means, squares, totals.copy(), resets, columns, rough, why, lost)
