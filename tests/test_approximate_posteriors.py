"""What approximate posteriors add to the bounds, against quadrature on a grid of two parameters.

The grid integrates prior times likelihood in units of the prior. The library draws and weighs.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_expit

import priorwise as pw
from priorwise.advise.certificate_words import _of_bound
from priorwise.core.approximate import ComparableBelief, WeightedDraws, is_approximate
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.core.types import FloatArray
from priorwise.families import LogisticStatistics
from priorwise.sensitivity.bounds.approximation import approximation_error
from priorwise.sensitivity.bounds.bandits import Bound

TS = pw.ThompsonSampling()
WIDE = pw.LogitNormalPrior([0.0, 0.0], [[25.0, 0.0], [0.0, 25.0]])
AXIS, STEP = np.linspace(-8.0, 8.0, 401, retstep=True)
GRID = np.stack(
    [  # half a step apart: no ties, and as many points on either side of the diagonal
        each.ravel() for each in np.meshgrid(AXIS, AXIS + STEP / 2.0, indexing="ij")
    ]
)
LOG_PRIOR = -0.5 * (GRID**2).sum(axis=0)


def normalised(log_weights: FloatArray) -> tuple[FloatArray, float]:
    weights = np.exp(log_weights - log_weights.max())
    mass = weights.sum() * np.exp(log_weights.max()) * STEP**2 / (2.0 * np.pi)
    return weights / weights.sum(), float(mass)


def on_the_grid(prior: Any, successes: Any, pulls: Any) -> tuple[FloatArray, float]:
    """Law of the best of two arms under the exact posterior, and the probability of the counts in
    one order.
    """
    root = np.linalg.cholesky(prior.cov)
    eta = prior.mean[:, None] + root @ GRID
    s, n = (np.asarray(each, dtype=float)[:, None] for each in (successes, pulls))
    likelihood = (s * log_expit(eta) + (n - s) * log_expit(-eta)).sum(axis=0)
    weights, mass = normalised(LOG_PRIOR + likelihood)
    # the share of each cell, along the second axis, in which arm 0 is best
    share = np.clip((eta[0] - eta[1]) / (abs(root[0, 1] - root[1, 1]) * STEP) + 0.5, 0.0, 1.0)
    first = float(weights @ share)
    return np.array([first, 1.0 - first]), mass


HISTORIES = {
    "logit-normal, skewed": (WIDE, (0, 1), (1, 2), None),
    "logit-normal, correlated": (
        pw.LogitNormalPrior([-1.0, 0.5], [[25.0, 10.0], [10.0, 25.0]]), (0, 1), (2, 1), None
    ),
    "logistic, 4 pulls": (
        pw.LogisticPrior(
            [0.0, 0.0], 25.0 * np.eye(2), [[0.585, 0.811], [-0.866, -0.5], [0.597, -0.802]]
        ),
        (2, 2, 1, 2), (0.0, 1.0, 0.0, 1.0), 0.065,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_weighted_draws_have_the_posterior_of_quadrature(name: str, seed: int) -> None:
    """Probabilities of 200 batches of 500 draws: their mean is within 5.5 standard errors of
    quadrature, and 0.001 for its grid and for the weights; false alarms below 1e-6. The control is
    the approximation.
    """
    prior, first, second, apart = HISTORIES[name]
    batches, draws = 200, 500
    rng = streams(seed, batches)(1)
    if apart is None:
        statistics = pw.BetaStatistics([first] * batches, [second] * batches)
        belief, seen = prior.belief_given(statistics), Seen(5, 9, 2)
        known = on_the_grid(prior, first, second)[0]
    else:
        table = prior.contexts.features[0]
        x = np.broadcast_to(table[list(first)], (batches, 4, 2))
        belief = prior.belief_given(LogisticStatistics(x, [second] * batches))
        seen = Seen(5, 9, 3, signal=np.broadcast_to(table, (batches, 3, 2)))
        signs = np.where(np.array(second) == 1.0, 1.0, -1.0)[:, None]
        log_likelihood = log_expit(signs * (5.0 * table[list(first)] @ GRID)).sum(axis=0)
        weights, _ = normalised(LOG_PRIOR + log_likelihood)
        known = np.bincount((table @ GRID).argmax(axis=0), weights, minlength=3)
    drawn = belief.weighted_draws(rng, draws, seen)
    best = np.eye(len(known))[drawn.values.argmax(axis=2)]
    exact, used = (np.einsum("td,tda->ta", w, best) for w in (drawn.exact, drawn.used))
    error = 5.5 * exact.std(axis=0) / np.sqrt(batches) + 1e-3
    assert (np.abs(exact.mean(axis=0) - known) < error).all()
    assert (np.abs(used.mean(axis=0) - known) > error).any()
    played = belief.argmax_law(1, "max", seen).probs[0]
    assert (np.abs(used.mean(axis=0) - played) < error).all()
    assert drawn.effective.min() > draws / 10
    if apart is not None:
        assert np.abs(played - known).sum() / 2.0 == pytest.approx(apart, abs=2e-3)


def enumerated(p: Any, q: Any, horizon: int) -> tuple[FloatArray, float]:
    """What both approximations add, and the distance of trajectories that are played: every
    history of two arms, its probability on tasks of p by quadrature.
    """
    added, paths = np.zeros(2), [((0, 0), (0, 0), 1.0, 1.0)]  # counts, probabilities of the actions
    for step in range(1, horizon + 1):
        after, apart = [], 0.0
        for s, n, mine, others in paths:
            seen = Seen(step, horizon, 2)
            given = pw.BetaStatistics([s], [n])
            _, mass = on_the_grid(p, s, n)
            played = [
                each.belief_given(given).argmax_law(1, "max", seen).probs[0] for each in (p, q)
            ]
            exact = [on_the_grid(each, s, n)[0] for each in (p, q)]
            for row in range(2):
                added[row] += mass * mine * np.abs(played[row] - exact[row]).sum() / 2.0
            apart += mass * np.abs(mine * played[0] - others * played[1]).sum() / 2.0
            for arm in range(2):
                for reward in (0, 1):
                    now = np.eye(2, dtype=int)[arm]
                    counts = tuple(s + reward * now), tuple(n + now)
                    after.append((*counts, mine * played[0][arm], others * played[1][arm]))
        paths = after
    return added, float(apart)


@pytest.mark.slow
def test_the_term_is_that_of_every_history(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pulls at standard deviation 5. The estimate lies within 5.5 standard errors of the
    enumerated term, above it by no more than noise of the weights adds, 0.004 a pull; false alarms
    below 1e-6. What is played stays within the bound. The control compares an approximation with
    itself.
    """
    p, q = WIDE, pw.LogitNormalPrior([0.3, 0.0], WIDE.cov)
    added, apart = enumerated(p, q, 3)
    found = approximation_error(p, q, TS, 3, seed=seed, histories=200)
    assert found is not None
    assert found.reliable
    for known, estimate in zip(added, (found.true, found.believed), strict=True):
        assert known > 0.004
        noise = 5.5 * estimate.std_error + 5e-4
        assert -noise < estimate.mean - known < noise + 3 * 0.004
    near = pw.trajectory_bound(p, q, TS, 3, approximation=found.total)
    assert apart <= near.value
    assert near.kind == "estimate"
    belief = type(p.belief(1))
    honest = belief.weighted_draws

    def blind(self: Any, *rest: Any) -> WeightedDraws:
        drawn = honest(self, *rest)
        return WeightedDraws(drawn.values, drawn.used, drawn.used)

    monkeypatch.setattr(belief, "weighted_draws", blind)
    control = approximation_error(p, q, TS, 3, seed=seed, histories=50)
    assert control is not None
    assert control.true.mean < added[0] - 5.5 * found.true.std_error


def test_before_the_first_reward_nothing_is_approximate(seed: int) -> None:
    for prior in (WIDE, pw.LogisticPrior([0.5, 0.0], np.eye(2), pw.SphereContexts(arms=3))):
        found = approximation_error(prior, prior, TS, 1, seed=seed, histories=10)
        assert found is not None
        assert found.total.value == pytest.approx(0.0, abs=1e-12)


def test_the_best_of_several_weighted_draws(seed: int) -> None:
    """Three weighted points and two draws, by hand."""
    from priorwise.sensitivity.bounds.approximation import _law_of_best

    weights, values = np.array([[0.5, 0.3, 0.2]]), np.array([[[2.0, 0.0], [0.0, 3.0], [1.0, 0.5]]])
    # in ascending order: 1 (arm 0), 2 (arm 0), 3 (arm 1)
    found = _law_of_best(weights, values, 2, Seen(1, 1, 2))
    assert found[0] == pytest.approx([0.7**2, 1.0 - 0.7**2])


def kinds(p: Any, q: Any, policy: Any, **options: Any) -> set[str]:
    bounds: list[Bound] = [
        pw.trajectory_bound(p, q, policy, 2, **options),
        pw.reward_bound(p, q, policy, 2, sharp=True, **options),
    ]
    if "tv" not in options:
        both: Any = (p, q), policy, 2
        bounds += [
            pw.sensitivity.pomdp_trajectory_bound(*both, **options),
            pw.sensitivity.pomdp_reward_bound(*both, reward_range=1.0, **options),
        ]
    return {each.kind for each in bounds}


@pytest.mark.slow
def test_bounds_say_how_far_they_can_be_trusted(seed: int) -> None:
    p, q = (pw.LogitNormalPrior([m, 0.0], np.eye(2)) for m in (0.0, 0.01))
    exact = pw.BetaPrior([1.0, 1.0], 1.0), pw.BetaPrior([1.01, 1.0], 1.0)
    assert kinds(*exact, TS) == {"certified"}
    assert kinds(p, q, TS) == {"approximate"}
    assert kinds(p, q, TS, approximation=0.01) == {"certified"}
    with pytest.raises(ValueError, match="seed"):
        pw.trajectory_bound(p, q, TS, 2, estimate=True)
    assert kinds(p, q, TS, estimate=True, seed=seed) == {"estimate"}
    assert kinds(p, q, pw.Uniform()) == {"certified"}
    # a look-ahead uses the approximation in ways that its constant does not cover
    assert kinds(p, q, pw.RecedingHorizon(1, 1, 0.5), estimate=True, seed=seed) == {"approximate"}
    mixture = [pw.MixturePrior([p, q], probs) for probs in ([0.5, 0.5], [0.51, 0.49])]
    assert kinds(*mixture, TS, tv=0.01) == {"approximate"}
    plain = pw.trajectory_bound(p, q, TS, 2)
    more = pw.trajectory_bound(p, q, TS, 2, estimate=True, seed=seed)
    assert more.approximation is not None
    assert more.delta == pytest.approx(plain.delta + more.approximation.value)
    assert more.std_error == more.approximation.std_error > 0.0
    with pytest.raises(ValueError, match="approximation"):
        pw.trajectory_bound(p, q, TS, 3, approximation=-0.1)


def test_who_is_approximate() -> None:
    one = pw.LogitNormalPrior([0.0, 0.0], np.eye(2))
    assert is_approximate(one)
    assert isinstance(one.belief(1), ComparableBelief)
    assert is_approximate(pw.MixturePrior([one, one], [0.5, 0.5]))
    beta = pw.BetaPrior([1.0, 2.0], 1.0)
    assert not is_approximate(beta)
    assert not is_approximate(pw.LogitNormalPrior([0.0, 1.0], np.zeros((2, 2))))  # certain
    assert not is_approximate(pw.MixturePrior([beta, beta], [0.5, 0.5]))


@pytest.mark.slow
def test_the_ladder_counts_what_approximations_add(seed: int) -> None:
    p, q = (pw.LogitNormalPrior([m, 0.0], 9.0 * np.eye(2)) for m in (0.0, 0.1))
    ladder = pw.sensitivity_ladder(p, q, TS, 3, seed=seed, tasks=2000, histories=100)
    term = ladder["approximate posteriors"]
    assert ladder.approximation is not None
    assert term.delta == ladder.approximation.total.value > 0.0
    eps = pw.total_variation(p, q).value
    assert ladder["worst case"].delta == pytest.approx(2 * 3 * eps + term.delta)
    assert not term.holds
    assert not ladder.certified
    assert "approximate posteriors" not in ladder.informative
    assert ladder.in_order, ladder.disorders
    unknown = pw.sensitivity_ladder(
        p, q, pw.RecedingHorizon(1, 1, 0.5), 2, seed=seed, tasks=500, histories=20
    )
    assert unknown.approximation is None
    assert not unknown["worst case"].holds
    assert any(each.startswith("approximate posteriors") for each in unknown.left_out)
    beta = pw.BetaPrior([1.0, 1.0], 1.0)
    exact = pw.sensitivity_ladder(
        beta, pw.BetaPrior([1.5, 1.0], 1.0), TS, 2, seed=seed, tasks=500, histories=20
    )
    assert exact.certified
    assert all(rung.holds for rung in exact.rungs)


def test_a_certificate_does_not_promise_an_approximate_bound() -> None:
    p, q = (pw.LogitNormalPrior([m, 0.0], np.eye(2)) for m in (0.0, 1e-5))
    bounds = [pw.reward_bound(p, q, TS, 3, **more) for more in ({}, {"approximation": 0.0})]
    said = [_of_bound(SimpleNamespace(bound=bound)) for bound in bounds]
    assert ["95 %" in each for each in said] == [False, True]
    assert "approximate" in said[0]
