"""Bounds for general decision problems: contexts, states, hidden states; the environment is drawn
from a prior.

With ``eps`` the total variation between priors over environments and ``delta = min(1, 2 n H eps)``
(the theorem on Bayesian POMDPs, with the Monte-Carlo constant n in all of its parts):

* the laws of (environment, trajectory, states) are within ``delta``;
* conditional mean rewards in an interval of length B (the paper centres it at 0, which shifts all
  rewards alike): ``|R(p, alg(p)) - R(p, alg(q))| <= B H delta``;
* in general ``H delta (Psi_p(delta) + Psi_p/q(delta))``, with the tail expectations of the absolute
  average conditional reward ``|(1/H) sum_h E[r_h | a_h, s_h, y_h, environment]|`` under ``alg(p)``
  and ``alg(q)``, both in tasks drawn from p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.diameters import SampleLaw, Tail
from priorwise.core.distance import Distance
from priorwise.core.streams import Streams
from priorwise.core.types import FloatArray
from priorwise.sensitivity.bounds.bandits import Bound, given_distance, trajectory_of
from priorwise.simulate.sizes import check_run
from priorwise.simulate.steps import environments, steps

BLOCK: Final = 2048
"""Tasks run at a time."""


@dataclass(frozen=True, eq=False)
class RewardTails:
    """Laws of the absolute average reward per step, in tasks of the true prior, from simulated
    runs.

    ``rewards`` says whose average it is: ``"conditional"`` (expected rewards of the chosen actions)
    or ``"realised"`` (rewards with their noise, for environments without ``values(signal)``). The
    theorem holds for both, as equal trajectories earn equal rewards.
    """

    true: SampleLaw
    believed: SampleLaw
    rewards: Literal["conditional", "realised"]

    def tail(self, p: float) -> Tail:
        """Sum of the two tail expectations; its standard error treats them as fully dependent,
        which is safe.
        """
        one, two = self.true.tail(p), self.believed.tail(p)
        return Tail(one.value + two.value, one.std_error + two.std_error, "estimate")


def reward_tails(
    prior: Any, believed: Any, policy: Any, *, horizon: int, tasks: int, seed: int
) -> RewardTails:
    """Run a policy with the true and with the believed prior, and keep each task's absolute average
    reward.

    Parameters
    ----------
    prior, believed
        The law the tasks are drawn from, and the prior that the second policy holds.
    policy
        The algorithm.
    horizon, tasks
        Pulls in a task, and number of tasks.
    seed
        Tasks and noise are those of :func:`priorwise.simulate` with this seed.

    """
    horizon, tasks, seed = (
        validation.count("horizon", horizon),
        validation.count("tasks", tasks),
        validation.seed(seed),
    )
    doors.fixed_prior("prior", prior)
    doors.believed(prior, believed)
    doors.playing(policy, believed, memory=True)
    check_run(prior, [policy, policy], horizon=horizon, tasks=tasks)
    true, conditional = _averages(prior, prior, policy, horizon, tasks, seed)
    other, _ = _averages(prior, believed, policy, horizon, tasks, seed)
    return RewardTails(
        SampleLaw.of(true), SampleLaw.of(other), "conditional" if conditional else "realised"
    )


def pomdp_trajectory_bound(
    tv: float | Distance, n: int, horizon: int, *, estimate: bool = False
) -> Bound:
    """Bound how far the laws of environment, trajectory and states differ: ``min(1, 2 n H eps)``.

    Parameters
    ----------
    tv
        Total variation between the priors over environments: a number, taken as certain, or a
        :class:`Distance`.
    n
        Monte-Carlo constant of the policy: the number of environments it draws at each step, 0 if
        it draws none.
    horizon
        Steps, H.
    estimate
        Allow an estimated total variation.

    """
    distance = given_distance(tv, estimate=validation.flag("estimate", estimate))
    return trajectory_of(
        distance, validation.count("n", n, least=0), validation.count("horizon", horizon)
    )


def pomdp_reward_bound(
    tv: float | Distance,
    n: int,
    horizon: int,
    *,
    reward_range: float | None = None,
    tails: RewardTails | None = None,
    estimate: bool = False,
) -> Bound:
    """Bound what the wrong prior changes of the expected total reward in a general decision
    problem.

    Parameters
    ----------
    tv, n, horizon
        As in :func:`pomdp_trajectory_bound`.
    reward_range
        Length B of an interval that holds every conditional mean reward: ``B H delta``.
    tails
        Instead of it, tails from simulated runs (see :func:`reward_tails`): ``H delta (Psi_p(delta)
        + Psi_p/q(delta))``.
    estimate
        Needed for an estimated total variation and for ``tails``.

    """
    if (reward_range is None) == (tails is None):
        raise TypeError(
            "pass one of reward_range=... (rewards in an interval) and tails=... (from "
            "reward_tails)"
        )
    near = pomdp_trajectory_bound(tv, n, horizon, estimate=estimate)
    level = near.value
    if reward_range is not None:
        psi, trivial = Tail(_range(reward_range), 0.0, "exact"), horizon * _range(reward_range)
        assumption = f"conditional mean rewards in an interval of length {psi.value:g}"
    else:
        assert tails is not None
        if not estimate:
            raise ValueError(
                "tails from simulated runs are estimates: pass estimate=True to use them, or "
                "reward_range=..."
            )
        psi, trivial = tails.tail(level), horizon * tails.tail(1.0).value
        assumption = (
            f"tails of {tails.rewards} average rewards over {len(tails.true.values):,} simulated "
            "tasks"
        )
    value = horizon * level * psi.value if level > 0.0 else 0.0
    error = (
        horizon * math.hypot(level * psi.std_error, near.std_error * psi.value)
        if level > 0.0
        else 0.0
    )
    return Bound(
        value=value,
        kind="estimate" if tails is not None or near.kind == "estimate" else "certified",
        std_error=error,
        assumption=assumption,
        vacuous=near.vacuous or value >= trivial,
        trivial=trivial,
        delta=near.delta,
        tv=near.tv,
        n=near.n,
        horizon=near.horizon,
    )


def _range(value: float) -> float:
    checked = validation.number("reward_range", value)
    if checked < 0.0:
        raise ValueError(f"reward_range must not be negative, got {checked:g}")
    return checked


def _averages(
    prior: Any, believed: Any, policy: Any, horizon: int, tasks: int, seed: int
) -> tuple[FloatArray, bool]:
    """Absolute average reward of each task, and whether it is of conditional means."""
    found, conditional = np.empty(tasks), True
    for first in range(0, tasks, BLOCK):
        count = min(BLOCK, tasks - first)
        streams = Streams(seed, np.arange(first, first + count, dtype=np.uint64))
        environment, belief = environments(prior, streams), believed.belief(count)
        total = np.zeros(count)
        real = getattr(prior, "actions", None)
        for step in steps(
            environment, belief, policy, streams, horizon=horizon, arms=prior.arms, actions=real
        ):
            conditional = step.worth is not None
            total += step.rewards if step.worth is None else step.worth
        found[first : first + count] = np.abs(total) / horizon
    return found, conditional
