"""All histories that a policy may live through, with their probabilities.

The probability of a history under prior theta with alg(theta') factors into what the tasks do and
what the policy does,

    P(a_1, r_1, ..., a_h, r_h) = [sum_s theta_s prod_i D(r_i | mu_s, a_i)] * [prod_i alg(theta')(a_i
    | history)],

so one tree carries the likelihood of each possible task and, for each held prior, the probability
of the actions. Histories that lead to the same likelihoods (up to a factor), the same beliefs and
the same ratio of action probabilities have the same future and may be merged: their masses add up.
(Same: their logarithms agree to 1e-11.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.enumeration import MOST_OUTCOMES, EnumerablePrior, rounded_logs, row_groups
from priorwise.core.protocols import Seen
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import known_law

MOST_HISTORIES: Final = 200_000
"""Histories of one length that are held at most, unless told otherwise."""

Outcomes = list[list[tuple[float, FloatArray]]]
"""For each arm the rewards it may show, with their probability in each possible task,
``(support,)``.
"""


class NoActionLaw(ValueError):  # noqa: N818
    """A policy whose actions cannot be enumerated."""


class TooManyHistories(ValueError):  # noqa: N818
    """A problem is too large to be enumerated."""


@dataclass(frozen=True, eq=False)
class Histories:
    """Histories of one length; the task axis is the history.

    The probability of history i under task weights w and held prior j is ``mass[i] * (likelihood[i]
    @ w) * played[i, j]``.
    """

    mass: FloatArray  # (history,)
    likelihood: FloatArray  # (history, support), largest 1
    played: FloatArray  # (history, held prior), largest 1
    beliefs: tuple[Any, ...]  # one for each held prior
    actions: IntArray | None  # (history, step), None once merged
    rewards: FloatArray | None  # (history, step)

    def probability(self, weights: FloatArray, held: int) -> FloatArray:
        """Probability of each history, ``(history,)``, under these task weights ``(support,)`` and
        held prior.
        """
        return np.asarray(
            self.mass * np.einsum("is,s->i", self.likelihood, weights) * self.played[:, held]
        )

    def under(self, weights: FloatArray) -> Histories:
        """Leave out histories that are impossible under these task weights ``(support,)``."""
        return self._rows(np.flatnonzero((self.likelihood[:, weights > 0.0] > 0.0).any(axis=1)))

    def merged(self) -> Histories:
        """Put histories with the same future together."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([self.likelihood, self.played], axis=1))
        keys = [rounded_logs(logs), *(belief.key() for belief in self.beliefs)]
        first, group = row_groups(np.concatenate(keys, axis=1))
        mass = np.zeros(len(first))
        np.add.at(mass, group, self.mass)
        return replace(self._rows(first), mass=mass, actions=None, rewards=None)

    def _rows(self, rows: IntArray) -> Histories:
        return Histories(
            self.mass[rows],
            self.likelihood[rows],
            self.played[rows],
            tuple(each.take(rows) for each in self.beliefs),
            None if self.actions is None else self.actions[rows],
            None if self.rewards is None else self.rewards[rows],
        )


@dataclass(frozen=True, eq=False)
class World:
    """Possible tasks, and what a policy that holds one prior or several does in them."""

    outcomes: Outcomes
    support: int
    policy: Any
    held: tuple[EnumerablePrior, ...]
    horizon: int
    most: int

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(self.outcomes)

    def start(self) -> Histories:
        """Return the empty history."""
        beliefs = tuple(prior.belief(1) for prior in self.held)
        shape = (1, 0)
        return Histories(
            np.ones(1),
            np.ones((1, self.support)),
            np.ones((1, len(self.held))),
            beliefs,
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape),
        )

    def action_laws(self, histories: Histories, step: int) -> list[FloatArray]:
        """Probability of each arm after each history, ``(history, arm)``, for each held prior."""
        seen = Seen(step, self.horizon, self.arms)
        laws = [known_law(self.policy, belief, seen) for belief in histories.beliefs]
        known = [law.probs for law in laws if law is not None and law.source == "exact"]
        if len(known) < len(laws):
            raise NoActionLaw(
                "policy must have an exact action law, and "
                f"{validation.shown(self.policy)} has none here: either it does not know it (give "
                "it a method probabilities(belief, seen)), or its draws have more than "
                f"{MOST_OUTCOMES} outcomes (use fewer draws or a smaller support)"
            )
        return known

    def grow(self, histories: Histories, laws: list[FloatArray], step: int) -> Histories:
        """Extend every history by every action and reward that may follow."""
        played = histories.played[:, None, :] * np.stack(laws, axis=2)  # (history, arm, held prior)
        kept: list[tuple[int, float, FloatArray, IntArray]] = []
        for arm, shown in enumerate(self.outcomes):
            may_play = played[:, arm].max(axis=1) > 0.0
            for reward, probability in shown:
                may_show = (histories.likelihood[:, probability > 0.0] > 0.0).any(axis=1)
                kept.append((arm, reward, probability, np.flatnonzero(may_play & may_show)))
        sizes = [len(rows) for *_, rows in kept]
        if sum(sizes) > self.most:
            raise TooManyHistories(
                f"horizon must be shorter: there are {sum(sizes)} histories after {step} of "
                f"{self.horizon} pulls, "
                f"more than most={self.most}; a larger most=... takes more time and memory"
            )
        row = np.concatenate([rows for *_, rows in kept])
        arm_column = np.repeat([arm for arm, *_ in kept], sizes)
        reward_column = np.repeat([reward for _, reward, *_ in kept], sizes)
        likelihood = np.concatenate(
            [histories.likelihood[rows] * probability for _, _, probability, rows in kept]
        )
        action = played[row, arm_column]
        shares = likelihood.max(axis=1), action.max(axis=1)
        parents = histories._rows(row)
        seen = Seen(step, self.horizon, self.arms)
        return Histories(
            parents.mass * shares[0] * shares[1],
            likelihood / shares[0][:, None],
            action / shares[1][:, None],
            tuple(
                belief.update(seen, arm_column, reward_column, None) for belief in parents.beliefs
            ),
            None if parents.actions is None else np.column_stack([parents.actions, arm_column]),
            None if parents.rewards is None else np.column_stack([parents.rewards, reward_column]),
        )

    def expected_rewards(self) -> FloatArray:
        """Mean reward of each arm in each possible task, ``(support, arm)``."""
        return np.stack([sum(reward * p for reward, p in shown) for shown in self.outcomes], axis=1)


def can_be_enumerated(prior: Any) -> bool:
    """Whether a prior has finitely many tasks, and each of them finitely many rewards."""
    return isinstance(prior, EnumerablePrior) and prior.likelihoods(0) is not None


def world_of(
    prior: Any, held: dict[str, Any], policy: Any, horizon: int, most: int
) -> tuple[World, tuple[FloatArray, ...]]:
    """Possible tasks of the prior, and of the second held prior if there is one, with the task
    weights of both.

    ``held`` maps the name of an argument to the prior that the policy holds.
    """
    doors.role("policy", policy, "a policy")
    for name, value in (("prior", prior), *held.items()):
        if not isinstance(value, EnumerablePrior):
            raise TypeError(
                f"{name} must be a prior on finitely many tasks, such as a FinitePrior, to be "
                f"enumerated, got a {type(value).__name__}"
            )
        if value.likelihoods(0) is None:
            raise ValueError(
                f"{name} must have rewards of finitely many values to be enumerated: noise='none' "
                "or 'bernoulli', not normal rewards"
            )
        if value.arms != prior.arms:
            raise ValueError(f"{name} has {value.arms} arms, but the tasks have {prior.arms}")
        if value.reward_law != prior.reward_law:
            raise ValueError(
                f"{name} has another reward law than the tasks, {value.reward_law} and not "
                f"{prior.reward_law}"
            )
    priors = (prior, *list(held.values())[1:])
    ends = np.cumsum([0, *(len(each.probs) for each in priors)])
    weights = np.zeros((len(priors), ends[-1]))
    for i, each in enumerate(priors):
        weights[i, ends[i] : ends[i + 1]] = each.probs / each.probs.sum()
    possible = weights.any(axis=0)
    means = np.concatenate([each.means for each in priors])[possible]
    table = prior.replaced(means=means, probs=np.full(len(means), 1.0 / len(means)))
    outcomes = [table.likelihoods(arm) for arm in range(prior.arms)]
    horizon, most = validation.count("horizon", horizon), validation.count("most", most)
    return World(outcomes, len(means), policy, tuple(held.values()), horizon, most), tuple(
        weights[:, possible]
    )
