"""All histories that a policy may live through, with their probabilities.

The probability of a history under prior theta with alg(theta') factors into what the tasks do and
what the policy does,

    P(y_1, a_1, r_1, y_2, ..., a_h, r_h, y_h+1) = [sum_s theta_s P(y_1) prod_i D_s(r_i, y_i+1 | y_i,
    a_i)] * [prod_i alg(theta')(a_i | history)],

with y the state that is shown (a bandit shows nothing), so one tree carries the likelihood of each
possible task and, for each believed prior, the probability of the actions. Histories that lead to
the same likelihoods (up to a factor), the same state and beliefs and the same ratio of action
probabilities have the same future and may be merged: their masses add up. (Same: their logarithms
agree to 1e-11.)
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.seen import Seen
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.laws import known_law
from priorwise.theory import enumeration

MOST_HISTORIES: Final = 200_000
"""Histories of one length that are kept at most, by default."""


class NoActionLaw(ArgumentError):  # noqa: N818
    """A policy whose actions cannot be enumerated."""


class TooManyHistories(ArgumentError):  # noqa: N818
    """A problem is too large to be enumerated."""


@dataclass(frozen=True, eq=False)
class Histories:
    """Histories of one length; the task axis is the history.

    The probability of history i under task weights w and believed prior j is ``mass[i] *
    (likelihood[i] @ w) * played[i, j]``.
    """

    mass: FloatArray  # (history,)
    likelihood: FloatArray  # (history, support), largest 1
    played: FloatArray  # (history, believed prior), largest 1
    beliefs: tuple[Any, ...]  # one for each believed prior
    actions: IntArray | None  # (history, step), None once merged
    rewards: FloatArray | None  # (history, step)
    signal: Any = None  # (history,): the state that is shown now; None where there is none
    signals: Any = None  # (history, step): those before each pull; None once merged
    # (history, support): expected reward so far in each possible task, where somebody asks
    earned: FloatArray | None = None
    # where tasks hide a state, a belief with full support: what may be shown next
    hidden: Any = None

    def probability(self, weights: FloatArray, believed: int) -> FloatArray:
        """Probability of each history, ``(history,)``, under these task weights ``(support,)`` and
        believed prior.
        """
        return np.asarray(
            self.mass * np.einsum("is,s->i", self.likelihood, weights) * self.played[:, believed]
        )

    def under(self, weights: FloatArray) -> Histories:
        """Leave out histories that are impossible under these task weights ``(support,)``."""
        return self._rows(np.flatnonzero((self.likelihood[:, weights > 0.0] > 0.0).any(axis=1)))

    def merged(self) -> Histories:
        """Put histories with the same future together."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([self.likelihood, self.played], axis=1))
        keys = [enumeration.rounded_logs(logs), *(belief.key() for belief in self.beliefs)]
        if self.hidden is not None:  # what was shown is in the belief
            keys.append(self.hidden.key())
        elif self.signal is not None:
            keys.append(self.signal[:, None])
        if self.earned is not None:
            keys.append(np.rint(self.earned * 1e11).astype(np.int64))
        first, group = enumeration.row_groups(np.concatenate(keys, axis=1))
        mass = np.zeros(len(first))
        np.add.at(mass, group, self.mass)
        return replace(self._rows(first), mass=mass, actions=None, rewards=None, signals=None)

    def _rows(self, rows: IntArray) -> Histories:
        arrays: dict[str, Any] = {
            each.name: None if (value := getattr(self, each.name)) is None else value[rows]
            for each in fields(self)
            if each.name not in ("beliefs", "hidden")
        }
        hidden = None if self.hidden is None else self.hidden.take(rows)
        beliefs = tuple(each.take(rows) for each in self.beliefs)
        return Histories(beliefs=beliefs, hidden=hidden, **arrays)


@dataclass(frozen=True, eq=False)
class World:
    """Possible tasks, and what a policy that believes one prior or several does in them."""

    possible: enumeration.EnumerablePrior  # on all tasks that some prior allows
    policy: Any
    believed: tuple[enumeration.EnumerablePrior, ...]
    horizon: int
    most: int

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.possible.arms

    @property
    def support(self) -> int:
        """Number of possible tasks."""
        return len(self.possible.probs)

    def start(self) -> Histories:
        """Return the empty history, one for each state in which a task may start."""
        signal, chances = self.possible.first_signals()
        starts = len(chances)
        shape = (starts, 0)
        every = self.possible.belief(starts)
        hides = isinstance(every, enumeration.HiddenStateBelief)
        return Histories(
            chances,
            np.ones((starts, self.support)),
            np.ones((starts, len(self.believed))),
            tuple(prior.belief(starts) for prior in self.believed),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape),
            signal,
            None if signal is None else np.zeros(shape, dtype=np.int64),
            hidden=every if hides else None,
        )

    def outcomes(self, histories: Histories, step: int) -> enumeration.Outcomes:
        """For each action what it may show next, in each possible task."""
        if histories.hidden is not None:
            seen = Seen(step, self.horizon, self.arms, histories.signal)
            shown = histories.hidden.possible_outcomes(seen)
        else:
            shown = self.possible.outcomes(histories.signal, step)
        if shown is None:
            raise AssertionError("checked where the world was made")
        return shown

    def action_laws(self, histories: Histories, step: int) -> list[FloatArray]:
        """Probability of each arm after each history, ``(history, arm)``, by believed prior."""
        seen = Seen(step, self.horizon, self.arms, histories.signal)
        laws = [known_law(self.policy, belief, seen) for belief in histories.beliefs]
        known = [law.probs for law in laws if law is not None and law.source == "exact"]
        if len(known) < len(laws):
            raise NoActionLaw(
                "policy",
                "must have an exact action law: a method probabilities(belief, seen), or draws of "
                f"at most {enumeration.MOST_OUTCOMES} outcomes",
                got=self.policy,
            )
        return known

    def grow(self, histories: Histories, laws: list[FloatArray], step: int) -> Histories:
        """Extend every history by every action and reward that may follow."""
        played = histories.played[:, None, :] * np.stack(
            laws, axis=2
        )  # (history, arm, believed prior)
        kept: list[tuple[int, enumeration.Outcome, IntArray]] = []
        for arm, outcomes in enumerate(self.outcomes(histories, step)):
            may_play = played[:, arm].max(axis=1) > 0.0
            for outcome in outcomes:
                may_show = ((histories.likelihood > 0.0) & (outcome.chance > 0.0)).any(axis=1)
                kept.append((arm, outcome, np.flatnonzero(may_play & may_show)))
        sizes = [len(rows) for *_, rows in kept]
        if sum(sizes) > self.most:
            raise TooManyHistories(
                "horizon",
                f"must be shorter: there are {sum(sizes)} histories after {step} pulls, more than "
                f"most={self.most}",
                got=self.horizon,
                cure="a larger most=... takes more time and memory",
            )
        row = np.concatenate([rows for *_, rows in kept])
        arm_column = np.repeat([arm for arm, *_ in kept], sizes)
        reward_column = np.concatenate([_at(each.reward, rows) for _, each, rows in kept])
        after = None
        if histories.signal is not None:
            after = np.concatenate([_at(each.after, rows) for _, each, rows in kept])
        likelihood = np.concatenate(
            [
                histories.likelihood[rows]
                * (each.chance if each.chance.ndim == 1 else each.chance[rows])
                for _, each, rows in kept
            ]
        )
        action = played[row, arm_column]
        shares = likelihood.max(axis=1), action.max(axis=1)
        parents = histories._rows(row)
        seen = Seen(step, self.horizon, self.arms, parents.signal)
        earned = parents.earned
        if earned is not None:
            values = self.expected_rewards(parents, step)
            earned = earned + (
                values[:, arm_column].T
                if values.ndim == 2
                else values[np.arange(len(row)), :, arm_column]
            )
            earned = np.where(likelihood > 0.0, earned, 0.0)
        return Histories(
            parents.mass * shares[0] * shares[1],
            likelihood / shares[0][:, None],
            action / shares[1][:, None],
            tuple(
                belief.update(seen, arm_column, reward_column, after) for belief in parents.beliefs
            ),
            _appended(parents.actions, arm_column),
            _appended(parents.rewards, reward_column),
            after,
            _appended(parents.signals, parents.signal),
            earned,
            None
            if parents.hidden is None
            else parents.hidden.update(seen, arm_column, reward_column, after),
        )

    def expected_rewards(self, histories: Histories, step: int) -> FloatArray:
        """Mean reward of each arm now in each possible task, ``(support, arm)``; where tasks have a
        state ``(history, support, arm)``.
        """
        return np.stack(
            [
                sum(np.asarray(each.reward)[..., None] * each.chance for each in shown)
                for shown in self.outcomes(histories, step)
            ],
            axis=-1,
        )


def _at(value: Any, rows: IntArray) -> Any:
    """Entries of some rows of what is one for all, or one for each."""
    return np.full(len(rows), value) if np.ndim(value) == 0 else value[rows]


def _appended(columns: Any, last: Any) -> Any:
    return None if columns is None else np.column_stack([columns, last])


def can_be_enumerated(prior: Any) -> bool:
    """Whether a prior has finitely many tasks, and each of them shows finitely many things."""
    return isinstance(prior, enumeration.EnumerablePrior) and _shows_few(prior)


def _shows_few(prior: enumeration.EnumerablePrior) -> bool:
    return prior.outcomes(prior.first_signals()[0], 1) is not None


def world_of(
    prior: Any, believed: dict[str, Any], policy: Any, horizon: int, most: int
) -> tuple[World, tuple[FloatArray, ...]]:
    """Possible tasks of the prior, and of the second believed prior if there is one, with the task
    weights of both.

    ``believed`` maps the name of an argument to the prior that the policy believes.
    """
    argument_checks.role("policy", policy, "a policy")
    for name, value in (("prior", prior), *believed.items()):
        if not isinstance(value, enumeration.EnumerablePrior):
            what = "must be a prior on finitely many tasks, such as a FinitePrior"
            raise ArgumentTypeError(name, what, got=type(value))
        if not _shows_few(value):
            raise ArgumentError(
                name,
                "must have rewards of finitely many values to be enumerated",
                cure="noise='none' or 'bernoulli', not normal rewards",
            )
        if value.arms != prior.arms:
            raise ArgumentError(name, f"has {value.arms} arms, but the tasks have {prior.arms}")
        if value.reward_law != prior.reward_law:
            raise ArgumentError(
                name,
                f"has another reward law than the tasks, {value.reward_law} and not "
                f"{prior.reward_law}",
            )
    priors = (prior, *list(believed.values())[1:])
    ends = np.cumsum([0, *(len(each.probs) for each in priors)])
    weights = np.zeros((len(priors), ends[-1]))
    for i, each in enumerate(priors):
        weights[i, ends[i] : ends[i + 1]] = each.probs / each.probs.sum()
    possible = weights.any(axis=0)
    pool = prior.pooled(priors[1:], possible)
    horizon, most = validation.count("horizon", horizon), validation.count("most", most)
    world = World(pool, policy, tuple(believed.values()), horizon, most)
    return world, tuple(weights[:, possible])
