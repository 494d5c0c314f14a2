"""The loop, written once: a generator of the steps that a batch of tasks takes together.

For bandits, contextual bandits and problems with a state alike. Whoever plays tasks consumes it:
the NumPy simulation, the ladder's walk, the tails of general decision problems, the law of the
diameter and the contract tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core import protocols as roles
from priorwise.core.errors import ArgumentError
from priorwise.core.seen import RealActions, Seen, Signal
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import BoolArray, FloatArray
from priorwise.simulate.deciding import Decisions, pair


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One pull of every task: what was known, done and earned."""

    seen: Seen
    belief: Any  # before the pull; None where nobody learns
    actions: Any  # (task,): arms, or real numbers, then perhaps (task, size)
    rewards: FloatArray  # (task,)
    after: Signal  # the next signal
    # expected rewards before the pull, where they are known: of every arm (task, arm), of what was
    # done and of the best that was available (task,)
    values: FloatArray | None
    worth: FloatArray | None
    best: FloatArray | None
    log: FloatArray | None  # (task, entry): what else the environment logs
    before: "Step | None" = None  # the pull before this one, if its reward was not seen yet

    def learned(self) -> roles.Belief:
        """Return the belief after the pull and those before it whose rewards were not seen; after
        the last one only who asks computes it.
        """
        belief: roles.Belief = self.belief
        unseen: list[Step] = [self]
        while (earlier := unseen[-1].before) is not None:
            unseen.append(earlier)
        for each in reversed(unseen):
            belief = belief.update(each.seen, each.actions, each.rewards, each.after)
            if not hasattr(belief, "update"):
                name = f"the return value of {type(self.belief).__name__}.update"
                argument_checks.role(name, belief, "a belief", "update")
        return belief


def environments(prior: roles.Prior, streams: Streams) -> roles.Environment:
    """Draw the environments of a batch of tasks."""
    drawn = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), streams.tasks)
    name = f"the return value of {type(prior).__name__}.sample"
    argument_checks.role(name, drawn, "an environment", "start", "step")
    return drawn


def steps(
    environment: roles.Environment,
    belief: Any,
    policy: roles.Policy | roles.MemoryPolicy,
    streams: Streams,
    *,
    horizon: int,
    arms: int,
    available: BoolArray | None = None,
    actions: RealActions | None = None,
    batch: int = 1,
) -> Iterator[Step]:
    """Yield each step of a batch of tasks, in order; stop asking to stop early.

    Parameters
    ----------
    environment
        The tasks, as :func:`environments` draws them.
    belief
        What the policy is shown, updated after each batch but the last; None where nobody learns.
    policy
        Whose actions are played; what it remembers is kept here.
    streams
        Where all random numbers come from, and how many tasks there are.
    horizon, arms
        Pulls in a task, and number of actions.
    available
        Which arms may be pulled, ``(task, arm)``; None: all that the environment has.
    actions
        What may be played where there are no arms.
    batch
        Rewards are seen, and the belief is updated, after every so many pulls.

    """
    tasks, rows = streams.tasks, np.arange(streams.tasks)
    valued = environment if isinstance(environment, roles.ValuedEnvironment) else None
    graded = environment if isinstance(environment, roles.RealValuedEnvironment) else None
    masking = environment if isinstance(environment, roles.MaskingEnvironment) else None
    logged = environment if isinstance(environment, roles.LoggedEnvironment) else None
    decisions = Decisions(policy, tasks, batch)
    unseen: Step | None = None
    signal = environment.start(streams.world(0))
    name = f"the return value of {type(environment).__name__}.available"
    what = f"True or False for each task and arm, shape {(tasks, arms)}"
    for step in range(1, horizon + 1):
        mask = available
        if masking is not None:
            mask = validation.shaped(name, masking.available(signal), (tasks, arms), "b", what)
            mask = mask if available is None else mask & available
        seen = Seen(step, horizon, arms, signal, mask, actions)
        chosen = decisions.choose(belief, seen, streams.at(Purpose.POLICY, step))
        values = worth = best = None
        if actions is None and valued is not None:
            values = _valued("values", valued.values(signal), valued, (tasks, arms))
            worth, best = values[rows, chosen], seen.masked(values).max(axis=1)
        elif actions is not None and graded is not None:
            worth = _valued("value_of", graded.value_of(signal, chosen), graded, (tasks,))
            best = _valued("best_value", graded.best_value(signal), graded, (tasks,))
        log = None if logged is None else logged.log(signal, chosen)
        outcome = environment.step(seen, chosen, streams.world(step))
        rewards, after = pair(environment, "step", "rewards and the next signal", outcome)
        rewards = _rewards(environment, rewards, tasks, step)
        done = Step(seen, belief, chosen, rewards, after, values, worth, best, log, unseen)
        yield done
        if belief is not None:
            unseen = done if step % batch else None
            if step < horizon and unseen is None:
                belief = done.learned()
        signal = after


def _valued(method: str, values: Any, environment: Any, shape: tuple[int, ...]) -> FloatArray:
    """Raise an error for what is not a number for each task (and arm)."""
    values = np.asarray(values)
    if values.shape != shape or values.dtype.kind not in "fiu" or np.isnan(values).any():
        of = "each task and arm" if len(shape) == 2 else "each task"
        raise ArgumentError(
            f"{type(environment).__name__}.{method}",
            f"must return a number for {of}, shape {shape} and no NaN",
            got=values.shape,
        )
    return values


def _rewards(environment: roles.Environment, earned: Any, tasks: int, step: int) -> FloatArray:
    """Raise an error for what is not a finite reward for each task."""
    earned = np.asarray(earned)
    if earned.shape != (tasks,) or earned.dtype.kind not in "fiub" or not np.isfinite(earned).all():
        raise ArgumentError(
            f"{type(environment).__name__}.step",
            f"must return one reward for each of {tasks} tasks, a finite number (step {step})",
        )
    return earned.astype(np.float64, copy=False)
