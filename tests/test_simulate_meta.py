"""``simulate_meta``: task numbers, pairing, independence of processes and blocks, results, and what
is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.estimates import mean_estimate
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.trajectories import Trajectory
from priorwise.experiments import problems
from priorwise.meta.learners import simulate_meta as module
from priorwise.meta.learners.learner import FixedPrior, Play, Setting
from priorwise.meta.learners.meta_run import MetaRun
from priorwise.meta.learners.simulate_meta import NUMBERS, simulate_meta
from priorwise.simulate.engine import choose

GAUSSIAN = pw.GaussianPrior([0.5, 0.0, 0.1], [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
BETA = pw.BetaPrior([1.0, 2.0, 0.5], [1.0, 3.0, 1.5])
LINEAR = pw.LinearGaussianPrior(np.ones(2), np.eye(2), contexts=pw.SphereContexts(arms=3))
FINITE = pw.FinitePrior([[1.0, 0.0, 0.3], [0.0, 1.0, 0.3]], [0.7, 0.3])
PRIORS = {"gaussian": GAUSSIAN, "beta": BETA, "linear": LINEAR, "finite": FINITE}
THOMPSON = pw.ThompsonSampling()
OPTIONS: dict[str, Any] = {"episodes": 30, "replicates": 3, "horizon": 5, "jobs": 1}


@dataclass(frozen=True)
class Wanderer:
    """A learner that draws its prior's mean anew for a varying number of episodes, and remembers
    what it saw.
    """

    longest: int = 7

    def init(self, setting: Setting) -> tuple[Any, float, int, Any]:
        return setting.blank, 0.0, 0, None

    def plan(self, state: tuple[Any, float, int, Any], rng: Stream) -> Play:
        blank, total, left, believed = state
        if left == 0:
            believed = pw.GaussianPrior(
                rng.normal(blank.arms)[0] + 0.01 * total, blank.cov, blank.noise_var
            )
            left = 1 + int(rng.integers(self.longest)[0])
        return Play(THOMPSON, believed, left)

    def step(
        self, state: tuple[Any, float, int, Any], play: Play, played: Trajectory
    ) -> tuple[Any, float, int, Any]:
        blank, total, _, _ = state
        return (
            blank,
            total + float(played.rewards.sum()),
            play.episodes - len(played.rewards),
            play.believed,
        )


def same(first: MetaRun, second: MetaRun) -> None:
    """Bit for bit."""
    np.testing.assert_array_equal(first.rewards, second.rewards)
    np.testing.assert_array_equal(first.actions, second.actions)


@pytest.mark.parametrize("first", [0, 5 * NUMBERS + 3, (NUMBERS - 1) * NUMBERS + 17])
@pytest.mark.parametrize("name", PRIORS)
def test_engines_agree_on_any_task_number(name: str, first: int, seed: int) -> None:
    prior = PRIORS[name]
    blocks = [
        choose(prior, prior, THOMPSON, 4, masked=False, engine=engine).run(
            seed=seed, first=first, tasks=70, horizon=4, available=None, keep=True
        )
        for engine in ("compiled", "numpy")
    ]
    np.testing.assert_array_equal(blocks[0].columns.actions, blocks[1].columns.actions)
    np.testing.assert_allclose(blocks[0].totals, blocks[1].totals, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PRIORS)
def test_an_episode_is_a_numbered_task(name: str, seed: int) -> None:
    prior = PRIORS[name]
    run = simulate_meta(prior, FixedPrior(THOMPSON), seed=seed, keep=True, **OPTIONS)
    for replicate in range(3):
        streams = Streams(seed, np.arange(30, dtype=np.uint64) + np.uint64(replicate * NUMBERS))
        environment = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), 30)
        signal = environment.start(streams.world(0))
        rewards, _ = environment.step(
            pw.core.Seen(1, 5, 3, signal), run.actions[replicate, :, 0], streams.world(1)
        )
        np.testing.assert_allclose(
            run.kept[replicate].trajectory.rewards[:, 0], rewards, rtol=1e-12, atol=1e-12
        )
    single = pw.simulate(prior, THOMPSON, tasks=30, horizon=5, seed=seed, keep=True)
    # replicate 0 is the plain simulation
    np.testing.assert_array_equal(run.actions[0], single.actions)


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_blocks_and_engine_change_nothing(
    engine: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = simulate_meta(GAUSSIAN, Wanderer(200), seed=seed, keep=True, **OPTIONS)
    monkeypatch.setattr(module, "block_size", lambda *_: 4)
    cut = simulate_meta(GAUSSIAN, Wanderer(200), seed=seed, keep=True, engine=engine, **OPTIONS)
    np.testing.assert_array_equal(cut.actions, expected.actions)
    assert (
        max(held.episodes for held in cut.history[0])
        <= 4
        < max(held.episodes for held in expected.history[0])
    )


def test_processes_change_nothing(seed: int) -> None:
    options = {**OPTIONS, "replicates": 5, "seed": seed, "keep": True}
    expected = simulate_meta(GAUSSIAN, Wanderer(), **options)
    same(simulate_meta(GAUSSIAN, Wanderer(), **{**options, "jobs": 2}), expected)
    fewer = simulate_meta(GAUSSIAN, Wanderer(), **{**options, "replicates": 2, "episodes": 17})
    np.testing.assert_array_equal(fewer.rewards, expected.rewards[:2, :17])
    other = simulate_meta(GAUSSIAN, Wanderer(), **{**options, "seed": seed + 1})
    assert (other.rewards != expected.rewards).all()


def test_learners_meet_the_same_tasks_and_noise(seed: int) -> None:
    """With one arm all learners earn the same; with several, pairing removes most of the variance
    of a difference.
    """
    one_arm = pw.GaussianPrior([0.0], [[1.0]])
    runs = [
        simulate_meta(one_arm, learner, seed=seed, **OPTIONS)
        for learner in (FixedPrior(THOMPSON), Wanderer())
    ]
    np.testing.assert_allclose(runs[1].rewards, runs[0].rewards, rtol=1e-12, atol=1e-12)
    problem = problems.gaussian()
    options: dict[str, Any] = {"episodes": 50, "replicates": 60, "horizon": 10, "jobs": 1}
    oracle = simulate_meta(problem.prior, FixedPrior(THOMPSON), seed=seed, **options)
    wrong = simulate_meta(
        problem.prior, FixedPrior(THOMPSON, problem.misspecified), seed=seed, **options
    )
    paired = wrong.shortfall(oracle)
    unpaired = np.hypot(wrong.average().std_error, oracle.average().std_error)
    assert paired.std_error < 0.7 * unpaired
    assert paired.mean == pytest.approx(oracle.average().mean - wrong.average().mean)
    assert paired.mean > 5 * paired.std_error  # the truth is 1.90


def test_numbers_are_those_of_the_rewards(seed: int) -> None:
    run = simulate_meta(GAUSSIAN, FixedPrior(THOMPSON), seed=seed, **{**OPTIONS, "replicates": 4})
    assert (run.replicates, run.episodes, run.horizon, run.seed) == (4, 30, 5, seed)
    np.testing.assert_allclose(run.mean_reward, run.rewards.mean(axis=0))
    np.testing.assert_allclose(run.std_error, run.rewards.std(axis=0, ddof=1) / 2)
    window = run.rewards[:, 10:20].mean(axis=1)
    assert run.average(11, 20).mean == pytest.approx(window.mean())
    assert run.average(11, 20).std_error == pytest.approx(window.std(ddof=1) / 2)
    average = run.running_average()
    assert average.mean_reward[-1] == pytest.approx(run.average().mean)
    assert average.std_error[-1] == pytest.approx(run.average().std_error)
    assert average.mean_reward[0] == pytest.approx(run.mean_reward[0])
    assert "4 replicates of 30 episodes" in str(run)
    assert f"first 3: {run.average(1, 3)}, last 3: {run.average(28)}" in str(run)
    assert (
        simulate_meta(GAUSSIAN, FixedPrior(THOMPSON), seed=seed, **{**OPTIONS, "replicates": 1})
        .average()
        .std_error
        == np.inf
    )


def test_what_is_kept(seed: int) -> None:
    run = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, keep=True, **OPTIONS)
    assert run.actions.shape == (3, 30, 5)
    for replicate in range(3):
        held = run.history[replicate]
        assert [each.first for each in held] == list(
            np.cumsum([1, *(each.episodes for each in held)])[:-1]
        )
        np.testing.assert_allclose(
            run.kept[replicate].trajectory.rewards.sum(axis=1), run.rewards[replicate]
        )
        assert run.states[replicate][1] == pytest.approx(run.rewards[replicate].sum())
    assert run.fits == (None, None, None)
    with raises("run", "kept only the rewards"):
        _ = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, **OPTIONS).actions


def test_the_learners_own_numbers_are_of_no_episode(seed: int) -> None:
    """The learner's stream must not repeat an episode's policy stream, and must differ between
    replicates and episodes.
    """
    learner = np.concatenate(
        [
            Stream(module._learner_keys(seed, r), e).uniform(4)
            for r in range(3)
            for e in range(1, 40)
        ]
    )
    tasks = np.concatenate(
        [np.arange(40, dtype=np.uint64) + np.uint64(r * NUMBERS) for r in range(3)]
    )
    episodes = np.concatenate(
        [Streams(seed, tasks).at(Purpose.POLICY, e).uniform(4) for e in range(1, 40)]
    )
    assert np.unique(learner).size == learner.size
    assert not np.isin(learner, episodes).any()


def test_progress_shows_and_changes_nothing(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, **OPTIONS)
    loud = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, progress=True, **OPTIONS)
    np.testing.assert_array_equal(loud.rewards, quiet.rewards)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"learner": THOMPSON}, ("learner", "FixedPrior")),
        ({"learner": FixedPrior}, ("learner", "not the class")),
        ({"learner": FixedPrior(THOMPSON, BETA)}, ("believed", "between 0 and 1")),
        (
            {"learner": FixedPrior(THOMPSON, pw.GaussianPrior([0.0], [[1.0]]))},
            ("believed", "has 1 arms, but the tasks"),
        ),
        (
            {"prior": pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5)},
            ("prior", "has no fixed number of arms"),
        ),
        ({"episodes": 0}, "episodes"),
        ({"replicates": 2.0}, "replicates"),
        ({"jobs": 0}, "jobs"),
        ({"episodes": 1 << 32}, ("episodes", "must be below 2**32")),
        ({"seed": -1}, "seed"),
        ({"engine": "fast"}, "engine"),
    ],
)
def test_refused(changed: dict[str, Any], message: str | tuple[str, str]) -> None:
    arguments = {
        "prior": GAUSSIAN,
        "learner": FixedPrior(THOMPSON),
        "seed": 0,
        **OPTIONS,
        **changed,
    }
    with raises(message):
        simulate_meta(arguments.pop("prior"), arguments.pop("learner"), **arguments)


@dataclass(frozen=True)
class Changes:
    """A learner that holds one prior after the other."""

    priors: tuple[Any, ...]

    def init(self, setting: Setting) -> int:
        return 0

    def plan(self, state: int, rng: Stream) -> Play:
        return Play(THOMPSON, self.priors[min(state, len(self.priors) - 1)])

    def step(self, state: int, play: Play, played: Trajectory) -> int:
        return state + 1


@pytest.mark.parametrize(
    ("prior", "later", "message"),
    [
        (GAUSSIAN, pw.GaussianPrior(np.zeros(6), np.eye(6)), ("believed", "6 arms")),
        (GAUSSIAN, pw.GaussianPrior(np.zeros(2), np.eye(2)), ("believed", "2 arms")),
        (BETA, pw.BetaPrior(np.ones(5), np.ones(5)), ("believed", "5 arms")),
        (FINITE, pw.FinitePrior(np.eye(4), np.full(4, 0.25)), ("believed", "4 arms")),
        (
            LINEAR,
            pw.LinearGaussianPrior(np.ones(3), np.eye(3), contexts=pw.SphereContexts(arms=3)),
            ("believed", "3 features"),
        ),
        (
            LINEAR,
            pw.LinearGaussianPrior(np.ones(2), np.eye(2), contexts=np.eye(3)[:, :2]),
            ("prior", "contexts"),
        ),
    ],
)
def test_every_prior_that_is_held_is_checked(
    prior: Any, later: Any, message: str | tuple[str, str], seed: int
) -> None:
    """Also those of a family that was held before: the compiled loop would write beyond its
    arrays.
    """
    with raises(message):
        simulate_meta(prior, Changes((prior, later)), seed=seed, **OPTIONS)
    assert simulate_meta(prior, Changes((prior, prior)), seed=seed, **OPTIONS).episodes == 30


@runtime_checkable
class Wishful(Protocol):
    """A belief that no prior has."""

    def wish(self) -> None: ...


class Demanding:
    """A policy that needs such a belief."""

    needs = (Wishful,)

    def act(self, belief: Any, seen: pw.core.Seen, rng: Stream) -> Any:
        return np.zeros(rng.tasks, dtype=np.int64)


def test_every_policy_that_is_held_is_checked(seed: int) -> None:
    """Also one of a type that was held before."""

    class Later(Changes):
        def plan(self, state: int, rng: Stream) -> Play:
            return Play(pw.UniformThen(1, THOMPSON if state == 0 else Demanding()), GAUSSIAN)

    with raises("policy", "needs a belief with wish"):
        simulate_meta(GAUSSIAN, Later(()), seed=seed, **OPTIONS)


class Never:
    """An exploration that must not be reached."""

    def act(self, belief: Any, seen: pw.core.Seen, rng: Stream) -> Any:
        raise AssertionError("explored")

    def monte_carlo_n(self, arms: int) -> None: ...


def test_what_the_last_policy_needs_is_checked_before_exploring(seed: int) -> None:
    """Where the estimator reads the statistics of the tasks' family, so that the fitted prior is of
    that family.
    """
    for estimator in (
        pw.GaussianMarginalLikelihood(),
        pw.GaussianMarginalLikelihood("exchangeable"),
        pw.GaussianMoments(),
    ):
        learner = pw.ExploreThenCommit(3, estimator, exploration=Never(), policy=Demanding())
        with raises("policy", "needs a belief with wish; GaussianBelief lacks"):
            simulate_meta(GAUSSIAN, learner, seed=seed, **OPTIONS)


def test_parts_of_the_replicates(seed: int) -> None:
    whole = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, **OPTIONS)
    part = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, first=1, **{**OPTIONS, "replicates": 2})
    np.testing.assert_array_equal(part.rewards, whole.rewards[1:])
    other = simulate_meta(GAUSSIAN, Wanderer(), seed=seed, **{**OPTIONS, "replicates": 2})
    with raises("other", "first_replicate"):
        part.shortfall(other)
    for wrong, argument in (("1", "first"), (-1, "first"), (1 << 32, "first + replicates")):
        with raises(argument):
            simulate_meta(GAUSSIAN, Wanderer(), seed=seed, first=wrong, **OPTIONS)  # type: ignore[arg-type]


def test_estimates_of_infinite_values() -> None:
    assert mean_estimate(np.array([1.0, 3.0])).std_error == 1.0
    assert mean_estimate(np.array([1.0, -np.inf])).mean == -np.inf
    assert np.isnan(mean_estimate(np.array([np.inf, -np.inf])).mean)
    assert mean_estimate(np.array([1.0, -np.inf])).std_error == np.inf


def test_shortfalls_need_the_same_tasks(seed: int) -> None:
    run = simulate_meta(GAUSSIAN, FixedPrior(THOMPSON), seed=seed, **OPTIONS)
    for changed in ({"seed": seed + 1}, {"replicates": 2}, {"horizon": 4}, {"episodes": 20}):
        other = simulate_meta(
            GAUSSIAN, FixedPrior(THOMPSON), **{**OPTIONS, "seed": seed, **changed}
        )
        with raises("last" if "episodes" in changed else "other"):
            run.shortfall(other)
    other = simulate_meta(LINEAR, FixedPrior(THOMPSON), seed=seed, **OPTIONS)
    with raises("other", "must have the prior of this"):
        run.shortfall(other)
    for first, last in ((0, 5), (6, 5), (1, 31)):
        with raises("first", "must"):
            run.average(first, last)


def test_blank_priors_know_no_more_than_the_reward_law() -> None:
    blank = Setting(GAUSSIAN, 5).blank
    np.testing.assert_array_equal(blank.mean, np.zeros(3))
    np.testing.assert_array_equal(blank.cov, np.eye(3))
    assert Setting(BETA, 5).blank == pw.BetaPrior(np.ones(3), np.ones(3))
    assert Setting(FINITE, 5).blank.probs.tolist() == [0.5, 0.5]
    assert Setting(LINEAR, 5).blank.contexts == LINEAR.contexts
    with raises("prior", "pass one to the learner"):
        _ = Setting(Wanderer(), 5).blank  # type: ignore[arg-type]
