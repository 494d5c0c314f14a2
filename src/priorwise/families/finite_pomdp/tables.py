"""Tables of candidates: checked, shared by all or one for each, and the laws of their rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.families.finite_mdp.prior import SAME_REWARD, Noise
from priorwise.families.tabular_mdp.prior import first_state


def tolerance(rewards: FloatArray) -> float:
    """How close two noiseless rewards must be to count as the same."""
    return SAME_REWARD * float(np.abs(rewards).max())


def reward_tables(rewards: FloatArray, noise: Noise) -> list[tuple[FloatArray, FloatArray]]:
    """For each action its distinct rewards, ``(reward,)``, and their probabilities, ``(candidate,
    state, reward)``, from means ``(candidate, state, action)``.
    """
    arms = rewards.shape[2]
    if noise == "bernoulli":
        law = np.stack([1.0 - rewards, rewards], axis=3)
        return [(np.array([0.0, 1.0]), law[:, :, arm]) for arm in range(arms)]
    near, out = tolerance(rewards), []
    for arm in range(arms):
        found = np.unique(rewards[:, :, arm])
        found = found[np.diff(found, prepend=-np.inf) > near]
        place = np.searchsorted(found, rewards[:, :, arm], side="right") - 1
        out.append((found, np.eye(len(found))[place]))
    return out


def each_candidate(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Check a table of every candidate, or one that they share."""
    array = validation.numbers(name, value)
    if array.ndim == len(shape) - 1:
        assert shape[0] is not None
        array = np.broadcast_to(array, (shape[0], *array.shape))
    return validation.matrix(name, array, shape)


def first_states(start: Any, support: int, states: int) -> FloatArray:
    """Return the law of the first state in each candidate."""
    if start is None:
        return np.full((support, states), 1.0 / states)
    if np.ndim(start) < 2:
        rows = first_state(start, states)[None]
    else:
        rows = validation.matrix("start", start, (support, states))
        rows = np.stack([validation.probabilities("start", each, states) for each in rows])
    total = rows.sum(axis=1, keepdims=True)
    scaled = np.where(np.abs(total - 1.0) > 1e-12, rows / total, rows)
    return np.repeat(scaled, support // len(rows), axis=0)
