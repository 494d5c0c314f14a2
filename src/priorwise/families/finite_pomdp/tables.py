"""Tables of candidates: checked, shared by all or one for each, and the laws of their rewards."""

from __future__ import annotations

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.finite_mdp.prior import SAME_REWARD, Noise


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
