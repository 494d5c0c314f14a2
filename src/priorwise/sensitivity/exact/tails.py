"""Exact tails of the average reward on finite problems, for the theorem on general decision
problems.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.diameters import FiniteLaw
from priorwise.core.enumeration import EnumerablePrior
from priorwise.sensitivity.bounds.pomdp import RewardTails
from priorwise.sensitivity.exact.histories import MOST_HISTORIES, world_of


def exact_reward_tails(
    prior: EnumerablePrior,
    believed: EnumerablePrior,
    policy: Any,
    horizon: int,
    *,
    centre: float = 0.0,
    most: int = MOST_HISTORIES,
) -> RewardTails:
    """Compute the laws of ``|(1/H) sum_h E[r_h | a_h, s_h, environment] - centre|`` for a policy
    that holds the true prior, and one that holds ``believed``, in tasks of the true prior.

    Histories with the same future and the same expected reward so far, in each possible task, are
    one.

    Parameters
    ----------
    prior, believed, policy, horizon, most
        As in :func:`~priorwise.sensitivity.exact_trajectory_tv`.
    centre
        What is subtracted from every reward: the middle of their range gives the smallest tails.

    """
    centre = validation.number("centre", centre)
    world, (weights, _) = world_of(
        prior, {"prior": prior, "believed": believed}, policy, horizon, most
    )
    histories = world.start()
    histories = replace(histories, earned=np.zeros(histories.likelihood.shape))
    for step in range(1, world.horizon + 1):
        laws = world.action_laws(histories, step)
        histories = world.grow(histories, laws, step).under(weights).merged()
    assert histories.earned is not None
    values = np.abs(histories.earned / world.horizon - centre).ravel()
    joint = histories.mass[:, None] * histories.likelihood * weights  # of history and task
    first, second = (
        FiniteLaw.of(values, (joint * histories.played[:, [held]]).ravel()) for held in (0, 1)
    )
    return RewardTails(first, second, "conditional", centre)
