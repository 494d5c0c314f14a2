"""The sharper bounds by steps, against enumerated trajectories and rewards of random problems.

Every number on the right of a comparison is enumerated: distances of the first h actions from
``exact_trajectory_tv``, rewards from ``exact_rewards``. Nothing is sampled, so there are no false
alarms. Constants that are too small must fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.families.finite.instances import noiseless_instance
from priorwise.sensitivity.bounds.lower import exact_gap
from priorwise.sensitivity.bounds.pomdp import pomdp_reward_bound, pomdp_trajectory_bound
from priorwise.sensitivity.exact.evaluation import exact_rewards, exact_trajectory_tv

ROUNDING = 1e-9
TS = pw.ThompsonSampling()
POLICIES = (TS, pw.KShotThompson(2), pw.PosteriorSampling(2, "sum"), pw.RecedingHorizon(1, 1, 0.5))


@dataclass(frozen=True)
class Problem:
    """A pair of priors with a policy, and what is enumerated for it."""

    p: Any
    q: Any
    policy: Any
    horizon: int

    @property
    def apart(self) -> float:
        return exact_trajectory_tv(self.p, self.q, self.policy, self.horizon).value

    @property
    def gap(self) -> float:
        mine, others = (
            exact_rewards(self.p, self.policy, self.horizon, believed=each).mean_reward
            for each in (self.p, self.q)
        )
        return abs(mine - others)


def bandit(rng: np.random.Generator) -> Problem:
    """Few tasks with means in quarters; the priors are anything from close to disjoint."""
    size, arms = rng.integers(2, 5), rng.integers(2, 4)
    means = rng.integers(0, 5, size=(size, arms)) / 4
    first, second = rng.dirichlet(np.full(size, 0.5), size=2)
    share = rng.choice([1.0, 0.3, 0.01])
    noise = rng.choice(["none", "bernoulli"])
    p, q = (
        pw.FinitePrior(means, each / each.sum(), noise=str(noise))
        for each in (first, (1.0 - share) * first + share * second)
    )
    return Problem(p, q, POLICIES[rng.integers(len(POLICIES))], int(rng.integers(1, 5)))


def with_state(rng: np.random.Generator) -> Problem:
    """MDPs whose first state is the same in all tasks."""
    tables = rng.dirichlet(np.full(2, 0.5), size=(3, 2, 2))
    rewards = rng.integers(0, 5, size=(2, 2)) / 4
    p = pw.families.FiniteMdpPrior(
        list(tables), rewards=rewards, probs=rng.dirichlet(np.ones(3)), noise="bernoulli"
    )
    other = 0.9 * p.probs + 0.1 * rng.dirichlet(np.ones(3))
    return Problem(p, p.replaced(probs=other / other.sum()), TS, int(rng.integers(1, 4)))


@pytest.mark.slow
def test_the_sharp_bounds_hold_on_300_enumerated_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    closest = 0.0
    for _ in range(300):
        case = bandit(rng)
        sizes = case.p, case.q, case.policy, case.horizon
        near, loose = (pw.trajectory_bound(*sizes, sharp=sharp) for sharp in (True, False))
        n, eps, horizon = near.n, near.tv.value, case.horizon
        assert near.delta == pytest.approx(n * (2 * horizon - 1) * eps, rel=1e-12)
        assert near.value <= loose.value
        assert case.apart <= near.value + ROUNDING
        gap = case.gap
        steps = np.minimum(1.0, n * (2.0 * np.arange(1, horizon + 1) - 1.0) * eps)
        for tail in ("auto", "bounded"):
            bound, printed = (
                pw.reward_bound(*sizes, tail=tail, sharp=sharp) for sharp in (True, False)
            )
            assert gap <= bound.value + ROUNDING
            assert bound.value <= printed.value + ROUNDING
        most = float(np.ptp(case.p.means[case.p.probs > 0.0], axis=1).max())
        assert bound.value == pytest.approx(steps.sum() * most, rel=1e-12, abs=1e-12)
        assert bound.value <= n * horizon**2 * eps * most * (1.0 + 1e-12)
        if eps > ROUNDING:
            closest = max(closest, case.apart / (n * (2 * horizon - 1) * eps))
    assert closest > 0.5  # some problems come near


@pytest.mark.slow
def test_the_sharp_bounds_hold_with_a_state(seed: int) -> None:
    """Nothing about an MDP is seen before its first action; the first state is known."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        case = with_state(rng)
        sizes: Any = (case.p, case.q), case.policy, case.horizon
        near = pomdp_trajectory_bound(*sizes, sharp=True)
        assert near.delta == pytest.approx((2 * case.horizon - 1) * near.tv.value, rel=1e-12)
        assert case.apart <= near.value + ROUNDING
        bound, loose = (pomdp_reward_bound(*sizes, sharp=sharp) for sharp in (True, False))
        assert case.gap <= bound.value + ROUNDING
        assert bound.value <= loose.value * (1.0 + 1e-12)
        if loose.value < 0.5 * loose.trivial:
            assert bound.value == pytest.approx(loose.value / 2.0, rel=1e-12)


def test_a_smaller_trajectory_constant_fails() -> None:
    """With one step the bound is attained, so no constant below 1 will do for ``n eps``."""
    p, q = (pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [at, 1.0 - at]) for at in (0.5, 0.6))
    near = pw.trajectory_bound(p, q, TS, 1, sharp=True)
    assert near.value == pytest.approx(0.1)
    assert Problem(p, q, TS, 1).apart > 0.99 * near.value
    assert pw.reward_bound(p, q, TS, 1, sharp=True).value == pytest.approx(0.1)


def test_a_smaller_reward_constant_fails() -> None:
    """``n H^2 eps B / 4`` is too small by enumeration, and with many arms ``0.46 n H^2 eps B``."""
    eps, horizon = 1e-3, 4
    case = noiseless_instance(24, eps, 0.01)
    gap = Problem(case.prior, case.other, TS, horizon).gap
    bound = pw.reward_bound(case.prior, case.other, TS, horizon, tail="bounded", sharp=True).value
    most = np.ptp(case.prior.means, axis=1).max()
    assert bound == pytest.approx(horizon**2 * eps * most)
    assert bound / 4.0 < gap <= bound
    assert exact_gap(3, 40, 4000, 1e-4, 1e-3) > 0.46 * 3 * 40**2 * 1e-4


def test_informative_contexts_keep_the_first_step() -> None:
    """The features of the first pull reveal one component, which the wrong prior rules out. The
    first action moves by ``eps (2 - eps)``, more than ``n (2 H - 1) eps``.
    """
    eps = 0.1
    weights = np.eye(3)
    laws = [pw.GivenContexts(size * np.eye(3)[None]) for size in (2.0, 1.0, 1.0)]
    parts = [
        pw.LinearGaussianPrior(mean, 1e-9 * np.eye(3), contexts=law)
        for mean, law in zip(weights, laws, strict=True)
    ]
    p, q = (pw.MixturePrior(parts, probs) for probs in ([eps, 1 - eps, 0], [0, 1 - eps, eps]))
    moved = 0.0
    for chance, features in ((eps, laws[0].features), (1.0 - eps, laws[1].features)):
        seen = Seen(1, 1, 3, signal=features)
        # component k plays arm k
        first, second = (prior.belief(1).probabilities(seen)[0] for prior in (p, q))
        moved += chance * np.abs(first - second).sum() / 2.0
    assert moved == pytest.approx(eps * (2.0 - eps))
    near = pw.trajectory_bound(p, q, TS, 1, tv=eps, sharp=True)
    assert near.delta == pytest.approx(2.0 * eps)
    assert moved > (2 * 1 - 1) * eps
    bound = pw.reward_bound(p, q, TS, 3, tv=eps, tail=pw.sensitivity.Bounded(1.0), sharp=True)
    assert bound.value == pytest.approx(0.2 + 0.4 + 0.6)


def test_a_step_loses_the_diameter_at_its_own_contexts(seed: int) -> None:
    """Each of 8 contexts shows one coefficient, in two arms of opposite sign. The diameter of a
    pull is ``2 |w_i|``, whose tail is known. The one that is averaged over 20 pulls is far smaller,
    and must fail. The noise of the estimate is below 2 %.
    """
    size, horizon = 8, 20
    signs = np.array([1.0, -1.0])[:, None]
    contexts = np.eye(size)[:, None, :] * signs
    p, q = (
        pw.LinearGaussianPrior(np.full(size, at), np.eye(size), contexts=contexts)
        for at in (0.0, 5e-4)
    )
    bound = pw.reward_bound(p, q, TS, horizon, sharp=True, estimate=True, seed=seed)
    delta = bound.tv.value * (2.0 * np.arange(1, horizon + 1) - 1.0)
    steps = 4.0 * norm.pdf(norm.isf(delta / 2.0))  # delta Psi(delta)
    assert bound.value == pytest.approx(steps.sum(), rel=0.02)
    averaged = pw.tail_expectation(p, delta[-1], horizon=horizon, seed=seed, draws=20_000)
    assert delta[-1] * averaged.value < 0.7 * steps[-1]
