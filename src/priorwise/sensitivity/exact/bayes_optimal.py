"""The Bayes-optimal value and policy of small problems, by dynamic programming over beliefs.

With m pulls left and belief b,

    Q_m(b, a) = E[r | b, a] + E[V_{m-1}(b after r)],    V_m(b) = max_a Q_m(b, a),    V_0 = 0.

No policy earns more in expectation over the tasks of its prior. Beliefs that are reached along
several histories are one state: the set of tasks that are left when rewards are noiseless, the
counts of successes and failures when they are 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.action_laws import ActionLaw, tied_law
from priorwise.core.choosing import level, pick
from priorwise.core.enumeration import PlannableBelief, by_mask, row_groups
from priorwise.core.protocols import MeanBelief, Prior, Seen, SeparableBelief, offers
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.shared import mean_sizes

MOST_STATES: Final = 2_000_000
"""Beliefs that a plan visits at most, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class BayesOptimal:
    """The most that any policy can earn in expectation, and what the first pull is worth."""

    value: float
    first_values: FloatArray  # (arm,): Q of each arm at the first pull, with optimal pulls after it
    states: int  # beliefs visited

    @property
    def first_arms(self) -> IntArray:
        """Arms that an optimal policy may pull first."""
        return np.flatnonzero(tied_law(self.first_values[None])[0])

    def __str__(self) -> str:
        """Value and size."""
        return f"{self.value:.6g} (exact, {self.states} beliefs)"


def bayes_optimal(prior: Prior, horizon: int, *, most: int = MOST_STATES) -> BayesOptimal:
    """Largest expected reward of ``horizon`` pulls on tasks of a prior.

    Parameters
    ----------
    prior
        A prior whose beliefs are a :class:`~priorwise.core.enumeration.PlannableBelief`: a
        :class:`FinitePrior` with noiseless or Bernoulli rewards, or a :class:`BetaPrior` with few
        arms.
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
    doors.prior("prior", prior)
    belief = _checked(prior.belief(1), "prior")
    values, states = _plan(belief, horizon, np.arange(prior.arms), validation.count("most", most))
    return BayesOptimal(float(values.max()), values[0], states)


@final
@dataclass(frozen=True)
class BayesOptimalPolicy:
    """Play optimally to the end of the horizon, by planning anew at each pull.

    For small problems: a :class:`FinitePrior` with noiseless or Bernoulli rewards, or a
    :class:`BetaPrior`, with few arms and a short horizon. It reads the posterior exactly, so no
    Monte-Carlo constant is claimed.

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
        doors.acting(self, belief, seen, rng)
        return pick(self.values(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior itself, not a number of draws, decides."""
        validation.count("arms", arms)

    @by_step
    def values(self, belief: Any, seen: Seen) -> FloatArray:
        """``Q(belief, a)`` for the pulls that are left, ``(task, arm)``; -inf for arms that are not
        available.
        """
        roots = _checked(belief, "belief")
        out = np.full((roots.tasks, seen.arms), -np.inf)
        for mask, tasks in by_mask(seen, len(out)):
            here = roots.take(tasks)
            first, group = row_groups(here.key())
            arms = np.arange(seen.arms) if mask is None else np.flatnonzero(mask)
            values, _ = _plan(here.take(first), seen.horizon - seen.step + 1, arms, self.most)
            out[np.ix_(tasks, arms)] = values[group]
        return out

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw:
        """Uniform on the optimal arms."""
        return ActionLaw(tied_law(self.values(belief, seen)))


def _plan(roots: Any, pulls: int, arms: IntArray, most: int) -> tuple[FloatArray, int]:
    """Q of each arm for each root, ``(root, arm)``, and the number of beliefs visited: layers
    forward, values backward.
    """
    tree, ids = _Tree(roots, arms), np.arange(roots.tasks)
    layers, states = [ids], len(ids)
    for _ in range(pulls - 1):
        tree.grow()
        ids = tree.after(ids)
        if len(ids) > (room := most - states):
            raise ValueError(
                f"horizon must be shorter: the plan needs {len(ids)} beliefs more where most= "
                f"leaves room for {max(room, 0)}; use fewer pulls or arms, or pass a larger "
                "most=..."
            )
        states += len(ids)
        layers.append(ids)
    seen = _unseen(tree.belief)
    means, mean_size = (
        np.ascontiguousarray(np.broadcast_to(each, (len(tree.key), seen.arms))[:, arms])
        for each in (tree.belief.mean(seen), mean_sizes(tree.belief, seen))
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
    pull it is reached.
    """

    def __init__(self, roots: Any, arms: IntArray) -> None:
        """Start with the roots, which are distinct."""
        self.belief, self.key, self.arms = roots, roots.key(), arms
        # column of the arm, probability and next belief of each one before it
        self.branches: list[tuple[int, FloatArray, IntArray]] = []
        self._fresh = roots

    def grow(self) -> None:
        """Find what follows the beliefs that were found last."""
        known, fresh = len(self.key), self._fresh
        if not fresh.tasks:
            return
        unseen = _unseen(fresh)
        children: list[tuple[int, FloatArray, IntArray, Any]] = []
        outcomes = fresh.outcomes()
        for column, arm in enumerate(self.arms.tolist()):
            shown = outcomes[arm]
            # a reward that is certain teaches nothing
            teaches = sum(probability > 0.0 for _, probability in shown) > 1
            for reward, probability in shown:
                rows = np.flatnonzero(teaches & (probability > 0.0))
                after = fresh.take(rows).update(
                    unseen, np.full(len(rows), arm), np.full(len(rows), reward), None
                )
                children.append((column, probability, rows, after))
        keys = [after.key() for *_, after in children]
        first, group = row_groups(np.concatenate([self.key, *keys]))
        # the first of a group is the belief that was known before, if there is one
        new = first >= known
        place = np.where(new, known - 1 + np.cumsum(new), first)[group[known:]]
        start = 0
        for number, (column, probability, rows, _) in enumerate(children):
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
        every = children[0][3].join(*(after for *_, after in children[1:]))
        self._fresh = every.take(first[new] - known)
        self.belief = self.belief.join(self._fresh)
        self.key = np.concatenate([self.key, self._fresh.key()])

    def after(self, ids: IntArray) -> IntArray:
        """Beliefs one pull after some of them."""
        reached = np.zeros(len(self.key), dtype=bool)
        for _, probability, child in self.branches:
            reached[child[ids][probability[ids] > 0.0]] = True
        return np.flatnonzero(reached)


def _unseen(belief: Any) -> Seen:
    """Beliefs about means look at nothing that is shown."""
    return Seen(step=1, horizon=1, arms=belief.arms)


def _checked(belief: Any, name: str) -> Any:
    if not (offers(belief, PlannableBelief) and offers(belief, SeparableBelief)):
        raise TypeError(
            f"{name} must be one whose rewards have finitely many values for an exact plan, such "
            f"as that of a FinitePrior or a BetaPrior, got a {type(belief).__name__}"
        )
    if belief.take([]).outcomes() is None:
        raise ValueError(
            f"{name} must have noise='none' or 'bernoulli' for an exact plan: normal rewards have "
            "too many values"
        )
    return belief
