"""What every policy must keep."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from priorwise.core import protocols
from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import Belief, MemoryPolicy, Policy, Prior, SeparableBelief
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.fitting.runs import Run
from priorwise.policies.posterior_sampling import SamplingPolicy
from priorwise.testing.laws import bonferroni, same_law_p_value
from priorwise.testing.playing import Played, play
from priorwise.testing.seeds import Seeded
from priorwise.testing.twins import HORIZON, TASKS, compiled, kept_run, some_arms, twins

MEAN = np.array([0.3, 0.0, 0.0, -0.2])
COV = 0.6 * np.eye(4) + 0.4
NOISE_VAR = np.array([1.0, 0.5, 2.0, 1.0])


class _PolicyTests(Seeded):
    @pytest.fixture
    def policy(self) -> Policy | MemoryPolicy:
        """Policy under test."""
        raise NotImplementedError("override the fixture `policy` to return the policy under test")


class PolicyContract(_PolicyTests):
    """Tests of a policy; override the fixture ``policy``, and ``problem`` or ``believed`` if they
    do not suit the policy.
    """

    tasks: ClassVar[int] = 4096
    """Runs whose actions are compared before and after relabelling the arms."""
    false_alarm: ClassVar[float] = 1e-4
    """Probability that the relabelling test rejects a policy that does not care for labels."""

    def problem(self, order: IntArray | None = None) -> Prior:
        """Prior on which the policy is tried, with its arms in this order; asymmetric, or
        relabelling shows nothing.
        """
        order = np.arange(MEAN.size) if order is None else order
        return GaussianPrior(MEAN[order], COV[np.ix_(order, order)], NOISE_VAR[order])

    def believed(self, prior: Prior) -> Prior:
        """Prior that the policy believes on that problem; override it for a policy with memory,
        whose belief counts.
        """
        return prior

    def test_actions_are_one_available_arm_a_task(self, policy: Policy, seed: int) -> None:
        """One integer for each task, of the arms that are available to it."""
        arms = self.problem().arms
        played = self._played(64, seed)
        rows = np.arange(64)
        alone = np.zeros((64, arms), dtype=bool)
        alone[rows, rows % arms] = True
        for mask in (None, some_arms(64, arms, seed), alone):
            seen, rng = replace(played.seen, mask=mask), played.streams.at(Purpose.POLICY, 3)
            actions = np.asarray(policy.act(played.belief, seen, rng))
            assert actions.shape == (64,)
            assert np.issubdtype(actions.dtype, np.integer)
            assert actions.min() >= 0
            assert actions.max() < arms
            if mask is not None:
                assert mask[rows, actions].all(), (
                    "use seen.masked(values): it puts -inf on arms that are not available"
                )

    def test_same_streams_give_the_same_actions(self, policy: Policy, seed: int) -> None:
        """The policy keeps no state: it acts the same again, and on a task alone as in a batch."""
        played = self._played(16, seed)
        first, again = (
            policy.act(played.belief, played.seen, played.streams.at(Purpose.POLICY, 3))
            for _ in range(2)
        )
        np.testing.assert_array_equal(first, again)
        batch, single = (
            self._run(self.problem(), policy, seed, tasks=tasks, engine="numpy")
            for tasks in (16, 1)
        )
        np.testing.assert_array_equal(batch.actions[:1], single.actions)

    def test_tasks_at_different_steps_do_what_each_does_alone(
        self, policy: Policy, seed: int
    ) -> None:
        """``seen.step`` and ``seen.horizon`` may hold one number for each task; a policy that is
        written for one step says ``@by_step``. Beliefs that couple their tasks have one step.
        """
        played = self._played(6, seed)
        belief, numbers = played.belief, np.arange(6, dtype=np.uint64)
        if not isinstance(belief, SeparableBelief):
            return
        steps, horizons = np.array([1, 2, 3, 4, 2, 4]), np.array([1, 2, 5, 5, 7, 5])
        seen = replace(played.seen, step=steps, horizon=horizons)
        together = policy.act(belief, seen, Streams(seed, numbers).at(Purpose.POLICY, steps))
        for task, (step, horizon) in enumerate(zip(steps.tolist(), horizons.tolist(), strict=True)):
            one = slice(task, task + 1)
            alone = replace(played.seen.take(one), step=step, horizon=horizon)
            rng = Streams(seed, numbers[one]).at(Purpose.POLICY, step)
            assert policy.act(belief.take(one), alone, rng)[0] == together[task]

    def test_choice_does_not_depend_on_labels(self, policy: Policy, seed: int) -> None:
        """Relabelling the arms relabels the actions, in law at each step; false alarms with
        probability ``false_alarm``.
        """
        assert self._relabelling(policy, seed) > self.false_alarm

    def test_relabelling_notices_a_favoured_label(self, policy: Policy, seed: int) -> None:
        """The control: a policy that plays the first arm in one task of eight, whatever the
        belief.
        """
        assert self._relabelling(FavoursFirst(policy), seed) < self.false_alarm

    def _relabelling(self, policy: Any, seed: int) -> float:
        arms = self.problem().arms
        order = np.roll(np.arange(arms), 1)
        before = self._run(self.problem(), policy, seed, tasks=self.tasks)
        after = self._run(self.problem(order), policy, seed + 1, tasks=self.tasks)
        names = order[after.actions]
        return bonferroni(
            [same_law_p_value(before.actions[:, h], names[:, h], arms) for h in range(HORIZON)]
        )

    def test_monte_carlo_constant(self, policy: Policy) -> None:
        """``monte_carlo_n(arms)`` is None for any number of arms, or a whole number, 0 or more,
        that does not fall with it.
        """
        constants = [protocols.monte_carlo_n(policy, arms) for arms in (1, 2, 6)]
        known = [n for n in constants if n is not None]
        assert len(known) in (0, len(constants))
        assert known == sorted(known)

    @pytest.mark.parametrize("masked", [False, True], ids=["all arms", "some arms"])
    def test_compiled_run_is_the_numpy_run(self, policy: Policy, masked: bool, seed: int) -> None:
        """Action for action, also with a misspecified belief; without tile functions the compiled
        loop is refused.
        """
        prior = self.problem()
        available = some_arms(TASKS, prior.arms, seed) if masked else None
        if compiled(prior, policy):
            for believed in (prior, self.problem(np.arange(prior.arms)[::-1])):
                twins(prior, believed, policy, available=available, seed=seed)
        else:
            with pytest.raises(ArgumentError, match="engine"):
                self._run(prior, policy, seed, tasks=3, engine="compiled")

    def _run(self, prior: Prior, policy: Policy, seed: int, **options: Any) -> Run:
        return kept_run(prior, policy, seed, believed=self.believed(prior), **options)

    def _played(self, tasks: int, seed: int) -> Played:
        prior = self.problem()
        held = self.believed(prior).belief(tasks)
        return play(prior, tasks=tasks, pulls=2, seed=seed, wrap=lambda _: held)


class SamplingPolicyContract(PolicyContract):
    """Further tests of a :class:`~priorwise.policies.posterior_sampling.SamplingPolicy`."""

    def test_draws_are_all_it_sees(self, policy: SamplingPolicy, seed: int) -> None:
        """It asks for ``draws`` draws, ``monte_carlo_n`` says so, and nothing else of the belief is
        read.
        """
        belief = DrawsOnly(np.random.default_rng(seed).normal(size=(8, policy.draws, 4)))
        rng = Streams(seed, np.arange(8, dtype=np.uint64)).at(Purpose.POLICY, 1)
        assert policy.act(belief, Seen(1, HORIZON, 4), rng).shape == (8,)
        assert policy.monte_carlo_n(4) == policy.draws

    def test_select_follows_labels_exactly(self, policy: SamplingPolicy, seed: int) -> None:
        """Where ``select`` has one answer (no ties, no chance of its own), permuting the values
        permutes it.
        """
        tasks, arms = 256, 5
        values = np.random.default_rng(seed).normal(size=(tasks, policy.draws, arms))
        order = np.roll(np.arange(arms), 2)
        seen = Seen(1, HORIZON, arms)
        streams = Streams(seed, np.arange(tasks, dtype=np.uint64))

        def chosen(values: FloatArray, steps: range) -> IntArray:
            each = (streams.at(Purpose.POLICY, step) for step in steps)
            return np.stack([policy.select(values, seen, rng) for rng in each])

        answers = chosen(values, range(1, 41))
        settled = (answers == answers[0]).all(axis=0)
        # a draw by chance that gives 40 equal answers comes from a law with one clear favourite:
        # compare what is chosen most
        moved = order[chosen(values[:, :, order], range(41, 81))]
        modal = np.array([np.bincount(column, minlength=arms).argmax() for column in moved.T])
        np.testing.assert_array_equal(modal[settled], answers[0][settled])


class MemoryPolicyContract(_PolicyTests):
    """Tests of a :class:`~priorwise.core.protocols.MemoryPolicy`; override the fixture ``policy``,
    and ``problem`` if it does not suit the policy.
    """

    def problem(self) -> Prior:
        """Prior on which the policy is tried."""
        return GaussianPrior(MEAN, COV, NOISE_VAR)

    def test_actions_are_one_available_arm_a_task(self, policy: MemoryPolicy, seed: int) -> None:
        """The loop checks each of them."""
        prior = self.problem()
        for mask in (None, some_arms(64, prior.arms, seed)):
            run = kept_run(prior, policy, seed, tasks=64, available=mask)
            assert run.actions.shape == (64, HORIZON)

    def test_memory_is_a_value(self, policy: MemoryPolicy, seed: int) -> None:
        """Deciding twice from one memory gives the same twice, and leaves the memory as it was."""
        played = play(self.problem(), tasks=16, pulls=2, seed=seed)
        memory = policy.begin(16)
        for step in (3, 4, 5):
            seen = replace(played.seen, step=step, horizon=9)
            before = deepcopy(memory)
            (first, memory_1), (again, memory_2) = (
                policy.decide(played.belief, seen, played.streams.at(Purpose.POLICY, step), memory)
                for _ in range(2)
            )
            np.testing.assert_array_equal(first, again)
            np.testing.assert_equal(memory, before)
            np.testing.assert_equal(memory_1, memory_2)
            memory = memory_1

    def test_tasks_do_not_see_each_other(self, policy: MemoryPolicy, seed: int) -> None:
        """A task does the same alone, in a batch, and in another block."""
        prior = self.problem()
        alone, batch, blocks = (
            kept_run(prior, policy, seed, tasks=tasks, block=block).actions
            for tasks, block in ((1, 64), (130, 256), (130, 64))
        )
        np.testing.assert_array_equal(alone, batch[:1])
        np.testing.assert_array_equal(batch, blocks)


@dataclass(frozen=True)
class FavoursFirst:
    """A wrong policy, to check the check: plays the first available arm in one task of eight."""

    policy: Policy

    @property
    def needs(self) -> tuple[type, ...]:
        """What the policy needs."""
        return getattr(self.policy, "needs", ())

    def act(self, belief: Belief, seen: Seen, rng: Stream) -> IntArray:
        """Ask the policy, then favour."""
        actions = self.policy.act(belief, seen, rng)
        first = np.isfinite(seen.masked(np.zeros((rng.tasks, seen.arms)))).argmax(axis=1)
        return np.where(rng.uniform() < 0.125, first, actions)


class DrawsOnly:
    """A belief that answers one request, for exactly the draws it holds."""

    def __init__(self, values: FloatArray) -> None:
        """Hold the draws ``(task, draw, arm)``."""
        self._left = [values]

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Give them once."""
        values = self._left.pop()
        assert values.shape[1] == draws
        return values

    def update(
        self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal
    ) -> "DrawsOnly":
        """Refuse: a policy never updates."""
        raise AssertionError("a policy must not update a belief")
