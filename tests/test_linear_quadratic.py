"""Linear-quadratic control: posterior, plans, explosions and distances, against sums by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import linalg, optimize, stats

import priorwise as pw
from priorwise import sensitivity
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.families import FiniteLinearQuadraticPrior, LinearQuadraticPrior, Plant, load_prior
from priorwise.families.linear_quadratic import riccati
from priorwise.families.linear_quadratic.plant import DrawnSystems, LinearSystems
from priorwise.policies import CertaintyEquivalence, RoundSampling
from priorwise.testing import JsonContract, RealPriorContract
from priorwise.testing.real import play_real

TS = pw.ThompsonSampling()
A, B = np.array([[1.0, 0.3], [0.0, 1.0]]), np.array([[0.0], [0.5]])
PLANT = Plant(
    np.diag([1.0, 0.5]), [[0.2]], [0.1, 0.2], start=[1.0, 0.0], start_cov=0.1 * np.eye(2),
    final_cost=2.0 * np.eye(2), limit=200.0,
)  # fmt: skip
COV = 0.01 * np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 0.5]])
NORMAL = LinearQuadraticPrior(A, B, COV, PLANT)
BY_ROW = LinearQuadraticPrior(A, B, [COV, np.diag([0.02, 0.0, 0.01])], PLANT)
SYSTEMS = np.array([A, 0.8 * A, [[0.9, -0.2], [0.4, 0.7]]]), np.array([B, -B, [[0.3], [0.1]]])
FINITE = FiniteLinearQuadraticPrior(*SYSTEMS, [0.5, 0.3, 0.2], PLANT)


class TestNormal(RealPriorContract):
    @pytest.fixture
    def prior(self) -> Any:
        return NORMAL

    @pytest.fixture
    def believed(self) -> Any:
        return LinearQuadraticPrior(0.9 * A, 2.0 * B, 0.5 * COV, PLANT)


class TestRows(RealPriorContract):
    @pytest.fixture
    def prior(self) -> Any:
        return BY_ROW


class TestFinite(RealPriorContract):
    tasks, pulls = 8192, 2  # after four steps little is left to doubt

    @pytest.fixture
    def prior(self) -> Any:
        return FINITE

    @pytest.fixture
    def believed(self) -> Any:
        return FINITE.replaced(probs=[0.0, 0.5, 0.5])


@pytest.mark.parametrize("which", [PLANT, NORMAL, BY_ROW, FINITE], ids=str)
class TestJson(JsonContract):
    @pytest.fixture
    def value(self, which: Any) -> Any:
        return which


def test_priors_load_by_name() -> None:
    for prior in (NORMAL, FINITE):
        assert load_prior(prior.to_json()) == prior


@pytest.mark.parametrize("prior", [NORMAL, BY_ROW], ids=["one covariance", "by row"])
def test_the_posterior_is_the_closed_form(prior: LinearQuadraticPrior, seed: int) -> None:
    """Rows given the next states are conditioned as one joint normal law, without precisions."""
    played = play_real(prior, tasks=20, pulls=7, seed=seed)
    belief: Any = played.belief
    means, covs = belief.mean_rows(), belief.covariance()
    for task in range(20):
        z = np.array([[*p.seen.signal[task], *p.actions[task]] for p in played.pulls])
        after = np.array([p.after[task] for p in played.pulls])
        for row in range(2):
            cov = np.broadcast_to(prior.cov, (2, 3, 3))[row]
            joint = z @ cov @ z.T + PLANT.noise_var[row] * np.eye(len(z))
            gain = np.linalg.solve(joint, z @ cov).T
            mean = prior.rows[row] + gain @ (after[:, row] - z @ prior.rows[row])
            np.testing.assert_allclose(means[task, row], mean, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(
                covs[task, row], cov - gain @ z @ cov, rtol=1e-10, atol=1e-12
            )
    assert covs[:, 0, 0, 0].mean() < 0.8 * np.broadcast_to(prior.cov, (2, 3, 3))[0, 0, 0]


def test_the_posterior_of_candidates_is_bayes_rule(seed: int) -> None:
    played = play_real(FINITE, tasks=20, pulls=5, seed=seed)
    belief: Any = played.belief
    for task in range(20):
        weights = FINITE.probs.copy()
        for pull in played.pulls:
            x, u = pull.seen.signal[task], pull.actions[task]
            for c, (a, b) in enumerate(zip(*SYSTEMS, strict=True)):
                law = stats.norm(a @ x + b @ u, np.sqrt(PLANT.noise_var))
                weights[c] *= law.pdf(pull.after[task]).prod()
        np.testing.assert_allclose(
            belief.probabilities()[task], weights / weights.sum(), rtol=1e-9, atol=1e-12
        )
    assert np.ptp(belief.probabilities(), axis=0).max() > 0.5  # something was learned


def test_the_plan_is_the_best_of_all_linear_controllers() -> None:
    """The cost of any sequence of actions without noise, minimised over all actions at once."""
    horizon, x = 4, np.array([0.7, -1.2])

    def cost(actions: Any) -> float:
        state, total = x, 0.0
        for u in np.reshape(actions, (horizon, 1)):
            total += state @ PLANT.state_cost @ state + u @ PLANT.action_cost @ u
            state = A @ state + B @ u
        return float(total + state @ PLANT.final_cost @ state)

    best = optimize.minimize(cost, np.zeros(horizon), tol=1e-14)
    values = riccati.values(A[None], B[None], PLANT, horizon)
    assert x @ values[-1][0] @ x == pytest.approx(best.fun, rel=1e-9)
    drawn = DrawnSystems(A[None, None], B[None, None], PLANT)
    seen = Seen(1, horizon, 0, x[None], None, PLANT.actions)
    assert drawn.best_actions(seen)[0, 0, 0] == pytest.approx(best.x[0], abs=1e-5)


def test_a_long_plan_is_that_of_the_algebraic_riccati_equation() -> None:
    cost = linalg.solve_discrete_are(A, B, PLANT.state_cost, PLANT.action_cost)
    gain = np.linalg.solve(PLANT.action_cost + B.T @ cost @ B, B.T @ cost @ A)
    found = riccati.gains(A[None], B[None], PLANT, np.array([10_000]))[0]
    np.testing.assert_allclose(found, gain, rtol=1e-9)
    assert not np.allclose(riccati.gains(A[None], B[None], PLANT, np.array([2]))[0], gain, rtol=0.1)


def test_plans_with_other_steps_left_do_not_disturb_each_other() -> None:
    left = np.array([5, 1, 60, 2])
    several = riccati.gains(*(np.repeat(m[None], 4, axis=0) for m in (A, B)), PLANT, left)
    for found, steps in zip(several, left, strict=True):
        alone = riccati.gains(A[None], B[None], PLANT, np.array([steps]))[0]
        np.testing.assert_array_equal(found, alone)
    planned = FINITE.gains(left)
    for c in range(3):
        alone = riccati.gains(*(m[c][None] for m in SYSTEMS), PLANT, np.array([5]))[0]
        np.testing.assert_allclose(planned[4, c], alone, rtol=1e-12)


@pytest.mark.parametrize("horizon", [1, 12])
def test_the_known_system_costs_what_riccati_says(horizon: int, seed: int) -> None:
    """Within 4 standard errors, false alarms below 1e-4; for another cost it does not (control)."""
    known = FiniteLinearQuadraticPrior([A], [B], [1.0], PLANT)
    exactly = LinearQuadraticPrior(A, B, np.zeros((3, 3)), PLANT)
    exact = known.sample(streams(seed, 1)(0), 1).optimal(horizon)[0]
    for prior in (known, exactly):
        run = pw.simulate(prior, TS, horizon=horizon, tasks=20_000, seed=seed)
        assert abs(run.mean_reward - exact) < 4.0 * run.std_error
        assert abs(run.mean_reward - 1.1 * exact) > 4.0 * run.std_error


@dataclass(frozen=True)
class Gain:
    """A fixed controller."""

    gain: Any

    def act(self, belief: Any, seen: Any, rng: Any) -> Any:
        return -np.einsum("ij,tj->ti", self.gain, seen.signal)

    def monte_carlo_n(self, arms: int) -> int:
        return 0


def test_learning_pays(seed: int) -> None:
    """A controller that plans for the prior mean and never learns costs more, in the mean of costs
    that are cut at the largest hundredth of those of Thompson sampling, too.
    """
    wide = NORMAL.replaced(cov=4.0 * COV)
    mean = riccati.gains(A[None], B[None], PLANT, np.array([40]))[0]
    policies = {"ts": TS, "ce": CertaintyEquivalence(), "fixed": Gain(mean)}
    result = pw.compare(wide, policies, horizon=40, tasks=2_000, seed=seed, keep=True)
    costs = {name: -run.rewards.sum(axis=1) for name, run in result.runs.items()}
    most = np.quantile(costs["ts"], 0.99)
    cut = {name: np.minimum(each, most) for name, each in costs.items()}
    oracle = -wide.sample(streams(seed, 2_000)(0), 2_000).optimal(40)
    for learner in ("ts", "ce"):
        gap = cut["fixed"] - cut[learner]
        assert gap.mean() > 4.0 * gap.std() / np.sqrt(gap.size), learner
    assert np.minimum(oracle, most).mean() < cut["ce"].mean() < cut["fixed"].mean()
    assert np.median(costs["ts"]) > np.median(oracle)
    # heavy tails: the largest hundredth of the costs make up much of their sum
    assert costs["fixed"][costs["fixed"] > most].sum() > 0.3 * costs["fixed"].sum()


def test_an_explosive_system_is_cut_and_teaches_nothing_then(seed: int) -> None:
    """No action reaches a state that trebles at each step: it stays at the limit, plans stay
    finite, and steps that were cut are left out of the sums.
    """
    plant = Plant([[1.0]], [[1.0]], 0.01, start=[1.0], limit=50.0)
    prior = FiniteLinearQuadraticPrior([[[3.0]]], [[[0.0]]], [1.0], plant)
    run = pw.simulate(prior, TS, horizon=400, tasks=8, seed=seed, keep=True)
    assert run.rewards.min() >= -(50.0**2) * (1 + 1e-9)
    np.testing.assert_allclose(run.rewards[:, 10:], -(50.0**2))
    environment = prior.sample(streams(seed, 1)(0), 1)
    assert environment.optimal(400)[0] == -np.inf
    assert environment.optimal(3)[0] > -np.inf
    assert environment.closed_loop_radius(20)[0] == pytest.approx(3.0)
    hopeless = np.array([[[1e60]]]), np.array([[[1e-9]]])
    assert np.isfinite(riccati.gains(*hopeless, plant, np.array([500]))).all()
    wide = LinearQuadraticPrior([[3.0]], [[0.0]], np.eye(2), plant)
    belief = wide.belief(2)
    seen = Seen(1, 9, 0, np.array([[1.0], [20.0]]), None, plant.actions)
    later = belief.update(seen, np.zeros((2, 1)), np.zeros(2), np.array([[3.0], [50.0]]))
    assert later.gram[0, 0, 0] == 1.0
    assert not later.gram[1].any()
    assert not later.cross[1].any()
    finite = prior.belief(2).update(seen, np.zeros((2, 1)), np.zeros(2), np.array([[3.0], [50.0]]))
    assert not finite.resets.any()


def test_states_at_the_limit_do_not_depend_on_the_rest_of_the_batch() -> None:
    x = np.array([[3.0, 4.0], [300.0, 400.0], [-1e5, 0.0]])
    cut = PLANT.cut(x)
    np.testing.assert_allclose(np.sqrt((cut**2).sum(axis=1)), [5.0, 200.0, 200.0])
    assert PLANT.was_cut(cut).tolist() == [False, True, True]
    np.testing.assert_allclose(cut[1], [120.0, 160.0])


def test_distances_are_those_of_the_entries(seed: int) -> None:
    """Normal rows: one entry apart is one normal apart; candidates: half the differences."""
    near = NORMAL.replaced(cov=np.diag([0.04, 0.01, 0.01]))
    moved = near.replaced(transition=A + np.diag([0.1, 0.0]))
    exact = 2.0 * stats.norm.cdf(0.1 / 0.2 / 2.0) - 1.0
    assert pw.total_variation(near, moved).value == pytest.approx(exact, rel=1e-10)
    other = FINITE.replaced(probs=[0.2, 0.3, 0.5])
    assert pw.total_variation(FINITE, other).value == pytest.approx(0.3)


def test_the_bound_holds(seed: int) -> None:
    """Simulated rewards of true and wrong priors differ by less than the theorem allows, with tails
    from other runs: four standard errors of the paired difference, false alarms below 1e-4. What a
    reversed control loses is more than a nearly right one may (control).
    """

    prior = NORMAL.replaced(plant=PLANT.replaced(limit=10.0))  # so that tails are not too heavy

    def lost(wrong: Any) -> tuple[float, float]:
        runs = [
            pw.simulate(
                prior, TS, believed=each, horizon=8, tasks=2_000, seed=seed, keep=True
            ).rewards.sum(axis=1)
            for each in (prior, wrong)
        ]  # fmt: skip
        gap = runs[0] - runs[1]
        return abs(gap.mean()), 4.0 * gap.std() / np.sqrt(gap.size)

    bounds = []
    for factor in (0.9, 0.99, 0.9999):
        wrong = prior.replaced(control=factor * B)
        tails = sensitivity.reward_tails(prior, wrong, TS, tasks=2_000, horizon=8, seed=seed + 1)
        bound = sensitivity.pomdp_reward_bound((prior, wrong), TS, 8, tails=tails, estimate=True)
        gap, error = lost(wrong)
        assert gap <= bound.value + error
        bounds.append(bound)
    assert bounds[0].vacuous
    assert not bounds[2].vacuous
    gap, error = lost(prior.replaced(control=-B))
    assert gap > bounds[2].value + error


def test_draws_can_be_kept_for_rounds(seed: int) -> None:
    """One step a round is Thompson sampling; one round is a controller for one draw."""
    runs = {
        steps: pw.simulate(
            NORMAL, RoundSampling(steps=steps), horizon=6, tasks=40, seed=seed, keep=True
        ).actions
        for steps in (1, 6)
    }
    plain = pw.simulate(NORMAL, TS, horizon=6, tasks=40, seed=seed, keep=True).actions
    np.testing.assert_array_equal(runs[1], plain)
    np.testing.assert_array_equal(runs[6][:, 0], plain[:, 0])
    assert not np.array_equal(runs[6], plain)


@pytest.mark.parametrize(
    "policy",
    [pw.Uniform(), pw.KShotThompson(3), RoundSampling(2, steps=2), pw.PosteriorSampling(1)],
    ids=str,
)
def test_policies_for_arms_are_refused(policy: Any, seed: int) -> None:
    with raises("policy", "must choose real actions in this"):
        pw.simulate(NORMAL, policy, horizon=2, tasks=2, seed=seed)


def test_policies_that_need_more_are_refused_by_what_they_need(seed: int) -> None:
    for policy in (pw.Greedy(), pw.BayesUCB()):
        with raises("policy", "needs a belief with"):
            pw.simulate(NORMAL, policy, horizon=2, tasks=2, seed=seed)
    with raises("policy", "needs a belief with"):
        pw.simulate(pw.BetaPrior([1, 1], 1), CertaintyEquivalence(), horizon=2, tasks=2, seed=seed)
    with raises("arms", "no arms to choose from"):
        NORMAL.belief(1).sample(streams(seed, 1)(1), 1, Seen(1, 1, 0, None, None, PLANT.actions))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"action_cost": [[0.0]]}, ("action_cost", "must be positive definite")),
    ({"action_cost": [[np.nan]]}, ("action_cost", "must be finite")),
    ({"state_cost": [[1.0, 0.0], [0.5, 1.0]]}, ("state_cost", "must be symmetric")),
    ({"state_cost": [[-1.0]]}, ("state_cost", "must have no negative")),
    ({"noise_var": 0.0}, ("noise_var", "must be positive")),
    ({"noise_var": [1.0, 1.0, 1.0]}, ("noise_var", "must have shape (2)")),
    ({"start": [1.0]}, ("start", "must have shape (2)")),
    ({"final_cost": [[1.0]]}, ("final_cost", "must have shape (2, 2)")),
    ({"limit": 0.0}, ("limit", "must be positive")),
    ({"limit": np.inf}, ("limit", "must be")),
]


@pytest.mark.parametrize(("change", "said"), WRONG, ids=lambda each: str(each)[:40])
def test_plants_that_make_no_sense(change: dict[str, Any], said: str | tuple[str, str]) -> None:
    given = {"state_cost": np.eye(2), "action_cost": [[1.0]], "noise_var": 1.0}
    with raises(said):
        Plant(**given | change)


def test_priors_that_make_no_sense(seed: int) -> None:
    for given, said in (
        ((A[:1], B, COV, PLANT), "transition must have shape"),
        ((A, B.T, COV, PLANT), "control must have shape"),
        ((A, B, np.eye(2), PLANT), "cov must have shape (3, 3)"),
        ((A, B, [COV, -COV], PLANT), "cov[1] must have no negative variance"),
        ((A, B, np.full((3, 3), np.nan), PLANT), "cov must be finite"),
    ):
        with raises(said):
            LinearQuadraticPrior(*given)
    with raises("plant", "must be a Plant"):
        LinearQuadraticPrior(A, B, COV, "plant")  # type: ignore[arg-type]
    with raises("control", "must have shape (3, 2, 1)"):
        FiniteLinearQuadraticPrior(SYSTEMS[0], SYSTEMS[1][:2], [0.5, 0.3, 0.2], PLANT)
    with raises("probs", "must have shape (3)"):
        FiniteLinearQuadraticPrior(*SYSTEMS, [0.5, 0.5], PLANT)
    other = NORMAL.replaced(plant=PLANT.replaced(noise_var=0.3))
    with raises("prior", "must share"):
        pw.simulate(NORMAL, TS, believed=other, horizon=2, tasks=2, seed=seed)
    seen = Seen(1, 2, 0, np.array([[np.nan, 0.0]]), None, PLANT.actions)
    with raises("seen.signal", "must be finite"):
        NORMAL.belief(1).update(seen, np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)))
    assert isinstance(NORMAL.sample(streams(seed, 2)(0), 2), LinearSystems)


def test_a_cheap_state_is_planned_for_beside_an_expensive_one(seed: int) -> None:
    """Two states that do not meet, of costs 1e16 and 1: the second is planned for as if it were
    alone, and Thompson sampling that knows the system earns what the best controller does, within
    5 standard errors (one false alarm in 1.7 million).
    """
    a, b = np.diag([0.0, 1.0]), np.array([[0.0], [1.0]])
    plant = Plant(np.diag([1e16, 1.0]), [[100.0]], [1e-20, 1.0], start=[0.0, 1.0])
    cost = gain = 0.0
    for _ in range(20):  # the recursion of one number
        gain = cost / (100.0 + cost)
        cost = 1.0 + cost - gain * cost
    found = riccati.gains(a[None], b[None], plant, np.array([20]))[0]
    np.testing.assert_allclose(found, [[0.0, gain]], rtol=1e-12, atol=1e-12)
    known = pw.LinearQuadraticPrior(a, b, np.zeros((3, 3)), plant)
    run = pw.simulate(known, TS, horizon=20, tasks=4000, seed=seed)
    optimum = float(LinearSystems(a[None], b[None], plant).optimal(20)[0])
    assert optimum == pytest.approx(-142.68, abs=0.01)
    assert abs(run.mean_reward - optimum) < 5.0 * run.std_error
    # control: the gain of a recursion that stopped after two steps
    short = riccati.gains(a[None], b[None], plant, np.array([2]))[0]
    assert not np.allclose(short, found, rtol=0.1)
