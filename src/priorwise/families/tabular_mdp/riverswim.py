"""RiverSwim: a chain against the current, after Strehl and Littman (2008, Journal of Computer and
System Sciences 74).

Swimming left always succeeds. Swimming right moves up with probability 0.35, stays with 0.6 and
drifts down with 0.05; at the first state it moves up with 0.6 and stays with 0.4, at the last it
stays with 0.6 and drifts down with 0.4. The first state pays 0.005 for going left, the last one 1
for going right. Who does not explore along the whole river settles for the 0.005.
"""

from __future__ import annotations

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior

LEFT, RIGHT = 0, 1


def riverswim_transitions(states: int = 6) -> FloatArray:
    """Probabilities of RiverSwim's moves, ``(state, action, next state)``."""
    last = validation.count("states", states, least=2) - 1
    table = np.zeros((states, 2, states))
    for state in range(states):
        table[state, LEFT, max(state - 1, 0)] = 1.0
    table[0, RIGHT, :2] = 0.4, 0.6
    for state in range(1, last):
        table[state, RIGHT, state - 1 : state + 2] = 0.05, 0.6, 0.35
    table[last, RIGHT, last - 1 :] = 0.4, 0.6
    return table


def riverswim(
    pulls: float = 20.0, *, states: int = 6, round_steps: int | None = 20
) -> DirichletMdpPrior:
    """Rivers around RiverSwim: rows of swimming right are ``Dirichlet(pulls * p)`` with p those of
    RiverSwim.

    Parameters
    ----------
    pulls
        How many moves the prior is worth in each row; the larger, the closer all rivers are to
        RiverSwim. With 1e9 they are RiverSwim to four digits.
    states, round_steps
        Length of the river, and steps of a round, which starts at the first state.

    Examples
    --------
    >>> river = riverswim()
    >>> river.states, river.arms, river.transitions[0, 1].round(2).tolist()
    (6, 2, [8.0, 12.0, 0.0, 0.0, 0.0, 0.0])

    """
    worth = validation.number("pulls", pulls)
    if worth <= 0.0:
        raise ArgumentError("pulls", "must be positive", got=worth)
    rewards = np.zeros((validation.count("states", states, least=2), 2))
    rewards[0, LEFT], rewards[-1, RIGHT] = 0.005, 1.0
    return DirichletMdpPrior(
        worth * riverswim_transitions(states),
        rewards,
        round_steps=round_steps,
        names=("left", "right"),
    )
