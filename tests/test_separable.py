"""Taking tasks out of a belief, and joining beliefs; the contracts check every family's draws."""

from __future__ import annotations

import numpy as np
import pytest

import priorwise as pw
from priorwise.core.protocols import Seen, SeparableBelief
from priorwise.meta.learners.hier_thompson import HierarchicalBelief
from priorwise.meta.learners.running_mean import RunningMeanBelief

BETA = pw.BetaPrior([1.0, 2.0], [3.0, 1.0])


def test_take_and_join_by_hand() -> None:
    seen = Seen(1, 3, 2)
    belief = BETA.belief(3).update(seen, np.array([0, 1, 0]), np.array([1.0, 0.0, 0.0]), None)
    np.testing.assert_array_equal(belief.take([2, 0]).a, [[1, 2], [2, 2]])
    np.testing.assert_array_equal(belief.take([2, 0]).b, [[4, 1], [3, 1]])
    np.testing.assert_array_equal(belief.take(np.array([True, False, True])).a, [[2, 2], [1, 2]])
    np.testing.assert_array_equal(belief.take(slice(1, 2)).b, [[3, 2]])
    both = belief.take([1]).join(BETA.belief(1), belief.take([0]))
    np.testing.assert_array_equal(both.a, [[1, 2], [1, 2], [2, 2]])
    assert belief.take([]).tasks == 0


def test_beliefs_that_couple_tasks_have_neither() -> None:
    assert issubclass(type(BETA.belief(1)), SeparableBelief)
    for coupled in (HierarchicalBelief, RunningMeanBelief):
        assert not issubclass(coupled, SeparableBelief)


def test_misuse_is_refused() -> None:
    belief, other = BETA.belief(3), pw.GaussianPrior([0, 0], np.eye(2)).belief(3)
    for index, error in (([3], IndexError), ([-1], IndexError), ([0.5], TypeError)):
        with pytest.raises(error, match="index must"):
            belief.take(index)
    with pytest.raises(TypeError, match="index must be a row of task numbers, or True or False"):
        belief.take([True, False])
    with pytest.raises(TypeError, match="a BetaBelief joins beliefs of its kind"):
        belief.join(other)  # type: ignore[arg-type]
    shifted = pw.GaussianPrior([0, 1], np.eye(2)).belief(1)
    with pytest.raises(ValueError, match="must share their prior"):
        other.join(shifted)
    assert other.join(pw.GaussianPrior([0, 0], np.eye(2)).belief(1)).tasks == 4
