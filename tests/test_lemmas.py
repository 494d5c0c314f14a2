"""The theory made callable: the formal lower bound, and the concentration lemmas with their
constants.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from raising import raises
from scipy import integrate, stats

import priorwise as pw
from priorwise.families.finite.instances import noiseless_instance
from priorwise.fitting.design import least_tasks
from priorwise.meta.complexity.theory import whitened_errors
from priorwise.sensitivity.bounds.lower import exact_gap, improved_gap, theorem_gap
from priorwise.sensitivity.exact.evaluation import exact_rewards

PRIOR = pw.GaussianPrior([0.5, -0.2, 0.0], [[1.0, 0.5, 0.1], [0.5, 2.0, 0.0], [0.1, 0.0, 0.7]], 1.5)
SIGMAS = 5.0  # of a share of replicates: false alarms below 1e-6


class TestFormalLowerBound:
    @staticmethod
    def slack(constant: float) -> float:
        """Least room between the bound as printed and ``(1/2 - eta) k eps H^2``, in units of eta,
        with another constant in place of 8.
        """
        least = math.inf
        for eta in np.linspace(0.002, 0.2499, 40).tolist():
            fewest = math.ceil(constant / eta)
            for horizon in (fewest, fewest + 1, 3 * fewest, 50 * fewest):
                for k in (1, 20):
                    eps = eta / (constant * k * horizon)
                    size = k, horizon, horizon * fewest - 1, eps, min(eta / 3, 1 / 33)
                    unit = k * eps * horizon**2
                    least = min(least, (theorem_gap(*size) / unit - (0.5 - eta)) / eta)
        return least

    def test_eight_does_and_six_does_not(self) -> None:
        assert self.slack(8.0) == pytest.approx(0.06, abs=0.01)
        assert self.slack(6.0) < 0.0

    @pytest.mark.parametrize("eta", [0.05, 0.2, 0.249])
    @pytest.mark.parametrize(("k", "share"), [(1, 1.0), (7, 0.3)])
    def test_it_is_below_what_the_instance_costs(self, eta: float, k: int, share: float) -> None:
        horizon = math.ceil(8 / eta)
        eps = share * eta / (8 * k * horizon)
        found = pw.sensitivity.formal_lower_bound(eta, k, horizon, eps, scale=3.0)
        size = k, horizon, found.arms - 1, eps, found.delta
        assert found.arms == horizon * math.ceil(8 / eta)
        assert found.value == pytest.approx(3.0 * (0.5 - eta) * k * eps * horizon**2)
        assert found.value < 3.0 * theorem_gap(*size) <= 3.0 * improved_gap(*size)
        assert 3.0 * improved_gap(*size) < found.exact == pytest.approx(3.0 * exact_gap(*size))
        assert found.exact < found.upper == pytest.approx(6.0 * k * horizon**2 * eps)
        assert str(found).endswith(f"{found.arms:,} arms")
        default = pw.sensitivity.formal_lower_bound(eta, k, horizon)
        assert default.eps == pytest.approx(eta / (8 * k * horizon))

    def test_rescaling_by_enumeration(self) -> None:
        case, policy = noiseless_instance(5, 0.1, 0.05), pw.KShotThompson(2)
        true, wrong = (
            pw.FinitePrior(3.0 * each.means, each.probs) for each in (case.prior, case.other)
        )
        gap = exact_rewards(true, policy, 4).mean_reward
        gap -= exact_rewards(true, policy, 4, believed=wrong).mean_reward
        assert gap == pytest.approx(3.0 * exact_gap(2, 4, 5, 0.1, 0.05), abs=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((0.3, 1, 100), ("eta", "must lie strictly between 0 and 0.25")),
            ((0.2, 1, 39), ("horizon", "must be at least 40")),
            ((0.2, 1, 40, 0.01), ("eps", "must be at most eta")),
            ((0.2, 0, 40), ("k", "must be at least 1")),
        ],
    )
    def test_bad_numbers_are_refused(self, arguments, message) -> None:
        with raises(message):
            pw.sensitivity.formal_lower_bound(*arguments)
        with raises("scale", "must be positive"):
            pw.sensitivity.formal_lower_bound(0.2, 1, 40, scale=0.0)


def gaussian_errors(rng, tasks, replicates, *, difference):
    """Errors of the mean of one uniform pull and of the covariance from two (known mean), or from
    differences of two tasks; ``(replicate, 2)``.
    """
    arms, root = PRIOR.arms, np.linalg.cholesky(PRIOR.cov)
    out = np.empty((replicates, 2))
    for r in range(replicates):
        mu = PRIOR.mean + rng.normal(size=(tasks, arms)) @ root.T
        a, b = rng.integers(arms, size=(2, tasks))
        if difference:
            a, b = (np.repeat(each[::2], 2) for each in (a, b))
        rows, noise = np.arange(tasks), np.sqrt(1.5) * rng.normal(size=(2, tasks))
        first, second = mu[rows, a] + noise[0], mu[rows, b] + noise[1]
        mean = np.bincount(a, first, arms) * arms / tasks
        x, y, scale = first - PRIOR.mean[a], second - PRIOR.mean[b], 2 * tasks
        if difference:
            x, y, a, b = first[::2] - first[1::2], second[::2] - second[1::2], a[::2], b[::2]
            scale = 2 * tasks
        cov = np.zeros((arms, arms))
        np.add.at(cov, (a, b), x * y)
        out[r] = whitened_errors(PRIOR, mean, (cov + cov.T) * arms**2 / scale)
    return out


@pytest.mark.parametrize("difference", [False, True])
def test_gaussian_lemmas_hold(difference, seed):
    """With probability 1 - delta; 8 % of the mean's bound and 1 %
    of the covariance's fail more often than that.
    """
    tasks, replicates, delta = 4000, 300, 0.1
    errors = gaussian_errors(
        np.random.default_rng([seed, difference]), tasks, replicates, difference=difference
    )
    found = pw.meta.gaussian_concentration(PRIOR, tasks, delta, difference=difference)
    slack = SIGMAS * np.sqrt(delta * (1 - delta) / replicates)
    for column, (bound, small) in enumerate(((found.mean, 0.08), (found.cov, 0.01))):
        assert (errors[:, column] > bound).mean() <= delta + slack
        assert (errors[:, column] > small * bound).mean() > delta + slack
    # the covariance's error is that of the estimator in the package
    assert found.mean_rate < found.mean
    assert found.cov_rate < found.cov


def test_gaussian_right_hand_sides_by_hand():
    prior, tasks, delta = pw.GaussianPrior([0.0, 0.0], np.eye(2)), 10_000, 0.05
    found = pw.meta.gaussian_concentration(prior, tasks, delta)  # d2 = d = 2, d_inf = sqrt 2
    level = 4 * np.log(5) + 2 * np.log(20)
    assert found.mean == pytest.approx(np.sqrt(64 * level / tasks) + 8 * np.sqrt(2) * level / tasks)
    rate = (4 + 2 * np.log(20)) / tasks
    assert found.mean_rate == pytest.approx(np.sqrt(2 * rate) + np.sqrt(2) * rate)
    level = 4 * (2 * np.log(9) + np.log(40)) / tasks
    assert found.cov == pytest.approx(40 * np.sqrt(2) * (np.sqrt(level) + np.sqrt(2) * level))
    rate = (8 + 4 * np.log(20)) / tasks
    assert found.cov_rate == pytest.approx(np.sqrt(2) * (np.sqrt(rate) + rate))
    assert (found.known_cov, found.total_variation) == (found.mean / 2, 1.0)
    pairs = pw.meta.gaussian_concentration(prior, 2 * tasks, delta, difference=True)
    assert pairs.cov == found.cov
    many = pw.meta.gaussian_concentration(prior, 10**9, delta)
    assert many.total_variation == pytest.approx(np.sqrt((2 * many.cov**2 + many.mean**2) / 4))
    singular = pw.GaussianPrior([0.0, 0.0], np.ones((2, 2)))
    assert pw.meta.gaussian_tasks(singular, 0.1, 0.1) == np.inf
    for known in (True, False):
        enough = pw.meta.gaussian_tasks(prior, 0.2, 0.1, known_cov=known)
        assert enough > pw.meta.gaussian_tasks(prior, 0.2, 0.2, known_cov=known)
    certified = [
        pw.meta.gaussian_concentration(prior, int(enough) - less, 0.05, difference=True)
        for less in (0, 1)
    ]
    assert certified[0].total_variation <= 0.2 < certified[1].total_variation


def test_trigamma_matrix_is_the_fisher_information():
    alpha, beta = 1.7, 3.2
    score = [np.log, lambda x: np.log1p(-x)]
    law = stats.beta(alpha, beta)
    mean = [integrate.quad(lambda x, s=s: s(x) * law.pdf(x), 0, 1)[0] for s in score]
    for i in range(2):
        for j in range(2):
            expected, _ = integrate.quad(
                lambda x, i=i, j=j: (score[i](x) - mean[i]) * (score[j](x) - mean[j]) * law.pdf(x),
                0,
                1,
            )
            assert pw.meta.trigamma_matrix(alpha, beta)[i, j] == pytest.approx(expected, rel=1e-6)
    assert pw.meta.trigamma_matrix([1.0, 2.0], 3.0).shape == (2, 2, 2)


def test_exponential_family_lemma(seed):
    """TV <= C |Delta| wherever the lemma speaks; 0.7 C fails somewhere, as it should: for small
    shifts along the leading direction of a narrow law, TV is sqrt(2 / pi) C |Delta|.
    """
    rng = np.random.default_rng(seed)
    closest = 0.0
    for _ in range(120):
        alpha, beta = np.exp(2.0 * rng.normal(size=2)).tolist()
        leading = np.linalg.eigh(pw.meta.trigamma_matrix(alpha, beta))[1][:, 1]
        shift = leading if rng.random() < 0.3 else rng.normal(size=2)
        shift = shift * min(alpha, beta) * rng.uniform(0.001, 0.9) / np.linalg.norm(shift)
        radius = float(np.linalg.norm(shift))
        other = pw.BetaPrior([alpha + shift[0]], [beta + shift[1]])
        tv = pw.total_variation(pw.BetaPrior([alpha], [beta]), other).value
        bound = pw.meta.beta_constant(alpha, beta, radius=radius) * radius
        assert tv <= bound + 1e-12
        closest = max(closest, tv / bound)
    assert closest > 0.7
    assert pw.meta.beta_constant(1.0, 2.0, radius=1.0) == np.inf
    assert pw.meta.beta_constant(2.0, 2.0) == pytest.approx(
        np.sqrt(np.linalg.eigvalsh(pw.meta.trigamma_matrix(2.0, 2.0))[-1]) / 2.0
    )


def test_beta_binomial_lemma_holds(seed):
    """With probability 1 - delta for all arms; two per cent of the bounds fail more often."""
    prior, pulls, tasks, delta = pw.BetaPrior([2.0, 1.0], [1.0, 3.0]), 5, 4_000_000, 0.1
    found = pw.meta.beta_concentration(prior, tasks, delta, pulls=pulls)
    replicates, rng, x = 300, np.random.default_rng(seed), np.arange(pulls + 1)
    shares = np.stack(
        [
            rng.multinomial(tasks // 2, stats.betabinom.pmf(x, pulls, a, b), size=replicates)
            for a, b in zip(prior.alpha, prior.beta, strict=True)
        ],
        axis=1,
    ) / (tasks // 2)
    m1, m2 = shares @ x, shares @ x**2  # (replicate, arm)
    spread = pulls * (m2 / m1 - m1 - 1.0) + m1
    alpha, beta = (pulls * m1 - m2) / spread, (pulls - m1) * (pulls - m2 / m1) / spread
    far = np.stack([np.abs(alpha - prior.alpha), np.abs(beta - prior.beta)])
    bound = np.stack([found.alpha, found.beta])
    slack = SIGMAS * np.sqrt(delta * (1 - delta) / replicates)
    assert (far > bound[:, None]).any(axis=(0, 2)).mean() <= delta + slack
    assert (far > 0.02 * bound[:, None]).any(axis=(0, 2)).mean() > delta + slack
    tvs = [
        pw.total_variation(prior, pw.BetaPrior(a, b)).value
        for a, b in zip(alpha[:3], beta[:3], strict=True)
    ]
    assert max(tvs) <= found.total_variation < 1.0


def test_two_corners_bound_the_moment_estimates(seed):
    """No point of the box of moments has estimates further off than its corners."""
    prior, pulls = pw.BetaPrior([0.7, 4.0, 1.0], [2.0, 1.5, 1.0]), 4
    found = pw.meta.beta_concentration(prior, 3 * 40_000, 0.05, pulls=pulls)
    total = prior.alpha + prior.beta
    m1 = pulls * prior.alpha / total
    m2 = m1 * (1.0 + (pulls - 1) * (prior.alpha + 1.0) / (total + 1.0))
    inside = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(20_000, 2, 1)) * [
        [each] for each in found.moments
    ]
    x, y = m1 + inside[:, 0], m2 + inside[:, 1]
    spread = pulls * (y / x - x - 1.0) + x
    alpha, beta = (pulls * x - y) / spread, (pulls - x) * (pulls - y / x) / spread
    assert np.isfinite(found.alpha).all()
    assert (np.abs(alpha - prior.alpha).max(axis=0) <= found.alpha).all()
    assert (np.abs(beta - prior.beta).max(axis=0) <= found.beta).all()
    # the box is what Hoeffding gives for each arm's 40,000 tasks and a third of delta
    assert found.moments[0] == pytest.approx(pulls * np.sqrt(np.log(240.0) / 80_000))
    few = pw.meta.beta_concentration(prior, 30, 0.05, pulls=pulls)
    assert few.total_variation == 1.0
    assert np.isinf(few.alpha).any()


def test_certified_tasks_of_beta_priors():
    prior = pw.BetaPrior([2.0, 1.0], [1.0, 1.0])
    enough = int(pw.meta.beta_tasks(prior, 0.2, 0.1, pulls=10))
    certified = [
        pw.meta.beta_concentration(prior, enough - less, 0.1, pulls=10).total_variation
        for less in (0, 2)
    ]
    assert certified[0] <= 0.2 < certified[1]
    with raises("prior", "must be a BetaPrior"):
        pw.meta.beta_concentration(PRIOR, 100, 0.1, pulls=5)
    with raises("pulls", "must be at least 2"):
        pw.meta.beta_concentration(prior, 100, 0.1, pulls=1)
    with raises("radius", "must not be negative"):
        pw.meta.beta_constant(1.0, 1.0, radius=-1.0)


def test_least_tasks():
    assert least_tasks(lambda tasks: 10.0 / tasks, 0.3) == 34.0
    assert least_tasks(lambda _: 0.0, 0.3) == 1.0
    assert least_tasks(lambda _: 1.0, 0.3) == np.inf
