"""What a wrong prior can cost: bounds on trajectories and rewards for n-Monte-Carlo policies.

With ``eps = TV(p, q)``, n the policy's Monte-Carlo constant and ``delta = 2 n H eps`` (main
proposition and theorem):

* the laws of (mu, trajectory) under ``alg(p)`` and ``alg(q)``, in tasks drawn from p, are within
  ``delta`` in total variation;
* ``|R(p, alg(p)) - R(p, alg(q))| <= H delta Psi_p(delta)``, that is ``2 n H^2 eps Psi_p(2 n H
  eps)``.

Both are used at ``min(1, delta)``: total variation never exceeds 1, and beyond it the second is the
trivial ``H E[diam]``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from priorwise.core import doors, validation
from priorwise.core.conditions import TailCondition, is_printed
from priorwise.core.distance import Distance
from priorwise.core.influence import refuse_influence
from priorwise.core.protocols import monte_carlo_n
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.sensitivity.distance.pairs import check_shared
from priorwise.sensitivity.tails.diameter import DRAWS
from priorwise.sensitivity.tails.expectation import TailExpectation as Psi
from priorwise.sensitivity.tails.expectation import find_condition, tail_expectations

SLACK: Final = 1e-12
"""Relative rounding below which two bounds are the same."""


@dataclass(frozen=True)
class Bound:
    """A bound and how far it can be trusted.

    ``kind`` is ``"certified"`` (it holds under ``assumption``) or ``"estimate"`` (from estimated
    numbers, with their standard error). ``vacuous``: no smaller than ``trivial``, which holds
    whatever the priors: 1 for trajectories, ``H E[diam]`` (or the smallest known bound on it) for
    rewards. ``delta`` is ``2 n H eps``, ``tv`` the distance eps it was computed from.
    """

    value: float
    kind: Literal["certified", "estimate"]
    std_error: float
    assumption: str
    vacuous: bool
    trivial: float
    delta: float
    tv: Distance
    n: int
    horizon: int

    def __str__(self) -> str:
        """Value, what it is, and whether it says anything."""
        known = f"about {self.value:.4g} ± {self.std_error:.2g}"
        if self.kind == "certified":
            known = f"at most {self.value:.4g}"
        says = f"{'vacuous: never more than' if self.vacuous else 'without it'} {self.trivial:.4g}"
        return f"{known} ({self.kind}; {self.assumption}; delta = {self.delta:.4g}; {says})"


def trajectory_bound(
    p: Any,
    q: Any,
    policy: Any,
    horizon: int,
    *,
    tv: float | Distance | None = None,
    estimate: bool = False,
    seed: int | None = None,
) -> Bound:
    """Bound how far trajectories differ: ``min(1, 2 n H TV(p, q))``, in total variation.

    It holds for bandits, contextual bandits and problems with a state alike.

    Parameters
    ----------
    p, q
        The true prior and the one the policy believes instead; ``q`` may be None if ``tv`` is
        given.
    policy
        A policy with a Monte-Carlo constant: ``policy.monte_carlo_n(arms)`` is not None. Where it
        is 0, so is the bound.
    horizon
        Pulls in a task, H.
    tv
        Total variation between the priors, if it is known: a number, which is taken as certain, or
        a :class:`Distance`.
    estimate
        Use an estimated total variation where there is no exact one; otherwise its certified upper
        bound is used.
    seed
        Needed for estimates.

    Examples
    --------
    >>> import priorwise as pw
    >>> p, q = (pw.GaussianPrior([shift, 0.0], [[1.0, 0.0], [0.0, 1.0]]) for shift in (0.5, 0.51))
    >>> round(trajectory_bound(p, q, pw.ThompsonSampling(), 10).value, 4)
    0.0798

    """
    horizon, n = validation.count("horizon", horizon), required_n(policy, p)
    estimate = validation.flag("estimate", estimate)
    seed = None if seed is None else validation.seed(seed)
    return trajectory_of(distance_of(p, q, tv=tv, estimate=estimate, seed=seed), n, horizon)


def reward_bound(
    p: Any,
    q: Any,
    policy: Any,
    horizon: int,
    *,
    tail: str | TailCondition = "auto",
    tv: float | Distance | None = None,
    estimate: bool = False,
    seed: int | None = None,
    draws: int = DRAWS,
) -> Bound:
    """Bound what the wrong prior changes of the expected total reward, ``|R(p, alg(p)) - R(p,
    alg(q))|``.

    It is ``H delta Psi(delta)`` with ``delta = min(1, 2 n H TV(p, q))`` and Psi the tail
    expectation of the diameter under p.

    Parameters
    ----------
    p, q, policy, horizon, tv
        As in :func:`trajectory_bound`.
    tail
        ``"auto"``: Psi where it is known exactly (or with ``estimate`` estimated), otherwise the
        smallest certified bound on it. A condition or its name (see
        :func:`priorwise.tail_expectation`) takes that one. The names that end in ``-printed`` give
        the theorem as printed: ``log(A^2 / delta)`` for ``log(2 A / delta)``, and ``2 n H^2 eps``
        in front also where it exceeds H.
    estimate
        Use estimates of the total variation and of Psi where there are no exact values.
    seed, draws
        For estimates.

    Examples
    --------
    >>> import priorwise as pw
    >>> p, q = (pw.GaussianPrior([shift, 0.0], [[1.0, 0.0], [0.0, 1.0]]) for shift in (0.5, 0.51))
    >>> print(reward_bound(p, q, pw.ThompsonSampling(), 10))
    at most 2.574 (certified; law of the diameter; delta = 0.07979; without it 11.98)

    """
    required_n(policy, p)
    refuse_influence(p, "reward_bound", "pomdp_reward_bound")
    near = trajectory_bound(p, q, policy, horizon, tv=tv, estimate=estimate, seed=seed)
    psi, mean = _tails(p, near.value, tail, horizon, seed if estimate else None, draws)
    printed = not _is_auto(tail) and is_printed(find_condition(p, tail, "tail"))
    value = horizon * _times(near.delta if printed else near.value, psi.value)
    trivial = horizon * mean.value
    # p Psi(p) rises to Psi(1), but bounds on Psi need not keep to that
    if _is_auto(tail) and mean.kind in (psi.kind, "exact"):
        value = min(value, trivial)
    # d(delta Psi(delta)) / d(delta) is the quantile, at most Psi
    error = math.hypot(_times(near.value, psi.std_error), _times(near.std_error, psi.value))
    return replace(
        near,
        value=value,
        kind="estimate" if "estimate" in (near.kind, psi.kind) else "certified",
        std_error=horizon * error,
        assumption=psi.assumption if tv is None else f"{psi.assumption}; total variation as given",
        vacuous=value >= trivial * (1.0 - SLACK),
        trivial=trivial,
    )


def _tails(
    prior: Any, p: float, tail: str | TailCondition, horizon: int, seed: int | None, draws: int
) -> tuple[Psi, Psi]:
    """Psi at the level p as asked for, and the mean as well as it is known."""
    if _is_auto(tail):
        psi, mean = tail_expectations(prior, [p, 1.0], horizon=horizon, seed=seed, draws=draws)
        return psi, mean
    chosen = find_condition(prior, tail, "tail")
    (psi,) = tail_expectations(prior, [p], horizon=horizon, condition=chosen)
    sampled: Any = {"seed": seed, "draws": draws}
    (mean,) = tail_expectations(prior, [1.0], horizon=horizon, also=(chosen,), **sampled)
    return psi, mean


def _is_auto(tail: str | TailCondition) -> bool:
    return isinstance(tail, str) and tail == "auto"


def _times(a: float, b: float) -> float:
    """Product in which 0 times infinity is 0: nothing is lost where nothing differs."""
    return a * b if a > 0.0 and b > 0.0 else 0.0


def required_n(policy: Any, prior: Any) -> int:
    """Return the policy's Monte-Carlo constant; refuse policies without one."""
    doors.role("p", prior, "a prior")
    if not hasattr(prior, "arms"):
        what = f"a {type(prior).__name__} has no fixed number of arms"
        raise TypeError(f"{what}: pass prior.for_arms(n) for both priors")
    doors.role("policy", policy, "a policy")
    n = monte_carlo_n(policy, prior.arms)
    if n is None:
        raise TypeError(f"policy: {no_bound(policy)}")
    return n


def no_bound(policy: Any) -> str:
    """Say that a policy has no Monte-Carlo constant, and which have."""
    if hasattr(policy, "redraws"):
        return (
            f"no bound by steps is known for {type(policy).__name__}, which keeps its draws; "
            "pass it to pomdp_trajectory_bound or pomdp_reward_bound with both priors"
        )
    return (
        f"no bound is known for {type(policy).__name__}, which has no Monte-Carlo constant as it "
        "is set (its choice looks at the posterior itself, not only at a number of draws from it); "
        "take one that chooses from draws, such as ThompsonSampling or PosteriorSampling"
    )


def trajectory_of(distance: Distance, n: int, horizon: int) -> Bound:
    """``min(1, 2 n H eps)``."""
    delta = 2.0 * n * horizon * distance.value
    estimated = distance.kind == "estimate"
    return Bound(
        value=min(1.0, delta),
        kind="estimate" if estimated else "certified",
        std_error=2.0 * n * horizon * distance.std_error if estimated and delta < 1.0 else 0.0,
        assumption="n-Monte-Carlo policy, shared reward law",
        vacuous=delta >= 1.0,
        trivial=1.0,
        delta=delta,
        tv=distance,
        n=n,
        horizon=horizon,
    )


def given_distance(tv: float | Distance, *, estimate: bool) -> Distance:
    """Check a total variation that the caller knows."""
    if not isinstance(tv, Distance):
        value = validation.number("tv", tv)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"tv must lie between 0 and 1, got {value:g}")
        return Distance(value, "upper", 0.0, value)
    if tv.kind == "estimate" and not estimate:
        raise ValueError(
            "tv is an estimate, which certifies nothing: pass estimate=True to use it, or "
            "tv=tv.upper for its certified bound"
        )
    return tv


def distance_of(
    p: Any, q: Any, *, tv: float | Distance | None, estimate: bool, seed: int | None
) -> Distance:
    """Return the distance between the priors whose value a bound uses: certified unless an estimate
    is wanted.
    """
    if tv is not None:
        if q is not None:
            check_shared(p, q)
        return given_distance(tv, estimate=estimate)
    if q is None:
        raise TypeError(
            "q must be the prior that the policy believes; it may be None only if tv=... gives its "
            "distance from p"
        )
    return total_variation(p, q, seed=seed, estimate=estimate)
