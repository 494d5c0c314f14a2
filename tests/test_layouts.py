"""What a prior packs is what its kernels read, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.tiles import Layout
from priorwise.families.beta import tiles as beta
from priorwise.families.finite import tiles as finite
from priorwise.families.gaussian import tiles as normal

NONE: frozenset[str] = frozenset()


class At(Layout):
    ARMS = 0
    MEAN = 1
    PLACES = 2
    SCALE = 3


def part(layout: Any, p: Any, n: Any, name: str, size: int) -> list[float]:
    begin = n[layout[name]]
    return p[begin : begin + size].tolist()


def test_sizes_stand_and_numbers_begin_where_their_names_say() -> None:
    p, n = At.pack(scale=0.5, mean=np.array([[1.0, 2.0]]), places=np.array([7, 8, 9]), arms=2)
    assert n[At.ARMS] == 2
    assert p[n[At.MEAN] : n[At.MEAN] + 2].tolist() == [1.0, 2.0]
    assert n[n[At.PLACES] : n[At.PLACES] + 3].tolist() == [7, 8, 9]
    assert p[n[At.SCALE]] == 0.5
    assert (p.size, n.size) == (3, 7)


@pytest.mark.parametrize("names", [{"arms": 2}, {"arms": 2, "mean": 1.0, "places": 1, "scal": 2.0}])
def test_every_name_is_given_once(names: dict[str, Any]) -> None:
    with raises("At.pack", "takes each name"):
        At.pack(**names)


def test_priors_pack_their_parameters() -> None:
    tiles = pw.GaussianPrior([1.0, 2.0], [[4.0, 0.0], [0.0, 9.0]], [0.25, 1.0]).tiles(3, NONE)
    assert part(normal.At, tiles.p, tiles.n, "MEAN", 2) == [1.0, 2.0]
    assert part(normal.At, tiles.p, tiles.n, "ROOT", 4) == [2.0, 0.0, 0.0, 3.0]
    assert part(normal.At, tiles.p, tiles.n, "NOISE_STD", 2) == [0.5, 1.0]
    assert not tiles.n[normal.At.SAME_NOISE]
    tiles = pw.BetaPrior([1.0, 2.0], [3.0, 4.0]).tiles(3, NONE)
    assert part(beta.At, tiles.p, tiles.n, "BETA", 2) == [3.0, 4.0]
    prior = pw.FinitePrior([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]], [0.5, 0.5])
    for uses in (NONE, frozenset({"look"}), frozenset({"look", "quantile"})):
        tiles = prior.tiles(3, uses)
        assert part(finite.At, tiles.p, tiles.n, "MEANS", 6) == prior.means.ravel().tolist()
        assert tiles.p[tiles.n[finite.At.TOLERANCE]] == prior.tolerance
    assert tiles.n[finite.At.CELLS] == tiles.many_pulls == 5
    order = tiles.n[tiles.n[finite.At.ORDER] :][:6]
    assert order.tolist() == [0, 1, 1, 0, 0, 1]
