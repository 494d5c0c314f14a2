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
from typing import Any, Final

from priorwise.core import validation
from priorwise.core.conditions import TailCondition, is_printed
from priorwise.core.distance import Distance
from priorwise.core.influence import refuse_influence
from priorwise.sensitivity.bounds.bound import Bound, distance_of, required_n, trajectory_of
from priorwise.sensitivity.tails.diameter import DRAWS
from priorwise.sensitivity.tails.expectation import (
    TailExpectation,
    find_condition,
    tail_expectations,
)

__all__ = ["Bound", "reward_bound", "trajectory_bound"]

SLACK: Final = 1e-12
"""Relative rounding below which two bounds are the same."""


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

    Parameters
    ----------
    p, q
        The true prior and the one the policy holds instead; ``q`` may be None if ``tv`` is given.
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
    refuse_influence(p, "trajectory_bound", "pomdp_trajectory_bound")
    estimate, seed = (
        validation.flag("estimate", estimate),
        None if seed is None else validation.seed(seed),
    )
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
    p, q
        The true prior and the one the policy holds instead; ``q`` may be None if ``tv`` is given.
    policy
        A policy with a Monte-Carlo constant: ``policy.monte_carlo_n(arms)`` is not None. Where it
        is 0, so is the bound.
    horizon
        Pulls in a task, H.
    tail
        ``"auto"``: Psi where it is known exactly (or with ``estimate`` estimated), otherwise the
        smallest certified bound on it. A condition or its name (see
        :func:`priorwise.tail_expectation`) takes that one. The names that end in ``-printed`` give
        the theorem as printed: ``log(A^2 / delta)`` for ``log(2 A / delta)``, and ``2 n H^2 eps``
        in front also where it exceeds H.
    tv
        Total variation between the priors, if it is known: a number, which is taken as certain, or
        a :class:`Distance`.
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
    horizon, n = validation.count("horizon", horizon), required_n(policy, p)
    refuse_influence(p, "reward_bound", "pomdp_reward_bound")
    estimate, seed = (
        validation.flag("estimate", estimate),
        None if seed is None else validation.seed(seed),
    )
    near = trajectory_of(distance_of(p, q, tv=tv, estimate=estimate, seed=seed), n, horizon)
    psi, mean = _tails(p, near.value, tail, horizon, seed if estimate else None, draws)
    printed = not _is_auto(tail) and is_printed(find_condition(p, tail, "tail"))
    value, trivial = (
        horizon * _times(near.delta if printed else near.value, psi.value),
        horizon * mean.value,
    )
    # p Psi(p) rises to Psi(1), but bounds on Psi need not keep to that
    if _is_auto(tail) and mean.kind in (psi.kind, "exact"):
        value = min(value, trivial)
    return Bound(
        value=value,
        kind="estimate" if "estimate" in (near.kind, psi.kind) else "certified",
        # d(delta Psi(delta)) / d(delta) is the quantile, at most Psi
        std_error=horizon
        * math.hypot(_times(near.value, psi.std_error), _times(near.std_error, psi.value)),
        assumption=psi.assumption if tv is None else f"{psi.assumption}; total variation as given",
        vacuous=value >= trivial * (1.0 - SLACK),
        trivial=trivial,
        delta=near.delta,
        tv=near.tv,
        n=n,
        horizon=horizon,
    )


def _tails(
    prior: Any, p: float, tail: str | TailCondition, horizon: int, seed: int | None, draws: int
) -> tuple[TailExpectation, TailExpectation]:
    """Psi at the level p as asked for, and the mean as well as it is known."""
    if _is_auto(tail):
        psi, mean = tail_expectations(prior, [p, 1.0], horizon=horizon, seed=seed, draws=draws)
        return psi, mean
    chosen = find_condition(prior, tail, "tail")
    (psi,) = tail_expectations(prior, [p], horizon=horizon, condition=chosen)
    (mean,) = tail_expectations(
        prior, [1.0], horizon=horizon, also=(chosen,), seed=seed, draws=draws
    )
    return psi, mean


def _is_auto(tail: str | TailCondition) -> bool:
    return isinstance(tail, str) and tail == "auto"


def _times(a: float, b: float) -> float:
    """Product in which 0 times infinity is 0: nothing is lost where nothing differs."""
    return a * b if a > 0.0 and b > 0.0 else 0.0
