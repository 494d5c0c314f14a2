"""What a wrong prior can cost: bounds on trajectories and rewards for n-Monte-Carlo policies.

With ``eps = TV(p, q)``, n the policy's Monte-Carlo constant and ``delta = 2 n H eps`` (main
proposition and theorem):

* the laws of (mu, trajectory) under ``alg(p)`` and ``alg(q)``, in tasks drawn from p, are within
  ``delta`` in total variation;
* ``|R(p, alg(p)) - R(p, alg(q))| <= H delta Psi_p(delta)``, that is ``2 n H^2 eps Psi_p(2 n H
  eps)``.

Both are used at ``min(1, delta)``: total variation never exceeds 1, and beyond it the second is the
trivial ``H E[diam]``.

If nothing about the task is seen before the first action, the first h actions are within ``delta_h
= n (2 h - 1) eps`` only, otherwise within ``2 n h eps``. Pull h depends on these alone, and the sum
``sum_h delta_h Psi(delta_h)`` bounds the difference of the rewards, about half of the above. With
``sharp=True`` both bounds are these. Proved in docs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.protocols import monte_carlo_n
from priorwise.sensitivity.bounds.approximation import EXACT, approximation_of
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.sensitivity.distance.pairs import check_shared
from priorwise.sensitivity.tails.diameter import DRAWS
from priorwise.sensitivity.tails.expectation import TailExpectation as Psi
from priorwise.sensitivity.tails.expectation import find_condition, tail_expectations
from priorwise.theory.conditions import TailCondition, is_printed
from priorwise.theory.distance import Distance
from priorwise.theory.influence import refuse_influence, shows_task_first

Kind = Literal["certified", "estimate", "approximate"]
"""How far a bound can be trusted; see :class:`Bound`."""
GROUPS: Final = 64
"""Levels at which a sharp bound looks at the tails; beyond so many steps they stand for several."""
UNCOUNTED: Final = "as if the approximate posterior were exact"
SLACK: Final = 1e-12
"""Relative rounding below which two bounds are the same."""


@dataclass(frozen=True)
class Bound:
    """A bound and how far it can be trusted.

    ``kind`` is ``"certified"`` (it holds under ``assumption``), ``"estimate"`` (from estimated
    numbers, with their standard error) or ``"approximate"`` (the posterior is approximate, and what
    that adds is not known). ``vacuous``: no smaller than ``trivial``, which holds
    whatever the priors: 1 for trajectories, ``H E[diam]`` (or the smallest known bound on it) for
    rewards. ``delta`` is ``2 n H eps`` (a sharp one ``n (2 H - 1) eps``) plus ``approximation``,
    what approximate posteriors add: exactly 0 for exact ones, None if it is not known. ``tv`` is
    the distance eps.
    """

    value: float
    kind: Kind
    std_error: float
    assumption: str
    vacuous: bool
    trivial: float
    delta: float
    tv: Distance
    n: int
    horizon: int
    approximation: Distance | None = EXACT

    def __str__(self) -> str:
        """Value, what it is, and whether it says anything."""
        known = f"about {self.value:.4g}"
        if self.kind == "certified":
            known = f"at most {self.value:.4g}"
        elif self.std_error > 0.0 or self.kind == "estimate":
            known += f" ± {self.std_error:.2g}"
        says = f"{'vacuous: never more than' if self.vacuous else 'without it'} {self.trivial:.4g}"
        return f"{known} ({self.kind}; {self.assumption}; delta = {self.delta:.4g}; {says})"


def trajectory_bound(
    p: Any,
    q: Any,
    policy: Any,
    horizon: int,
    *,
    tv: float | Distance | None = None,
    approximation: float | Distance | None = None,
    sharp: bool = False,
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
    approximation
        What approximate posteriors add, a bound on it or an estimate (``total`` of
        :func:`~priorwise.sensitivity.approximation_error`).
    sharp
        ``n (2 H - 1)`` for ``2 n H``, if nothing about the task is seen before the first action.
    estimate
        Use an estimated total variation where there is no exact one; otherwise its certified upper
        bound is used. Estimate also what approximate posteriors add.
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
    estimate, sharp = validation.flag("estimate", estimate), validation.flag("sharp", sharp)
    seed = None if seed is None else validation.seed(seed)
    distance = distance_of(p, q, tv=tv, estimate=estimate, seed=seed)
    term = approximation_of(
        p, q, policy, horizon, given=approximation, estimate=estimate, seed=seed
    )
    return trajectory_of(distance, n, horizon, term, saved=saved_steps(p) if sharp else 0)


def reward_bound(
    p: Any,
    q: Any,
    policy: Any,
    horizon: int,
    *,
    tail: str | TailCondition = "auto",
    tv: float | Distance | None = None,
    approximation: float | Distance | None = None,
    sharp: bool = False,
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
    p, q, policy, horizon, tv, approximation
        As in :func:`trajectory_bound`.
    tail
        ``"auto"``: Psi where it is known exactly (or with ``estimate`` estimated), otherwise the
        smallest certified bound on it. A condition or its name (see
        :func:`priorwise.tail_expectation`) takes that one. The names that end in ``-printed`` give
        the theorem as printed: ``log(A^2 / delta)`` for ``log(2 A / delta)``, and ``2 n H^2 eps``
        in front also where it exceeds H.
    sharp
        Sum what each step may cost, ``sum_h delta_h Psi(delta_h)`` with ``delta_h = min(1, n (2 h -
        1) eps)``, or ``2 n h eps`` if contexts are informative: about half. Bounded rewards give
        ``n H^2 eps B`` or ``n H (H + 1) eps B``. With contexts, Psi is then the tail of one
        pull's diameter, not of the average over the task.
    estimate
        Use estimates of the total variation, of Psi and of what approximate posteriors add, where
        there are no exact values.
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
    given: Any = {"tv": tv, "approximation": approximation, "sharp": sharp}
    near = trajectory_bound(p, q, policy, horizon, **given, estimate=estimate, seed=seed)
    levels, counts = step_levels(near, saved_steps(p)) if sharp else ([near.value], [horizon])
    # a pull loses the diameter at its own contexts, not that averaged over the task
    averaged = 1 if sharp else horizon
    psis, mean = _tails(p, levels, tail, averaged, seed if estimate else None, draws)
    printed = not _is_auto(tail) and is_printed(find_condition(p, tail, "tail"))
    if printed and not sharp:
        levels = [near.delta]
    steps = list(zip(counts, levels, psis, strict=True))
    value = sum(count * _times(level, psi.value) for count, level, psi in steps)
    trivial = horizon * mean.value
    # p Psi(p) rises to Psi(1), but bounds on Psi need not keep to that
    if _is_auto(tail) and mean.kind in (psis[-1].kind, "exact"):
        value = min(value, trivial)
    # d(delta Psi(delta)) / d(delta) is the quantile, at most Psi
    moved = near.std_error
    error = sum(
        count * math.hypot(_times(min(level, 1.0), psi.std_error), _times(moved, psi.value))
        for count, level, psi in steps
    )
    estimated = any(psi.kind == "estimate" for psi in psis)
    said = [psis[-1].assumption]
    said += [] if tv is None else ["total variation as given"]
    said += [UNCOUNTED] if near.kind == "approximate" else []
    return replace(
        near,
        value=value,
        kind="estimate" if near.kind == "certified" and estimated else near.kind,
        std_error=error,
        assumption="; ".join(said),
        vacuous=value >= trivial * (1.0 - SLACK),
        trivial=trivial,
    )


def _tails(
    prior: Any,
    levels: Sequence[float],
    tail: str | TailCondition,
    horizon: int,
    seed: int | None,
    draws: int,
) -> tuple[list[Psi], Psi]:
    """Psi at some levels as asked for, and the mean as well as it is known."""
    if _is_auto(tail):
        *psis, mean = tail_expectations(
            prior, [*levels, 1.0], horizon=horizon, seed=seed, draws=draws
        )
        return psis, mean
    chosen = find_condition(prior, tail, "tail")
    psis = list(tail_expectations(prior, levels, horizon=horizon, condition=chosen))
    sampled: Any = {"seed": seed, "draws": draws}
    (mean,) = tail_expectations(prior, [1.0], horizon=horizon, also=(chosen,), **sampled)
    return psis, mean


def _is_auto(tail: str | TailCondition) -> bool:
    return isinstance(tail, str) and tail == "auto"


def _times(a: float, b: float) -> float:
    """Product in which 0 times infinity is 0: nothing is lost where nothing differs."""
    return a * b if a > 0.0 and b > 0.0 else 0.0


def required_n(policy: Any, prior: Any) -> int:
    """Return the policy's Monte-Carlo constant; raise an error for policies without one."""
    argument_checks.role("p", prior, "a prior")
    if not hasattr(prior, "arms"):
        raise ArgumentTypeError(
            "prior",
            "must have a fixed number of arms",
            got=type(prior),
            cure="pass prior.for_arms(n) for both priors",
        )
    argument_checks.role("policy", policy, "a policy")
    n = monte_carlo_n(policy, prior.arms)
    if n is None:
        raise ArgumentTypeError("policy", no_bound(policy))
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


def saved_steps(prior: Any) -> int:
    """Return 1 if nothing about the task is seen before the first action, whose law then moves by
    ``n eps`` only and not by ``2 n eps``; 0 otherwise.
    """
    return 0 if shows_task_first(prior) else 1


def step_levels(near: Bound, saved: int) -> tuple[list[float], list[int]]:
    """Return ``delta_h`` of the steps of a task, and how many steps each stands for.

    ``p Psi(p)`` is concave, so the mean level of several steps may stand for them.
    """
    term = 0.0 if near.approximation is None else near.approximation.value
    twice = 2.0 * np.arange(1, near.horizon + 1) - saved
    delta = np.minimum(1.0, near.n * near.tv.value * twice + term)
    groups = np.array_split(delta, min(near.horizon, GROUPS))
    return [float(group.mean()) for group in groups], [len(group) for group in groups]


def trajectory_of(
    distance: Distance, n: int, steps: int, approximation: Distance | None = EXACT, saved: int = 0
) -> Bound:
    """``min(1, (2 H - saved) n eps + approximation)``."""
    scale = n * (2.0 * steps - saved)
    term = EXACT if approximation is None else approximation
    delta = scale * distance.value + term.value
    estimated = "estimate" in (distance.kind, term.kind)
    kind: Kind = "estimate" if estimated else "certified"
    errors = [
        factor * each.std_error
        for factor, each in ((scale, distance), (1.0, term))
        if each.kind == "estimate"
    ]
    exact = "n-Monte-Carlo policy, shared reward law"
    return Bound(
        value=min(1.0, delta),
        kind="approximate" if approximation is None else kind,
        std_error=math.hypot(*errors) if delta < 1.0 else 0.0,
        assumption=exact if approximation is not None else f"{exact}, {UNCOUNTED}",
        vacuous=delta >= 1.0,
        trivial=1.0,
        delta=delta,
        tv=distance,
        n=n,
        horizon=steps,
        approximation=approximation,
    )


def given_distance(tv: float | Distance, *, estimate: bool) -> Distance:
    """Check a total variation that the caller knows."""
    if not isinstance(tv, Distance):
        value = validation.number("tv", tv)
        if not 0.0 <= value <= 1.0:
            raise ArgumentError("tv", "must lie between 0 and 1", got=value)
        return Distance(value, "upper", 0.0, value)
    if tv.kind == "estimate" and not estimate:
        raise ArgumentError(
            "tv",
            "is an estimate, which certifies nothing",
            cure="pass estimate=True to use it, or tv=tv.upper for its certified bound",
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
        raise ArgumentTypeError(
            "q",
            "must be the prior that the policy believes",
            cure="it may be None only if tv=... gives its distance from p",
        )
    return total_variation(p, q, seed=seed, estimate=estimate)
