"""Two problems with a hidden state: a tiger behind a door, and a corridor with an unknown map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.types import FloatArray
from priorwise.families.finite_pomdp.planner import Planner
from priorwise.families.finite_pomdp.prior import FinitePomdpPrior

LISTEN, LEFT_DOOR, RIGHT_DOOR = 0, 1, 2
LEFT, RIGHT, ENTER = 0, 1, 2


def tiger(
    accuracy: ArrayLike = (0.6, 0.75, 0.9),
    probs: ArrayLike | None = None,
    *,
    treasure: float = 10.0,
    tiger: float = -100.0,
    listening: float = -1.0,
    round_steps: int | None = None,
    planner: Planner = "auto",
) -> FinitePomdpPrior:
    """The tiger problem with unknown accuracy, after Kaelbling, Littman and Cassandra (1998,
    Artificial Intelligence 101).

    A tiger is behind the left or the right door, a treasure behind the other. Listening reports the
    tiger's side with a probability that is the same at every step and is not known. Opening a door
    ends the game, and the next tiger is put behind one of the doors at random.

    Parameters
    ----------
    accuracy
        Possible probabilities to hear the tiger on its side, one for each candidate.
    probs
        Their probabilities; None: equally likely.
    treasure, tiger, listening
        What the good door, the tiger's door and listening earn.
    round_steps, planner
        As for :class:`FinitePomdpPrior`.

    Examples
    --------
    >>> prior = tiger([0.7, 0.85], [0.5, 0.5])
    >>> prior.names
    ('listen', 'open left', 'open right')

    """
    ears = np.atleast_1d(validation.numbers("accuracy", accuracy))
    ears = validation.vector("accuracy", ears)
    if ears.min() < 0.0 or ears.max() > 1.0:
        raise ArgumentError("accuracy", "must lie in [0, 1]", got=(ears.min(), ears.max()))
    moves = np.full((2, 3, 2), 0.5)
    moves[:, LISTEN] = np.eye(2)
    heard = np.full((len(ears), 2, 3, 2), 0.5)
    heard[:, :, LISTEN] = np.where(
        np.eye(2, dtype=bool), ears[:, None, None], 1 - ears[:, None, None]
    )
    good, bad, cost = (
        validation.number(name, value)
        for name, value in (("treasure", treasure), ("tiger", tiger), ("listening", listening))
    )
    return FinitePomdpPrior(
        moves,
        heard,
        [[cost, bad, good], [cost, good, bad]],
        _weights(probs, len(ears)),
        round_steps=round_steps,
        planner=planner,
        names=("listen", "open left", "open right"),
        observation_names=("hear left", "hear right"),
    )


def corridor(
    maps: Sequence[str] = ("|..G", "G..|", ".|G."),
    probs: ArrayLike | None = None,
    *,
    accuracy: float = 0.9,
    stride: float = 0.9,
    walking: float = -0.05,
    mistake: float = -1.0,
    round_steps: int | None = None,
    planner: Planner = "auto",
) -> FinitePomdpPrior:
    """A corridor whose map is unknown.

    One is put into any cell of it and sees only whether there is a door, not always rightly.
    Entering earns 1 at the right door and ``mistake`` elsewhere; then one is put into any cell
    again.

    Parameters
    ----------
    maps
        Possible maps, all of one length: ``.`` is a wall, ``|`` a door, ``G`` the right door, which
        looks like any other.
    probs
        Their probabilities; None: equally likely.
    accuracy
        Probability to see rightly whether there is a door.
    stride
        Probability that a move to the left or right succeeds; at the ends one stays.
    walking, mistake
        What a move earns, and entering anywhere but at the right door.
    round_steps, planner
        As for :class:`FinitePomdpPrior`.

    Examples
    --------
    >>> prior = corridor(["|.G", "G.|"])
    >>> prior.states, prior.names, prior.observation_names
    (3, ('left', 'right', 'enter'), ('wall', 'door'))

    """
    cells = _cells(maps)
    right, sight = (
        validation.share(name, value)
        for name, value in (("stride", stride), ("accuracy", accuracy))
    )
    size = len(cells[0])
    moves = np.zeros((size, 3, size))
    moves[:, ENTER] = 1.0 / size
    for cell in range(size):
        for action, then in ((LEFT, max(cell - 1, 0)), (RIGHT, min(cell + 1, size - 1))):
            moves[cell, action, cell] += 1.0 - right
            moves[cell, action, then] += right
    doors = np.array([[cell != "." for cell in row] for row in cells])
    seen = np.where(doors, sight, 1.0 - sight)
    observed = np.repeat(np.stack([1.0 - seen, seen], axis=2)[:, :, None], 3, axis=2)
    rewards = np.full((len(cells), size, 3), validation.number("walking", walking))
    there = np.array([[cell == "G" for cell in row] for row in cells])
    rewards[:, :, ENTER] = np.where(there, 1.0, validation.number("mistake", mistake))
    return FinitePomdpPrior(
        moves,
        observed,
        rewards,
        _weights(probs, len(cells)),
        round_steps=round_steps,
        planner=planner,
        names=("left", "right", "enter"),
        observation_names=("wall", "door"),
    )


def _weights(probs: ArrayLike | None, count: int) -> FloatArray:
    if probs is None:
        return np.full(count, 1.0 / count)
    return validation.probabilities("probs", probs, count)


def _cells(maps: Sequence[str]) -> list[str]:
    if isinstance(maps, str) or not isinstance(maps, Sequence) or not len(maps):
        raise ArgumentTypeError("maps", "must be a list of maps such as ['|..G', 'G..|']", got=maps)
    rows = [validation.word("a map in maps", each) for each in maps]
    for row in rows:
        if len(row) != len(rows[0]):
            raise ArgumentError("maps", "must have one length", got=(rows[0], row))
        if set(row) - set(".|G"):
            raise ArgumentError("maps", "must be made of '.', '|' and 'G'", got=row)
    return rows
