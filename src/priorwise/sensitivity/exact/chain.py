"""The chain of inequalities inside the sensitivity theorem, every link computed exactly.

    2 n H eps  >=  n sum_h E TV(posteriors)  >=  sum_h E TV(action laws)  >=  Pr[coupled runs
    diverge]  >=  TV(trajectories)

with expectations over histories of alg(theta) on tasks of theta: de-conditioning, the n-Monte-Carlo
property, and the telescoping over steps (Proposition "prior sensitivity", and its proof). Coupled
runs meet the same task and rewards, and while their histories agree, their actions agree as often
as the two laws allow: with probability sum_a min(alg(theta)(a), alg(theta')(a)).

Below the last link, in rewards: with L_h the likelihood ratio of alg(theta') to alg(theta) up to
the action at h, and tau the history before it, the gap lies between the ends of

    -sum_h E[(1 - L_h)_+ (E[max mu | tau] - m_(a_h))],  sum_h E[(1 - L_h)_+ (m_(a_h) - E[min mu |
    tau])]

whose distance ``sum_h E[(1 - L_h)_+ E[diam | tau]]`` is at most ``H delta Psi(delta)`` with delta
the last link, and at most ``sum_h E[TV(action laws) (H - h + 1) E[diam | tau]]``. In a problem with
a state max, min and diam are over all states and actions of a task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.sensitivity.exact.evaluation import exact_rewards
from priorwise.sensitivity.exact.histories import MOST_HISTORIES, world_of
from priorwise.theory.enumeration import EnumerablePrior


@dataclass(frozen=True, eq=False)
class ExactChain:
    """Exact links for one problem, one policy and two priors."""

    prior_tv: float  # eps
    posterior_tv: FloatArray  # (step,): E TV of the posteriors before the pull
    action_tv: FloatArray  # (step,): E TV of the laws of the action
    # probability that runs whose actions are coupled maximally at each step diverge
    disagreement: float
    trajectory_tv: float
    reward: float  # R(theta, alg(theta))
    reward_other: float  # R(theta, alg(theta'))
    interval: tuple[float, float]  # ends of the gap from likelihood ratios
    stepwise: float  # sum_h E[TV of the action laws times the diameter of all pulls to come]

    @property
    def likelihood_ratio(self) -> float:
        """``sum_h E[(1 - L_h)_+ E[diam | tau]]``: how long the interval is."""
        return self.interval[1] - self.interval[0]

    @property
    def gap(self) -> float:
        """``R(theta, alg(theta)) - R(theta, alg(theta'))``; negative where the wrong prior earns
        more.
        """
        return self.reward - self.reward_other

    def links(self, n: int) -> FloatArray:
        """Return ``2 n H eps`` and the four links below it, in the order of the chain; they fall
        for an n that holds.
        """
        bound = 2.0 * n * len(self.action_tv) * self.prior_tv
        posteriors = n * float(self.posterior_tv.sum())
        return np.array(
            [bound, posteriors, self.action_tv.sum(), self.disagreement, self.trajectory_tv]
        )


def exact_chain(
    prior: EnumerablePrior,
    other: EnumerablePrior,
    policy: Any,
    horizon: int,
    *,
    most: int = MOST_HISTORIES,
) -> ExactChain:
    """Compute every link of the chain for a policy that believes ``prior`` or ``other``, on tasks
    drawn from ``prior``.
    """
    world, weights = world_of(prior, {"prior": prior, "other": other}, policy, horizon, most)
    # by alg(prior), by alg(other), by both of the coupled runs
    histories = world.start()
    histories = replace(histories, played=np.ones((len(histories.mass), 3)))
    posterior_tv, action_tv, parting = np.empty((3, world.horizon))
    trajectory_tv, ends, stepwise = 0.0, np.zeros(2), 0.0
    match, extremes = _points(prior, other), world.possible.extremes()
    for step in range(1, world.horizon + 1):
        mine, others, both = (histories.probability(weights[0], believed) for believed in range(3))
        first, second = (
            belief.probabilities() @ m for belief, m in zip(histories.beliefs, match, strict=True)
        )
        posterior_tv[step - 1] = mine @ np.abs(first - second).sum(axis=1) / 2.0
        laws = world.action_laws(histories, step)
        apart = np.abs(laws[0] - laws[1]).sum(axis=1) / 2.0
        action_tv[step - 1], parting[step - 1] = mine @ apart, both @ apart
        values = world.expected_rewards(histories, step)
        given = histories.likelihood * weights[0]
        given /= given.sum(axis=1, keepdims=True)
        mean = np.einsum("is,sa->ia" if values.ndim == 2 else "is,isa->ia", given, values)
        high, low = (given @ each for each in extremes)
        fallen = np.maximum(mine[:, None] * laws[0] - others[:, None] * laws[1], 0.0)
        ends += [(fallen * (mean - end[:, None])).sum() for end in (high, low)]
        stepwise += (world.horizon - step + 1) * float(mine @ (apart * (high - low)))
        if step < world.horizon:
            histories = (
                world.grow(histories, [*laws, np.minimum(*laws)], step).under(weights[0]).merged()
            )
        else:  # given the history and the action, what comes last has one law
            trajectory_tv = float(
                np.abs(mine[:, None] * laws[0] - others[:, None] * laws[1]).sum() / 2.0
            )
    return ExactChain(
        total_variation(prior, other).value,
        posterior_tv,
        action_tv,
        float(parting.sum()),
        trajectory_tv,
        exact_rewards(prior, policy, horizon, most=most).mean_reward,
        exact_rewards(prior, policy, horizon, believed=other, most=most).mean_reward,
        (float(ends[0]), float(ends[1])),
        stepwise,
    )


def _points(prior: EnumerablePrior, other: EnumerablePrior) -> tuple[FloatArray, FloatArray]:
    """Matrices ``(support, point)`` that say which of all distinct tasks each support point is."""
    first, second = prior.candidates, other.candidates
    points, place = np.unique(np.concatenate([first, second]) + 0.0, axis=0, return_inverse=True)
    matrix = np.eye(len(points))[place.reshape(-1)]
    return matrix[: len(first)], matrix[len(first) :]
