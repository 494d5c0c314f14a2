"""Linear-quadratic-Gaussian control: the filter against one joint normal law, the plan against
moments of the closed loop, calibration of candidate and hidden state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.stats import multivariate_normal

import priorwise as pw
from priorwise import sensitivity
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, streams
from priorwise.families import FiniteLqgPrior, HiddenPlant, load_prior
from priorwise.policies import CertaintyEquivalence, RoundSampling
from priorwise.testing import RealPriorContract
from priorwise.testing.calibration import DRAWS
from priorwise.testing.laws import bonferroni, randomised_ranks, uniform_p_value
from priorwise.testing.real import play_real

TS = pw.ThompsonSampling()
A, B = np.array([[1.0, 0.3], [0.0, 0.9]]), np.array([[0.0], [0.5]])
PLANT = HiddenPlant(
    [[1.0, 0.0], [0.5, 1.0]], [[1.0, 0.2], [0.2, 0.5]], [[0.3]], [0.05, 0.1], [0.3, 1.0],
    start=[1.0, 0.0], start_cov=[[0.2, 0.05], [0.05, 0.1]],
)  # fmt: skip
SYSTEMS = np.array([A, 0.8 * A, [[0.9, -0.2], [0.4, 0.7]]]), np.array([B, -B, [[0.3], [0.1]]])
PRIOR = FiniteLqgPrior(*SYSTEMS, [0.5, 0.3, 0.2], PLANT)


class TestContract(RealPriorContract):
    tasks, pulls = 8192, 3

    @pytest.fixture
    def prior(self) -> Any:
        return PRIOR

    @pytest.fixture
    def believed(self) -> Any:
        return PRIOR.replaced(probs=[0.0, 0.5, 0.5])

    def _calibration(self, prior: Any, seed: int, wrap: Any) -> float:
        """Rank entries of the system and each coordinate of the hidden state among draws of both,
        and how far the state lies from what is shown.
        """
        played = play_real(prior, tasks=self.tasks, pulls=self.pulls, seed=seed, wrap=wrap)
        belief, truth = played.belief, played.environment
        rng = played.streams.at(Purpose.POLICY, self.pulls + 1)
        drawn = belief.sample_environments(rng, DRAWS, played.seen)  # type: ignore[attr-defined]
        root = np.linalg.cholesky(drawn.spread)
        z = rng.normal(DRAWS, 2)
        states = drawn.mean + np.einsum("tdij,tdj->tdi", root, z)
        mine, theirs = truth.parameters, drawn.parameters  # type: ignore[attr-defined]
        pairs = [(mine[:, i], theirs[:, :, i]) for i in range(mine.shape[1])]
        true, y = truth.state, played.seen.signal  # type: ignore[attr-defined]
        pairs += [(true[:, i], states[:, :, i]) for i in range(2)]
        pairs += [
            (np.abs(true @ row - y[:, i]), np.abs(states @ row - y[:, i, None]))
            for i, row in enumerate(PLANT.observation)
        ]
        return bonferroni(
            [uniform_p_value(randomised_ranks(*pair, rng.uniform()), DRAWS + 1) for pair in pairs]
        )


def test_priors_load_by_name() -> None:
    assert load_prior(PRIOR.to_json()) == PRIOR
    assert pw.total_variation(PRIOR, PRIOR.replaced(probs=[0.4, 0.4, 0.2])).value == (
        pytest.approx(0.1)
    )


def _joint(a: Any, b: Any, actions: Any) -> tuple[Any, Any]:
    """Mean and covariance of all states and outputs of some steps given actions, as one law."""
    steps, c = len(actions) + 1, PLANT.observation
    # every variable is a linear map of x_1, w_1, ..., v_1, ... plus a shift
    size = 2 + 2 * (steps - 1) + 2 * steps
    state, shift, maps, shifts = np.zeros((2, size)), PLANT.start.copy(), [], []
    state[:, :2] = np.eye(2)
    for h in range(steps):
        maps.append(state.copy())
        shifts.append(shift.copy())
        if h < steps - 1:
            state = a @ state
            state[:, 2 + 2 * h : 4 + 2 * h] += np.eye(2)
            shift = a @ shift + b @ actions[h]
    noise = [PLANT.noise_var] * (steps - 1) + [PLANT.output_var] * steps
    cov = np.zeros((size, size))
    cov[:2, :2] = PLANT.start_cov
    cov[2:, 2:] = np.diag(np.concatenate(noise))
    for h in range(steps):
        output = c @ maps[h]
        at = 2 + 2 * (steps - 1) + 2 * h
        output[:, at : at + 2] += np.eye(2)
        maps.append(output)
        shifts.append(c @ shifts[h])
    whole = np.concatenate(maps)
    return np.concatenate(shifts), whole @ cov @ whole.T


def test_the_filter_is_conditioning_of_one_normal_law(seed: int) -> None:
    """States and weights given all outputs, to 1e-9, without a recursion."""
    played = play_real(PRIOR, tasks=8, pulls=5, seed=seed)
    now = played.belief.given(played.seen)  # type: ignore[attr-defined]
    for task in range(8):
        actions = [pull.actions[task] for pull in played.pulls]
        y = np.concatenate(
            [pull.seen.signal[task] for pull in played.pulls] + [played.seen.signal[task]]
        )
        logs = []
        for k, (a, b) in enumerate(zip(*SYSTEMS, strict=True)):
            mean, cov = _joint(a, b, actions)
            x, shown = slice(10, 12), slice(12, 24)  # the last state, and all outputs
            gain = cov[x, shown] @ np.linalg.inv(cov[shown, shown])
            np.testing.assert_allclose(
                now.mean[task, k], mean[x] + gain @ (y - mean[shown]), atol=1e-9
            )
            left = cov[x, x] - gain @ cov[shown, x]
            np.testing.assert_allclose(now.spread[task, k], left, atol=1e-9)
            law = multivariate_normal(mean[shown], cov[shown, shown])
            logs.append(np.log(PRIOR.probs[k]) + law.logpdf(y))
        weights = np.exp(np.array(logs) - max(logs))
        np.testing.assert_allclose(now.probabilities()[task], weights / weights.sum(), atol=1e-9)


def _cost(a: Any, b: Any, gains: Any, horizon: int) -> float:
    """Expected cost of ``u = -K E[x]``, from the second moments of state and estimate together."""
    c, v, w = PLANT.observation, np.diag(PLANT.output_var), np.diag(PLANT.noise_var)
    # (x, m): m is the prediction before the output is shown
    mean = np.concatenate([PLANT.start, PLANT.start])
    moment = np.outer(mean, mean)
    moment[:2, :2] += PLANT.start_cov
    spread, total = PLANT.start_cov, 0.0
    for step in range(horizon):
        filtering = spread @ c.T @ np.linalg.inv(c @ spread @ c.T + v)
        # filtered estimate m + F(C x + v - C m)
        to = np.zeros((4, 4))
        to[:2, :2], to[2:, :2], to[2:, 2:] = np.eye(2), filtering @ c, np.eye(2) - filtering @ c
        moment = to @ moment @ to.T
        moment[2:, 2:] += filtering @ v @ filtering.T
        gain = gains[step]
        total += np.trace(PLANT.output_cost @ (c @ moment[:2, :2] @ c.T + v))
        total += np.trace(PLANT.action_cost @ gain @ moment[2:, 2:] @ gain.T)
        move = np.zeros((4, 4))
        move[:2, :2], move[:2, 2:], move[2:, 2:] = a, -b @ gain, a - b @ gain
        moment = move @ moment @ move.T
        moment[:2, :2] += w
        spread = a @ (spread - filtering @ c @ spread) @ a.T + w
    return float(total)


@pytest.mark.parametrize("which", range(3))
def test_the_plan_is_the_best_and_costs_what_it_says(which: int, seed: int) -> None:
    """The value is that of moments of the closed loop to 1e-9, no gain that is moved does better,
    and a run with the system known earns it within four standard errors.
    """
    a, b = SYSTEMS[0][which], SYSTEMS[1][which]
    prior = FiniteLqgPrior([a], [b], [1.0], PLANT)
    plans = prior.gains(np.array([6]))[::-1, 0]
    value = -float(prior.sample(streams(seed, 1)(0), 1).optimal(6)[0])
    assert value == pytest.approx(_cost(a, b, plans, 6), abs=1e-9)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        assert _cost(a, b, plans + 0.1 * rng.normal(size=plans.shape), 6) > value
    run = pw.simulate(prior, TS, horizon=6, tasks=4000, seed=seed)
    assert abs(run.mean_reward + value) < 4.0 * run.std_error


def test_the_bound_holds_and_a_wrong_prior_loses(seed: int) -> None:
    """Trajectories' tails from runs; and who is sure of the wrong candidate pays, by more than four
    standard errors.
    """
    wrong = PRIOR.replaced(probs=[0.0, 1.0, 0.0])
    near = PRIOR.replaced(probs=[0.499, 0.301, 0.2])
    options: Any = {"horizon": 5, "tasks": 3000, "seed": seed}
    runs = [
        pw.simulate(PRIOR, TS, believed=held, keep=True, **options).rewards.sum(axis=1)
        for held in (PRIOR, wrong, near)
    ]
    lost = runs[0] - runs[1]
    assert lost.mean() > 4.0 * lost.std() / np.sqrt(lost.size)
    tails = sensitivity.reward_tails(PRIOR, near, TS, **options)
    bound = sensitivity.pomdp_reward_bound((PRIOR, near), TS, 5, tails=tails, estimate=True)
    assert bound.tv.value == pytest.approx(0.001)
    gap = runs[0] - runs[2]
    assert abs(gap.mean()) <= bound.value + 4.0 * gap.std() / np.sqrt(gap.size)
    assert not bound.vacuous


def test_what_explodes_stays_finite(seed: int) -> None:
    """A mode that grows, that no action reaches and that is not shown, over 200 steps."""
    plant = HiddenPlant([[1.0, 0.0]], [[1.0]], [[1.0]], 0.1, 0.1, start_cov=np.eye(2))
    a = np.diag([3.0, 4.0])
    prior = FiniteLqgPrior([a, 0.5 * a], [[[0.0], [0.0]]] * 2, [0.5, 0.5], plant)
    run = pw.simulate(prior, TS, horizon=200, tasks=4, seed=seed)
    assert np.isfinite(run.mean_reward)


def test_what_does_not_fit_is_refused(seed: int) -> None:
    for policy, argument in (
        (RoundSampling(steps=2), "draws"),
        (CertaintyEquivalence(), "policy"),
        (pw.Greedy(), "policy"),
    ):
        with raises(argument, kind=TypeError):
            pw.simulate(PRIOR, policy, horizon=3, tasks=2, seed=seed)
    with raises("plant", "must be a HiddenPlant"):
        FiniteLqgPrior(*SYSTEMS, [0.5, 0.3, 0.2], PLANT.plant)  # type: ignore[arg-type]
    with raises("seen.signal", "must be outputs of shape"):
        PRIOR.belief(1).given(Seen(1, 2, 0, np.zeros((1, 3)), None, PRIOR.actions))
