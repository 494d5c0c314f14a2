"""What every prior with real-valued actions must keep."""

from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final, Protocol, final

import numpy as np
import pytest

from priorwise.core.protocols import Belief, Prior
from priorwise.core.seen import RealActions, Seen
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.thompson import ThompsonSampling
from priorwise.simulate.run import simulate
from priorwise.simulate.steps import environments, steps
from priorwise.testing.calibration import DRAWS, Forgetful, Gullible
from priorwise.testing.laws import bonferroni, randomised_ranks, uniform_p_value
from priorwise.testing.playing import Played, Wrap, unchanged
from priorwise.testing.seeds import Seeded

HORIZON: Final = 6


class RealPrior(Prior, Protocol):
    """A prior whose actions are real numbers."""

    @property
    def actions(self) -> RealActions:
        """Which actions there are."""
        ...


@final
@dataclass(frozen=True)
class Shakes:
    """A policy that plays standard normal actions, cut to what may be played."""

    def act(self, belief: Belief, seen: Seen, rng: Stream) -> Any:  # real numbers
        """Draw them."""
        assert seen.actions is not None
        shape = () if seen.actions.size is None else (seen.actions.size,)
        return np.clip(rng.normal(*shape), seen.actions.low, seen.actions.high)

    def monte_carlo_n(self, arms: int) -> int:
        """Return 0: it does not look at the posterior."""
        return 0


def play_real(
    prior: RealPrior, *, tasks: int, pulls: int, seed: int, wrap: Wrap = unchanged, first: int = 0
) -> Played:
    """Draw environments, play actions at random, and condition the belief on what they show."""
    streams = Streams(seed, np.arange(first, first + tasks, dtype=np.uint64))
    environment, belief = environments(prior, streams), wrap(prior.belief(tasks))
    loop = steps(
        environment, belief, Shakes(), streams, horizon=pulls + 1, arms=prior.arms,
        actions=prior.actions,
    )  # fmt: skip
    done = list(islice(loop, pulls))
    signal = done[-1].after if done else environment.start(streams.world(0))
    belief = done[-1].learned() if done else belief
    seen = Seen(pulls + 1, pulls + 1, prior.arms, signal, None, prior.actions)
    return Played(streams, environment, belief, done, seen)


class RealPriorContract(Seeded):
    """Tests of a prior whose actions are real numbers; override the fixture ``prior``.

    The belief draws environments, ``sample_environments(rng, draws, seen)``, and these, like the
    true ones, have ``parameters``, ``(task, draw, number)`` and ``(task, number)``, and
    ``expected(signal, actions)``, the mean of the next signal. Drawn ones have
    ``best_actions(seen)``.
    """

    tasks: ClassVar[int] = 4096
    pulls: ClassVar[int] = 4
    false_alarm: ClassVar[float] = 1e-4
    """Probability that the calibration test rejects a right posterior."""

    @pytest.fixture
    def prior(self) -> RealPrior:
        """Prior under test."""
        raise NotImplementedError("override the fixture `prior` to return the prior under test")

    @pytest.fixture
    def believed(self, prior: RealPrior) -> RealPrior:
        """Prior that a policy believes although tasks come from ``prior``."""
        return prior

    def test_posterior_is_calibrated(self, prior: RealPrior, seed: int) -> None:
        """The truth ranks uniformly among posterior draws; false alarms with probability
        ``false_alarm``.
        """
        assert self._calibration(prior, seed, unchanged) > self.false_alarm

    def test_calibration_rejects_wrong_beliefs(self, prior: RealPrior, seed: int) -> None:
        """The control: beliefs that ignore or repeat observations fail the same test."""
        for wrong in (Forgetful, Gullible):
            assert self._calibration(prior, seed, wrong) < self.false_alarm, wrong.__name__

    def _calibration(self, prior: RealPrior, seed: int, wrap: Wrap) -> float:
        """Rank each parameter, and for each pull how far the next signal lay from its mean."""
        played = play_real(prior, tasks=self.tasks, pulls=self.pulls, seed=seed, wrap=wrap)
        rng = played.streams.at(Purpose.POLICY, self.pulls + 1)
        belief, truth = played.belief, played.environment
        drawn = belief.sample_environments(rng, DRAWS, played.seen)  # type: ignore[attr-defined]
        mine, theirs = truth.parameters, drawn.parameters  # type: ignore[attr-defined]
        pairs = [(mine[:, i], theirs[:, :, i]) for i in range(mine.shape[1])]
        for pull in played.pulls:
            x, after = (pull.seen.signal, pull.actions), np.asarray(pull.after)
            met = np.asarray(truth.expected(*x)) - after  # type: ignore[attr-defined]
            guessed = drawn.expected(*x) - after[:, None]
            pairs.append(((met**2).sum(axis=1), (guessed**2).sum(axis=2)))
        return bonferroni(
            [uniform_p_value(randomised_ranks(*pair, rng.uniform()), DRAWS + 1) for pair in pairs]
        )

    def test_belief_is_a_value(self, prior: RealPrior, seed: int) -> None:
        """Updating leaves the old belief as it was, and does the same twice."""
        played = play_real(prior, tasks=16, pulls=self.pulls, seed=seed)
        pull = played.pulls[-1]

        def draws(belief: Any) -> FloatArray:
            rng = played.streams.at(Purpose.POLICY, 9)
            return belief.sample_environments(rng, 4, played.seen).parameters

        def learned() -> Belief:
            return played.belief.update(pull.seen, pull.actions, pull.rewards, pull.after)

        before = draws(played.belief)
        first, again = draws(learned()), draws(learned())
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(draws(played.belief), before)
        assert not np.array_equal(first, before)

    def test_tasks_can_be_taken_and_joined(self, prior: RealPrior, seed: int) -> None:
        """A task draws the same wherever it stands."""
        played = play_real(prior, tasks=12, pulls=self.pulls, seed=seed)
        belief: Any = played.belief
        index = np.array([7, 0, 11, 3])
        rest = np.setdiff1d(np.arange(12), index)

        def actions(belief: Any, tasks: IntArray) -> FloatArray:
            rng = Streams(seed, tasks.astype(np.uint64)).at(Purpose.POLICY, 9)
            seen = played.seen.take(tasks)
            return belief.sample_environments(rng, 3, seen).best_actions(seen)

        order = np.concatenate([index, rest])
        whole = actions(belief, np.arange(12))
        joined = actions(belief.take(index).join(belief.take(rest)), order)
        np.testing.assert_array_equal(actions(belief.take(index), index), whole[index])
        np.testing.assert_array_equal(joined, whole[order])

    def test_tasks_do_not_see_each_other(
        self, prior: RealPrior, believed: RealPrior, seed: int
    ) -> None:
        """A task does the same alone, in a batch and in another block, for a true and a wrong
        belief.
        """
        for held in (prior, believed):
            alone, batch, blocks = (
                simulate(
                    prior, ThompsonSampling(), believed=held, horizon=HORIZON, tasks=tasks,
                    seed=seed, keep=True, block=block,
                ).actions
                for tasks, block in ((1, 64), (130, 256), (130, 64))
            )  # fmt: skip
            np.testing.assert_array_equal(alone, batch[:1])
            np.testing.assert_array_equal(batch, blocks)
