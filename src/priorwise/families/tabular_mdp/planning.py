"""Finite-horizon value iteration, batched over tasks and draws.

With ``Q_1 = r`` and ``Q_n(s, a) = r(s, a) + sum_s' P(s' | s, a) max_a' Q_{n-1}(s', a')``, an action
earns ``Q_n`` in the n steps that are left if all later ones are the best. What comes after a reset
does not depend on what is done before it, so that planning to the end of a round is optimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.types import FloatArray, IntArray


def backed_up(transitions: FloatArray, rewards: FloatArray, q: FloatArray) -> FloatArray:
    """``Q_{n+1}`` from ``Q_n``, ``(..., state, action)``."""
    return rewards + np.einsum("...sat,...t->...sa", transitions, q.max(axis=-1))


def q_values(transitions: FloatArray, rewards: FloatArray, left: int | IntArray) -> FloatArray:
    """``Q_left``, ``(task, ..., state, action)``; ``left`` is a number of steps, or one for each
    task.
    """
    q = rewards
    steps = np.asarray(left)
    for n in range(1, int(steps.max(initial=1))):
        better = backed_up(transitions, rewards, q)
        more = steps > n
        q = np.where(more.reshape(-1, *(1,) * (q.ndim - 1)), better, q) if more.ndim else better
    return q


def backward_values(transitions: FloatArray, rewards: FloatArray, steps: int) -> FloatArray:
    """``Q_1, ..., Q_steps``, ``(..., step, state, action)``."""
    out = [rewards]
    for _ in range(steps - 1):
        out.append(backed_up(transitions, rewards, out[-1]))
    return np.stack(out, axis=-3)


def steps_left(step: Any, horizon: Any, round_steps: int | None) -> Any:
    """Steps to the end of the round or of the task, this one among them: a number, or one for each
    task.
    """
    left = horizon - step + 1
    if round_steps is None:
        return left
    rest = round_steps - (step - 1) % round_steps
    return np.minimum(left, rest) if isinstance(left, np.ndarray) else min(left, rest)


def optimal_value(
    transitions: FloatArray,
    rewards: FloatArray,
    start: FloatArray,
    horizon: int,
    round_steps: int | None = None,
) -> Any:
    """Expected total reward of the best policy in known MDPs ``(..., state, action, state)``, over
    rounds from a law of first states: ``E V_n(s_1)`` summed over rounds.
    """
    length = horizon if round_steps is None else min(round_steps, horizon)
    best = backward_values(transitions, rewards, length).max(axis=-1) @ start  # (..., step)
    whole, rest = divmod(horizon, length)
    return whole * best[..., -1] + (best[..., rest - 1] if rest else 0.0)
