"""Exact evaluation of a policy on a finite prior with noiseless or Bernoulli rewards, by
enumeration of histories.

Every number here is a finite sum. A history that the believed prior rules out makes the belief
start again from that prior, as it does in a simulation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.types import FloatArray, IntArray
from priorwise.sensitivity.bounds.pomdp import RewardTails
from priorwise.sensitivity.exact.histories import MOST_HISTORIES, world_of
from priorwise.theory.diameters import FiniteLaw
from priorwise.theory.enumeration import EnumerablePrior, average


@dataclass(frozen=True, eq=False)
class ExactEvaluation:
    """The law of the trajectories of alg(believed) on tasks of a prior; they are sorted by nothing
    in particular.
    """

    actions: IntArray  # (trajectory, step)
    rewards: FloatArray  # (trajectory, step)
    probability: FloatArray  # (trajectory,)
    # (trajectory, step + 1): the state before each pull and after the last; None without a state
    signals: IntArray | None = None

    @property
    def by_step(self) -> FloatArray:
        """Expected reward of each pull, ``(step,)``."""
        return np.asarray(self.probability @ self.rewards)

    @property
    def mean_reward(self) -> float:
        """``R(theta, alg(theta'))``: expected sum of the rewards."""
        return float(self.by_step.sum())

    def __str__(self) -> str:
        """Expected reward and size."""
        return f"{self.mean_reward:.6g} (exact, {len(self.probability)} trajectories)"


@dataclass(frozen=True, eq=False)
class ExactRewards:
    """Expected reward of each pull, and how many states the sum ran over."""

    by_step: FloatArray  # (step,)
    states: int

    @property
    def mean_reward(self) -> float:
        """``R(theta, alg(theta'))``."""
        return float(self.by_step.sum())

    def __str__(self) -> str:
        """Expected reward and size."""
        return f"{self.mean_reward:.6g} (exact, {self.states} states)"


@dataclass(frozen=True)
class TrajectoryDistance:
    """Total variation between laws of whole trajectories.

    ``value`` is ``TV(P_{theta, alg(theta)}, P_{theta, alg(theta')})``: the same tasks, another
    believed prior. This is the distance of the theorem, at most ``2 n H eps``. (The theorem's laws
    include the means; given a trajectory these have the same law, the posterior under theta, so the
    distance is that of the trajectories alone.) ``own_tasks`` is ``TV(P_{theta, alg(theta)},
    P_{theta', alg(theta')})``: the tasks move with the believed prior, which adds at most ``eps``.
    """

    value: float
    own_tasks: float


def exact_evaluation(
    prior: EnumerablePrior,
    policy: Any,
    horizon: int,
    *,
    believed: EnumerablePrior | None = None,
    most: int = MOST_HISTORIES,
) -> ExactEvaluation:
    """Law of the trajectories of ``policy``, which believes ``believed``, on tasks drawn from
    ``prior``.

    Parameters
    ----------
    prior
        Finite prior with ``noise="none"`` or ``"bernoulli"``.
    policy
        A policy whose ``probabilities`` are exact for such a prior.
    horizon
        Pulls in a task.
    believed
        The prior the policy believes, if it is not the true one.
    most
        Trajectories to enumerate at most; an error says when there are more. :func:`exact_rewards`
        goes further.

    Examples
    --------
    >>> import priorwise as pw
    >>> prior = pw.FinitePrior(means=[[1.0, 0.0], [0.0, 1.0]], probs=[0.9, 0.1])
    >>> print(exact_evaluation(prior, pw.ThompsonSampling(), horizon=2))
    1.82 (exact, 4 trajectories)

    """
    believed = prior if believed is None else believed
    world, weights = world_of(prior, {"believed": believed}, policy, horizon, most)
    histories = world.start()
    for step in range(1, world.horizon + 1):
        histories = world.grow(histories, world.action_laws(histories, step), step)
    if histories.actions is None or histories.rewards is None:
        raise AssertionError("histories were not merged")
    signals = histories.signals
    return ExactEvaluation(
        histories.actions,
        histories.rewards,
        histories.probability(weights[0], 0),
        None if signals is None else np.column_stack([signals, histories.signal]),
    )


def exact_rewards(
    prior: EnumerablePrior,
    policy: Any,
    horizon: int,
    *,
    believed: EnumerablePrior | None = None,
    most: int = MOST_HISTORIES,
) -> ExactRewards:
    """Expected reward of each pull: as :func:`exact_evaluation`, but histories with the same future
    are merged.

    With Bernoulli rewards the number of states grows like a power of the horizon instead of
    exponentially.
    """
    believed = prior if believed is None else believed
    world, weights = world_of(prior, {"believed": believed}, policy, horizon, most)
    histories, by_step, states = world.start(), np.empty(world.horizon), 0
    for step in range(1, world.horizon + 1):
        law = world.action_laws(histories, step)[0]
        states += len(law)
        values = world.expected_rewards(histories, step)
        sums = "is,s,sa,ia->i" if values.ndim == 2 else "is,s,isa,ia->i"
        earned = np.einsum(sums, histories.likelihood, weights[0], values, law)
        by_step[step - 1] = np.sum(histories.mass * histories.played[:, 0] * earned)
        if step < world.horizon:
            histories = world.grow(histories, [law], step).merged()
    return ExactRewards(by_step, states)


def exact_trajectory_tv(
    prior: EnumerablePrior,
    other: EnumerablePrior,
    policy: Any,
    horizon: int,
    *,
    most: int = MOST_HISTORIES,
) -> TrajectoryDistance:
    """Total variation between the trajectories of ``policy`` when it believes ``prior`` and when it
    believes ``other``.

    The tasks are drawn from ``prior`` under both laws; ``own_tasks`` of the result draws them from
    ``other`` under the second.
    """
    world, (mine, others) = world_of(prior, {"prior": prior, "other": other}, policy, horizon, most)
    histories = world.start()
    for step in range(1, world.horizon):
        histories = world.grow(histories, world.action_laws(histories, step), step).merged()
    # (history, arm, believed prior)
    laws = np.stack(world.action_laws(histories, world.horizon), axis=2)
    apart = np.zeros(2)
    # the last pull need not be laid out
    for arm, shown in enumerate(world.outcomes(histories, world.horizon)):
        first, second = (histories.mass[:, None] * histories.played * laws[:, arm]).T
        for outcome in shown:
            true, moved = (
                average(histories.likelihood, outcome.chance * weights)
                for weights in (mine, others)
            )
            apart += (
                np.abs(first * true - second * true).sum(),
                np.abs(first * true - second * moved).sum(),
            )
    return TrajectoryDistance(float(apart[0] / 2.0), float(apart[1] / 2.0))


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
    that believes the true prior, and one that believes ``believed``, in tasks of the true prior.

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
        FiniteLaw.of(values, (joint * histories.played[:, [which]]).ravel()) for which in (0, 1)
    )
    return RewardTails(first, second, "conditional", centre)
