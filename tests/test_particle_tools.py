"""What tools make of models of one's own: distances, bounds, the ladder, evidence, diagnosis and
files; and what is refused.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import particle_models as models
import pytest
from matplotlib.figure import Figure
from raising import raises
from scipy import stats

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams, streams
from priorwise.families.particle.quasi import QuasiStream
from priorwise.families.particle.statistics import ParticleStatistics
from priorwise.sensitivity.ladder.walk import posterior_pair
from priorwise.theory.distance import Distance

SHIFT = np.array([0.1, 0.0, 0.0])
NEAR = models.MEAN + SHIFT


def near_means(rng: Any) -> Any:
    return models.normal_means(rng) + SHIFT


def near_log_prior(mu: Any) -> Any:
    return np.asarray(stats.multivariate_normal.logpdf(mu, NEAR, models.COV))


def near(**options: Any) -> Any:
    made = {"particles": 512, "seed": models.SEED, "log_prior": near_log_prior, **options}
    return pw.ParticlePrior(near_means, models.normal_density, None, models.normal_reward, **made)


def true(**options: Any) -> Any:
    return models.gaussian(**{"particles": 512, "log_prior": models.normal_log_prior, **options})


EXACT, EXACT_NEAR = models.EXACT_GAUSSIAN, pw.GaussianPrior(NEAR, models.COV)


# -- distances


def test_the_distance_of_densities_is_that_of_the_family(seed: int) -> None:
    """Within 5 standard errors (false alarm 6e-7) of the closed form; that of other priors is
    not.
    """
    found, exact = (
        pw.total_variation(true(), near(), seed=seed),
        pw.total_variation(EXACT, EXACT_NEAR),
    )
    assert found.kind == "estimate"
    assert found.upper == 1.0
    assert abs(found.value - exact.value) < 5.0 * found.std_error
    far = pw.total_variation(EXACT, EXACT_NEAR.replaced(mean=NEAR + SHIFT))
    assert abs(found.value - far.value) > 5.0 * found.std_error
    assert pw.total_variation(true(), true()) == Distance(0.0, "exact", 0.0, 0.0)
    upper = pw.total_variation(true(), near(), estimate=False)
    assert (upper.kind, upper.value) == ("upper", 1.0)


def test_densities_without_their_constants_are_refused(seed: int) -> None:
    off = near(log_prior=lambda mu: near_log_prior(mu) + 0.1)
    with raises("log_prior", "must be log densities with their constants"):
        pw.total_variation(true(), off, seed=seed)


def test_distances_that_are_not_known_are_refused(seed: int) -> None:
    with raises("log_prior", "needs the densities of"):
        pw.total_variation(true(), near(log_prior=None), seed=seed)
    with raises("q", "of given draws"):
        pw.total_variation(true(), models.given_normal(), seed=seed)
    with raises("q", "reward"):
        pw.total_variation(true(), models.clicks(particles=64), seed=seed)
    with raises("prior", "densities"):
        pw.sensitivity.kl(true(), near())


def test_posteriors_are_as_far_apart_as_those_of_the_family(seed: int) -> None:
    """On the particles of both priors, after two pulls: within 0.02 of the closed form of normal
    posteriors with one covariance; as far as the priors were, they are not.
    """
    pair = posterior_pair(true(particles=2048), near(particles=2048), 5)
    assert pair is not None
    assert not pair.exact
    rng = np.random.default_rng(seed)
    actions, rewards = rng.integers(3, size=(2, 5)), rng.normal(size=(2, 5))
    first, second = EXACT.belief(5), EXACT_NEAR.belief(5)
    for step in range(2):
        pull = Seen(step + 1, 3, 3), actions[step], rewards[step], None
        pair, first, second = pair.update(*pull), first.update(*pull), second.update(*pull)
    shift = (second.m - first.m)[:, :, None]
    far = np.sqrt(np.square(np.linalg.solve(first.root, shift)).sum(axis=(1, 2)))
    exact = 2.0 * stats.norm.cdf(far / 2.0) - 1.0
    stream = streams(seed, 5)(1)
    np.testing.assert_allclose(pair.total_variation(stream), exact, atol=0.02)
    assert np.abs(exact - pw.total_variation(EXACT, EXACT_NEAR).value).max() > 0.005
    kept = 1.0 - pair.shared(stream, 2000).mean(axis=1)
    np.testing.assert_allclose(kept, exact, atol=0.05)


@pytest.mark.slow
def test_the_ladder_of_a_model_is_that_of_its_family(seed: int) -> None:
    """Each rung within 5 standard errors and 5 %."""
    policy, options = pw.ThompsonSampling(), {"horizon": 4, "seed": seed, "tasks": 500}
    still = {"moves": 0}
    mine = pw.sensitivity_ladder(true(**still), near(**still), policy, histories=100, **options)
    yours = pw.sensitivity_ladder(EXACT, EXACT_NEAR, policy, **options)
    assert mine.in_order
    for name in ("worst case", "posteriors", "actions"):
        one, other = mine[name], yours[name]
        error = np.hypot(one.std_error, other.std_error)
        assert abs(one.delta - other.delta) < 5.0 * error + 0.05 * other.delta
    assert abs(mine.gap.mean) < mine["worst case"].reward


def test_bounds_take_an_estimate_where_they_are_told(seed: int) -> None:
    policy, how = pw.ThompsonSampling(), {"estimate": True, "seed": seed, "draws": 4000}
    bound = pw.reward_bound(true(), near(), policy, 2, **how)
    exact = pw.reward_bound(EXACT, EXACT_NEAR, policy, 2)
    assert bound.kind == "approximate"  # particles stand for the prior
    assert bound.std_error > 0.0
    assert bound.value < exact.value + 5.0 * bound.std_error
    estimate = pw.reward_bound(EXACT, EXACT_NEAR, policy, 2, **how)
    assert abs(bound.value - estimate.value) < 5.0 * np.hypot(bound.std_error, estimate.std_error)
    with raises("seed", "nothing is known of the tails"):
        pw.reward_bound(true(), near(), policy, 2)
    certified = pw.reward_bound(models.given(), models.given([0.3, 0.4, 0.2, 0.1]), policy, 2)
    assert certified.kind == "certified"
    assert pw.tail_expectation(models.clicks(particles=16), 0.1).upper == 1.0


def test_models_are_compared_by_their_evidence(seed: int) -> None:
    """Clicks of Beta rates tell the right prior from one of another mean."""

    def other(rng: Any) -> Any:
        return 1.0 - models.beta_rates(rng)

    wrong = pw.ParticlePrior(other, models.click_density, rewards=[0, 1], arms=3, seed=seed)
    played = pw.simulate(
        models.EXACT_BETA, pw.Uniform(), horizon=10, tasks=60, seed=seed, keep=True
    )
    mine = pw.meta.log_marginal_likelihood(models.clicks(), played)
    exact = pw.meta.log_marginal_likelihood(models.EXACT_BETA, played)
    np.testing.assert_allclose(mine.sum(), exact.sum(), atol=0.5)
    assert pw.meta.log_marginal_likelihood(wrong, played).sum() < exact.sum() - 10.0


# -- how good the approximation is


def test_the_diagnosis_tells_few_particles_from_many(seed: int, drawn: list[Figure]) -> None:
    run = pw.simulate(
        EXACT, pw.ThompsonSampling(), horizon=10, tasks=80, seed=seed, keep=True, engine="numpy"
    )
    many, few = (models.gaussian(particles=each).diagnose(run) for each in (4096, 64))
    assert (np.median(many.sizes, axis=0) > 10.0 * np.median(few.sizes, axis=0)).all()
    assert (few.rough == 1.0).all()
    assert many.rough[0] < 0.1
    assert (np.diff(np.median(many.sizes, axis=0)) < 0.0).all()
    assert "warning: fewer than 100 in 100.0% of the tasks" in str(few)
    frame = many.to_frame()
    assert list(frame) == ["step", "least", "low", "median", "rough", "error"]
    assert len(frame) == 10
    np.testing.assert_allclose(frame["median"], np.median(many.sizes, axis=0))
    assert set(many.figure()) == {"png", "svg"}
    (axes,) = drawn[0].axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), frame["median"])
    assert {"median", "least", "all particles", "fewest"} <= {
        each.get_text() for each in axes.texts
    }
    moving = true(particles=256).diagnose(run)
    assert np.median(moving.sizes[:, -1]) > np.median(
        models.gaussian(particles=256).diagnose(run).sizes[:, -1]
    )
    with raises("run", "must be a Run with keep=True"):
        models.gaussian(particles=16).diagnose(3)


def test_runs_and_comparisons_warn_of_rough_beliefs(seed: int) -> None:
    few, many = models.gaussian(particles=32), models.gaussian(particles=8192)
    policy, options = pw.ThompsonSampling(), {"horizon": 2, "tasks": 20, "seed": seed}
    found = pw.compare(EXACT, {"few": (policy, few), "many": (policy, many)}, **options)
    assert found.runs["few"].rough == 20
    assert found.runs["many"].rough == 0
    assert found.runs["many"].warnings == ()
    assert "warning, few: in 20 of 20 tasks fewer than 100 of 32 particles count" in str(found)
    assert "pass log_prior to move them" in found.runs["few"].warnings[0]
    assert pw.simulate(models.given(), policy, **options).rough == 0


def test_numbers_that_fill_the_cube_have_their_laws(seed: int) -> None:
    """Kolmogorov distances below those of independent numbers (1.2 / sqrt(n)), and means of 1,024
    that scatter ten times less; independent ones do not (control).
    """
    rows = 1024
    rng = QuasiStream(seed, rows)
    one = np.ones((rows, 1))
    for values, law in (
        (rng.uniform(), stats.uniform()),
        (rng.normal(1)[:, 0], stats.norm()),
        (rng.beta(0.5 * one, 2.0 * one)[:, 0, 0], stats.beta(0.5, 2.0)),
        (rng.gamma(0.3 * one)[:, 0, 0], stats.gamma(0.3)),
        (rng.student(3.0 * one)[:, 0, 0], stats.t(3.0)),
        (rng.bits() * 2.0**-64, stats.uniform()),
    ):
        assert stats.kstest(values, law.cdf).statistic < 0.25 / np.sqrt(rows)
    assert np.isfinite(rng.log_gamma(1e-3 * one)).all()
    assert np.isfinite(rng.uniform(100)).all()  # beyond the coordinates
    means = [QuasiStream(seed + k, rows).normal(5).mean(axis=0) for k in range(10)]
    other = [streams(seed + k, rows)(1).normal(5).mean(axis=0) for k in range(10)]
    assert np.std(means) < 0.1 / np.sqrt(rows) < np.std(other)
    np.testing.assert_array_equal(
        QuasiStream(seed, 5).normal(3), QuasiStream(seed, 9).normal(3)[:5]
    )


# -- files


def test_a_file_holds_the_names_of_functions(tmp_path: Any) -> None:
    prior = models.times(particles=32)
    assert "particle_models:weibull_density" in prior.to_json()
    prior.save(tmp_path / "prior.json")
    assert pw.load_prior(tmp_path / "prior.json") == prior
    assert pw.load_prior(prior.to_json()).replaced(particles=16) == prior.replaced(particles=16)
    assert prior != prior.replaced(seed=models.SEED + 1)
    assert prior != 3
    assert hash(prior) == hash(pw.load_prior(prior.to_json()))


def test_reading_a_file_imports_nothing() -> None:
    """A fresh process does not know the functions: it says what to do, and imports no module that
    the file names.
    """
    text = models.times(particles=32).to_json().replace("particle_models:", "antigravity:")
    code = f"""
import sys
import priorwise as pw
try:
    pw.load_prior({text!r})
except ValueError as error:
    print(error, "antigravity" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "got 'antigravity:weibull_parameters'" in done.stdout
    assert "import the module that has it" in done.stdout
    assert done.stdout.strip().endswith("False")


def test_functions_without_a_name_are_refused() -> None:
    lost = models.gaussian(particles=16).replaced(
        log_density=lambda mu, a, r: -((r - mu[:, a]) ** 2)
    )
    with raises("log_density", "is a function, which JSON cannot"):
        lost.to_json()
    with raises("name", "by which code elsewhere would find it"):
        pw.families.register_function(lost.reward_law.log_density)
    named = pw.families.register_function(lost.reward_law.log_density, name="square loss")
    assert pw.load_prior(lost.to_json()).reward_law.log_density is named
    with raises("name", "is taken by another function"):
        pw.families.register_function(lambda mu: mu, name="square loss")
    with raises("particle.log_density", "must be a function of"):
        pw.load_prior(lost.to_json().replace('"square loss"', "null"))
    with raises("particle.log_density", "must be the name of a"):
        pw.load_prior(lost.to_json().replace('"square loss"', "3"))


# -- statistics


def test_histories_are_packed_joined_and_merged() -> None:
    one = ParticleStatistics([[0, -1, 1], [-1, -1, 2]], [[1.0, 9.0, 2.0], [9.0, 9.0, 3.0]], 3)
    assert one.actions.tolist() == [[0, 1], [2, -1]]
    assert one.rewards.tolist() == [[1.0, 2.0], [3.0, 0.0]]
    more = one.observe(np.array([-1, 0]), np.array([0.0, 4.0]))
    assert more.actions.tolist() == [[0, 1], [2, 0]]
    assert one.merged(more).actions.tolist() == [[0, 1, 0, 1], [2, 2, 0, -1]]
    assert (one + more).tasks == 4
    assert one.pulls.tolist() == [2, 1]
    assert repr(one) == "ParticleStatistics(tasks=2, arms=3, pulls=3)"
    for wrong, words in (
        ({"actions": [[3]], "rewards": [[1.0]]}, ("actions", "must be arms")),
        ({"actions": [[0.5]], "rewards": [[1.0]]}, ("actions", "must be arms, or -1")),
        ({"actions": [0], "rewards": [1.0]}, ("actions", "must be (task, step)")),
        ({"actions": [[0]], "rewards": [[np.nan]]}, ("rewards", "must be finite")),
        ({"actions": [[0]], "rewards": [[1.0]], "shown": [[1.0]]}, ("shown", "must be")),
    ):
        with raises(words):
            ParticleStatistics(arms=3, **wrong)


# -- what is refused


def make(**changes: Any) -> Any:
    good: dict[str, Any] = {
        "sample": models.normal_means,
        "log_density": models.normal_density,
        "sample_reward": models.normal_reward,
        "particles": 16,
        "seed": models.SEED,
    }
    return pw.ParticlePrior(**good | changes)


def global_numbers(rng: Any) -> Any:
    return np.random.default_rng().normal(size=(rng.tasks, 3))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no seed": ({"seed": None}, ("seed", "must be given, as particles are drawn")),
    "no particles": ({"particles": 0}, ("particles", "must be at least")),
    "one parameter": (
        {"sample": lambda rng: rng.normal()},
        ("sample", "x[:, None] makes a column"),
    ),
    "rows missing": (
        {"sample": lambda rng: rng.normal(3)[:2]},
        ("sample", "a row for each of n ="),
    ),
    "NaN parameters": (
        {"sample": lambda rng: rng.normal(3) * np.nan},
        ("sample", "at least one finite"),
    ),
    "other numbers": ({"sample": global_numbers}, ("sample", "must draw each row from rng alone")),
    "rows that mix": (
        {"sample": lambda rng: rng.normal(3) - rng.at(3).normal(3).mean(axis=0)},
        ("sample", "must draw each row from rng"),
    ),
    "NaN densities": (
        {"log_density": lambda mu, arm, r: np.nan * (r - mu[:, arm])},
        ("log_density", "must be a number below infinity, or"),
    ),
    "infinite densities": (
        {"log_density": lambda mu, arm, r: np.inf + 0.0 * (r - mu[:, arm])},
        ("log_density", "but is inf for arm 0"),
    ),
    "densities without rewards": (
        {"log_density": lambda mu, arm, r: mu[:, arm]},
        ("log_density", "must return numbers of shape (8, 8)"),
    ),
    "densities of nothing": (
        {"log_density": lambda mu, arm, r: "x"},
        ("log_density", "must return numbers of shape"),
    ),
    "impossible draws": (
        {"log_density": lambda mu, arm, r: np.where(r > 100.0, 0.0, -np.inf) + 0.0 * mu[:, arm]},
        ("log_density", "rules out what sample_reward drew"),
    ),
    "means of another shape": (
        {"mean_reward": lambda mu: mu[:, 0]},
        ("mean_reward", "numbers (n, arm)"),
    ),
    "means that are not": ({"mean_reward": lambda mu: mu / 0.0}, ("mean_reward", "must be finite")),
    "rewards of another shape": (
        {"sample_reward": lambda mu, arm, rng: mu},
        ("sample_reward", "must return numbers of shape (8,)"),
    ),
    "rewards that are not": (
        {"sample_reward": lambda mu, arm, rng: mu[:, arm] * np.nan},
        ("sample_reward", "must be finite, but drew nan"),
    ),
    "a density of no prior": (
        {"log_prior": lambda mu: mu},
        ("log_prior", "must return numbers of"),
    ),
    "a density that is infinite": (
        {"log_prior": lambda mu: np.full(len(mu), np.inf)},
        ("log_prior", "must be below infinity"),
    ),
    "a density elsewhere": (
        {"log_prior": lambda mu: np.where(mu[:, 0] > 9.0, 0.0, -np.inf)},
        ("log_prior", "must be finite where sample draws"),
    ),
    "probabilities that do not sum": (
        {"rewards": [0, 1], "arms": 3, "sample_reward": None},
        ("log_density", "log probability of each of rewards=(0.0, 1.0)"),
    ),
    "one reward": ({"rewards": [1.0]}, ("rewards", "must be two or more different values")),
    "a range twice": (
        {"rewards": [0, 1], "reward_range": (0, 2)},
        ("reward_range", "follows from"),
    ),
    "no range": (
        {"reward_range": (1.0, 1.0)},
        ("reward_range", "must be the least and the largest"),
    ),
    "weights of draws": ({"weights": [0.5, 0.5]}, ("weights", "are for given draws")),
    "weights that do not sum": (
        {"sample": [[1.0], [2.0]], "weights": [0.5, 0.1]},
        ("weights", "must sum to 1"),
    ),
    "no weight at all": (
        {"sample": [[1.0], [2.0]], "weights": [0.0, 0.0]},
        ("weights", "must sum to 1"),
    ),
    "draws with a density": (
        {"sample": [[1.0], [2.0]], "log_prior": models.normal_log_prior},
        ("log_prior", "given draws are the only possible tasks"),
    ),
    "no draws": ({"sample": np.zeros((0, 2))}, ("sample", "must not be empty")),
    "other arms": ({"arms": 4}, ("arms", "is 4, but there are 3")),
    "arms unknown": (
        {
            "sample": models.beta_rates,
            "log_density": models.click_density,
            "rewards": [0, 1],
            "sample_reward": None,
        },
        ("arms", "must be given"),
    ),
    "features of nothing": ({"dim": 2}, ("dim", "is the number of features of contexts")),
    "features untold": ({"contexts": pw.SphereContexts(3)}, ("dim", "must be given")),
    "resampling never": ({"resample_below": 0.0}, ("resample_below", "must lie strictly between")),
    "moves": ({"moves": -1}, ("moves", "must be at least 0")),
    "impossible": ({"impossible": "skip"}, ("impossible", "must be one of error, reset")),
    "names": ({"names": ["a"]}, ("names", "must have one entry for each of")),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(case: tuple[dict[str, Any], str]) -> None:
    changes, words = case
    with raises(words):
        make(**changes)


@pytest.mark.parametrize(
    "name", ["sample", "log_density", "sample_reward", "mean_reward", "log_prior"]
)
def test_what_is_no_function_is_refused(name: str | tuple[str, str]) -> None:
    make()
    for wrong in ("x", 3, object(), float):
        with raises(name):
            make(**{name: wrong})


def test_an_error_says_in_which_function_it_was() -> None:
    def broken(mu: Any, arm: int, reward: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        make(log_density=broken)
    assert "raised by log_density, a function of this ParticlePrior" in caught.value.__notes__


def test_a_reward_that_no_particle_allows(seed: int) -> None:
    """Refused, with what to do; or the task starts again, and the run counts it."""

    def within(mu: Any, arm: int, reward: Any) -> Any:
        return np.where(np.abs(reward - mu[:, arm]) < 0.5, 0.0, -np.inf)

    def shifted(mu: Any, arm: int, rng: Any) -> Any:
        return mu[:, arm] + rng.uniform() - 0.5

    prior = make(log_density=within, sample_reward=shifted, particles=64)
    seen, pull = Seen(1, 3, 3), (np.array([0, 1]), np.array([0.0, 50.0]))
    with raises("log_density", "allows the reward 50 of arm 1"):
        prior.belief(2).update(seen, *pull, None)
    for log_prior in (None, models.normal_log_prior):
        again = prior.replaced(impossible="reset", log_prior=log_prior)
        belief = again.belief(2).update(seen, *pull, None)
        assert belief.resets.tolist() == [0, 1]
        np.testing.assert_allclose(belief.mean(seen)[1], again.belief(1).mean(seen)[0])
        assert np.isneginf(belief.log_evidence()).tolist() == [False, True]
    far = pw.GaussianPrior([9.0, 9.0, 9.0], np.eye(3))
    run = pw.simulate(far, pw.Uniform(), believed=prior.replaced(impossible="reset"), horizon=3,
                      tasks=10, seed=seed)  # fmt: skip
    assert run.resets == 10


def test_tasks_need_rewards_that_can_be_drawn(seed: int) -> None:
    silent = make(sample_reward=None)
    with raises("rewards", "cannot be"):
        pw.simulate(silent, pw.Uniform(), horizon=1, tasks=2, seed=seed)
    run = pw.simulate(EXACT, pw.Greedy(), believed=silent, horizon=3, tasks=4, seed=seed)
    assert np.isfinite(run.mean_reward)


def test_rewards_out_of_range_are_refused(seed: int) -> None:
    prior = models.times(particles=16)
    with raises("rewards", "must lie between 0 and inf for"):
        prior.belief(1).update(Seen(1, 1, 2), np.array([0]), np.array([-1.0]), None)
    with raises("believed", "expects rewards of at least 0"):
        pw.simulate(
            pw.GaussianPrior([0.0, 0.0], np.eye(2)), pw.Uniform(), believed=prior, horizon=1,
            tasks=1, seed=seed,
        )  # fmt: skip


def test_absurd_sizes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORWISE_MEMORY_GB", "1")
    with raises("particles", "needs 320 GB"):
        make(particles=10**10)
    with raises("tasks", "needs 13 GB"):
        make().belief(10**8)


def test_parameters_can_be_drawn_beside_their_values(seed: int) -> None:
    belief = models.times(particles=64).belief(3)
    tasks = Streams(seed, np.arange(3, dtype=np.uint64))
    drawn = belief.sample_parameters(tasks.at(Purpose.POLICY, 1), 5)
    values = belief.sample(tasks.at(Purpose.POLICY, 1), 5, Seen(1, 1, 2))
    assert drawn.shape == (3, 5, 3)
    np.testing.assert_allclose(models.weibull_means(drawn.reshape(15, 3)).reshape(3, 5, 2), values)
