"""Tail expectations of the diameter, against linear programs, quadrature and closed forms that
share no code with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from scipy.integrate import quad
from scipy.optimize import brentq, linprog
from scipy.special import ndtr
from scipy.stats import beta as beta_law
from scipy.stats import chi2, foldnorm, norm
from scipy.stats import gamma as gamma_law

from priorwise.core.rewards import BanditEnvironment, NoiselessRewards
from priorwise.core.streams import Stream
from priorwise.experiments import problems
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.normal.tails import log_loss
from priorwise.sensitivity.tails import diameter
from priorwise.sensitivity.tails.diameter import conditions_of, diameter_law
from priorwise.sensitivity.tails.expectation import TailExpectation, tail_expectation
from priorwise.testing import base_seed
from priorwise.theory.conditions import Bounded, SubGamma, SubGaussian
from priorwise.theory.diameters import FiniteLaw, SampleLaw

LEVELS = [1e-3, 0.04, 0.3, 0.75, 1.0]
probs = st.lists(st.integers(1, 20), min_size=1, max_size=6)
laws = probs.flatmap(
    lambda w: st.tuples(st.lists(st.integers(0, 6), min_size=len(w), max_size=len(w)), st.just(w))
)
levels = st.floats(1e-4, 1.0)


def law_of(drawn: tuple[list[int], list[int]]) -> tuple[np.ndarray, np.ndarray]:
    values, weights = (np.array(x, dtype=float) for x in drawn)
    return values, weights / weights.sum()


def psi(values: np.ndarray, weights: np.ndarray, p: float) -> float:
    return FiniteLaw.of(values, weights).tail(p).value


def exact(prior: object, p: float) -> float:
    got = tail_expectation(prior, p)
    assert got.kind == "exact"
    assert got.std_error == 0.0
    assert got.upper == got.value
    return got.value


# Finite laws: the definition and its properties


def test_finite_by_hand() -> None:
    prior = FinitePrior([[1.0, 0.0], [0.0, 0.2], [5.0, 5.0], [9.0, 0.0]], [0.1, 0.5, 0.4, 0.0])
    for p, want in [
        (0.0, 1.0),
        (1e-300, 1.0),
        (0.1, 1.0),
        (0.2, 0.6),
        (0.6, 0.2 / 0.6),
        (0.8, 0.25),
        (1.0, 0.2),
        (7.0, 0.2),
    ]:
        assert exact(prior, p) == pytest.approx(want, rel=1e-14)
    assert exact(FinitePrior([[3.0]], [1.0]), 0.1) == 0.0  # one arm
    assert str(tail_expectation(prior, 0.2)) == "0.6 (exact)"


@given(laws, levels)
def test_finite_is_the_supremum_over_weights(drawn: tuple[list[int], list[int]], p: float) -> None:
    """The definition, ``sup E[XY] / p`` over Y in [0, 1] with mean at most p, as a linear
    program.
    """
    x, w = law_of(drawn)
    found = linprog(-(x * w), A_ub=w[None], b_ub=[p], bounds=(0.0, 1.0))
    assert psi(x, w, p) == pytest.approx(-found.fun / p, rel=1e-7, abs=1e-9)


def closed_form(x: np.ndarray, w: np.ndarray, p: float, *, printed: bool) -> float:
    """(d), with ``q = inf{t: P[X > t] <= p}``."""
    q = min(t for t in [0.0, *x] if w[x > t].sum() <= p + 1e-13)
    rest = p - w[x > q].sum()
    atom = w[x == q].sum()
    weight = rest if printed or atom == 0.0 else rest / atom
    return float(((x > q) * x * w).sum() + weight * q * atom) / p


@given(laws, levels)
def test_closed_form_at_atoms(drawn: tuple[list[int], list[int]], p: float) -> None:
    x, w = law_of(drawn)
    assert psi(x, w, p) == pytest.approx(closed_form(x, w, p, printed=False), rel=1e-9, abs=1e-11)


def test_printed_weight_at_an_atom_is_wrong() -> None:
    x, w = np.array([2.0, 1.0]), np.array([0.2, 0.8])
    assert psi(x, w, 0.6) == pytest.approx((0.4 + 0.4) / 0.6, rel=1e-14)
    assert closed_form(x, w, 0.6, printed=False) == pytest.approx((0.4 + 0.4) / 0.6, rel=1e-14)
    # control
    assert closed_form(x, w, 0.6, printed=True) == pytest.approx((0.4 + 0.32) / 0.6, rel=1e-14)


@given(laws, levels, levels, st.floats(0.0, 1.0))
def test_monotone_and_concave(
    drawn: tuple[list[int], list[int]], a: float, b: float, t: float
) -> None:
    """(a): Psi falls; ``p Psi(p)`` rises and is concave."""
    x, w = law_of(drawn)
    low, high = sorted((a, b))
    assert psi(x, w, high) <= psi(x, w, low) + 1e-9
    assert low * psi(x, w, low) <= high * psi(x, w, high) + 1e-9
    middle = t * low + (1 - t) * high
    assert (
        middle * psi(x, w, middle)
        >= t * low * psi(x, w, low) + (1 - t) * high * psi(x, w, high) - 1e-9
    )
    assert psi(x, w, 1.0) == pytest.approx(float(x @ w), rel=1e-12)
    assert psi(x, w, 0.0) == x.max()


@given(laws, st.data(), levels)
def test_dominance_translation_subadditivity(
    drawn: tuple[list[int], list[int]], data: st.DataObject, p: float
) -> None:
    """(b), (c), and coherence, on one probability space."""
    x, w = law_of(drawn)
    y = np.array(
        data.draw(st.lists(st.integers(0, 6), min_size=len(x), max_size=len(x))), dtype=float
    )
    assert psi(x, w, p) <= psi(x + y, w, p) + 1e-9  # x + y dominates x
    assert psi(x + y, w, p) <= psi(x, w, p) + psi(y, w, p) + 1e-9
    for c in (0.5, 2.0):
        assert psi(x, w, p) <= c + psi(np.maximum(x - c, 0.0), w, p) + 1e-9
        assert psi(x + c, w, p) == pytest.approx(psi(x, w, p) + c, rel=1e-9)
        assert psi(c * x, w, p) == pytest.approx(c * psi(x, w, p), rel=1e-9, abs=1e-12)


def quantile(x: np.ndarray, w: np.ndarray, p: float) -> float:
    """``inf{t >= 0: P[X > t] <= p}``."""
    return min((t for t in [0.0, *x] if w[x > t].sum() <= p + 1e-13), default=0.0)


@given(laws, levels, st.floats(1.05, 5.0))
def test_sum_of_quantiles(drawn: tuple[list[int], list[int]], p: float, alpha: float) -> None:
    """(e) with ``alpha > 1``; the sum alone suffices, and still with a factor ``1 - 1 / alpha``."""
    x, w = law_of(drawn)
    terms = [alpha**-i * quantile(x, w, p * alpha ** (-i - 1)) for i in range(60)]
    rest = x.max() * alpha**-60 / (1 - 1 / alpha)
    q = quantile(x, w, p)
    assert psi(x, w, p) <= q * (p - w[x > q].sum()) / p + sum(terms) + rest + 1e-9
    assert psi(x, w, p) <= (1 - 1 / alpha) * (sum(terms) + rest) + 1e-9


def test_sum_of_quantiles_needs_alpha_above_one() -> None:
    """Control: at alpha = 1/2 all quantiles are at levels of 1 and more, and the printed bound is
    below the value.
    """
    x, w, p, alpha = np.array([10.0, 9.0]), np.array([0.5, 0.5]), 0.6, 0.5
    q = quantile(x, w, p)
    printed = (p - w[x > q].sum()) / p + sum(
        alpha**-i * quantile(x, w, p * alpha ** (-i - 1)) for i in range(50)
    )
    assert printed < psi(x, w, p)


# Normal arms


def folded(m: float, s: float, p: float) -> float:
    law = foldnorm(abs(m) / s, scale=s)
    q = law.isf(p) if p < 1 else 0.0
    return quad(law.sf, q, q + 40 * s, epsabs=1e-14, epsrel=1e-12, limit=400)[0] / p + q


@pytest.mark.parametrize("m", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("p", [1.0, 0.5, 0.01, 1e-6])
def test_two_normal_arms(m: float, p: float) -> None:
    prior = GaussianPrior([m, 0.0], [[2.0, 0.7], [0.7, 1.0]])
    assert exact(prior, p) == pytest.approx(folded(m, math.sqrt(1.6), p), rel=1e-8)


def test_normal_edges() -> None:
    together = GaussianPrior([1.0, 4.0, 2.0], np.ones((3, 3)))
    for p in (0.0, 1e-300, 0.2, 1.0):
        assert exact(together, p) == 3.0
    assert exact(GaussianPrior([5.0], [[2.0]]), 0.0) == 0.0
    assert exact(GaussianPrior([0.0, 3.0], np.zeros((2, 2))), 1e-9) == 3.0
    assert exact(GaussianPrior([0.0, 0.0], np.eye(2)), 0.0) == math.inf
    assert exact(problems.gaussian().prior, 0.0) == math.inf
    assert exact(problems.linear().prior, 0.0) == math.inf
    # two arms known: 1 + (1 - x)_+ + (x - 2)_+
    half = GaussianPrior([0.0, 1.0, 2.0], np.diag([1.0, 0.0, 0.0]))
    assert exact(half, 1.0) == pytest.approx(
        1 + norm.pdf(1) + norm.cdf(1) + norm.pdf(2) - 2 * norm.sf(2), rel=1e-10
    )


def test_far_tail_of_two_normal_arms() -> None:
    """At tiny levels against the series of Mills' ratio: ``Psi ~ q + s / z`` with ``2 sf(z) =
    p``.
    """
    prior = GaussianPrior([0.0, 0.0], np.eye(2) / 2)
    for exponent in (20, 100, 300):
        z = brentq(lambda z, e=exponent: math.log(2) + norm.logsf(z) + e * math.log(10), 1, 100)
        want = z + (1 / z - 2 / z**3 + 10 / z**5 - 74 / z**7)
        assert exact(prior, 10.0**-exponent) == pytest.approx(want, rel=1_500 / z**10 + 1e-11)


def test_log_loss() -> None:
    for z in (-3.0, 0.0, 1.0, 9.9, 10.1, 30.0, 49.0, 51.0, 500.0):
        scaled = quad(
            lambda t, z=z: t * math.exp(-0.5 * t * t - t * z),
            0,
            60 / max(z, 1),
            epsabs=0,
            epsrel=1e-12,
            limit=500,
        )[0]
        want = -0.5 * z * z - 0.5 * math.log(2 * math.pi) + math.log(scaled)
        assert float(log_loss(np.array(z))) == pytest.approx(want, abs=1e-10)
    for z in (-20.0, -29.0, -31.0, -1e9):
        assert float(log_loss(np.array(z))) == pytest.approx(math.log(-z), abs=1e-14)


def test_expected_range_of_normal_arms() -> None:
    """Tabulated constants of control charts."""
    for arms, d2 in [(2, 1.128379), (3, 1.692569), (5, 2.325929), (10, 3.077505), (25, 3.930629)]:
        assert exact(GaussianPrior(np.zeros(arms), np.eye(arms)), 1.0) == pytest.approx(
            d2, abs=1e-6
        )
    # what all arms share does not matter
    shared = ExchangeableGaussianPrior(0.3, 4.0, 0.75, 1.0).for_arms(10)
    assert exact(shared, 1.0) == pytest.approx(3.077505, abs=1e-6)
    negative = ExchangeableGaussianPrior(0.0, 1.0, -0.1, 1.0).for_arms(5)
    assert exact(negative, 1.0) == pytest.approx(2.325929 * math.sqrt(1.1), abs=1e-6)


def test_independent_normal_arms_against_two_dimensional_quadrature() -> None:
    mean, std = np.array([0.0, 0.5, -1.0]), np.array([1.0, 0.3, 2.0])

    # 1 - sum_a integral f_a prod_b P(x < mu_b < x + t): a is the least
    def above(t: float) -> float:
        def density(x: float) -> float:
            z = (x - mean) / std
            a, b, c = ndtr(z + t / std) - ndtr(z)
            return float(np.exp(-0.5 * z * z) / std @ [b * c, a * c, a * b]) / math.sqrt(
                2 * math.pi
            )

        return 1 - quad(density, -15, 15, points=[-2, 0, 0.5, 1], epsabs=1e-9, limit=200)[0]

    prior = GaussianPrior(mean, np.diag(std**2))
    for p in (0.02,):
        q = brentq(lambda t, p=p: above(t) - p, 0.01, 12, xtol=1e-6)
        want = q + quad(above, q, q + 9, epsabs=1e-9, limit=100)[0] / p
        assert exact(prior, p) == pytest.approx(want, rel=1e-6)


# Beta arms


@pytest.mark.parametrize("arms", [2, 3, 40, 100_000])
def test_uniform_arms(arms: int) -> None:
    """The range of n uniform numbers is Beta(n - 1, 2)."""
    prior = BetaPrior(np.ones(arms), 1.0)
    law = beta_law(arms - 1, 2)
    for p in (1.0, 0.3, 1e-3, 1e-9) if arms < 100 else (1.0, 0.01):
        q = 0.0 if p == 1.0 else law.isf(p)
        want = (arms - 1) / (arms + 1) * beta_law.sf(q, arms, 2) / p
        assert exact(prior, p) == pytest.approx(want, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        [(1, 1), (5, 2)],
        [(0.01, 0.02), (5, 2), (1, 1)],
        [(1e6, 1e6), (1e6, 1.002e6)],
        [(2, 98), (3, 97), (1e-3, 1.0), (1, 50)],
    ],
)
def test_beta_arms_against_sampling(rows: list[tuple[float, float]], seed: int) -> None:
    """Twelve tests of 6 standard errors: false alarms below 1e-7 together."""
    alpha, beta = np.array(rows).T
    prior = BetaPrior(alpha, beta)
    rng = np.random.default_rng(seed + 12)
    sample = SampleLaw.of(np.ptp(rng.beta(alpha, beta, size=(200_000, len(rows))), axis=1))
    for p in (1.0, 0.1, 0.003):
        value, found = exact(prior, p), sample.tail(p)
        assert abs(value - found.value) < 6 * found.std_error
        assert abs(1.05 * value - found.value) > 6 * found.std_error or p < 0.01  # control
    assert exact(prior, 0.0) == 1.0


@given(st.floats(0.05, 300.0), st.floats(0.05, 300.0))
def test_beta_is_sub_gaussian(a: float, b: float) -> None:
    """The variance that the condition takes; a quarter of it is too small for some (control)."""
    condition = conditions_of(BetaPrior([a, 1.0], [b, 1.0]))[1]
    assert isinstance(condition, SubGaussian)
    law, variance = beta_law(a, b), 0.25 / (a + b + 1.0)
    assert condition.variance == pytest.approx(max(variance, 1 / 12))
    t = np.linspace(1e-6, 1.0, 300)
    tails = law.sf(law.mean() + t) + law.cdf(law.mean() - t)
    assert np.all(tails <= 2 * np.exp(-(t**2) / (2 * variance)) + 1e-12)


# Certified bounds


@pytest.mark.parametrize("arms", [2, 7, 10**6])
@pytest.mark.parametrize("p", [1.0, 0.1, 1e-5, 1e-40])
@pytest.mark.parametrize(("std", "scale"), [(1.0, 0.0), (0.3, 1.0), (2.0, 0.2), (0.0, 1.5)])
def test_tight_forms_integrate_quantiles(arms: int, p: float, std: float, scale: float) -> None:
    """``(1/p) integral_0^p max(2 s sqrt(2 L), 4 c L) du``, by quadrature over ``u = p exp(-x)``."""
    mean = np.zeros(arms)
    mean[0] = 0.7

    def at(x: float) -> float:
        log = math.log(2 * arms / p) + x
        return max(2 * std * math.sqrt(2 * log), 4 * scale * log) * math.exp(-x)

    change = 0.5 * (std / scale) ** 2 - math.log(2 * arms / p) if scale else -1.0
    want = 0.7 + sum(
        quad(at, a, b, epsabs=0, epsrel=1e-12, limit=300)[0]
        for a, b in ([(0, change), (change, change + 60)] if change > 0 else [(0, 60)])
    )
    lemma = SubGamma(mean, std**2, scale)
    assert SubGamma(mean, std**2, scale, "tight").tail(p) == pytest.approx(want, rel=1e-9)
    assert lemma.tail(p) == pytest.approx(
        0.7
        + std * (8 + 5 * math.sqrt(math.log(2 * arms / p)))
        + scale * (11 + 7 * math.log(2 * arms / p))
    )
    assert want <= lemma.tail(p) <= SubGamma(mean, std**2, scale, "printed").tail(p) + 1e-12
    if scale == 0.0:
        for form in ("lemma", "tight", "printed"):
            assert SubGaussian(mean, std**2, form).tail(p) == pytest.approx(
                SubGamma(mean, std**2, 0.0, form).tail(p), rel=1e-12
            )


def priors_of_all_kinds() -> list[object]:
    rng = np.random.default_rng(base_seed() + 4)
    root = rng.normal(size=(4, 4))
    return [
        GaussianPrior(rng.normal(size=4), root @ root.T),
        GaussianPrior([0.0, 0.0, 3.0], np.diag([1.0, 4.0, 0.0])),
        problems.gaussian().prior,
        BetaPrior([1.0, 2.0, 30.0], [1.0, 9.0, 70.0]),
        BetaPrior(np.arange(1.0, 13.0), 5.0),
        FinitePrior(rng.normal(size=(5, 3)), np.full(5, 0.2)),
        LinearGaussianPrior(np.ones(3), np.diag([1.0, 0.2, 2.0]), contexts=SphereContexts(arms=4)),
        LinearGaussianPrior(
            np.ones(3), np.diag([1.0, 0.2, 2.0]), contexts=rng.normal(size=(5, 4, 3))
        ),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(8))
def test_every_condition_lies_above(index: int, seed: int) -> None:
    """Estimates get 6 standard errors: false alarms below 1e-6 over all."""
    prior = priors_of_all_kinds()[index]
    known = conditions_of(prior)
    assert known
    for p in LEVELS:
        found = tail_expectation(prior, p, horizon=2, seed=seed, draws=20_000)
        for condition in known:
            upper = tail_expectation(prior, p, condition=condition)
            assert upper.kind == "upper"
            assert upper.value == upper.upper >= found.value - 6 * found.std_error - 1e-9
            assert tail_expectation(prior, p, condition=condition.name).value == upper.value
        assert found.value <= found.upper
        if found.kind == "estimate":
            # without a seed the smallest bound
            assert tail_expectation(prior, p).value == found.upper
    # control: with a hundredth of the variance the condition does not hold, and its bound is too
    # small
    wrong = SubGaussian(np.zeros(prior.arms), 1e-4, "tight")
    assert (
        wrong.tail(0.04) < tail_expectation(prior, 0.04, horizon=2, seed=seed, draws=20_000).value
        or index == 5
    )


def test_pairs_are_close_in_the_tail() -> None:
    prior = GaussianPrior(np.zeros(6), np.eye(6))
    for p, most in [(1.0, 1.4), (0.01, 1.03), (1e-6, 1.001), (1e-100, 1.0 + 1e-8)]:
        value, upper = exact(prior, p), tail_expectation(prior, p, condition="normal").value
        assert value <= upper * (1 + 1e-9) <= most * value


@dataclass(frozen=True)
class GammaPrior:
    """A stranger: arms with Gamma means."""

    shape: float
    scale: float
    arms: int
    stated: bool = True

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        return BanditEnvironment(
            gamma_law.ppf(rng.uniform(self.arms), self.shape) * self.scale, NoiselessRewards()
        )

    def tail_conditions(self) -> list[SubGamma]:
        mean = np.full(self.arms, self.shape * self.scale)
        return (
            [SubGamma.bernstein(mean, self.shape * self.scale**2, self.scale)]
            if self.stated
            else []
        )


def test_a_strangers_gamma_prior(seed: int) -> None:
    """Two arms of Exp(1): the diameter is Exp(1) too, ``Psi(p) = 1 + log(1/p)``. 12 tests of 6
    standard errors: below 1e-7.
    """
    prior = GammaPrior(1.0, 1.0, 2)
    for p in LEVELS:
        found = tail_expectation(prior, p, seed=seed, draws=50_000)
        want = 1 - math.log(p)
        assert found.kind == "estimate"
        assert abs(found.value - want) < 6 * found.std_error
        assert abs(found.value - 1.2 * want) > 6 * found.std_error or p < 0.01
        for name in ("subgamma-tight", "subgamma", "subgamma-printed"):
            assert want < tail_expectation(prior, p, condition=name).value
        assert (
            tail_expectation(prior, p).assumption
            == "each arm's mean is (4, 1)-sub-Gamma (tight form)"
        )
    for shape, scale, arms in [(0.2, 3.0, 5), (30.0, 0.1, 20)]:
        law = gamma_law(shape, scale=scale)
        t = np.linspace(0.01, 40 * scale, 400)  # the condition itself
        limit = 2 * np.maximum(np.exp(-(t**2) / (8 * shape * scale**2)), np.exp(-t / (2 * scale)))
        assert np.all(law.sf(law.mean() + t) + law.cdf(law.mean() - t) <= limit)
        for p in (0.5, 0.01):
            other = tail_expectation(GammaPrior(shape, scale, arms), p, seed=seed, draws=10_000)
            assert other.value + 6 * other.std_error < other.upper
    silent = GammaPrior(1.0, 1.0, 2, stated=False)
    assert tail_expectation(silent, 0.5, seed=seed, draws=100).upper == math.inf
    with raises("seed", "nothing is known of the tails of"):
        tail_expectation(silent, 0.5)
    with raises("condition", "known: none"):
        tail_expectation(silent, 0.5, condition="bounded")
    tiny = tail_expectation(silent, 1e-6, seed=seed, draws=100)
    assert tiny.std_error == math.inf


# Estimates


def zscores(seed: int, p: float, *, naive: bool) -> np.ndarray:
    rng, want = np.random.default_rng([seed, 5]), folded(0.0, 1.0, p)
    found = []
    for _ in range(400):
        draws = np.abs(rng.normal(size=4_000))
        tail = SampleLaw.of(draws).tail(p)
        top = np.sort(draws)[-int(p * 4_000) :]
        error = top.std(ddof=1) / math.sqrt(len(top)) if naive else tail.std_error
        found.append((tail.value - want) / error)
    return np.array(found)


@pytest.mark.parametrize("p", [0.02, 0.2, 1.0])
def test_standard_error_is_calibrated(p: float, seed: int) -> None:
    """Sum of squared z-scores over 400 replicates against chi-square, with room for 3 % of bias:
    false alarms below 1e-5.
    """
    square = float((zscores(seed, p, naive=False) ** 2).sum())
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 400)
    assert 0.94 * low < square < 1.06 * high
    if p < 1.0:  # control: the spread of the tail alone forgets that the quantile is estimated too
        assert float((zscores(seed, p, naive=True) ** 2).sum()) > 1.06 * high


def test_estimate_of_correlated_arms(seed: int) -> None:
    """Four tests of 6 standard errors: false alarms below 1e-7."""
    prior = problems.gaussian().prior
    draws = np.random.default_rng([seed, 6]).multivariate_normal(
        prior.mean, prior.cov, size=200_000
    )
    other = SampleLaw.of(np.ptp(draws, axis=1))
    for p in (1.0, 0.3, 0.03, 0.001):
        got, want = tail_expectation(prior, p, seed=seed), other.tail(p)
        assert got.kind == "estimate"
        error = math.hypot(got.std_error, want.std_error)
        assert abs(got.value - want.value) < 6 * error
        assert abs(got.value - 1.1 * want.value) > 6 * error  # control
        assert "estimate; at most" in str(got)
        assert got == tail_expectation(prior, p, seed=seed)


def test_levels_too_small_for_the_draws(seed: int) -> None:
    got = tail_expectation(problems.gaussian().prior, 1e-12, seed=seed, draws=1_000)
    assert got.kind == "upper"
    assert got.value == tail_expectation(problems.gaussian().prior, 1e-12).value
    assert "too small" in got.assumption


# Contexts


def test_contexts_are_averaged_over_steps(seed: int) -> None:
    """On the sphere ``diam = |w| D`` with w and D independent. Eight tests of 6 standard errors:
    false alarms below 1e-7.
    """
    prior = LinearGaussianPrior(
        [1.0, 0.0, 0.5], np.diag([1.0, 0.5, 0.1]), contexts=SphereContexts(arms=4)
    )
    rng = np.random.default_rng([seed, 7])
    for horizon in (1, 6):
        w = rng.multivariate_normal(prior.mean, prior.cov, size=40_000)
        # a coordinate of the sphere in three dimensions is uniform
        along = rng.uniform(-1, 1, size=(40_000, horizon, 4))
        other = SampleLaw.of(np.linalg.norm(w, axis=1) * np.ptp(along, axis=2).mean(axis=1))
        for p in (1.0, 0.2, 0.02):
            got, want = (
                tail_expectation(prior, p, horizon=horizon, seed=seed, draws=40_000),
                other.tail(p),
            )
            assert abs(got.value - want.value) < 6 * math.hypot(got.std_error, want.std_error)
            assert got.value <= tail_expectation(prior, p, horizon=horizon).value
    one, six = (tail_expectation(prior, 0.02, horizon=h, seed=seed, draws=40_000) for h in (1, 6))
    # control: the horizon matters
    assert six.value < one.value - 6 * (one.std_error + six.std_error)


def test_fixed_features_are_arms() -> None:
    x = np.array([[1.0, 0.0], [0.3, 0.7]])
    linear = LinearGaussianPrior([0.2, 1.0], [[1.0, 0.4], [0.4, 2.0]], contexts=x)
    arms = GaussianPrior(x @ linear.mean, x @ linear.cov @ x.T)
    for p in (0.0, 1e-8, 0.3, 1.0):
        assert exact(linear, p) == pytest.approx(exact(arms, p), rel=1e-12)
    # the same table twice
    pool = LinearGaussianPrior(linear.mean, linear.cov, contexts=np.stack([x, x]))
    assert tail_expectation(pool, 0.3).value == pytest.approx(exact(arms, 0.3), rel=1e-9)


def test_blocks_do_not_matter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = LinearGaussianPrior(np.ones(2), np.eye(2), contexts=SphereContexts(arms=3))
    whole = diameter_law(prior, 3, seed=seed, draws=500)
    monkeypatch.setattr(diameter, "ENTRIES", 7 * 6)
    pieces = diameter_law(prior, 3, seed=seed, draws=500)
    assert np.array_equal(whole.values, pieces.values)
    assert whole.tail(0.2) == pieces.tail(0.2)


def test_one_law_answers_at_many_levels(seed: int) -> None:
    for prior in (
        FinitePrior([[0.0, 1.0], [0.0, 3.0]], [0.5, 0.5]),
        BetaPrior([1.0, 2.0], 3.0),
        problems.gaussian().prior,
    ):
        law = diameter_law(prior, 10, seed=seed, draws=5_000)
        got = [law.tail(p) for p in (0.01, 0.1, 0.5, 1.0)]
        assert {each.kind for each in got} == {
            "estimate" if isinstance(law, SampleLaw) else "exact"
        }
        assert [each.value for each in got] == sorted((each.value for each in got), reverse=True)
        assert all((each.std_error > 0) == (each.kind == "estimate") for each in got)


# Edges


def test_beta_laws_without_spread_are_sampled_where_quadrature_has_no_digits(seed: int) -> None:
    """Beta(c, c) is normal up to 1/c, so tails shrink as 1/sqrt(c). False alarms: 2e-9, five
    standard errors.
    """
    reference = tail_expectation(BetaPrior([1e9, 1e9], 1e9), 0.1)
    assert reference.kind == "exact"
    for c in (1e11, 1e12):
        prior = BetaPrior([c, c], c)
        tail = tail_expectation(prior, 0.1, seed=seed)
        assert tail.kind == "estimate"
        assert abs(tail.value - reference.value * math.sqrt(1e9 / c)) < 5.0 * tail.std_error
        assert tail_expectation(prior, 0.1).value >= tail.value


@pytest.mark.slow
def test_extremes_are_numbers() -> None:
    wide = SubGaussian(np.linspace(0.0, 1.0, 10**6), 4.0)
    for form in ("lemma", "tight", "printed"):
        for p in (1.0, 1e-300, 5e-324):
            value = SubGaussian(wide.mean, 4.0, form).tail(p)
            assert 1.0 < value < 400.0
        assert SubGaussian(wide.mean, 4.0, form).tail(0.0) == math.inf
        assert SubGaussian(wide.mean, 0.0, form).tail(0.0) == 1.0
        assert SubGamma([0.0, 1.0], 0.0, 0.0, form).tail(0.0) == 1.0
        assert SubGamma([0.0, 1.0], 1.0, 1.0, form).tail(5e-324) < 1e5
        assert SubGamma([0.0, 1.0], 1.0, 1e-200, form).tail(1e-300) < 200.0
        assert SubGaussian([3.0], 4.0, form).tail(1e-9) == 0.0  # one arm
    for prior in (
        GaussianPrior(np.zeros(3), np.eye(3)),
        problems.gaussian().prior,
        GaussianPrior([0.0, 1e90], np.eye(2)),
    ):
        for p in (1e-300, 5e-324):
            got = tail_expectation(prior, p)
            assert 37.0 < got.value < math.inf
            assert got.value >= tail_expectation(prior, 1e-200).value
    assert exact(GaussianPrior([0.0, 1e90], np.eye(2)), 1e-300) == pytest.approx(1e90, rel=1e-9)
    assert exact(GaussianPrior([0.0, 1.0], 1e-100 * np.eye(2)), 1e-300) == pytest.approx(
        1.0, rel=1e-9
    )
    many = BetaPrior(np.full(10**6, 2.0), 8.0)
    assert 0.8 < exact(many, 1.0) < tail_expectation(many, 1e-300).value == 1.0
    assert tail_expectation(BetaPrior(np.linspace(1.0, 2.0, 10**6), 8.0), 1e-300).value == 1.0


@pytest.mark.slow
@settings(max_examples=4)
@given(
    st.floats(0.1, 1e4),
    st.floats(0.1, 1e4),
    st.floats(0.1, 1e4),
    st.floats(0.1, 1e4),
    levels,
    levels,
)
def test_beta_law_keeps_the_properties(
    a: float, b: float, c: float, d: float, one: float, two: float
) -> None:
    prior = BetaPrior([a, c], [b, d])
    low, high = sorted((one, two))
    mean, at_low, at_high = exact(prior, 1.0), exact(prior, low), exact(prior, high)
    assert abs(a / (a + b) - c / (c + d)) - 1e-9 <= mean <= at_high + 1e-9
    assert at_high <= at_low + 1e-9
    assert at_low <= 1.0
    assert low * at_low <= high * at_high + 1e-9
    for condition in conditions_of(prior):
        assert at_low <= condition.tail(low) + 1e-9


def test_refusals(seed: int) -> None:
    prior = problems.gaussian().prior
    for p in (-0.1, math.nan, math.inf):
        with raises("p", "must be"):
            tail_expectation(prior, p)
    with raises("p", "must be a number"):
        tail_expectation(prior, "0.1")
    with raises("horizon", "must be at least 1"):
        tail_expectation(prior, 0.1, horizon=0)
    with raises("condition", "'bounded' is not known to hold for"):
        tail_expectation(prior, 0.1, condition="bounded")
    with raises("condition", "such as Bounded(1.0)"):
        tail_expectation(prior, 0.1, condition=3.0)
    for family in (ExchangeableGaussianPrior(0, 1, 0.5, 1), ExchangeableBetaPrior(1, 2)):
        with raises("prior", "must have a fixed number of"):
            tail_expectation(family, 0.1)
    with raises("prior", "not the class GaussianPrior"):
        tail_expectation(GaussianPrior, 0.1)
    for make, argument in (
        (lambda: Bounded(-1.0), "diameter"),
        (lambda: SubGaussian([0.0], -1.0), "variance"),
        (lambda: SubGamma([0.0], 1.0, -1.0), "scale"),
    ):
        with raises(argument, "must not be negative"):
            make()
    with raises("form", "must be one of"):
        SubGaussian([0.0], 1.0, "sharp")
    own = tail_expectation(prior, 0.1, condition=Bounded(7.0))
    assert own == TailExpectation(7.0, "upper", 0.0, 7.0, "diameter at most 7")

    @dataclass(frozen=True)
    class Dark:
        arms: int = 2

        def sample(self, rng: Stream, tasks: int) -> object:
            return object()

    with raises("prior", "values(signal)"):
        tail_expectation(Dark(), 0.1, seed=seed, draws=10)
