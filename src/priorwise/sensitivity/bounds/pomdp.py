"""Bounds for general decision problems: contexts, states, hidden states; the environment is drawn
from a prior.

With ``eps`` the total variation between priors over environments and ``delta = min(1, 2 n H eps)``
(the theorem on Bayesian POMDPs, with the Monte-Carlo constant n in all of its parts):

* the laws of (environment, trajectory, states) are within ``delta``;
* conditional mean rewards in an interval of length B (the paper centres it at 0, which shifts all
  rewards alike): ``|R(p, alg(p)) - R(p, alg(q))| <= B H delta``;
* in general ``H delta (Psi_p(delta) + Psi_p/q(delta))``, with the tail expectations of the absolute
  average conditional reward ``|(1/H) sum_h E[r_h | a_h, s_h, y_h, environment]|`` under ``alg(p)``
  and ``alg(q)``, both in tasks drawn from p. As all rewards may be shifted alike, the distance of
  that average from any constant will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.protocols import PlannedEnvironment
from priorwise.core.streams import Streams
from priorwise.core.types import FloatArray
from priorwise.sensitivity.bounds import bandits
from priorwise.sensitivity.bounds.approximation import (
    EXACT,
    approximation_of,
    given_approximation,
)
from priorwise.sensitivity.bounds.bandits import (
    Bound,
    distance_of,
    required_n,
    saved_steps,
    step_levels,
    trajectory_of,
)
from priorwise.simulate.sizes import check_run
from priorwise.simulate.steps import environments, steps
from priorwise.theory.conditions import Bounded
from priorwise.theory.diameters import DiameterLaw, SampleLaw, Tail
from priorwise.theory.distance import Distance

BLOCK: Final = 2048
"""Tasks run at a time."""

Kind = Literal["estimate", "upper", "exact"]
KINDS: Final[tuple[Kind, ...]] = ("estimate", "upper", "exact")
"""Of two numbers the worse one counts."""


@dataclass(frozen=True, eq=False)
class RewardTails:
    """Laws of the absolute average reward per step, in tasks of the true prior: exact, or from
    simulated runs.

    ``rewards`` says whose average it is: ``"conditional"`` (expected rewards of the chosen actions)
    or ``"realised"`` (rewards with their noise, for environments without ``values(signal)``). The
    theorem holds for both, as equal trajectories earn equal rewards. Averages are those of rewards
    minus ``centre``.
    """

    true: DiameterLaw
    believed: DiameterLaw
    rewards: Literal["conditional", "realised"]
    centre: float = 0.0

    @property
    def source(self) -> str:
        """Where the laws come from, in words."""
        if isinstance(self.true, SampleLaw):
            return f"{self.rewards} average rewards over {len(self.true.values):,} simulated tasks"
        return f"{self.rewards} average rewards, exact"

    def __str__(self) -> str:
        """Where the laws come from, and their means."""
        about = f" minus {self.centre:g}" if self.centre else ""
        means = f"{self.true.tail(1.0).value:.4g}, believed {self.believed.tail(1.0).value:.4g}"
        return f"{self.source}; mean size{about} {means}"

    def tail(self, p: float) -> Tail:
        """Sum of the two tail expectations; its standard error treats them as fully dependent,
        which is safe.
        """
        one, two = self.true.tail(p), self.believed.tail(p)
        kinds = {one.kind, two.kind}
        kind: Kind = next(each for each in KINDS if each in kinds)
        return Tail(one.value + two.value, one.std_error + two.std_error, kind)


def reward_tails(
    prior: Any,
    believed: Any,
    policy: Any,
    *,
    horizon: int,
    tasks: int,
    seed: int,
    centre: float = 0.0,
) -> RewardTails:
    """Run a policy with the true and with the believed prior, and keep each task's absolute average
    reward.

    Finite problems need no runs: see :func:`~priorwise.sensitivity.exact_reward_tails`.

    Parameters
    ----------
    prior, believed
        The law the tasks are drawn from, and the prior that the second policy believes.
    policy
        The algorithm.
    horizon, tasks
        Pulls in a task, and number of tasks.
    seed
        Tasks and noise are those of :func:`priorwise.simulate` with this seed.
    centre
        What is subtracted from every reward: the middle of their range gives the smallest tails.

    """
    centre = validation.number("centre", centre)
    horizon, tasks = validation.count("horizon", horizon), validation.count("tasks", tasks)
    seed = validation.seed(seed)
    argument_checks.fixed_prior("prior", prior)
    argument_checks.believed(prior, believed)
    argument_checks.playing(policy, believed, memory=True)
    check_run(prior, [policy, policy], horizon=horizon, tasks=tasks)
    true, conditional = _averages(prior, prior, policy, horizon, tasks, seed)
    other, _ = _averages(prior, believed, policy, horizon, tasks, seed)
    # where too few tasks are in a tail, what an average may be at most still bounds it
    limits = reward_limits(prior, conditional=conditional)
    most = () if limits is None else (Bounded(max(abs(each - centre) for each in limits)),)
    first, second = (SampleLaw.of(np.abs(each - centre), most) for each in (true, other))
    return RewardTails(first, second, "conditional" if conditional else "realised", centre)


def reward_limits(prior: Any, *, conditional: bool = True) -> tuple[float, float] | None:
    """Return an interval of rewards in a prior's tasks, or of their conditional means, which may be
    narrower; None where none is known or it is not finite.
    """
    given = getattr(prior, "reward_range", None)
    if conditional:
        given = getattr(prior, "mean_range", given)
    return None if given is None or not np.isfinite(given).all() else given


def pomdp_trajectory_bound(
    tv: float | Distance | tuple[Any, Any],
    n: Any,
    horizon: int,
    *,
    redraws: int | None = None,
    approximation: float | Distance | None = None,
    sharp: bool = False,
    estimate: bool = False,
    seed: int | None = None,
) -> Bound:
    """Bound how far the laws of environment, trajectory and states differ: ``min(1, 2 n H eps)``,
    or ``min(1, 2 n R eps)`` for a policy that draws R times only.

    Parameters
    ----------
    tv
        Total variation between the priors over environments: a number, taken as certain, or a
        :class:`Distance`; or the two priors, ``(p, q)``, the true one first.
    n
        Monte-Carlo constant of the policy: the number of environments it draws at each step, 0 if
        it draws none. With two priors also the policy itself, which knows its redraws too.
    horizon
        Steps, H.
    redraws
        R, for a policy that draws n environments R times in a task and keeps them in between, as
        :class:`~priorwise.policies.RoundSampling` does: ``policy.redraws(horizon)``. Draws count as
        actions, so that R of them take the place of H (docs/mdps.md has the proof).
    approximation
        What approximate posteriors add; with two priors and a policy ``estimate=True`` estimates
        it.
    sharp
        ``2 H - 1`` for ``2 H`` (``2 R - 1`` for ``2 R``), if nothing about the environment is seen
        before the first action. With two priors that is checked, otherwise it is yours to know.
    estimate
        Allow an estimated total variation.
    seed
        Needed where it is estimated from two priors.

    Examples
    --------
    >>> print(pomdp_trajectory_bound(0.01, 1, 10))
    at most 0.2 (certified; n-Monte-Carlo policy, shared reward law; delta = 0.2; without it 1)

    """
    horizon, estimate = validation.count("horizon", horizon), validation.flag("estimate", estimate)
    seed = None if seed is None else validation.seed(seed)
    policy, sharp = n, validation.flag("sharp", sharp)
    if isinstance(tv, tuple) and redraws is None and hasattr(n, "redraws"):
        n, redraws = n.k, n.redraws(horizon)
    if redraws is not None and validation.count("redraws", redraws) > horizon:
        raise ArgumentError("redraws", f"must not exceed the horizon, {horizon}", got=redraws)
    term: Distance | None = EXACT
    if isinstance(tv, tuple):
        if len(tv) != 2:
            raise ArgumentTypeError(
                "tv", "must be a number, a Distance or two priors (p, q)", got=len(tv)
            )
        distance = distance_of(*tv, tv=None, estimate=estimate, seed=seed)
        n = required_n(n, tv[0]) if hasattr(n, "monte_carlo_n") else n
        chosen: Any = policy if hasattr(policy, "act") else None
        term = approximation_of(
            *tv, chosen, horizon, given=approximation, estimate=estimate, seed=seed
        )
    else:
        distance = bandits.given_distance(tv, estimate=estimate)
        if approximation is not None:
            term = given_approximation(approximation)
    n = validation.count("n", n, least=0)
    saved = 0 if not sharp else saved_steps(tv[0]) if isinstance(tv, tuple) else 1
    if redraws is None:
        return trajectory_of(distance, n, horizon, term, saved)
    often = "once" if redraws == 1 else f"{redraws} times"
    kept = f"{n} environment{'' if n == 1 else 's'} drawn {often}, shared reward law"
    return replace(
        trajectory_of(distance, n, redraws, term, saved), horizon=horizon, assumption=kept
    )


def pomdp_reward_bound(
    tv: float | Distance | tuple[Any, Any],
    n: Any,
    horizon: int,
    *,
    redraws: int | None = None,
    reward_range: float | None = None,
    tails: RewardTails | None = None,
    approximation: float | Distance | None = None,
    sharp: bool = False,
    estimate: bool = False,
    seed: int | None = None,
) -> Bound:
    """Bound what the wrong prior changes of the expected total reward in a general decision
    problem.

    Parameters
    ----------
    tv, n, horizon, redraws, approximation
        As in :func:`pomdp_trajectory_bound`.
    reward_range
        Length B of an interval that holds every conditional mean reward: ``B H delta``. Of two
        priors the first may know it itself, as its ``mean_range`` or ``reward_range``.
    tails
        Instead of it, the tails of the average reward (see :func:`reward_tails` and
        :func:`~priorwise.sensitivity.exact_reward_tails`): ``H delta (Psi_p(delta) +
        Psi_p/q(delta))``.
    sharp
        With ``reward_range``: ``B sum_h delta_h`` with ``delta_h = min(1, n (2 h - 1) eps)``, about
        half, because step h depends on h steps only. Draws that are kept, and ``tails``, which are
        those of sums over all steps, take ``delta`` alone from it.
    estimate
        Needed for an estimated total variation and for tails from simulated runs.
    seed
        Needed where the total variation is estimated from two priors.

    """
    limits = reward_limits(tv[0]) if isinstance(tv, tuple) and tv else None
    if reward_range is None and tails is None and limits is not None:
        reward_range = limits[1] - limits[0]
    if (reward_range is None) == (tails is None):
        raise ArgumentTypeError(
            "reward_range",
            "must be given, or else tails=... (from reward_tails)",
        )
    given: Any = {"redraws": redraws, "approximation": approximation, "sharp": sharp}
    near = pomdp_trajectory_bound(tv, n, horizon, **given, estimate=estimate, seed=seed)
    level = near.value
    kept = redraws is not None or (isinstance(tv, tuple) and hasattr(n, "redraws"))
    if sharp and tails is None and not kept:
        saved = saved_steps(tv[0]) if isinstance(tv, tuple) else 1
        levels, counts = step_levels(near, saved)
        level = float(np.average(levels, weights=counts))
    if reward_range is not None:
        length = validation.not_negative("reward_range", reward_range)
        psi, trivial = Tail(length, 0.0, "exact"), horizon * length
        assumption = f"conditional mean rewards in an interval of length {psi.value:g}"
    else:
        argument_checks.role("tails", tails, "what reward_tails returns,", "tail", "source")
        assert tails is not None
        psi, trivial = tails.tail(level), horizon * tails.tail(1.0).value
        if psi.kind == "estimate" and not estimate:
            raise ArgumentError(
                "tails",
                "from simulated runs are estimates",
                cure="pass estimate=True to use them, or reward_range=...",
            )
        assumption = f"tails of {tails.source}"
    value = error = 0.0
    if level > 0.0:
        value = horizon * level * psi.value
        error = horizon * math.hypot(level * psi.std_error, near.std_error * psi.value)
    estimated = near.kind == "certified" and psi.kind == "estimate"
    if near.kind == "approximate":
        assumption = f"{assumption}; {bandits.UNCOUNTED}"
    return replace(
        near,
        value=value,
        kind="estimate" if estimated else near.kind,
        std_error=error,
        assumption=assumption,
        vacuous=value >= trivial * (1.0 - bandits.SLACK),
        trivial=trivial,
    )


def _averages(
    prior: Any, believed: Any, policy: Any, horizon: int, tasks: int, seed: int
) -> tuple[FloatArray, bool]:
    """Average reward of each task, and whether it is of conditional means."""
    found, conditional = np.empty(tasks), True
    for first in range(0, tasks, BLOCK):
        count = min(BLOCK, tasks - first)
        streams = Streams(seed, np.arange(first, first + count, dtype=np.uint64))
        environment, belief = environments(prior, streams), believed.belief(count)
        total = np.zeros(count)
        size: Any = {"horizon": horizon, "arms": prior.arms}
        real = getattr(prior, "actions", None)
        for step in steps(environment, belief, policy, streams, **size, actions=real):
            worth = step.worth
            if worth is None and isinstance(environment, PlannedEnvironment):
                # with one step left an action is worth its expected reward
                now = environment.planned(replace(step.seen, step=1, horizon=1))
                worth = now[np.arange(count), step.actions]
            conditional = worth is not None
            total += step.rewards if worth is None else worth
        found[first : first + count] = total / horizon
    return found, conditional
