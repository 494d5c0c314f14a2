"""What a bound is, and the numbers that all of them rest on: the Monte-Carlo constant and the
distance between the priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from priorwise.core import doors, validation
from priorwise.core.distance import Distance
from priorwise.core.protocols import monte_carlo_n
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.sensitivity.distance.pairs import check_shared


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
        known = (
            f"at most {self.value:.4g}"
            if self.kind == "certified"
            else f"about {self.value:.4g} ± {self.std_error:.2g}"
        )
        says = (
            f"vacuous: never more than {self.trivial:.4g}"
            if self.vacuous
            else f"without it {self.trivial:.4g}"
        )
        return f"{known} ({self.kind}; {self.assumption}; delta = {self.delta:.4g}; {says})"


def required_n(policy: Any, prior: Any) -> int:
    """Return the policy's Monte-Carlo constant; refuse policies without one."""
    doors.role("p", prior, "a prior")
    if not hasattr(prior, "arms"):
        raise TypeError(
            f"a {type(prior).__name__} has no fixed number of arms: pass prior.for_arms(n) for "
            "both priors"
        )
    doors.role("policy", policy, "a policy")
    n = monte_carlo_n(policy, prior.arms)
    if n is None:
        raise TypeError(f"policy: {no_bound(policy)}")
    return n


def no_bound(policy: Any) -> str:
    """Say that a policy has no Monte-Carlo constant, and which have."""
    return (
        f"no bound is known for {type(policy).__name__}, which has no Monte-Carlo constant as it "
        "is set (its choice looks at the "
        "posterior itself, not only at a number of draws from it); take one that chooses from "
        "draws, such as ThompsonSampling or "
        "PosteriorSampling"
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
            "q must be the prior that the policy holds; it may be None only if tv=... gives its "
            "distance from p"
        )
    return total_variation(p, q, seed=seed) if estimate else total_variation(p, q, draws=0)
