"""The one rule for ties, by hand: which arm a uniform number points at, and what counts as
equal.
"""

from __future__ import annotations

import numpy as np
import pytest

from priorwise.core.choosing import pick, ties


def test_the_largest_is_picked_whatever_the_uniform_number() -> None:
    values = np.array([[0.0, 3.0, 2.0], [-1.0, -2.0, -np.inf], [5.0, 4.0, 4.0]])
    for u in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        assert pick(values, np.full(3, u)).tolist() == [1, 0, 0]


def test_arms_that_tie_own_equal_parts_of_the_unit_interval() -> None:
    """Arms 0, 1 and 3 of four: thirds, in the order of the arms, up to the last number below 1."""
    points = np.array([0.0, 0.33, 0.34, 0.66, 0.67, np.nextafter(1.0, 0.0)])
    values = np.tile([1.0, 1.0, 0.5, 1.0], (len(points), 1))
    assert pick(values, points).tolist() == [0, 0, 1, 1, 3, 3]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_equal_means_up_to_rounding(scale: float) -> None:
    """Sums in another order differ by a few parts in 10^16 and tie; one part in 10^9 is a
    difference, at every scale.
    """
    rounded = scale * np.array([[1.0, 1.0 + 4e-16, 1.0 - 4e-16, 1.0 - 1e-9]])
    assert ties(rounded).tolist() == [[True, True, True, False]]
    assert ties(-rounded).tolist() == [[False, False, False, True]]
