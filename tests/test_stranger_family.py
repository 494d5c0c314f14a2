"""A family of another package (Poisson rewards, Gamma prior) takes part in everything with one
registration, and a family that lacks a part is told which one, by which tool.
"""

from __future__ import annotations

from importlib import import_module, reload
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stranger_family
from raising import raises
from scipy.integrate import quad
from scipy.stats import chi2, gamma, poisson
from stranger_family import PoissonLikelihood, PoissonPrior, PoissonStatistics, log_marginal

import priorwise as pw
from priorwise.core import Serializable, serial
from priorwise.core.errors import MissingCapability
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams, streams
from priorwise.families import registry as families
from priorwise.families.registry import Family, register
from priorwise.meta import log_marginal_likelihood
from priorwise.meta.complexity.theory import theory_rate
from priorwise.testing import JsonContract, PriorContract

PRIOR = PoissonPrior([2.0, 2.0, 4.0], [1.0, 2.0, 4.0])
OTHER = PoissonPrior([3.0, 2.0, 4.0], [1.0, 2.0, 4.0])
THOMPSON = pw.ThompsonSampling()


@pytest.mark.slow
class TestPoissonPrior(PriorContract):
    tasks = 2048

    @pytest.fixture
    def prior(self) -> Any:
        return PRIOR

    @pytest.fixture
    def believed(self) -> Any:
        return PoissonPrior([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])


class TestPoissonJson(JsonContract):
    @pytest.fixture(params=[PRIOR, PoissonStatistics([[2, 1]], [[3, 0]], [[0.7, 0.0]])])
    def value(self, request: Any) -> Any:
        return request.param


def test_it_is_small() -> None:
    assert len(Path(stranger_family.__file__).read_text().splitlines()) <= 150


def test_rewards_are_poisson(seed: int) -> None:
    """Chi-square over 0, 1, ..., 7 and more; a false alarm has probability 1e-6. Control: the law
    of a mean 20 % larger is refused.
    """
    tasks, mean = 20_000, 2.5
    stream = Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.REWARD, 1)
    rewards = PRIOR.reward_law.draw(np.full(tasks, mean), np.zeros(tasks, dtype=np.int64), stream)
    counts = np.bincount(np.minimum(rewards, 8).astype(int), minlength=9)

    def p_value(of: float) -> float:
        law = np.append(poisson.pmf(np.arange(8), of), poisson.sf(7, of)) * tasks
        return float(chi2.sf(((counts - law) ** 2 / law).sum(), 8))

    assert p_value(mean) > 1e-6
    assert p_value(1.2 * mean) < 1e-6


def test_posterior_and_marginal_likelihood_by_brute_force() -> None:
    rewards = np.array([[3.0, 0.0, 2.0, 1.0]])
    data = PoissonStatistics.from_trajectory([[0, 1, 0, 0]], rewards, arms=3)
    mean = PRIOR.belief_given(data).mean(Seen(1, 1, 3))[0]

    def weight(x: float, arm: int, seen: list[float]) -> float:
        return gamma.pdf(x, PRIOR.shape[arm], scale=1 / PRIOR.rate[arm]) * np.prod(
            poisson.pmf(seen, x)
        )

    total = 0.0
    for arm, seen in enumerate(([3.0, 2.0, 1.0], [0.0], [])):
        mass = quad(weight, 0, 40, (arm, seen), limit=200)[0]
        first = quad(lambda x: x * weight(x, arm, seen), 0, 40, limit=200)[0]  # noqa: B023
        assert mean[arm] == pytest.approx(first / mass, rel=1e-6)
        total += np.log(mass)
    assert log_marginal(PRIOR, data)[0] == pytest.approx(total, rel=1e-6)
    assert log_marginal_likelihood(PRIOR, data)[0] == pytest.approx(total, rel=1e-6)


def test_simulate_compare_and_believed(seed: int) -> None:
    """Thompson sampling beats uniform pulls by more than 5 standard errors, which chance does with
    probability 3e-7; believing the truth beats an absurd belief by as much.
    """
    absurd = PoissonPrior([1.0, 1.0, 400.0], [4.0, 4.0, 4.0])
    policies: Any = {
        "thompson": THOMPSON,
        "greedy": pw.Greedy(),
        "uniform": pw.Uniform(),
        "absurd": (pw.Greedy(), absurd),
    }
    compared = pw.compare(PRIOR, policies, horizon=6, tasks=3000, seed=seed)
    for better, worse in (("thompson", "uniform"), ("greedy", "absurd")):
        gain = compared.difference(better, worse)
        assert gain.mean > 5 * gain.std_error
    alone = pw.simulate(PRIOR, pw.Greedy(), horizon=6, tasks=3000, seed=seed, believed=absurd)
    assert alone.mean_reward == compared.runs["absurd"].mean_reward
    normal = pw.GaussianPrior(np.zeros(3), np.eye(3))
    with raises("believed", "expects rewards of at least 0, but"):
        pw.simulate(normal, THOMPSON, horizon=2, tasks=2, seed=seed, believed=PRIOR)
    pw.simulate(
        PRIOR, THOMPSON, horizon=2, tasks=2, seed=seed, believed=normal
    )  # counts are numbers


@pytest.mark.slow
def test_a_mixture_says_what_the_belief_of_a_component_lacks(seed: int) -> None:
    mixture = pw.MixturePrior([PoissonPrior([2.0], [1.0]), PoissonPrior([4.0], [1.0])], [0.5, 0.5])
    with pytest.raises(TypeError, match=r"components\[0\].* PoissonBelief has no log_predictive"):
        pw.simulate(mixture, pw.ThompsonSampling(), horizon=2, tasks=3, seed=seed)


def test_a_fit_recovers_the_prior(seed: int) -> None:
    """Twice the log likelihood ratio of the fit against the truth is chi-square with 6 degrees of
    freedom; the test refuses it with probability 1e-6. Control: another prior is refused.
    """
    run = pw.simulate(PRIOR, THOMPSON, horizon=8, tasks=3000, seed=seed, keep=True)
    fit = PoissonLikelihood().fit(run)
    most = chi2.isf(1e-6, 6)
    for prior, fits in ((PRIOR, True), (OTHER, False)):
        ratio = 2.0 * (fit.log_likelihood - log_marginal(prior, PoissonStatistics.of(run)).sum())
        assert bool(-1.0 < ratio < most) is fits
    assert pw.load_prior(fit.to_json()) == fit.prior


@pytest.mark.slow
def test_empirical_bayes_learns_it(seed: int) -> None:
    """It earns more than a learner that holds an absurd prior, by more than 5 standard errors."""
    options: Any = {"episodes": 30, "replicates": 30, "horizon": 6, "seed": seed, "jobs": 1}
    learner = pw.EmpiricalBayes(PoissonLikelihood(), schedule=pw.meta.Every(10))
    learned = pw.simulate_meta(PRIOR, learner, keep=True, **options)
    fixed = pw.simulate_meta(
        PRIOR, pw.FixedPrior(THOMPSON, PoissonPrior([1.0, 1.0, 400.0], [4.0] * 3)), **options
    )
    lost = fixed.shortfall(learned)
    assert lost.mean > 5 * lost.std_error
    assert isinstance(learned.fits[0].prior, PoissonPrior)
    alarm = pw.meta.Alarm(PRIOR, OTHER).observe(
        pw.simulate(OTHER, THOMPSON, horizon=6, tasks=300, seed=seed, keep=True).kept
    )
    assert alarm.raised


@pytest.mark.slow
def test_models_are_compared(seed: int) -> None:
    class Rigid(PoissonLikelihood):
        """Always the same prior, far from the truth."""

        def fit(self, data: Any, *, start: Any = None) -> Any:
            return pw.PriorFit(
                PoissonPrior([50.0] * 3, [9.0] * 3),
                "rigid",
                1,
                statistics=PoissonStatistics.of(data),
            )

    run = pw.simulate(PRIOR, THOMPSON, horizon=6, tasks=400, seed=seed, keep=True)
    found = pw.compare_models({"own": PoissonLikelihood(), "rigid": Rigid()}, run, seed=seed)
    assert found.best == "own"
    with raises("models", "gives probabilities of counts"):
        pw.compare_models(
            {"own": PoissonLikelihood(), "normal": pw.GaussianMoments(noise_var=1.0)},
            run,
            seed=seed,
        )


def test_total_variation_by_quadrature() -> None:
    for a, b, c, d in ((2, 1, 3, 1), (2, 1, 2, 3), (2, 1, 3, 2), (0.5, 1, 4, 9), (2, 2, 4, 4)):
        p, q = (
            PoissonPrior([float(shape), 5.0], [float(rate), 1.0])
            for shape, rate in ((a, b), (c, d))
        )
        x = (np.arange(400_000) + 0.5) * 1e-4
        apart = np.abs(gamma.pdf(x, a, scale=1 / b) - gamma.pdf(x, c, scale=1 / d)).sum() * 0.5e-4
        found = pw.total_variation(p, q)
        assert found.kind == "exact"
        assert found.value == pytest.approx(apart, abs=6e-3 if a < 1 else 1e-5)
        assert pw.total_variation(p, p).value == 0.0


@pytest.mark.slow
def test_bounds_and_ladder(seed: int) -> None:
    bound = pw.reward_bound(PRIOR, OTHER, THOMPSON, 5)
    ladder = pw.sensitivity_ladder(PRIOR, OTHER, THOMPSON, 5, seed=seed, tasks=4000, histories=40)
    assert ladder.tv == pw.total_variation(PRIOR, OTHER)
    assert ladder["worst case"].delta == pytest.approx(2 * 5 * ladder.tv.value)
    assert abs(ladder.gap.mean) <= bound.value + 5 * ladder.gap.std_error
    assert ladder.in_order
    assert ladder.left_out[0].startswith("posteriors: the densities of this family's")


# --- what a family may lack
# -------------------------------------------------------------------------------------------------


class BarePrior(PoissonPrior):
    """The same law, in a family that has nothing but its name."""

    family = "bare-poisson"


@pytest.fixture
def bare() -> Any:
    before = dict(families._FAMILIES)
    register(Family(name="bare", priors=(BarePrior,)))
    yield BarePrior([2.0, 3.0], [1.0, 1.0])
    families._FAMILIES.clear()
    families._FAMILIES.update(before)


def learn(prior: Any, learner: Any, seed: int) -> None:
    pw.simulate_meta(prior, learner, episodes=2, replicates=1, horizon=2, seed=seed, jobs=1)


def models(prior: Any, seed: int) -> None:
    class Stub(PoissonLikelihood):
        def fit(self, data: Any, *, start: Any = None) -> Any:
            return pw.PriorFit(prior, "a stub", 1, statistics=PoissonStatistics.of(data))

    run = pw.simulate(PRIOR, THOMPSON, horizon=2, tasks=9, seed=seed, keep=True)
    pw.compare_models({"one": Stub()}, run, seed=seed)


TOOLS: dict[str, tuple[str, Any]] = {
    "total_variation": ("distance to another prior", lambda p, s: pw.total_variation(p, p)),
    "log_marginal_likelihood": (
        "a marginal likelihood",
        lambda p, s: log_marginal_likelihood(p, None),
    ),
    "Alarm": ("a marginal likelihood", lambda p, s: pw.meta.Alarm(p, p)),
    "EmpiricalBayes": (
        "statistics of a task",
        lambda p, s: learn(p, pw.EmpiricalBayes(PoissonLikelihood(), start=p), s),
    ),
    "a learner without a prior to start from (pass one to the learner)": (
        "a vague prior to start from",
        lambda p, s: learn(p, pw.EmpiricalBayes(PoissonLikelihood()), s),
    ),
    "GaussianHyperPrior": (
        "a likelihood that is normal",
        lambda p, s: pw.meta.GaussianHyperPrior([0.0, 0.0], np.eye(2), np.eye(2)).start(
            SimpleNamespace(blank=p)
        ),
    ),
    "Widened": (
        "a wider prior for an uncertain fit",
        lambda p, s: pw.meta.Widened().hold(pw.PriorFit(p, "a test", 1), streams(s, 1)(1)),
    ),
    "compare_models": ("statistics of a task", models),
    "belief_given": ("statistics of a task", lambda p, s: p.belief_given(None)),
    "sample_complexity without an estimator": (
        "a moment estimator",
        lambda p, s: pw.meta.sample_complexity(p, 0.1, 0.1, horizon=2, seed=s),
    ),
    "theory_rate": ("a rate of learning", lambda p, s: theory_rate(p, 0.1, 0.1)),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_part_is_named_with_family_and_tool(tool: str, bare: Any, seed: int) -> None:
    part, use = TOOLS[tool]
    with pytest.raises(MissingCapability) as error:
        use(bare, seed)
    assert part in error.value.problem
    assert tool in error.value.problem
    stranger = SimpleNamespace(arms=2)
    with raises("prior", "prior of a registered family ("):
        families.family_for(stranger, "this tool").require("pair")


def test_json_finds_the_families_of_other_packages(monkeypatch: Any, tmp_path: Any) -> None:
    """A file names a family of a package that nobody imported: its entry point is loaded, once."""
    text = PRIOR.to_json()
    fit = pw.PriorFit(PRIOR, "a test", 3).to_json()
    loaded = []

    def load() -> Any:
        loaded.append(1)
        return reload(import_module("stranger_family"))

    monkeypatch.setattr(serial, "entry_points", lambda group: [SimpleNamespace(load=load)])
    for name in ("poisson-gamma", "poisson-statistics"):
        monkeypatch.delitem(Serializable._families, name)
    before, names = dict(families._FAMILIES), dict(vars(stranger_family))
    try:
        assert pw.load_prior(text).to_json() == text
        assert pw.load_prior(fit).to_json() == text
        assert loaded == [1]
        with raises("family", "must be one of bare-poisson, beta"):
            pw.load_prior(text.replace("poisson-gamma", "nobody"))
    finally:  # the classes that the other tests hold
        families._FAMILIES.clear()
        families._FAMILIES.update(before)
        vars(stranger_family).update(names)
