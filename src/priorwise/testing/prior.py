"""What every prior must keep."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import priorwise.testing.twins as runs
from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.core.protocols import Belief, Prior, RangeBelief, SeparableBelief
from priorwise.core.serial import Serializable
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.simulate.loop import run_numpy
from priorwise.simulate.run import simulate
from priorwise.testing.calibration import Forgetful, Gullible, calibration
from priorwise.testing.playing import follow, play, same_signals
from priorwise.testing.seeds import Seeded
from priorwise.theory.influence import actions_influence_signals

EVERY_POLICY = pytest.mark.parametrize("name", runs.POLICIES)


class PriorContract(Seeded):
    """Tests of a prior and its belief; override the fixture ``prior``.

    Override ``believed`` too, with another prior of the same arms, to try beliefs that start wrong.
    """

    tasks: ClassVar[int] = 4096  # tasks of the calibration test; more tasks see smaller errors
    pulls: ClassVar[int] = 4  # pulls before the posterior is looked at
    false_alarm: ClassVar[float] = 1e-4
    """Probability that the calibration test rejects a right posterior."""
    wrong_beliefs: ClassVar[tuple[type[Belief], ...]] = (Forgetful, Gullible)
    """Wrong on purpose: the calibration test must reject each."""

    @pytest.fixture
    def prior(self) -> Prior:
        """Prior under test."""
        raise NotImplementedError("override the fixture `prior` to return the prior under test")

    @pytest.fixture
    def believed(self, prior: Prior) -> Prior:
        """Prior that a policy believes although tasks come from ``prior``."""
        return prior

    def test_posterior_is_calibrated(self, prior: Prior, seed: int) -> None:
        """The truth ranks uniformly among posterior draws; false alarms with probability
        ``false_alarm``.
        """
        assert calibration(prior, tasks=self.tasks, pulls=self.pulls, seed=seed) > self.false_alarm

    def test_calibration_rejects_wrong_beliefs(self, prior: Prior, seed: int) -> None:
        """The control: beliefs that ignore or repeat observations fail the same test."""
        for wrong in self.wrong_beliefs:
            p_value = calibration(prior, tasks=self.tasks, pulls=self.pulls, seed=seed, wrap=wrong)
            assert p_value < self.false_alarm, (
                f"{wrong.__name__} was not noticed: this prior learns too little from {self.pulls} "
                f"pulls of {self.tasks} tasks for its calibration to be seen; raise `pulls` or "
                "`tasks`"
            )

    def test_samples_are_tasks_by_draws_by_arms(self, prior: Prior, seed: int) -> None:
        """Draws have shape (task, draw, arm) and are finite, before any pull and after some."""
        for pulls in (0, self.pulls):
            played = play(prior, tasks=5, pulls=pulls, seed=seed)
            for draws in (1, 3):
                rng = played.streams.at(Purpose.POLICY, 9)
                values = played.belief.sample(rng, draws, played.seen)
                assert values.shape == (5, draws, prior.arms)
                assert values.dtype == np.float64
                assert np.isfinite(values).all()

    def test_belief_is_a_value(self, prior: Prior, seed: int) -> None:
        """Updating leaves the old belief, the actions and the rewards as they were, and does the
        same twice.
        """
        played = play(prior, tasks=16, pulls=self.pulls, seed=seed)
        pull = played.pulls[-1]
        actions, rewards = pull.actions.copy(), pull.rewards.copy()
        actions.setflags(write=False)
        rewards.setflags(write=False)

        def draws(belief: Belief) -> FloatArray:
            return belief.sample(played.streams.at(Purpose.POLICY, 9), 4, played.seen)

        before = draws(played.belief)
        first = played.belief.update(pull.seen, actions, rewards, played.seen.signal)
        after = draws(first)
        second = played.belief.update(pull.seen, actions, rewards, played.seen.signal)
        np.testing.assert_array_equal(draws(played.belief), before)
        np.testing.assert_array_equal(draws(second), after)

    def test_tasks_can_be_taken_and_joined(self, prior: Prior, seed: int) -> None:
        """A belief with ``take`` and ``join`` (others couple their tasks): a task draws and learns
        the same wherever it stands.
        """
        played = play(prior, tasks=12, pulls=self.pulls, seed=seed)
        belief = played.belief
        if not isinstance(belief, SeparableBelief):
            assert not hasattr(belief, "take"), "a belief has both take and join, or neither"
            assert not hasattr(belief, "join"), "a belief has both take and join, or neither"
            return
        index = np.array([7, 0, 11, 3])
        pull, rest = played.pulls[-1], np.setdiff1d(np.arange(12), index)

        def draws(belief: Belief, tasks: IntArray, later: bool) -> FloatArray:
            seen = pull.seen.take(tasks)
            after = None if pull.after is None else pull.after[tasks]
            if later:
                belief = belief.update(seen, pull.actions[tasks], pull.rewards[tasks], after)
            streams = Streams(seed, tasks.astype(np.uint64))
            return belief.sample(streams.at(Purpose.POLICY, 9), 4, seen)

        order = np.concatenate([index, rest])
        for later in (False, True):
            whole = draws(belief, np.arange(12), later)
            part = draws(belief.take(index), index, later)
            joined = draws(belief.take(index).join(belief.take(rest)), order, later)
            np.testing.assert_allclose(part, whole[index], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(joined, whole[order], rtol=1e-9, atol=1e-12)

    def test_largest_and_smallest_values_are_those_of_draws(self, prior: Prior, seed: int) -> None:
        """What a belief with ``extremes`` says of its largest and smallest value are means over its
        draws; six standard errors, and what may hide in values that none of 4,000 draws met, so
        false alarms below 1e-8.
        """
        played = play(prior, tasks=8, pulls=self.pulls, seed=seed)
        belief = played.belief
        if not isinstance(belief, RangeBelief):
            assert not hasattr(belief, "extremes"), "a belief with extremes has mean, too"
            return
        extremes = belief.extremes(played.seen)
        if extremes is None:
            return
        drawn = belief.sample(played.streams.at(Purpose.POLICY, 9), 4000, played.seen)
        for known, each in zip(extremes, (drawn.max(axis=2), drawn.min(axis=2)), strict=True):
            error = each.std(axis=1) / np.sqrt(each.shape[1])
            far = np.abs(known - each.mean(axis=1))
            unmet = 20.0 / each.shape[1] * np.ptp(drawn)
            assert (far <= 6.0 * error + unmet + 1e-9 * (1.0 + np.abs(known))).all()

    def test_actions_influence_signals_as_the_environment_says(
        self, prior: Prior, seed: int
    ) -> None:
        """Unless it says that they do, what is shown and expected does not depend on what is
        played, on the same streams.
        """
        environment, signals, _ = follow(prior, 0, tasks=64, pulls=self.pulls, seed=seed)
        if not actions_influence_signals(environment, signals[0]):
            assert same_signals(prior, tasks=64, pulls=self.pulls, seed=seed), (
                f"{type(environment).__name__} does not say that actions influence later signals, "
                "and they do: write actions_influence_signals = True in its class"
            )

    @EVERY_POLICY
    def test_tasks_do_not_see_each_other(self, prior: Prior, name: str, seed: int) -> None:
        """A task does the same alone, in a small batch and in a large one."""
        policy = runs.POLICIES[name]
        if not runs.offers(prior, policy):
            with pytest.raises(MissingCapability):
                simulate(prior, policy, horizon=1, tasks=1, seed=seed)
            return
        run = partial(
            run_numpy, prior, prior, policy, seed=seed, horizon=runs.HORIZON, available=None,
            keep=True,
        )  # fmt: skip

        whole = run(first=0, tasks=70).columns
        for first, tasks in ((0, 1), (33, 1), (3, 5), (64, 6)):
            part = run(first=first, tasks=tasks).columns
            assert whole is not None
            assert part is not None
            np.testing.assert_array_equal(part.actions, whole.actions[:, first : first + tasks])
            np.testing.assert_allclose(
                part.rewards, whole.rewards[:, first : first + tasks], rtol=1e-9, atol=1e-12
            )

    @EVERY_POLICY
    def test_mask_of_all_arms_is_no_mask(self, prior: Prior, name: str, seed: int) -> None:
        """Making all arms available changes nothing."""
        policy = runs.POLICIES[name]
        if runs.offers(prior, policy):
            masks = (None, np.ones(prior.arms, dtype=bool))
            runs.same_run(*(runs.kept_run(prior, policy, seed, available=mask) for mask in masks))

    @EVERY_POLICY
    @pytest.mark.parametrize("masked", [False, True], ids=["all arms", "some arms"])
    def test_compiled_run_is_the_numpy_run(
        self, prior: Prior, believed: Prior, name: str, masked: bool, seed: int
    ) -> None:
        """Action for action, for a true and a misspecified belief; without tile functions the
        compiled loop is refused.
        """
        policy = runs.POLICIES[name]
        available = runs.some_arms(runs.TASKS, prior.arms, seed) if masked else None
        for held in (prior, believed):
            if not runs.offers(held, policy):
                continue
            if runs.compiled(prior, policy) and runs.compiled(held, policy):
                runs.twins(prior, held, policy, available=available, seed=seed)
            else:
                with pytest.raises(ArgumentError, match="engine"):
                    runs.kept_run(prior, policy, seed, tasks=3, believed=held, engine="compiled")


class JsonContract:
    """Tests of the JSON form of a value; override the fixture ``value``."""

    @pytest.fixture
    def value(self) -> Serializable:
        """Value under test."""
        raise NotImplementedError("override the fixture `value` to return the value under test")

    def test_round_trip_is_exact(self, value: Serializable) -> None:
        """Every parameter reads back bit for bit."""
        copy = Serializable.load(value.to_json())
        assert type(copy) is type(value)
        assert copy == value
        assert hash(copy) == hash(value)
        assert copy.to_json() == value.to_json()
        for name, given in value._arguments().items():
            _same_bits(copy._arguments()[name], given)

    def test_saved_file_loads(self, value: Serializable, tmp_path: Path) -> None:
        """A file holds what the text holds."""
        path = tmp_path / "value.json"
        value.save(path)
        assert Serializable.load(path) == value
        assert Serializable.load(str(path)) == value
        assert [file.name for file in tmp_path.iterdir()] == ["value.json"]


def _same_bits(first: Any, second: object) -> None:
    if isinstance(second, np.ndarray):
        assert first.dtype == second.dtype
        assert first.shape == second.shape
        assert first.tobytes() == second.tobytes()
    elif isinstance(second, Mapping):
        assert list(first) == list(second)
        for name in second:
            _same_bits(first[name], second[name])
    elif isinstance(second, Serializable):
        for name, given in second._arguments().items():
            _same_bits(first._arguments()[name], given)
    else:
        assert type(first) is type(second)
        assert first == second
