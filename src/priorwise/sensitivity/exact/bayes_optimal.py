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
from priorwise.core.choosing import level, pick
from priorwise.core.protocols import MeanBelief, Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.prior import BetaBelief, BetaPrior
from priorwise.families.finite.prior import FiniteBelief, FinitePrior
from priorwise.policies.shared import mean_sizes
from priorwise.sensitivity.exact.enumeration import (
    by_mask,
    reward_likelihoods,
    rounded_logs,
    row_groups,
    tied_law,
)

MOST_STATES: Final = 2_000_000
"""Beliefs that a plan visits at most, unless told otherwise."""

SmallBelief = FiniteBelief | BetaBelief


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


def bayes_optimal(
    prior: FinitePrior | BetaPrior, horizon: int, *, most: int = MOST_STATES
) -> BayesOptimal:
    """Largest expected reward of ``horizon`` pulls on tasks of a prior.

    Parameters
    ----------
    prior
        A :class:`FinitePrior` with noiseless or Bernoulli rewards, or a :class:`BetaPrior` with few
        arms.
    horizon
        Pulls in a task. With 0/1 rewards there are C(h + 2A - 1, 2A - 1) beliefs after h pulls of A
        arms.
    most
        Beliefs to visit at most.

    Examples
    --------
    >>> bayes_optimal(BetaPrior(alpha=[1, 1], beta=[1, 1]), horizon=2).value.__round__(4)
    1.0833

    """
    horizon = validation.count("horizon", horizon)
    doors.prior("prior", prior)
    if not isinstance(prior, (FinitePrior, BetaPrior)):
        raise TypeError(
            "prior must be a FinitePrior or a BetaPrior for an exact plan, got "
            f"{type(prior).__name__}"
        )
    belief = _checked(prior.belief(1))
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

    def values(self, belief: Any, seen: Seen) -> FloatArray:
        """``Q(belief, a)`` for the pulls that are left, ``(task, arm)``; -inf for arms that are not
        available.
        """
        roots = _checked(belief)
        out = np.full((len(_key(roots)), seen.arms), -np.inf)
        for mask, tasks in by_mask(seen, len(out)):
            here = _rows(roots, tasks)
            first, group = row_groups(_key(here))
            arms = np.arange(seen.arms) if mask is None else np.flatnonzero(mask)
            values, _ = _plan(_rows(here, first), seen.horizon - seen.step + 1, arms, self.most)
            out[np.ix_(tasks, arms)] = values[group]
        return out

    def action_law(self, belief: Any, seen: Seen) -> FloatArray:
        """Uniform on the optimal arms, ``(task, arm)``."""
        return tied_law(self.values(belief, seen))


def _plan(roots: SmallBelief, pulls: int, arms: IntArray, most: int) -> tuple[FloatArray, int]:
    """Q of each arm for each root, ``(root, arm)``, and the number of beliefs visited: layers
    forward, values backward.
    """
    # means, sizes; column, chance, child
    layers: list[tuple[FloatArray, FloatArray, list[tuple[int, FloatArray, IntArray]]]] = []
    belief, states = roots, 0
    for left in range(pulls, 0, -1):
        seen = _unseen(belief)
        means, sizes = belief.mean(seen)[:, arms], mean_sizes(belief, seen)[:, arms]
        states += len(means)
        branches: list[tuple[int, FloatArray, IntArray]] = []
        if left > 1:
            belief, branches = _layer(belief, arms, most - states)
        layers.append((means, sizes, branches))
    value, value_size = np.zeros(0), np.zeros(0)
    for values, sizes, branches in reversed(layers):
        for column, probability, child in branches:
            values[:, column] += probability * np.where(probability > 0.0, value[child], 0.0)
            sizes[:, column] += probability * np.where(probability > 0.0, value_size[child], 0.0)
        best = values.argmax(axis=1)[:, None]
        value, value_size = (
            np.take_along_axis(each, best, axis=1)[:, 0] for each in (values, sizes)
        )
    return level(values, sizes), states


def _layer(
    belief: SmallBelief, arms: IntArray, room: int
) -> tuple[SmallBelief, list[tuple[int, FloatArray, IntArray]]]:
    """Beliefs one pull later, and how they are reached: column of the arm, probability
    ``(state,)``, next state ``(state,)``.
    """
    children: list[tuple[int, FloatArray, IntArray, SmallBelief]] = []
    unseen = _unseen(belief)
    for column, arm in enumerate(arms.tolist()):
        for reward, probability in _shown(belief, arm):
            rows = np.flatnonzero(probability > 0.0)
            after = _rows(belief, rows).update(
                unseen, np.full(len(rows), arm), np.full(len(rows), reward), None
            )
            children.append((column, probability, rows, after))
    first, group = row_groups(np.concatenate([_key(after) for *_, after in children]))
    if len(first) > room:
        raise ValueError(
            f"horizon must be shorter: the plan needs {len(first)} beliefs more where most= leaves "
            f"room for {max(room, 0)}; "
            "use fewer pulls or arms, or pass a larger most=..."
        )
    branches, start = [], 0
    for column, probability, rows, _ in children:
        child = np.zeros(len(probability), dtype=np.int64)
        child[rows] = group[start : start + len(rows)]
        start += len(rows)
        branches.append((column, probability, child))
    return _rows(_stacked([after for *_, after in children]), first), branches


def _shown(belief: SmallBelief, arm: int) -> list[tuple[float, FloatArray]]:
    """Rewards an arm may show next, with their probabilities ``(state,)``."""
    if isinstance(belief, BetaBelief):
        total = belief.a[:, arm] + belief.b[:, arm]
        return [(1.0, belief.a[:, arm] / total), (0.0, belief.b[:, arm] / total)]
    weights = belief.probabilities()
    return [
        (reward, np.einsum("is,s->i", weights, likelihood))
        for reward, likelihood in reward_likelihoods(belief.prior, arm)
    ]


def _unseen(belief: SmallBelief) -> Seen:
    """Beliefs about means look at nothing that is shown."""
    return Seen(step=1, horizon=1, arms=belief.arms)


def _key(belief: SmallBelief) -> IntArray:
    """Integers that are equal for equal beliefs, ``(state, entry)``."""
    if isinstance(belief, BetaBelief):
        # alpha + 1 + ... + 1: the same bits in any order
        return np.concatenate([belief.a, belief.b], axis=1).view(np.int64)
    return rounded_logs(belief.log_weights)


def _rows(belief: SmallBelief, rows: IntArray) -> SmallBelief:
    if isinstance(belief, BetaBelief):
        return BetaBelief(belief.a[rows], belief.b[rows])
    return FiniteBelief(belief.prior, belief.log_weights[rows], belief.resets[rows])


def _stacked(beliefs: list[SmallBelief]) -> SmallBelief:
    if isinstance(beliefs[0], BetaBelief):
        pairs = [(each.a, each.b) for each in beliefs if isinstance(each, BetaBelief)]
        return BetaBelief(
            np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])
        )
    finite = [each for each in beliefs if isinstance(each, FiniteBelief)]
    return FiniteBelief(
        beliefs[0].prior,
        np.concatenate([each.log_weights for each in finite]),
        np.concatenate([each.resets for each in finite]),
    )


def _checked(belief: Any) -> SmallBelief:
    if isinstance(belief, FiniteBelief) and belief.prior.noise == "gaussian":
        raise ValueError(
            "prior must have noise='none' or 'bernoulli' for an exact plan: normal rewards have "
            "too many values"
        )
    if not isinstance(belief, (FiniteBelief, BetaBelief)):
        raise TypeError(
            "belief must be that of a FinitePrior or a BetaPrior for an exact plan, got a "
            f"{type(belief).__name__}"
        )
    return belief
