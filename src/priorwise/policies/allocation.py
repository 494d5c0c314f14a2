"""Several pulls chosen from one belief, as where rewards are seen batch by batch.

A policy that plays the largest score decides once: its scores at the first pull serve all of the
batch, and ties are broken anew at each pull. Any other policy chooses every pull as ``act`` does at
that pull's step: a randomised one draws its actions independently, each with the law of ``act``.
One that plays some rounds before another leaves the pulls after them to that one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.choosing import pick
from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import ScoredPolicy, StagedPolicy
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import IntArray

ROWS: Final = 1 << 14  # pulls of all tasks that are chosen at a time


def allocate(
    policy: Any, belief: Any, seen: Seen, rng: Stream, *, pulls: int, rows: int = ROWS,
    before: Callable[[], None] = lambda: None,
) -> IntArray:  # fmt: skip
    """Choose the next ``pulls`` pulls of each task from one belief, ``(task, pull)``: what
    ``simulate`` plays in a batch of so many.

    Parameters
    ----------
    policy
        Anyone's policy without memory.
    belief, seen, rng
        As ``act`` takes them, at the first of these pulls. Where there is a signal, it is that of
        all of them.
    pulls
        How many.
    rows
        Pulls of all tasks that are chosen at a time; the result does not depend on it.
    before
        Called before each of these times; it may raise an error to stop.

    Examples
    --------
    >>> import priorwise as pw
    >>> from priorwise.core.streams import streams
    >>> belief, seen = pw.BetaPrior([2, 1], [9, 9]).belief(1), Seen(step=1, horizon=200, arms=2)
    >>> arms = allocate(pw.ThompsonSampling(), belief, seen, streams(0, 1)(1), pulls=200)
    >>> arms.shape, int(counted(arms, 2).sum())
    ((1, 200), 200)

    """
    argument_checks.policy("policy", policy)
    argument_checks.acting(policy, belief, seen, rng)
    pulls, tasks = validation.count("pulls", pulls), rng.tasks
    left = int(np.min(np.asarray(seen.horizon) - seen.step)) + 1
    if pulls > left:
        raise ArgumentError(
            "pulls", f"must be at most those left, {left:,} up to the horizon", got=pulls
        )
    size = f"{sizes.amount(pulls)} for {sizes.amount(tasks)} tasks"
    sizes.check_memory("pulls", size, 8.0 * pulls * tasks, "ask for fewer pulls")
    if not isinstance(policy, StagedPolicy) or policy.then is None:
        return _chosen(policy, belief, seen, rng, pulls, rows, before)
    out = np.empty((tasks, pulls), dtype=np.int64)
    at = np.broadcast_to(seen.step, tasks)
    for step in np.unique(at):
        those = np.flatnonzero(at == step)
        whose: tuple[Any, Seen, Stream] = belief, seen, rng
        if len(those) < tasks:
            whose = belief.take(those), seen.take(those), rng.take(those)
        first = min(max(policy.rounds - int(step) + 1, 0), pulls)
        if first:
            out[those, :first] = _chosen(policy, *whose, first, rows, before)
        if first < pulls:
            later = replace(whose[1], step=int(step) + first)
            rest = allocate(
                policy.then, whose[0], later, whose[2], pulls=pulls - first, rows=rows,
                before=before,
            )  # fmt: skip
            out[those, first:] = rest
    return out


def player_at(policy: Any, step: int) -> tuple[Any, int]:
    """Return who chooses at a step, and since which one: a policy, or the one it plays rounds
    before.
    """
    begin = 1
    while isinstance(policy, StagedPolicy) and policy.then is not None and step > policy.rounds:
        policy, begin = policy.then, max(begin, policy.rounds + 1)
    return policy, begin


def _chosen(
    policy: Any, belief: Any, seen: Seen, rng: Stream, pulls: int, rows: int,
    before: Callable[[], None],
) -> IntArray:  # fmt: skip
    tasks = rng.tasks
    out = np.empty((tasks, pulls), dtype=np.int64)
    scores = policy.scores(belief, seen) if isinstance(policy, ScoredPolicy) else None
    together = max(1, rows // max(tasks, 1)) if scores is not None or hasattr(belief, "take") else 1
    for start in range(0, pulls, together):
        before()
        part = min(together, pulls - start)
        steps = np.asarray(seen.step).reshape(-1, 1) + np.arange(start, start + part)
        steps = np.broadcast_to(steps, (tasks, part)).ravel()
        owners = np.repeat(np.arange(tasks), part)  # whose pull it is
        chance = rng.take(owners).at(steps)
        if scores is not None:
            chosen = pick(scores[owners], chance.uniform())
        elif part == 1:  # which needs no ``take``
            now = seen.step + start
            chosen = policy.act(belief, replace(seen, step=now), rng.at(now))
        else:
            chosen = policy.act(belief.take(owners), replace(seen.take(owners), step=steps), chance)
        out[:, start : start + part] = np.asarray(chosen).reshape(tasks, part)
    return out


def counted(actions: IntArray, arms: int) -> IntArray:
    """How many of the pulls ``(task, pull)`` go to each arm, ``(task, arm)``."""
    tasks = len(actions)
    places = np.arange(tasks)[:, None] * arms + actions
    return cast("IntArray", np.bincount(places.ravel(), minlength=tasks * arms).reshape(tasks, -1))


class Allocates:
    """Gives ``allocate`` to a policy."""

    def allocate(self, belief: Any, seen: Seen, rng: Stream, *, pulls: int) -> IntArray:
        """Choose the next ``pulls`` pulls of each task from one belief, ``(task, pull)``; see
        :func:`priorwise.policies.allocation.allocate`.
        """
        return allocate(self, belief, seen, rng, pulls=pulls)
