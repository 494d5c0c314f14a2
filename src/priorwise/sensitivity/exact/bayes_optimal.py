"""The Bayes-optimal value and policy of small problems, by dynamic programming over beliefs.

With m pulls left and belief b,

    Q_m(b, a) = E[r | b, a] + E[V_{m-1}(b after r)],    V_m(b) = max_a Q_m(b, a),    V_0 = 0.

No policy earns more in expectation over the tasks of its prior. Beliefs that are reached along
several histories are one: the set of tasks that are left when rewards are noiseless, the counts of
successes and failures when they are 0 or 1. In a problem with a state, b is the belief with the
state and the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.choosing import level, pick
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.protocols import MeanBelief, Prior, SeparableBelief, offers
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.shared import mean_sizes
from priorwise.theory.action_laws import ActionLaw, tied_law
from priorwise.theory.enumeration import (
    HiddenStateBelief,
    PlannableBelief,
    StartingPrior,
    by_sight,
    row_groups,
)

MOST_STATES: Final = 2_000_000
"""Beliefs that a plan visits at most, by default."""


@dataclass(frozen=True, eq=False)
class BayesOptimal:
    """The most that any policy can earn in expectation, and what the first pull is worth."""

    value: float
    # (arm,): Q of each arm at the first pull, with optimal pulls after it; (start, arm) where tasks
    # may start in several states
    first_values: FloatArray
    states: int  # beliefs visited

    @property
    def first_arms(self) -> IntArray:
        """Arms that an optimal policy may pull first, in some first state."""
        return np.flatnonzero(tied_law(np.atleast_2d(self.first_values)).any(axis=0))

    def __str__(self) -> str:
        """Value and size."""
        return f"{self.value:.6g} (exact, {self.states} beliefs)"


def bayes_optimal(prior: Prior, horizon: int, *, most: int = MOST_STATES) -> BayesOptimal:
    """Largest expected reward of ``horizon`` pulls on tasks of a prior.

    Parameters
    ----------
    prior
        A prior whose beliefs are a :class:`~priorwise.theory.enumeration.PlannableBelief`: a
        :class:`FinitePrior`, a :class:`FiniteMdpPrior` or a :class:`FinitePomdpPrior` with
        noiseless or Bernoulli rewards, or a :class:`BetaPrior` with few arms.
    horizon
        Pulls in a task. With 0/1 rewards there are C(h + 2A - 1, 2A - 1) beliefs after h pulls of A
        arms.
    most
        Beliefs to visit at most.

    Examples
    --------
    >>> import priorwise as pw
    >>> bayes_optimal(pw.BetaPrior(alpha=[1, 1], beta=[1, 1]), horizon=2).value.__round__(4)
    1.0833

    """
    horizon = validation.count("horizon", horizon)
    argument_checks.prior("prior", prior)
    signal: Any = None
    chances = np.ones(1)
    if isinstance(prior, StartingPrior):
        signal, chances = prior.first_signals()
    seen = Seen(1, horizon, prior.arms, signal)
    belief = _checked(prior.belief(len(chances)), seen, "prior")
    most = validation.count("most", most)
    values, states = _plan(belief, seen, np.arange(prior.arms), most)
    value = float(chances @ values.max(axis=1))
    return BayesOptimal(value, values[0] if len(values) == 1 else values, states)


@final
@dataclass(frozen=True)
class BayesOptimalPolicy:
    """Play optimally to the end of the horizon, by planning anew at each pull.

    For small problems: a :class:`FinitePrior`, a :class:`FiniteMdpPrior` or a
    :class:`FinitePomdpPrior` with noiseless or Bernoulli rewards, or a :class:`BetaPrior`, with few
    arms and a short horizon. It reads the posterior exactly, so no Monte-Carlo constant is claimed.

    Parameters
    ----------
    most
        Beliefs that the plan of one pull may visit.

    """

    needs: ClassVar[tuple[type, ...]] = (MeanBelief,)

    most: int = MOST_STATES

    def __post_init__(self) -> None:
        """Check the parameter."""
        validation.count("most", self.most)

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a Q(belief, a)``."""
        argument_checks.acting(self, belief, seen, rng)
        return pick(self.values(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior itself, not a number of draws, decides."""
        validation.count("arms", arms)

    @by_step
    def values(self, belief: Any, seen: Seen) -> FloatArray:
        """``Q(belief, a)`` for the pulls that are left, ``(task, arm)``; -inf for arms that are not
        available.
        """
        roots = _checked(belief, seen, "belief")
        out = np.full((roots.tasks, seen.arms), -np.inf)
        for sight, tasks in by_sight(seen, len(out)):
            here = roots.take(tasks)
            first, group = row_groups(here.key())
            arms = np.arange(seen.arms) if sight.mask is None else np.flatnonzero(sight.mask[0])
            shown = None if sight.signal is None else np.repeat(sight.signal, len(first))
            plan = replace(sight, signal=shown, mask=None)
            out[np.ix_(tasks, arms)] = _plan(here.take(first), plan, arms, self.most)[0][group]
        return out

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw:
        """Uniform on the optimal arms."""
        return ActionLaw(tied_law(self.values(belief, seen)))


def _plan(roots: Any, seen: Seen, arms: IntArray, most: int) -> tuple[FloatArray, int]:
    """Q of each arm for each root, ``(root, arm)``, and the number of beliefs visited: layers
    forward, values backward.
    """
    tree, ids = _Tree(roots, seen, arms), np.arange(roots.tasks)
    layers, states = [ids], len(ids)
    for depth in range(seen.horizon - seen.step):
        tree.grow()
        ids = tree.after(ids)
        # without a state, no layer is smaller than the one before
        layers_left = 1 if seen.signal is not None else seen.horizon - seen.step - depth
        if (least := states + len(ids) * layers_left) > most:
            raise ArgumentError(
                "horizon",
                "must be shorter",
                cure=(
                    f"the plan needs at least {least:,} beliefs, but most={most:,}. Use "
                    "fewer pulls or arms, or pass a larger most=..."
                ),
            )
        states += len(ids)
        layers.append(ids)
    last = Seen(1, 1, seen.arms, tree.signal)  # with one pull left an action is worth its reward
    means, mean_size = (
        np.ascontiguousarray(np.broadcast_to(each, (len(tree.key), seen.arms))[:, arms])
        for each in (tree.belief.mean(last), mean_sizes(tree.belief, last))
    )
    value, value_size = np.zeros(len(means)), np.zeros(len(means))
    for depth, ids in enumerate(reversed(layers)):
        values, sizes = means[ids], mean_size[ids]
        for column, probability, child in tree.branches if depth else ():
            chance, after = probability[ids], child[ids]
            values[:, column] += chance * value[after]
            sizes[:, column] += chance * value_size[after]
        best = values.argmax(axis=1)[:, None]
        for here, each in ((value, values), (value_size, sizes)):
            here[ids] = np.take_along_axis(each, best, axis=1)[:, 0]
    return level(values, sizes), states


class _Tree:
    """Distinct beliefs, and how each leads to others: worked out once for a belief, at whichever
    pull it is reached; with a state, once for a belief, a state and a step.
    """

    def __init__(self, roots: Any, seen: Seen, arms: IntArray) -> None:
        """Start with the roots, which are distinct."""
        self.belief, self.signal, self.arms = roots, seen.signal, arms
        # column of the arm, probability and next belief of each one before it
        self.branches: list[tuple[int, FloatArray, IntArray]] = []
        self._fresh, self._seen = roots, seen  # those that were found last, and what they see
        self.key = self._keys(roots, seen)

    @staticmethod
    def _keys(belief: Any, seen: Seen) -> IntArray:
        if seen.signal is None:
            return np.asarray(belief.key())
        if offers(belief, HiddenStateBelief):  # what was shown is in the belief
            return np.column_stack([belief.key(), np.full(belief.tasks, seen.step)])
        return np.column_stack([belief.key(), seen.signal, np.full(belief.tasks, seen.step)])

    def grow(self) -> None:
        """Find what follows the beliefs that were found last."""
        known, fresh, seen = len(self.key), self._fresh, self._seen
        if not fresh.tasks:
            return
        children: list[tuple[int, FloatArray, IntArray, Any, Any]] = []
        outcomes = fresh.outcomes(seen)
        for column, arm in enumerate(self.arms.tolist()):
            shown = outcomes[arm]
            # a reward that is certain teaches nothing; but a state may move
            teaches = sum(each.chance > 0.0 for each in shown) > 1
            for reward, after, probability in shown:
                rows = np.flatnonzero((teaches if after is None else True) & (probability > 0.0))
                moved = None if after is None else np.broadcast_to(after, len(probability))[rows]
                learned = fresh.take(rows).update(
                    seen.take(rows),
                    np.full(len(rows), arm),
                    np.broadcast_to(reward, len(probability))[rows],
                    moved,
                )
                children.append((column, probability, rows, learned, moved))
        later = seen if seen.signal is None else replace(seen, step=seen.step + 1, signal=None)
        keys = [
            self._keys(learned, replace(later, signal=moved)) for *_, learned, moved in children
        ]
        first, group = row_groups(np.concatenate([self.key, *keys]))
        # the first of a group is the belief that was known before, if there is one
        new = first >= known
        place = np.where(new, known - 1 + np.cumsum(new), first)[group[known:]]
        start = 0
        for number, (column, probability, rows, *_) in enumerate(children):
            child = np.arange(known - len(probability), known)
            child[rows] = place[start : start + len(rows)]
            start += len(rows)
            if number < len(self.branches):
                _, chances, places = self.branches[number]
                self.branches[number] = (
                    column,
                    np.concatenate([chances, probability]),
                    np.concatenate([places, child]),
                )
            else:
                self.branches.append((column, probability, child))
        every = children[0][3].join(*(learned for *_, learned, _ in children[1:]))
        chosen = first[new] - known
        self._fresh = every.take(chosen)
        if seen.signal is not None:
            moved = np.concatenate([moved for *_, moved in children])[chosen]
            self._seen = replace(later, signal=moved)
            self.signal = np.concatenate([self.signal, moved])
        self.belief = self.belief.join(self._fresh)
        self.key = np.concatenate([self.key, self._keys(self._fresh, self._seen)])

    def after(self, ids: IntArray) -> IntArray:
        """Beliefs one pull after some of them."""
        reached = np.zeros(len(self.key), dtype=bool)
        for _, probability, child in self.branches:
            reached[child[ids][probability[ids] > 0.0]] = True
        return np.flatnonzero(reached)


def _checked(belief: Any, seen: Seen, name: str) -> Any:
    if not (offers(belief, PlannableBelief) and offers(belief, SeparableBelief)):
        raise ArgumentTypeError(
            name,
            "must be one whose rewards have finitely many values for an exact plan, such as "
            "that of a FinitePrior or a BetaPrior",
            got=type(belief),
        )
    if belief.take([]).outcomes(seen.take([])) is None:
        raise ArgumentError(
            name,
            "must have noise='none' or 'bernoulli' for an exact plan",
            cure="normal rewards have too many values",
        )
    return belief
