"""Mixtures learned by EM: against numerical derivatives, quadrature, and truths that are known."""

from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.special import betaln
from scipy.stats import chi2

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.families import (
    ExchangeableMixturePrior,
    MixtureMarginalLikelihood,
    NormalGammaMarginalLikelihood,
)
from priorwise.families.mixture.likelihood.model import MixtureModel
from priorwise.families.registry import family_for
from priorwise.fitting.fits import PriorFit

BETA = pw.BetaMarginalLikelihood("exchangeable")
CLICKS = ExchangeableMixturePrior(
    [pw.ExchangeableBetaPrior(3, 27), pw.ExchangeableBetaPrior(12, 12)], [0.7, 0.3]
)
NORMAL = ExchangeableMixturePrior(
    [
        pw.ExchangeableGaussianPrior(0.0, 0.5, 0.3, 1.0),
        pw.ExchangeableGaussianPrior(1.5, 4.0, 0.6, 1.0),
    ],
    [0.7, 0.3],
)


def played(prior: Any, *, tasks: int, seed: int, arms: int = 3, horizon: int = 45) -> Any:
    whole = prior.for_arms(arms)
    policy = pw.ThompsonSampling()
    return pw.simulate(whole, policy, horizon=horizon, tasks=tasks, seed=seed, keep=True)


def estimator(name: str) -> Any:
    return {
        "beta": BETA,
        "beta separate": pw.BetaMarginalLikelihood(),
        "gaussian": pw.GaussianMarginalLikelihood("exchangeable", noise_var=1.0),
        "gaussian diagonal": pw.GaussianMarginalLikelihood("diagonal", noise_var=1.0),
        "gaussian full": pw.GaussianMarginalLikelihood("full", noise_var=1.0),
        "normal-gamma": NormalGammaMarginalLikelihood("exchangeable"),
        "logit-normal": pw.LogitNormalMarginalLikelihood("exchangeable"),
    }[name]


def model_of(name: str, seed: int, tasks: int = 60, regulariser: float = 1.0) -> MixtureModel:
    """A model with data, of any family."""
    clicks = name[0] in "bl"
    one = estimator(name).fit(played(CLICKS if clicks else NORMAL, tasks=tasks, seed=seed))
    form = family_for(one.prior, "a test").coordinates(one.prior, 3)
    density = family_for(one.prior, "a test").log_marginal
    return MixtureModel(density, one.statistics, form, 2, regulariser)


def anywhere(model: MixtureModel, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = model.form.x + 0.1 * model.form.width * rng.standard_normal((2, model.size))
    return model.joined(np.log([0.6, 0.4]), x)


FAMILIES = (
    "beta", "beta separate", "gaussian", "gaussian diagonal", "gaussian full", "normal-gamma",
    "logit-normal",
)  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_coordinates_make_the_prior_they_are_of(name: str, seed: int) -> None:
    one = estimator(name).fit(played(CLICKS if name[0] in "bl" else NORMAL, tasks=40, seed=seed))
    form = family_for(one.prior, "a test").coordinates(one.prior, 3)
    again = form.make(form.x)
    for each in form.names:
        np.testing.assert_allclose(getattr(again, each), getattr(one.prior, each), rtol=1e-6)


@pytest.mark.parametrize("regulariser", [0.0, 1.0])
@pytest.mark.parametrize("name", FAMILIES)
def test_each_step_of_em_raises_the_likelihood(name: str, regulariser: float, seed: int) -> None:
    model = model_of(name, seed, regulariser=regulariser)
    z = anywhere(model, seed)
    values = [model.value(z)]
    for _ in range(8):
        z = model.em(z)
        values.append(model.value(z))
    rounding = 1e-10 * abs(values[0])
    assert (np.diff(values) >= -rounding).all()
    assert values[-1] > values[0] + 0.1


def test_em_with_wrong_shares_lowers_the_likelihood(seed: int) -> None:
    """The control: what rises above is not what any step does."""
    model = model_of("beta", seed, tasks=200)
    z = anywhere(model, seed)
    for _ in range(20):
        z = model.em(z)
    wrong = np.roll(np.eye(2)[model.terms(z).argmax(axis=1)], 1, axis=0)
    assert model.value(model.em(z, wrong)) < model.value(z) - 1.0


@pytest.mark.parametrize(
    "name", ["beta", "gaussian", "gaussian diagonal", "normal-gamma", "logit-normal"]
)
def test_slopes_and_information_are_derivatives(name: str, seed: int) -> None:
    model = model_of(name, seed, tasks=30)
    z, width = anywhere(model, seed), model.widths()
    gradient, information = model.slopes(z)
    for i, h in enumerate(1e-4 * width):
        step = np.zeros(z.size)
        step[i] = h
        slope = (model.value(z + step) - model.value(z - step)) / (2.0 * h)
        np.testing.assert_allclose(gradient[i] * width[i], slope * width[i], rtol=1e-4, atol=1e-3)
        bend = (model.slopes(z - step)[0] - model.slopes(z + step)[0]) / (2.0 * h)
        scale = np.sqrt(np.abs(np.diag(information)).max() * width.max() ** 2) * width[i]
        np.testing.assert_allclose(information[i] / scale, bend / scale, atol=1e-3)


def distance(truth: Any, fit: PriorFit) -> tuple[float, int]:
    """Squared distance of the truth from a fit in the fit's own standard errors."""
    law: Any = fit.uncertainty
    forms = [family_for(part, "a test").coordinates(part, law.arms) for part in truth.components]
    odds = np.log(truth.probs[:-1] / truth.probs[-1])
    off = np.concatenate([odds, *(form.x for form in forms)]) - law.centre
    return float(off @ np.linalg.solve(law.covariance, off)), off.size


@pytest.mark.parametrize("name", ["beta", "gaussian"])
def test_known_mixtures_are_recovered(name: str, seed: int) -> None:
    """Jointly over logs of Thompson sampling: chi-square, false alarm 1e-4. The control has the
    probabilities of the components exchanged.
    """
    truth = CLICKS if name == "beta" else NORMAL
    other = ExchangeableMixturePrior(truth.components, [0.6, 0.4])
    mixture = MixtureMarginalLikelihood(estimator(name), seed=seed, starts=2)
    total, control, freedom = 0.0, 0.0, 0
    for log in range(4):
        fit = mixture.fit(played(truth, tasks=400, seed=seed + 100 * log))
        assert fit.converged
        found, size = distance(truth, fit)
        total, control, freedom = total + found, control + distance(other, fit)[0], freedom + size
    assert chi2.sf(total, freedom) > 1e-4
    assert chi2.sf(control, freedom) < 1e-4


@pytest.mark.parametrize("name", ["normal-gamma", "logit-normal", "gaussian full"])
def test_other_families_gain_by_a_second_component(name: str, seed: int) -> None:
    data = played(CLICKS if name[0] in "bl" else NORMAL, tasks=150, seed=seed)
    one = estimator(name)
    fit = MixtureMarginalLikelihood(one, seed=seed, starts=2).fit(data)
    assert fit.log_likelihood is not None
    assert fit.log_likelihood > one.fit(data).log_likelihood + 10.0
    np.testing.assert_allclose(fit.prior.probs, [0.7, 0.3], atol=0.2)


def test_belief_is_that_of_quadrature(seed: int) -> None:
    """The posterior of a fitted mixture over a grid of both arms' rates, without any formula of
    conjugate families.
    """
    fit = MixtureMarginalLikelihood(BETA, seed=seed).fit(played(CLICKS, tasks=150, seed=seed))
    prior = fit.prior.for_arms(2)
    s, n = np.array([[2, 9], [0, 1]]), np.array([[11, 12], [3, 1]])
    belief = fit.prior.belief_given(pw.BetaStatistics(s, n))
    mu = (np.arange(4_000) + 0.5) / 4_000
    for task in range(2):
        evidence, moments = [], []
        for part, prob in zip(prior.components, prior.probs, strict=True):
            mass, mean = [], []
            for arm in range(2):
                a, b = part.alpha[arm], part.beta[arm]
                log = (a - 1 + s[task, arm]) * np.log(mu)
                log += (b - 1 + n[task, arm] - s[task, arm]) * np.log1p(-mu) - betaln(a, b)
                weight = np.exp(log) / 4_000
                mass.append(weight.sum())
                mean.append((weight * mu).sum() / weight.sum())
            evidence.append(prob * np.prod(mass))
            moments.append(mean)
        share = np.array(evidence) / np.sum(evidence)
        np.testing.assert_allclose(belief.probabilities()[task], share, atol=1e-4)
        np.testing.assert_allclose(belief.mean(Seen(1, 1, 2))[task], share @ moments, atol=1e-4)


def test_a_fit_is_sorted_repeats_and_round_trips(seed: int) -> None:
    data = played(CLICKS, tasks=150, seed=seed)
    mixture = MixtureMarginalLikelihood(BETA, 3, seed=seed)
    fit, again = mixture.fit(data), mixture.fit(data)
    assert fit.prior == again.prior
    assert (np.diff(fit.prior.probs) <= 0.0).all()
    loaded = PriorFit.load(fit.to_json())
    assert loaded.prior == fit.prior
    rngs = np.random.default_rng(seed), np.random.default_rng(seed)
    assert loaded.draw(rngs[0], 2) == fit.draw(rngs[1], 2)
    frame = fit.to_frame()
    assert {"probs", "components.0.alpha", "components.2.beta"} <= set(frame["parameter"])
    np.testing.assert_allclose(
        frame.loc[frame["parameter"] == "components.1.beta", "value"],
        fit.prior.components[1].beta,
    )


def test_draws_have_the_standard_errors(seed: int) -> None:
    """400 draws: the spread of a probability is right to 3.5 % in one standard error; false alarm
    of five of them about 6e-7.
    """
    fit = MixtureMarginalLikelihood(BETA, seed=seed).fit(played(CLICKS, tasks=600, seed=seed))
    drawn = [each.probs[0] for each in fit.draw(np.random.default_rng(seed), 400)]
    assert np.std(drawn) == pytest.approx(fit.std_errors["probs"][0], rel=0.2)


def test_one_law_does_not_tell_two_components(seed: int) -> None:
    """Where there is one law, the fit says that the data leave the rest open."""
    one = pw.ExchangeableBetaPrior(6, 18)
    fit = MixtureMarginalLikelihood(BETA, seed=seed).fit(played(one, tasks=80, seed=seed))
    errors = fit.std_errors["probs"]
    assert fit.at_boundary or errors[0] > 0.1
    if fit.at_boundary:
        assert any("take fewer components" in each for each in fit.warnings)


def test_a_component_of_one_task_is_said(seed: int) -> None:
    s = np.vstack([np.random.default_rng(seed).binomial(40, 0.2, (60, 2)), [[39, 40]]])
    data = pw.BetaStatistics(s, np.full(s.shape, 40))
    fit = MixtureMarginalLikelihood(BETA, seed=seed, starts=6).fit(data)
    assert fit.at_boundary
    assert any("too few to identify it" in each for each in fit.warnings)


def test_statistics_of_the_components_serve_a_mixture(seed: int) -> None:
    data = pw.BetaStatistics([[1, 2], [0, 5]], [[3, 4], [2, 6]], names=("a", "b"))
    parts = [pw.BetaPrior([2, 3], [4, 5]), pw.BetaPrior([1, 1], [1, 9])]
    prior = pw.MixturePrior(parts, [0.25, 0.75])
    each = [pw.meta.log_marginal_likelihood(part, data) for part in parts]
    want = np.log(0.25 * np.exp(each[0]) + 0.75 * np.exp(each[1]))
    np.testing.assert_allclose(pw.meta.log_marginal_likelihood(prior, data), want, rtol=1e-12)
    assert prior.replaced(names=("a", "b")).names == ("a", "b")
    with raises("statistics", "must be"):
        pw.meta.log_marginal_likelihood(prior, pw.GaussianStatistics([[1.0, 1.0]], [[0.0, 1.0]]))


def test_a_learned_prior_is_mixed_with_a_vague_one() -> None:
    learned = pw.BetaPrior([20, 30], [80, 70])
    robust = pw.MixturePrior.with_vague(learned, 0.2)
    assert robust.components == (learned, pw.BetaPrior([1, 1], [1, 1]))
    assert robust.probs.tolist() == [0.8, 0.2]
    with raises("share", "must lie strictly between 0 and"):
        pw.MixturePrior.with_vague(learned, 1.5)
    with raises("learned", "must be a prior with arms"):
        pw.MixturePrior.with_vague("a prior")


def test_a_point_mass_and_a_slab(seed: int) -> None:
    """Most tasks have no effect at all: after some pulls their belief is the point mass, and that
    of the others the slab's.
    """
    nothing = pw.GaussianPrior([0.0, 0.0], np.zeros((2, 2)), 1.0)
    slab = pw.GaussianPrior([0.0, 0.0], 9.0 * np.eye(2), 1.0)
    prior = pw.MixturePrior([nothing, slab], [0.8, 0.2])
    data = pw.GaussianStatistics([[50.0, 50.0]] * 2, [[1.0, -2.0], [1.0, 150.0]])
    chance = prior.belief_given(data).probabilities()
    assert chance[0, 0] > 0.99
    assert chance[1, 1] > 0.99


def test_bad_input(seed: int) -> None:
    with raises("components", "must be"):
        MixtureMarginalLikelihood(BETA, 1, seed=seed)
    with raises("estimator", "estimator"):
        MixtureMarginalLikelihood("beta", seed=seed)
    with raises("regulariser", "must not be negative"):
        MixtureMarginalLikelihood(BETA, seed=seed, regulariser=-1.0)
    with raises("tolerance", "must be positive"):
        MixtureMarginalLikelihood(BETA, seed=seed, tolerance=0.0)
    with raises("seed", "must be an integer"):
        MixtureMarginalLikelihood(BETA, seed="x")  # type: ignore[arg-type]
    data = pw.BetaStatistics([[1, 2], [0, 5], [3, 3]], [[3, 4], [2, 6], [9, 9]])
    mixture = MixtureMarginalLikelihood(BETA, seed=seed)
    with raises("start", "must be"):
        mixture.fit(data, start=pw.ExchangeableBetaPrior(1, 1))
    three = ExchangeableMixturePrior([pw.ExchangeableBetaPrior(1, 1)] * 3, [0.2, 0.3, 0.5])
    with raises("start", "must be"):
        mixture.fit(data, start=three)
    full = pw.LogitNormalPrior([0.0, 0.0], np.eye(2))
    with raises("mixtures", "exchangeable arms only"):
        family_for(full, "a test").coordinates(full, 2)
    with raises("components[0]", "must be a prior of exchangeable"):
        ExchangeableMixturePrior([pw.BetaPrior([1], [1])], [1.0])
    with raises("components", "must be a list of priors"):
        ExchangeableMixturePrior("x", [1.0])
    with raises("components", "reward_law"):
        ExchangeableMixturePrior(
            [pw.ExchangeableBetaPrior(1, 1), pw.ExchangeableGaussianPrior(0, 1, 0, 1)], [0.5, 0.5]
        )
