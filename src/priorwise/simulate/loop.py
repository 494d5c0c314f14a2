"""The loop, in NumPy: what a simulation means, for bandits, contextual bandits and problems with a
state alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.influence import actions_influence_signals
from priorwise.core.protocols import (
    Belief,
    Environment,
    LoggedEnvironment,
    Policy,
    Prior,
    ResettingBelief,
    Seen,
    Signal,
    ValuedEnvironment,
)
from priorwise.core.runs import Block, Columns
from priorwise.core.streams import Purpose, Streams
from priorwise.core.tiles import LANES
from priorwise.core.types import BoolArray, FloatArray, IntArray


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
    from priorwise.kernels.tally import report

    streams = Streams(seed, np.arange(first, first + tasks, dtype=np.uint64))
    environment = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), tasks)
    doors.role(
        f"the return value of {type(prior).__name__}.sample",
        environment,
        "an environment",
        "start",
        "step",
    )
    belief: Belief = believed.belief(tasks)
    actions = np.empty((horizon, tasks), dtype=np.int32)
    rewards = np.empty((horizon, tasks))
    valued = environment if isinstance(environment, ValuedEnvironment) else None
    worth = None if valued is None else np.empty((horizon, tasks))
    log = []
    signal = environment.start(streams.world(0))
    # then what earns most now may not be best
    influenced = worth is not None and actions_influence_signals(environment, signal)
    regrets = None if worth is None or influenced else np.empty((horizon, tasks))
    for step in range(1, horizon + 1):
        seen = Seen(step, horizon, prior.arms, signal, available)
        chosen = _checked(
            policy.act(belief, seen, streams.at(Purpose.POLICY, step)), policy, seen, tasks
        )
        if worth is not None and valued is not None:
            values = _valued(valued, signal, prior.arms, tasks)
            worth[step - 1] = values[np.arange(tasks), chosen]
            if regrets is not None:
                regrets[step - 1] = seen.masked(values).max(axis=1) - worth[step - 1]
        if keep and isinstance(environment, LoggedEnvironment):
            log.append(environment.log(signal, chosen).T)
        earned, after = _earned(
            environment, environment.step(seen, chosen, streams.world(step)), tasks, step
        )
        if regrets is not None and signal is None and after is not None:
            actions_influence_signals(environment, after)  # it did not have to say before
        rewards[step - 1] = earned
        actions[step - 1] = chosen
        if step < horizon:
            before, belief = belief, belief.update(seen, chosen, rewards[step - 1], after)
            if not hasattr(belief, "update"):
                doors.role(
                    f"the return value of {type(before).__name__}.update",
                    belief,
                    "a belief",
                    "update",
                )
            signal = after
    resets = (
        belief.resets if isinstance(belief, ResettingBelief) else np.zeros(tasks, dtype=np.int64)
    )
    # pull by pull: the same bits whatever the number of tasks
    totals = np.cumsum(rewards, axis=0)[-1:].copy()
    rows = [rewards, totals]
    rows += [] if worth is None else [worth]
    rows += [] if regrets is None else [regrets, np.cumsum(regrets, axis=0)]
    means, squares = np.empty((2, -(-tasks // LANES), sum(map(len, rows))))
    at = 0
    for each in rows:
        report(each, at, means, squares)
        at += len(each)
    columns = Columns(actions, rewards, np.stack(log) if log else None) if keep else None
    return Block(means, squares, totals[0], resets, columns)


def _valued(environment: ValuedEnvironment, signal: Signal, arms: int, tasks: int) -> FloatArray:
    """Refuse what is not a number for each task and arm."""
    values = np.asarray(environment.values(signal))
    if values.shape != (tasks, arms) or values.dtype.kind not in "fiu" or np.isnan(values).any():
        name = f"{type(environment).__name__}.values"
        raise ValueError(
            f"{name} must return a number for each task and arm, shape {(tasks, arms)} and no NaN, "
            f"got {values.shape}"
        )
    return values


def _earned(
    environment: Environment, outcome: Any, tasks: int, step: int
) -> tuple[FloatArray, Signal]:
    """Refuse what is not a finite reward for each task, and the next signal."""
    name = f"{type(environment).__name__}.step"
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        raise TypeError(
            f"{name} must return a pair of rewards and the next signal, got "
            f"{validation.shown(outcome)}"
        )
    earned, after = np.asarray(outcome[0]), outcome[1]
    if earned.shape != (tasks,) or earned.dtype.kind not in "fiub" or not np.isfinite(earned).all():
        raise ValueError(
            f"{name} must return one reward for each of {tasks} tasks, a finite number, and did "
            f"not at step {step}"
        )
    return earned, after


def _checked(actions: IntArray, policy: Policy, seen: Seen, tasks: int) -> IntArray:
    """Refuse what is not one available arm for each task."""
    name = f"{type(policy).__name__}.act"
    actions = validation.plain_array(f"the return value of {name}", actions)
    if actions.shape != (tasks,) or not np.issubdtype(actions.dtype, np.integer):
        raise ValueError(
            f"{name} must return one integer for each of {tasks} tasks, got {actions.dtype} of "
            f"shape {actions.shape}"
        )
    if actions.min() < 0 or actions.max() >= seen.arms:
        raise ValueError(
            f"{name} must return arms 0..{seen.arms - 1}, got {actions.min()} to {actions.max()}"
        )
    if seen.mask is not None and not seen.mask[np.arange(tasks), actions].all():
        raise ValueError(
            f"{name} chose an arm that is not available at step {seen.step}; use "
            "seen.masked(values)"
        )
    return actions.astype(np.int64, copy=False)
