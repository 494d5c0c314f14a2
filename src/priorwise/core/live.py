"""Decisions about one task at a time, compiled: what a family offers for use while tasks run.

A tile decides for 64 tasks at one step. Live tasks come one by one, each at its own step and with
its own arms, and all that is known of them are their statistics. So these functions start from the
statistics and give the arm that :class:`~priorwise.policies.thompson.ThompsonSampling` plays under
``prior.belief_given(statistics)`` with the same stream.
"""

from dataclasses import dataclass
from typing import Any, final

from priorwise.core.types import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class LiveDraws:
    """The largest of one posterior draw, from the statistics of a task.

    ``states`` have the columns of the family's statistics one after the other, ``(column * arm,)``;
    ``mask`` is 1 for arms that may be played. Arrays of several tasks have the task axis first.
    """

    p: FloatArray
    n: IntArray
    one: Any  # (p, n, state, key, step, mask) -> arm
    many: Any  # (p, n, states, keys, steps, masks, arms): writes arms
    # (p, n, state, key, step, mask, promised, left, law) -> (arm, error): writes the law, which is
    # promised + left * that of the largest, and draws from it; (-1, -1) where it cannot; or None
    drawn: Any = None
