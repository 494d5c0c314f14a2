"""Problems on which a wrong prior costs as much as the sensitivity bounds allow, up to a constant
(as priors: ``priorwise.families.finite.instances``).

*Rewards* (Theorem "lower bound"). N arms and one more, noiseless rewards, a uniform on 1..N and b ~
Bernoulli(eps):

    mu_a = 1 - delta,   the other N - 1 arms delta,   mu_{N+1} = 1 if b = 1, else delta a / (2 N).

The last arm may be the best of all, and when it is not it shows which one is. k-shot Thompson
sampling that believes eps = 0 never pulls it, and searches one arm after the other.

*Trajectories* (Proposition "simple converse"). Two arms, Bernoulli rewards: mu = (1/2, 0) for sure,
or (1/2, 1) with probability eps. Which arm is pulled differs with probability 1 - (1 - eps)^(H k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import mean_estimate
from priorwise.sensitivity.bounds.lower_simulation import simulated_rewards

CONSTANT: Final = 8.0
"""c0 of the theorem."""


@dataclass(frozen=True)
class LowerBound:
    """What the wrong prior costs k-shot Thompson sampling on the (N + 1)-arm instance, between the
    bounds on it.
    """

    theorem: float  # lower bound as printed
    improved: float  # lower bound with the sum done exactly
    exact: float  # closed form
    measured: float  # paired difference of simulated rewards
    std_error: float
    upper: float  # 2 n H^2 eps
    tasks: int

    def __str__(self) -> str:
        """Bounds and measurement."""
        measured = f"measured {self.measured:.4f} ± {self.std_error:.4f}"
        exact = f"{self.exact:.4f} (exact; {measured})"
        return f"{self.theorem:.4f} (theorem) <= {exact} <= {self.upper:.4f} (2 n H^2 eps)"


def two_point_tv(k: int, horizon: int, eps: float) -> float:
    """Trajectory TV of k-shot Thompson sampling on the two-point instance, ``1 - (1 - eps)^(H k)``.

    It is exact: without a pull of arm 2 the laws have the same ratio (1 - eps)^(H k) on every
    trajectory, and the true prior never pulls it. At least ``k H eps / 2`` for ``eps <= 1 / (2 H
    k)``.
    """
    pulls = validation.count("k", k) * validation.count("horizon", horizon)
    return float(-np.expm1(pulls * np.log1p(-validation.share("eps", eps))))


def theorem_gap(k: int, horizon: int, arms: int, eps: float, delta: float) -> float:
    """Lower bound on ``R(theta, kTS(theta)) - R(theta, kTS(theta'))`` as printed.

    ``k eps H^2 ((1 - k H eps)^2 (1 - delta) (H - 1)(H - 2) / (2 H^2) - H / (N - H) - delta)``;
    negative where it says nothing.
    """
    horizon = validation.count("horizon", horizon)
    return _gap(k, horizon, arms, eps, delta, sum_of_rest=(horizon - 1) * (horizon - 2) / 2)


def improved_gap(k: int, horizon: int, arms: int, eps: float, delta: float) -> float:
    """Lower bound with ``sum_h (H - h) = H (H - 1) / 2`` in place of ``(H - 1)(H - 2) / 2``: what
    the proof gives.
    """
    horizon = validation.count("horizon", horizon)
    return _gap(k, horizon, arms, eps, delta, sum_of_rest=horizon * (horizon - 1) / 2)


def exact_gap(k: int, horizon: int, arms: int, eps: float, delta: float) -> float:
    """Exact ``R(theta, kTS(theta)) - R(theta, kTS(theta'))`` on the (N + 1)-arm instance.

    With ``m_h = delta + (1 - 2 delta) min(h, N) / N`` the mean reward of pull h without the last
    arm (the search finds its arm at a uniform time), ``v = eps + (1 - eps)(1 - delta)`` that of
    knowing the best arm, ``w = eps + (1 - eps) delta (N + 1) / (4 N)`` that of the last arm, and
    ``q = 1 - (1 - eps)^k`` the chance of its first pull at any step,

        ``sum_h q (1 - q)^(h-1) (w - m_h + sum_{j > h} (v - m_j))``.
    """
    arms, eps, delta = checked(arms, eps, delta)
    pulls = np.arange(1, validation.count("horizon", horizon) + 1)
    searching = delta + (1.0 - 2.0 * delta) * np.minimum(pulls, arms) / arms
    knowing = eps + (1.0 - eps) * (1.0 - delta)
    asking = eps + (1.0 - eps) * delta * (arms + 1) / (4 * arms)
    log_no = validation.count("k", k) * np.log1p(-eps)
    first = -np.expm1(log_no) * np.exp((pulls - 1) * log_no)
    gained = knowing - searching
    after = gained[::-1].cumsum()[::-1] - gained
    return float(first @ (asking - searching + after))


@dataclass(frozen=True)
class FormalLowerBound:
    """The formal lower bound: on an instance of ``arms`` arms whose means lie in [0, ``scale``] the
    wrong prior costs k-shot Thompson sampling at least ``value``.

    ``exact`` is what it costs there, ``upper`` what no instance exceeds, ``2 n H^2 eps B``.
    """

    value: float  # (1/2 - eta) k eps H^2 B
    exact: float
    upper: float
    arms: int  # N + 1
    delta: float
    eps: float
    scale: float

    def __str__(self) -> str:
        """Bounds, and the size of the instance."""
        said = f"{self.value:.4g} <= {self.exact:.4g} (exact) <= {self.upper:.4g} (2 n H^2 eps B)"
        return f"{said}, {self.arms:,} arms"


def formal_lower_bound(
    eta: float, k: int, horizon: int, eps: float | None = None, *, scale: float = 1.0
) -> FormalLowerBound:
    """Lower bound ``(1/2 - eta) k eps H^2 B`` with explicit constants (theorem "lower bound", for
    priors bounded by B).

    For every tolerance eta below 1/4, horizon ``H >= 8 / eta`` and distance ``eps <= eta / (8 k
    H)`` two priors at total variation eps have it: the (N + 1)-arm instance with ``N + 1 = H ceil(8
    / eta)`` arms and ``delta = min(eta / 3, 1/33)``. The paper leaves the constant open; 8 does,
    and 6 does not with the bound as printed.

    Parameters
    ----------
    eta
        Tolerance, between 0 and 1/4.
    k
        Draws of k-shot Thompson sampling.
    horizon
        Pulls H in a task.
    eps
        Total variation between the priors; by default the largest that the theorem allows.
    scale
        B: largest mean of an arm.

    Examples
    --------
    >>> print(formal_lower_bound(0.2, k=1, horizon=40))
    0.3 <= 0.4458 (exact) <= 2 (2 n H^2 eps B), 1,600 arms

    """
    eta, k = validation.share("eta", eta, 0.25), validation.count("k", k)
    least = math.ceil(CONSTANT / eta)
    horizon = validation.count("horizon", horizon, least=least)
    most = eta / (CONSTANT * k * horizon)
    eps = most if eps is None else validation.share("eps", eps)
    if eps > most:
        raise ArgumentError("eps", f"must be at most eta / (8 k horizon) = {most:g}", got=eps)
    scale = validation.number("scale", scale)
    if not scale > 0.0:
        raise ArgumentError("scale", "must be positive", got=scale)
    arms, delta = horizon * least, min(eta / 3.0, 1.0 / 33.0)
    unit = scale * k * eps * horizon**2
    exact = scale * exact_gap(k, horizon, arms - 1, eps, delta)
    return FormalLowerBound((0.5 - eta) * unit, exact, 2.0 * unit, arms, delta, eps, scale)


def lower_bound_gap(
    k: int, horizon: int, arms: int, eps: float, delta: float, *, seed: int, tasks: int = 50_000
) -> LowerBound:
    """Measure what the wrong prior costs on the (N + 1)-arm instance, and set it beside the bounds.

    Parameters
    ----------
    k
        Draws of k-shot Thompson sampling, its Monte-Carlo constant n.
    horizon
        Pulls H in a task.
    arms
        N, larger than the horizon; the instance has N + 1 arms.
    eps, delta
        Probability that the last arm is best, at most 1 / (k H); and reward of the bad arms.
    seed, tasks
        Of the simulation, which pairs both runs on the same tasks and draws.

    Examples
    --------
    >>> bound = lower_bound_gap(1, horizon=40, arms=2000, eps=1e-3, delta=0.01, seed=0)
    >>> bound.theorem <= bound.measured <= bound.upper
    True

    """
    instance = k, horizon, arms, eps, delta
    theorem, improved, exact = (gap(*instance) for gap in (theorem_gap, improved_gap, exact_gap))
    tasks, seed = validation.count("tasks", tasks, least=2), validation.seed(seed)
    rewards = simulated_rewards(*instance, tasks=tasks, seed=seed)
    measured = mean_estimate(np.subtract(*rewards))
    upper, found = 2.0 * k * horizon**2 * eps, (measured.mean, measured.std_error)
    return LowerBound(theorem, improved, exact, *found, upper, tasks)


def checked(arms: int, eps: float, delta: float) -> tuple[int, float, float]:
    """Check the numbers of the (N + 1)-arm instance."""
    arms = validation.count("arms", arms, least=2)
    return arms, validation.share("eps", eps), validation.share("delta", delta, 0.5)


def _gap(k: int, horizon: int, arms: int, eps: float, delta: float, sum_of_rest: float) -> float:
    k = validation.count("k", k)
    arms, eps, delta = checked(arms, eps, delta)
    if k * horizon * eps > 1.0:
        raise ArgumentError(
            "eps",
            f"must be at most 1 / (k horizon) = {1 / (k * horizon):g} for the theorem",
            got=eps,
        )
    if arms <= horizon:
        raise ArgumentError("arms", f"must exceed the horizon {horizon} for the theorem", got=arms)
    kept = (1.0 - k * horizon * eps) ** 2 * (1.0 - delta) * sum_of_rest / horizon**2
    return float(k * eps * horizon**2 * (kept - horizon / (arms - horizon) - delta))
