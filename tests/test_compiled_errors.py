"""Compiled code that cannot go on says so: an allocation that fails is an exception, and no loop
waits for what never comes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest

import priorwise as pw
from priorwise.core.streams import streams
from priorwise.families.beta.tiles import one_beta
from priorwise.kernels.loop import run_beliefs, run_compiled
from priorwise.testing import base_seed

HUGE = 10**15
GAUSSIAN = pw.GaussianPrior([0.0, 1.0], np.eye(2))
FINITE = pw.FinitePrior([[0.2, 0.8], [0.8, 0.2]], [0.5, 0.5], noise="bernoulli")
BLOCK: dict[str, Any] = {"seed": base_seed(), "first": 0, "tasks": 64, "horizon": 2}


def enlarged(role: Any, place: int) -> Any:
    """Return tiles with one size far beyond any memory."""
    sizes = role.n.copy()
    sizes[place] = HUGE
    return replace(role, n=sizes)


@pytest.mark.parametrize(("prior", "place"), [(GAUSSIAN, 1), (FINITE, 1)])
def test_a_tile_function_without_room_is_an_exception(
    prior: Any, place: int, capfd: pytest.CaptureFixture[str]
) -> None:
    family = prior.tiles(2, frozenset())
    rule = pw.ThompsonSampling().tiles(family, 2, False)
    assert rule is not None
    with pytest.raises(MemoryError, match=r"no room for its arrays: arms=2, horizon=2"):
        run_compiled(enlarged(family, place), [family], rule, **BLOCK)
    with pytest.raises(MemoryError, match="no room"):
        run_beliefs(enlarged(family, place), [family, family], rule, begins=[0, 0], **BLOCK)
    # nothing is broken by it
    again = run_compiled(family, [family], rule, **BLOCK)
    assert np.isfinite(again.totals).all()
    assert capfd.readouterr() == ("", "")  # Numba's callbacks print what they ignore


@pytest.mark.slow
def test_it_passes_through_the_policy_that_called(capfd: pytest.CaptureFixture[str]) -> None:
    family = FINITE.tiles(2, frozenset({"look"}))
    rule = pw.KnowledgeGradient(3, 1021).tiles(family, 2, False)
    assert rule is not None
    places = np.flatnonzero(rule.n == 1021)
    assert places.size == 1  # the look-ahead draws, for which ``look`` keeps keys
    with pytest.raises(MemoryError, match="no room"):
        run_compiled(family, [family], enlarged(rule, int(places[0])), **BLOCK)
    assert capfd.readouterr() == ("", "")


def test_the_loop_without_room_is_an_exception_too() -> None:
    family = GAUSSIAN.tiles(2, frozenset())
    rule = pw.ThompsonSampling().tiles(family, 2, False)
    assert rule is not None
    with pytest.raises(MemoryError, match="no room"):
        run_compiled(family, [replace(family, scratch_rows=HUGE)], rule, **BLOCK)


BAD = (float("nan"), 0.0, -0.0, -1.0, -1e-3, float("inf"), float("-inf"))


def test_no_beta_draw_waits_for_ever() -> None:
    draw = numba.njit(one_beta.py_func)  # Python must not call the helper itself
    for bad in BAD:
        for a, b in ((bad, 2.0), (2.0, bad), (bad, bad), (0.5, bad), (bad, 0.5)):
            assert np.isnan(draw(np.uint64(base_seed()), a, b))
            with pytest.raises(ValueError, match=r"(alpha|beta) must be positive and finite"):
                streams(base_seed(), 1)(1).beta(np.array([[a]]), np.array([[b]]))
    for a, b in ((1e-6, 1e-6), (1e12, 1e12), (1e300, 1.0), (1e-300, 1.0)):
        assert 0.0 <= draw(np.uint64(base_seed()), a, b) <= 1.0


def test_a_belief_of_nonsense_ends() -> None:
    family = pw.BetaPrior([2.0, 3.0], [4.0, 5.0]).tiles(3, frozenset())
    rule = pw.ThompsonSampling().tiles(family, 3, False)
    assert rule is not None
    nonsense = replace(family, p=np.array([np.nan, 0.0, -1.0, np.inf]))
    run_compiled(family, [nonsense], rule, **{**BLOCK, "horizon": 3})
