"""Beliefs whose particles move: resampled where too few of them count, and spread again by a Markov
chain that leaves the task's posterior as it is (:mod:`~priorwise.families.particle.cloud`).

A belief is a function of the prior and of what the task showed: the random numbers of a move are a
hash of the prior's seed and of the task's actions and rewards so far.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from priorwise.core.hashing import mix_array
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import BoolArray, FloatArray, IntArray, UIntArray
from priorwise.families.particle import weights as weighted
from priorwise.families.particle.belief import ParticleBelief
from priorwise.families.particle.cloud import Cloud, Target
from priorwise.families.particle.parts import Part


@dataclass(frozen=True, eq=False)
class Own:
    """Particles that one task has to itself."""

    parameters: FloatArray  # (particle, d)
    values: FloatArray | None  # (arm, particle): their mean rewards; None with contexts
    parents: IntArray  # (particle,): which particle of the generation before each comes from
    lineage: IntArray  # (particle,): the same, two generations before; ascending


@dataclass(frozen=True, eq=False)
class MovingBelief(ParticleBelief):
    """Weights of particles, and for tasks that were resampled particles of their own."""

    own: Any  # (task,) of Own, or None for a task that shares those of the prior
    actions: IntArray  # (task, step); -1 for none
    rewards: FloatArray  # (task, step)
    shown: FloatArray | None  # (task, step, arm, dim): features
    trail: UIntArray  # (task,): a hash of the actions and rewards so far

    @property
    def moved(self) -> BoolArray:
        """Which tasks have particles of their own, ``(task,)``."""
        return np.array([each is not None for each in self.own], dtype=bool)

    def particles(self, task: int) -> FloatArray:
        """Parameters of the particles of a task, ``(particle, d)``."""
        own: Own | None = self.own[task]
        return self.prior.parameters if own is None else own.parameters

    def join(self, *others: Self) -> Self:
        """Return these tasks, then those of the others."""
        steps = max(each.actions.shape[1] for each in (self, *others))
        first, *rest = (each._padded(steps) for each in (self, *others))
        return super(MovingBelief, first).join(*rest)

    def _padded(self, steps: int) -> Self:
        """Say of so many steps that nothing was pulled where there were fewer."""
        more = ((0, 0), (0, steps - self.actions.shape[1]))
        return replace(
            self,
            actions=np.pad(self.actions, more, constant_values=-1),
            rewards=np.pad(self.rewards, more),
            shown=None if self.shown is None else np.pad(self.shown, (*more, (0, 0), (0, 0))),
        )

    def _parts(self, seen: Seen) -> Iterator[Part]:
        moved = self.moved
        yield from self._shared(np.flatnonzero(~moved), seen)
        features = None if self.prior.contexts is None else self._features(seen)
        for task in np.flatnonzero(moved).tolist():
            own: Own = self.own[task]
            values = own.values
            if values is None and features is not None:
                found = self._model.means(own.parameters, features[task])
                values = np.ascontiguousarray(found.T)
            assert values is not None
            starts = np.flatnonzero(np.diff(own.lineage, prepend=-1))
            at = np.array([task])
            yield Part(at, own.parameters, self.log_weights, values, starts=starts)

    def _likelihoods(self, actions: IntArray, rewards: FloatArray, signal: Signal) -> FloatArray:
        """Log density of each task's reward under its particles, ``(task, particle)``."""
        moved = self.moved
        if not moved.any():
            return super()._likelihoods(actions, rewards, signal)
        out, there = np.empty(self.log_weights.shape), ~moved
        some = None if signal is None else signal[there]
        shared = self._model.likelihoods
        out[there] = shared(self.prior.parameters, actions[there], rewards[there], some)
        for task in np.flatnonzero(moved).tolist():
            context = None if signal is None else signal[task]
            arm, reward = int(actions[task]), rewards[task : task + 1]
            out[task] = self._model.densities(self.particles(task), arm, reward, context)[0]
        return out

    def _given(self, actions: IntArray, rewards: FloatArray, signal: Signal) -> Self:
        gained = self._likelihoods(actions, rewards, signal)
        kept = self._weighed(gained.copy(), actions, rewards)
        again = kept.resets > self.resets
        own = self.own.copy()
        own[again] = None
        kept = replace(kept, own=own, **self._longer(actions, rewards, signal, again))
        least = self.prior.resample_below * gained.shape[1]
        few = ~again & (weighted.kish(weighted.normalised(kept.log_weights)) < least)
        return kept._rejuvenated(np.flatnonzero(few), self, gained) if few.any() else kept

    def _longer(
        self, actions: IntArray, rewards: FloatArray, signal: Signal, again: BoolArray
    ) -> dict[str, Any]:
        """Histories with one more pull; a task that starts again forgets its own."""
        bits = (rewards + 0.0).view(np.uint64)
        trail = mix_array(mix_array(self.trail ^ bits) + actions.astype(np.uint64))
        longer = np.column_stack([self.actions, actions])
        shown = self.shown
        if shown is not None:
            shown = np.concatenate([shown, signal[:, None]], axis=1)
        return {
            "actions": np.where(again[:, None], -1, longer),
            "rewards": np.column_stack([self.rewards, rewards]),
            "shown": shown,
            "trail": trail,
        }

    def _rejuvenated(self, tasks: IntArray, before: Self, gained: FloatArray) -> Self:
        """Take the last reward of some tasks in again, by portions, with particles that move."""
        own, log_weights, scale = self.own.copy(), self.log_weights.copy(), self.log_scale.copy()
        pulls = (self.actions >= 0).sum(axis=1)  # -1 is no pull
        rng = Streams(self.prior.key, self.trail[tasks]).at(Purpose.POLICY, pulls[tasks])
        for row, task in enumerate(tasks.tolist()):
            held: Own | None = before.own[task]
            parents = lineage = np.arange(gained.shape[1])
            if held is not None:
                parents, lineage = held.parents, held.lineage
            cloud = Cloud(
                before.particles(task), parents, before.log_weights[task], gained[task], lineage
            ).take_in(self._target(task), rng.take(np.array([row])))
            values = None
            if self.prior.contexts is None:
                values = np.ascontiguousarray(self._model.means(cloud.x).T)
            own[task] = Own(cloud.x, values, cloud.parents, cloud.lineage)
            log_weights[task] = cloud.log_weights
            scale[task] = before.log_scale[task] + cloud.log_scale
        return replace(self, own=own, log_weights=log_weights, log_scale=scale)

    def _target(self, task: int) -> Target:
        steps = self.actions[task] >= 0
        shown = None if self.shown is None else self.shown[task][steps]
        return Target(self.prior, self.actions[task][steps], self.rewards[task][steps], shown)
