"""Learning the prior of tabular MDPs: the marginal likelihood, and what a learned prior earns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from registry import EARNED, MOVES, STATE_PRIORS, SUCCESSES
from scipy.optimize import minimize
from scipy.special import gammaln

import priorwise as pw
from priorwise.families import DirichletMdpMarginalLikelihood, MdpStatistics, riverswim
from priorwise.families.beta.likelihood.rising import RisingSums
from priorwise.families.tabular_mdp.likelihood import RowObjective, fit_row
from priorwise.meta import EmpiricalBayes, Every, ExploreThenCommit, FixedPrior


def counts_of(alpha: Any, tasks: int, moves: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(moves, rng.dirichlet(alpha)) for _ in range(tasks)])


def test_slopes_are_those_of_the_objective(seed: int) -> None:
    counts = counts_of([1.0, 2.0, 0.5], 40, 7, seed)
    objective = RowObjective(
        tuple(RisingSums.of(np.ascontiguousarray(each)) for each in counts.T),
        RisingSums.of(counts.sum(axis=1)),
        counts.sum(axis=0).astype(float),
        1.0,
    )
    at, e = np.array([0.3, -0.4, 0.7]), 1e-5
    gradient, information = objective.slopes(at)
    rise = [
        (objective.value(at + e * v) - objective.value(at - e * v)) / (2 * e) for v in np.eye(3)
    ]
    turn = [
        (objective.slopes(at + e * v)[0] - objective.slopes(at - e * v)[0]) / (2 * e)
        for v in np.eye(3)
    ]
    np.testing.assert_allclose(gradient, rise, rtol=1e-6)
    np.testing.assert_allclose(information, -np.array(turn), rtol=1e-5, atol=1e-6)


def test_a_row_is_fitted_as_a_direct_search_does(seed: int) -> None:
    """Against Nelder and Mead on log-gammas."""
    counts = counts_of([2.0, 1.0, 3.0], 100, 12, seed)

    def minus(log_alpha: Any) -> float:
        a = np.exp(log_alpha)
        each = gammaln(a + counts) - gammaln(a)
        return -float(each.sum() - (gammaln(a.sum() + 12) - gammaln(a.sum())) * len(counts))

    best = minimize(
        minus, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}
    )
    fit = fit_row(counts, 0.0)
    assert fit.converged
    assert fit.reason is None
    np.testing.assert_allclose(fit.alpha, np.exp(best.x), rtol=1e-4)


def test_two_outcomes_are_fitted_as_a_beta_law(seed: int) -> None:
    counts = counts_of([2.0, 1.0], 60, 8, seed)
    row = fit_row(counts, 1.0)
    beta = pw.BetaMarginalLikelihood().fit(
        pw.BetaStatistics(counts[:, :1], counts.sum(axis=1, keepdims=True))
    )
    np.testing.assert_allclose(row.alpha, [beta.prior.alpha[0], beta.prior.beta[0]], rtol=1e-6)
    np.testing.assert_allclose(
        row.errors, [beta.std_errors["alpha"][0], beta.std_errors["beta"][0]], rtol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mdp", "mdp-bernoulli", "mdp-normal"])
def test_the_prior_is_found_again(name: str, seed: int) -> None:
    """Within 6 standard errors in each of 13 parameters (false alarm 3e-8), from data that Thompson
    sampling gathered with another prior; impossible moves stay impossible.
    """
    prior = STATE_PRIORS[name][0]
    blank = prior.replaced(transitions=(MOVES > 0).astype(float))
    run = pw.simulate(
        prior, pw.Uniform(), believed=blank, horizon=60, tasks=3000, seed=seed, keep=True
    )
    fit = DirichletMdpMarginalLikelihood(prior).fit(run)
    errors = fit.std_errors["transitions"]
    drawn = (MOVES > 0) & ((MOVES > 0).sum(axis=2, keepdims=True) > 1)
    z = (fit.prior.transitions - MOVES)[drawn] / errors[drawn]
    assert np.abs(z).max() < 6
    assert np.abs(z).max() > 0.5
    np.testing.assert_array_equal(fit.prior.transitions == 0, MOVES == 0)
    assert fit.converged
    assert not fit.at_boundary
    assert fit.log_likelihood is not None
    assert fit.log_likelihood > pw.meta.log_marginal_likelihood(prior, run).sum()
    if name == "mdp-bernoulli":
        np.testing.assert_allclose(fit.prior.rewards.alpha, SUCCESSES.alpha, rtol=0.3)
    if name == "mdp-normal":
        np.testing.assert_allclose(fit.prior.rewards.mean, EARNED, atol=0.15)


def test_warnings_name_every_place_in_good_english(seed: int) -> None:
    """In rounds of one step every move is a reset: nothing is seen to lead anywhere."""
    clicks = pw.families.BernoulliRewardPrior(np.ones((2, 2)), 1.0)
    short = pw.DirichletMdpPrior(np.ones((2, 2, 2)), clicks, round_steps=1)
    run = pw.simulate(short, pw.ThompsonSampling(), horizon=4, tasks=50, seed=seed, keep=True)
    fit = pw.families.DirichletMdpMarginalLikelihood(short).fit(run)
    moves, rewards = fit.warnings
    where = "action 0 in state 0, action 1 in state 0, action 0 in state 1 and 1 more"
    assert moves.startswith(f"each of {where} was never seen to lead anywhere: ")
    where = "action 0 in state 1, action 1 in state 1"
    assert rewards.startswith(f"each of {where} was never played: ")


def test_rows_without_a_maximum_say_so(seed: int) -> None:
    never = fit_row(np.zeros((5, 3), dtype=np.int64), 1.0)
    assert never.reason == "was never seen to lead anywhere"
    np.testing.assert_allclose(never.alpha, 1 / 3, rtol=1e-6)
    one_sided = fit_row(np.array([[3, 0], [5, 0]]), 1.0)
    assert one_sided.reason == "never led to some of its possible states"
    even = fit_row(np.array([[2, 2]] * 30), 0.0)
    assert even.reason is not None
    assert even.alpha.sum() > 1e6
    statistics = MdpStatistics.empty(3, states=3, arms=2)
    with raises("data", "must have a task with a"):
        DirichletMdpMarginalLikelihood(STATE_PRIORS["mdp"][0]).fit(statistics)
    with raises("like", "is missing: a DirichletMdpPrior of the"):
        DirichletMdpMarginalLikelihood().fit(statistics)


def test_plausible_priors_spread_as_the_standard_errors_say(seed: int, drawn: Any) -> None:
    """Over 400 of them, within a quarter; they keep what is impossible, and JSON keeps them."""
    prior = STATE_PRIORS["mdp"][0]
    run = pw.simulate(prior, pw.Uniform(), horizon=40, tasks=1000, seed=seed, keep=True)
    fit = DirichletMdpMarginalLikelihood(prior).fit(run)
    rng = np.random.default_rng(seed)
    tables = np.array([each.transitions for each in fit.draw(rng, 400)])
    uncertain = fit.std_errors["transitions"] > 0
    ratio = tables.std(axis=0)[uncertain] / fit.std_errors["transitions"][uncertain]
    assert 0.75 < ratio.min() <= ratio.max() < 1.35
    np.testing.assert_array_equal(tables[0] == 0, MOVES == 0)
    again = pw.core.Serializable.load(fit.to_json())
    first, second = (each.draw(np.random.default_rng(seed), 1)[0] for each in (fit, again))
    assert first == second
    frame = fit.to_frame()
    row = frame[(frame.parameter == "transitions[1]") & (frame.row == 1) & (frame.column == 2)]
    assert row.value.item() == fit.prior.transitions[1, 1, 2]
    fit.figure()
    labels = [each.get_text() for each in drawn[-1].axes[0].get_yticklabels()]
    assert "0, action 1: to 2" in labels
    assert len(labels) == int(uncertain.sum())


@pytest.mark.slow
def test_a_prior_learned_from_200_rivers_beats_dirichlet_one(seed: int) -> None:
    """By more than 5 paired standard errors, and from what was gathered with that vague prior."""
    river = riverswim()
    vague = river.replaced(transitions=np.ones((6, 2, 6)))
    past = pw.simulate(
        river, pw.ThompsonSampling(), believed=vague, horizon=100, tasks=200, seed=seed, keep=True
    )
    learned = DirichletMdpMarginalLikelihood(vague).fit(past).prior
    found = pw.compare(
        river,
        {"learned": (pw.ThompsonSampling(), learned), "vague": (pw.ThompsonSampling(), vague)},
        horizon=100,
        tasks=1000,
        seed=seed + 1,
    )
    gap = found.difference("learned", "vague")
    assert gap.mean > 5 * gap.std_error


@pytest.mark.slow
def test_learners_learn_mdps(seed: int) -> None:
    """Empirical Bayes and explore-then-commit end up above the blank start, by 5 standard errors
    over replicates.
    """
    river = riverswim(states=4, round_steps=12)
    start = river.replaced(transitions=np.ones((4, 2, 4)))
    options: Any = {"episodes": 60, "replicates": 6, "horizon": 36, "seed": seed, "jobs": 1}
    learners: Any = {
        "blank": FixedPrior(pw.ThompsonSampling(), start),
        "empirical Bayes": EmpiricalBayes(
            DirichletMdpMarginalLikelihood(), schedule=Every(15), start=start
        ),
        "commit": ExploreThenCommit(20, DirichletMdpMarginalLikelihood(start)),
    }
    late = {
        name: pw.simulate_meta(river, each, **options).rewards[:, 30:].mean(axis=1)
        for name, each in learners.items()
    }
    for name in ("empirical Bayes", "commit"):
        gain = late[name] - late["blank"]
        assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_models_of_mdps_are_compared(seed: int) -> None:
    """Which moves are possible is a model: who leaves out those that never happen predicts better,
    by 5 standard errors over tasks.
    """
    river = riverswim()
    vague = river.replaced(transitions=np.ones((6, 2, 6)))
    run = pw.simulate(river, pw.Uniform(), horizon=40, tasks=60, seed=seed, keep=True)
    per_task = [pw.meta.log_marginal_likelihood(each, run) for each in (river, vague)]
    gap = per_task[0] - per_task[1]
    assert gap.mean() > 5 * gap.std() / np.sqrt(60)
    models = {
        "narrow": DirichletMdpMarginalLikelihood(river),
        "any move": DirichletMdpMarginalLikelihood(vague),
    }
    assert pw.compare_models(models, run, seed=seed).best == "narrow"
