"""The posterior of tabular MDPs: Dirichlet rows, and what is known of the rewards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.protocols import Imagined
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.tabular_mdp.environment import DrawnMdps, MdpEnvironment, Present
from priorwise.families.tabular_mdp.planning import q_values
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior


@final
@dataclass(frozen=True, eq=False)
class MdpBelief(SeparableTasks):
    """Dirichlet parameters of each task's moves, and how often each pair of state and action was
    played and what it earned.
    """

    prior: DirichletMdpPrior
    alpha: FloatArray  # (task, state, action, next state)
    pulls: FloatArray  # (task, state, action)
    sums: FloatArray  # (task, state, action)
    resets: IntArray  # (task,): impossible moves, after each of which it started again

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.alpha.shape[0]

    @property
    def arms(self) -> int:
        """Number of actions."""
        return self.prior.arms

    def drawn(self, rng: Stream, draws: int) -> tuple[FloatArray, FloatArray]:
        """Moves and mean rewards of drawn MDPs, ``(task, draw, state, action, ...)``."""
        return self.prior.drawn(rng, self.alpha, self.pulls, self.sums, draws)

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``Q`` of each drawn MDP in the present state, with the steps that are left of the round,
        ``(task, draw, arm)``.
        """
        state = self.prior.contexts.state("seen.signal", seen.signal, self.tasks)
        moves, means = self.drawn(rng, argument_checks.drawing(self, rng, draws))
        q = q_values(moves, means, self.prior.contexts.left(seen))
        return np.asarray(q[np.arange(self.tasks), :, state])

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws, ``(task, arm)``."""
        return self.sample(rng, draws, seen).mean(axis=1)

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnMdps:
        """Draw whole MDPs, planned to the end of the round; the draws of :meth:`sample`."""
        self.prior.contexts.state("seen.signal", seen.signal, self.tasks)
        moves, means = self.drawn(rng, argument_checks.drawing(self, rng, draws))
        return DrawnMdps.planned(moves, means, self.prior.contexts, seen)

    def reward_range(
        self, rng: Stream, draws: int, seen: Seen, actions: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means over drawn MDPs of their largest and smallest mean reward, and of that of the
        actions now, ``(task,)`` each.
        """
        _, means = self.drawn(rng, draws)
        state = self.prior.contexts.now(seen.signal)
        now = means[np.arange(self.tasks), :, state, actions]
        pairs = means.reshape(self.tasks, draws, -1)
        low = np.where(np.isneginf(pairs), np.inf, pairs).min(axis=2)  # absent actions earn nothing
        return pairs.max(axis=2).mean(axis=1), low.mean(axis=1), now.mean(axis=1)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward and, unless a reset followed, on the move.

        If the prior rules out a move, the belief starts again from it.
        """
        low, high = self.prior.reward_range
        if (low, high) != (0.0, 1.0):
            low, high = -validation.LARGEST, validation.LARGEST
        actions, rewards = argument_checks.played(self, seen, actions, rewards, low=low, high=high)
        rounds = self.prior.contexts
        state = rounds.state("seen.signal", seen.signal, self.tasks)
        rounds.check_after(seen.step, after, self.tasks)
        return self._given(state, actions, rewards, *rounds.led(seen.step, after))

    def _given(
        self,
        state: IntArray,
        actions: IntArray,
        rewards: FloatArray,
        after: IntArray,
        moved: BoolArray,
    ) -> Self:
        rows = np.arange(self.tasks)
        alpha, pulls, sums = self.alpha.copy(), self.pulls.copy(), self.sums.copy()
        alpha[rows, state, actions, after] += moved
        pulls[rows, state, actions] += 1.0
        sums[rows, state, actions] += rewards
        wrong = moved & ~self.prior.possible[state, actions, after]
        if wrong.any():
            alpha[wrong] = self.prior.transitions
            pulls[wrong] = sums[wrong] = 0.0
        return replace(self, alpha=alpha, pulls=pulls, sums=sums, resets=self.resets + wrong)

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw an MDP, play an action in it, and condition on its reward and on where it led.

        The value is the drawn mean reward of the step; those after it are ``Q`` from the next state
        on, so that a look-ahead with equal weights, ``alpha = 1/2``, looks for the largest ``r +
        Q``. After the last step nothing is left to earn.
        """
        moves, means = self.drawn(rng, 1)
        prior, rows = self.prior, np.arange(self.tasks)
        rounds, state = prior.contexts, prior.contexts.now(seen.signal)
        # an action that a state lacks is imagined to earn nothing; nobody chooses it
        means = means[:, 0] if prior.absent is None else np.where(prior.absent, 0.0, means[:, 0])
        drawn = MdpEnvironment(moves[:, 0], means, prior.reward_law, prior.contexts)
        rewards, after = drawn.step(seen, actions, WorldStreams(rng, rng))
        value = drawn.means[rows, state, actions]
        if np.all(seen.step == seen.horizon):
            return Imagined(value, Over(self.tasks, self.arms), seen)
        belief = self._given(state, actions, rewards, *rounds.led(seen.step, after))
        mask = seen.mask if prior.absent is None else Present(prior.absent)(after)
        return Imagined(value, belief, replace(next_seen(seen, after), mask=mask))


def next_seen(seen: Seen, after: Signal) -> Seen:
    """What is known at the next step."""
    step = np.minimum(seen.step + 1, seen.horizon)
    step = step if isinstance(seen.step, np.ndarray) else int(step)
    return replace(seen, step=step, signal=after)


@final
@dataclass(frozen=True, eq=False)
class Over:
    """A belief after the last step: no action earns anything."""

    tasks: int
    arms: int

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Nothing is earned, ``(task, draw, arm)``."""
        return np.zeros((self.tasks, draws, self.arms))

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Nothing is earned, ``(task, arm)``."""
        return np.zeros((self.tasks, self.arms))

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Stay."""
        return self

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Earn nothing."""
        return Imagined(np.zeros(self.tasks), self, seen)
