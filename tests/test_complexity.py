"""Sample complexity: the theory's numbers by hand, and the search on problems whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import eigh

import priorwise as pw
from priorwise.meta.complexity.moment_errors import errors_by_arms, moment_errors
from priorwise.meta.complexity.sample_complexity import SampleComplexity, sample_complexity
from priorwise.meta.complexity.theory import gaussian_constants, kl_lemma, theory_rate
from priorwise.meta.moments.gaussian import GaussianMoments
from priorwise.sensitivity.bounds import reward_bound
from priorwise.sensitivity.distance import kl

PRIOR = pw.GaussianPrior([0.5, -0.2, 0.0], [[1.0, 0.5, 0.1], [0.5, 2.0, 0.0], [0.1, 0.0, 0.7]], 1.5)


def test_constants_by_definition():
    """d2 as the largest Rayleigh quotient, over the generalised eigenproblem; d_inf and d entry by entry."""
    c = gaussian_constants(PRIOR)
    v = np.diag(PRIOR.cov) + 1.5 + PRIOR.mean**2
    assert c.d2 == pytest.approx(eigh(np.diag(v), PRIOR.cov, eigvals_only=True)[-1])
    inverse = np.linalg.inv(PRIOR.cov)
    assert c.d_inf == pytest.approx(max(np.sqrt(inverse[a, a] * v[a]) for a in range(3)))
    assert c.d == pytest.approx((1.5**2 + 4.0) / np.linalg.eigvalsh(PRIOR.cov)[0] ** 2)
    assert gaussian_constants(pw.GaussianPrior([0.0, 0.0], np.ones((2, 2)))).d2 == np.inf


def test_kl_lemma_holds_on_random_neighbours_and_only_where_it_claims_to(seed):
    rng = np.random.default_rng(seed)
    held = []
    for scale in np.geomspace(0.01, 0.5, 60):
        change = scale * rng.normal(size=(3, 3))
        cov = PRIOR.cov + change + change.T
        if np.linalg.eigvalsh(cov)[0] <= 0:
            continue
        fitted = pw.GaussianPrior(PRIOR.mean + scale * rng.normal(size=3), cov, 1.5)
        lemma = kl_lemma(PRIOR, fitted)
        assert lemma.exact == pytest.approx(kl(fitted, PRIOR))
        assert lemma.exact <= lemma.bound
        held.append(np.isfinite(lemma.bound))
        if np.isfinite(lemma.bound):
            assert pw.total_variation(PRIOR, fitted, draws=2000, seed=seed).value <= lemma.total_variation + 1e-9
    assert any(held)
    far = kl_lemma(PRIOR, pw.GaussianPrior(PRIOR.mean, 3.0 * PRIOR.cov, 1.5))
    assert (far.bound, far.total_variation) == (np.inf, 1.0)
    assert far.cov_error == pytest.approx(2.0)


def test_rates():
    beta = pw.BetaPrior([1.0] * 4, 1.0)
    assert theory_rate(beta, 0.1, 0.05).tasks == pytest.approx(16 * np.log(80) * 100)
    standard = pw.GaussianPrior(np.zeros(3), np.eye(3))
    assert theory_rate(standard, 0.1, 0.05).tasks == pytest.approx(2 * (81 + 27 * np.log(20)) * 100)
    assert theory_rate(standard, 0.1, 0.05, known_cov=True).tasks == pytest.approx(2 * (9 + 3 * np.log(20)) * 100)
    with pytest.raises(TypeError, match="the theory has rates for"):
        theory_rate(pw.FinitePrior([[1.0]], [1.0]), 0.1, 0.1)
    with pytest.raises(ValueError, match="eps must lie strictly between"):
        theory_rate(beta, 0.0, 0.1)


def test_search_finds_a_known_answer(seed):
    """One arm of known variance: TV = 2 Phi(|nu^ - nu| / 2) - 1 with nu^ - nu ~ N(0, 2 / T).

    The answer is known up to the precision and to what 200 replicates tell: a share of 0.9 is seen within 0.07 (three standard
    errors), which moves the number of tasks by less than a factor of 1.75.
    """
    prior = pw.GaussianPrior([0.3], [[1.0]])
    eps, delta = 0.08, 0.1
    found = sample_complexity(
        prior, eps, delta, horizon=1, seed=seed, estimator=GaussianMoments("no-cov", arms=1), replicates=200, most=10_000
    )
    z, gap = stats.norm.ppf(1 - delta / 2), 2 * stats.norm.ppf((1 + eps) / 2)
    exact = 2 * (z / gap) ** 2
    assert exact / 1.75 / 1.25 < found.tasks < exact * 1.75 * 1.25
    assert found.not_enough < found.tasks
    assert [each.tasks for each in found.curve] == sorted(each.tasks for each in found.curve)
    assert "bring the estimate within 0.08" in str(found)


def test_search_gives_up_and_says_so(seed):
    prior = pw.GaussianPrior([0.0, 0.0], np.eye(2))
    found, again = (
        sample_complexity(prior, 0.01, 0.1, horizon=2, seed=seed, replicates=4, least=8, most=20, draws=500) for _ in range(2)
    )
    assert found == again
    assert (found.tasks, found.not_enough) == (None, 20)
    assert "more than 20 tasks" in str(found)


@pytest.mark.parametrize(
    "prior",
    [
        pw.BetaPrior([2.0, 3.0], [3.0, 2.0]),
        pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.7, 0.3]),
        pw.LinearGaussianPrior([1.0, 0.0], np.eye(2), contexts=pw.SphereContexts(arms=3)),
    ],
    ids=["beta", "finite", "linear"],
)
def test_search_serves_every_family(prior, seed):
    found = sample_complexity(prior, 0.3, 0.2, horizon=6, seed=seed, replicates=10, draws=1000, least=16, most=4096)
    assert found.tasks is not None
    assert (found.theory is not None) == isinstance(prior, pw.BetaPrior)
    loss = found.reward_loss(pw.ThompsonSampling(), 3)
    assert loss.tv.value == 0.3
    assert loss.value <= loss.trivial


def test_pac_corollary_is_the_reward_bound():
    prior = pw.BetaPrior([2.0, 3.0], [3.0, 2.0])
    loss = SampleComplexity(0.01, 0.1, 100, 50, (), None, prior, 10).reward_loss(pw.ThompsonSampling(), 5)
    assert loss.value == reward_bound(prior, None, pw.ThompsonSampling(), 5, tv=0.01).value
    assert 0 < loss.value <= 2 * 1 * 5**2 * 0.01 * 1.0  # B-bounded with B = 1


def test_errors_grow_with_arms_as_the_lemmas_say(seed):
    """Slopes in the logarithm of the number of arms: 1 for the mean, 3/2 for the covariance, up to 0.35.

    The lemmas are upper bounds and the covariance's error starts faster between few arms; the mean's rate would be refused for it.
    """
    rows = errors_by_arms([2, 4, 8], tasks=10_000, replicates=5, seed=seed)
    assert [row.arms for row in rows] == [2, 4, 8]
    arms = np.log([row.arms for row in rows])
    mean, cov = (np.polyfit(arms, np.log([getattr(row, name) for row in rows]), 1)[0] for name in ("mean_error", "cov_error"))
    assert abs(mean - 1.0) < 0.35
    assert abs(cov - 1.5) < 0.35
    assert abs(cov - 1.0) > 0.35
    assert rows[2].cov_theory == pytest.approx(8 * rows[0].cov_error)


def test_bad_arguments():
    prior = pw.GaussianPrior([0.0], [[1.0]])
    with pytest.raises(ValueError, match="precision is a factor larger than 1"):
        sample_complexity(prior, 0.1, 0.1, horizon=2, seed=0, precision=1.0)
    with pytest.raises(ValueError, match="most must be at least 64"):
        sample_complexity(prior, 0.1, 0.1, horizon=2, seed=0, most=10)
    with pytest.raises(TypeError, match="estimator must be GaussianMoments or LinearMoments"):
        moment_errors(pw.BetaPrior([1.0], 1.0), [10], horizon=2, replicates=2, seed=0)
    with pytest.raises(ValueError, match="not singular"):
        kl_lemma(pw.GaussianPrior([0.0, 0.0], np.ones((2, 2))), pw.GaussianPrior([0.0, 0.0], np.eye(2)))


@pytest.mark.parametrize(
    ("prior", "estimator"),
    [
        (pw.GaussianPrior(np.zeros(8), np.eye(8)), pw.GaussianMoments("two-round")),
        (pw.GaussianPrior(np.zeros(8), np.eye(8)), pw.GaussianMarginalLikelihood("exchangeable")),
        (pw.BetaPrior(np.ones(8), np.ones(8)), pw.BetaMoments()),
        (pw.BetaPrior(np.ones(8), np.ones(8)), pw.BetaMarginalLikelihood("exchangeable")),
    ],
)
def test_arms_that_were_never_pulled_are_arms_all_the_same(prior, estimator, seed):
    """Two tasks of two pulls leave at least four of eight arms out."""
    found = sample_complexity(prior, 0.5, 0.5, horizon=2, seed=seed, estimator=estimator, replicates=12, least=2, most=2, draws=100)
    assert [each.tasks for each in found.curve] == [2]
    if isinstance(prior, pw.GaussianPrior) and isinstance(estimator, GaussianMoments):
        assert moment_errors(prior, [2], horizon=2, replicates=2, seed=seed, estimator=estimator).mean.shape == (1,)


def test_what_is_no_estimator_is_refused():
    with pytest.raises(TypeError, match="not the class"):
        sample_complexity(PRIOR, 0.5, 0.5, horizon=2, seed=0, estimator=GaussianMoments)
