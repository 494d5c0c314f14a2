"""Who decides in the loop: policies with and without memory, pull by pull or once a batch."""

from dataclasses import replace
from typing import Any

import numpy as np

from priorwise.core import protocols as roles
from priorwise.core import validation
from priorwise.core.choosing import pick
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import BoolArray, FloatArray
from priorwise.policies.allocation import player_at


class Decisions:
    """The choices of one policy for a batch of tasks, and what it remembers of them.

    Where rewards are seen after every ``batch`` pulls, a policy that plays the largest score
    decides once a batch, at the first pull that it serves, unless what is shown changes from pull
    to pull (see :mod:`priorwise.policies.allocation`).
    """

    def __init__(self, policy: Any, tasks: int, batch: int) -> None:
        """Begin before the first pull."""
        self._policy, self._tasks, self._batch = policy, tasks, batch
        self._remembers = isinstance(policy, roles.MemoryPolicy)
        self._memory = policy.begin(tasks) if self._remembers else None
        self._scores: FloatArray | None = None
        self._mask: BoolArray | None = None

    def choose(self, belief: Any, seen: Seen, rng: Stream) -> Any:
        """Choose an action for each task."""
        policy = self._policy
        if self._remembers:
            decided = policy.decide(belief, seen, rng, self._memory)
            chosen, self._memory = pair(policy, "decide", "actions and memory", decided)
            return _actions(chosen, policy, "decide", seen, self._tasks)
        player, begin = player_at(policy, seen.step)
        if self._batch == 1 or not isinstance(player, roles.ScoredPolicy):
            return _actions(policy.act(belief, seen, rng), policy, "act", seen, self._tasks)
        first = max(begin, seen.step - (seen.step - 1) % self._batch)
        if first == seen.step or seen.signal is not None or seen.mask is not self._mask:
            self._scores = player.scores(belief, replace(seen, step=first))
            self._mask = seen.mask
        chosen = pick(np.asarray(self._scores), rng.uniform())
        return _actions(chosen, player, "scores", seen, self._tasks)


def pair(whose: Any, method: str, what: str, value: Any) -> tuple[Any, Any]:
    """Raise an error for what is not a pair."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentTypeError(
            f"{type(whose).__name__}.{method}", f"must return a pair of {what}", got=value
        )
    return value


def _actions(actions: Any, policy: Any, method: str, seen: Seen, tasks: int) -> Any:
    """Raise an error for what is not one available arm, or one real action, for each task."""
    name = f"{type(policy).__name__}.{method}"
    value = f"the return value of {name}"
    if seen.actions is not None:
        return seen.actions.checked(value, actions, tasks)
    what = f"one integer for each of {tasks} tasks"
    actions = validation.shaped(value, actions, (tasks,), "iu", what)
    if actions.min() < 0 or actions.max() >= seen.arms:
        raise ArgumentError(
            name, f"must return arms 0..{seen.arms - 1}", got=(actions.min(), actions.max())
        )
    if seen.mask is not None and not seen.mask[np.arange(tasks), actions].all():
        raise ArgumentError(
            name,
            f"chose an arm that is not available at step {seen.step}",
            cure="use seen.masked(...)",
        )
    return actions.astype(np.int64, copy=False)
