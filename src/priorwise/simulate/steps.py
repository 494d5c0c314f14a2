"""The loop, written once: a generator of the steps that a batch of tasks takes together.

For bandits, contextual bandits and problems with a state alike. Whoever plays tasks consumes it:
the NumPy simulation, the ladder's walk, the tails of general decision problems, the law of the
diameter and the contract tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.protocols import (
    Belief,
    Environment,
    LoggedEnvironment,
    Policy,
    Prior,
    Seen,
    Signal,
    ValuedEnvironment,
)
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One pull of every task: what was known, done and earned."""

    seen: Seen
    belief: Any  # before the pull; None where nobody learns
    actions: IntArray  # (task,)
    rewards: FloatArray  # (task,)
    after: Signal  # the next signal
    values: FloatArray | None  # (task, arm): expected rewards before the pull, where they are known
    log: FloatArray | None  # (task, entry): what else the environment logs

    def learned(self) -> Belief:
        """Return the belief after the pull; after the last one only who asks computes it."""
        belief: Belief = self.belief.update(self.seen, self.actions, self.rewards, self.after)
        if not hasattr(belief, "update"):
            name = f"the return value of {type(self.belief).__name__}.update"
            doors.role(name, belief, "a belief", "update")
        return belief


def environments(prior: Prior, streams: Streams) -> Environment:
    """Draw the environments of a batch of tasks."""
    drawn = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), streams.tasks)
    name = f"the return value of {type(prior).__name__}.sample"
    doors.role(name, drawn, "an environment", "start", "step")
    return drawn


def steps(
    environment: Environment,
    belief: Any,
    policy: Policy,
    streams: Streams,
    *,
    horizon: int,
    arms: int,
    available: BoolArray | None = None,
) -> Iterator[Step]:
    """Yield each step of a batch of tasks, in order; stop asking to stop early.

    Parameters
    ----------
    environment
        The tasks, as :func:`environments` draws them.
    belief
        What the policy is shown, updated after each pull but the last; None where nobody learns.
    policy
        Whose actions are played.
    streams
        Where all random numbers come from, and how many tasks there are.
    horizon, arms
        Pulls in a task, and number of actions.
    available
        Which arms may be pulled, ``(task, arm)``; None: all.

    """
    tasks = streams.tasks
    valued = environment if isinstance(environment, ValuedEnvironment) else None
    logged = environment if isinstance(environment, LoggedEnvironment) else None
    signal = environment.start(streams.world(0))
    for step in range(1, horizon + 1):
        seen = Seen(step, horizon, arms, signal, available)
        chosen = _checked(
            policy.act(belief, seen, streams.at(Purpose.POLICY, step)), policy, seen, tasks
        )
        values = None if valued is None else _valued(valued, signal, arms, tasks)
        log = None if logged is None else logged.log(signal, chosen)
        rewards, after = _earned(
            environment, environment.step(seen, chosen, streams.world(step)), tasks, step
        )
        done = Step(seen, belief, chosen, rewards, after, values, log)
        yield done
        if step < horizon and belief is not None:
            belief = done.learned()
        signal = after


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
    return earned.astype(np.float64, copy=False), after


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
