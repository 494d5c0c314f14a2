"""``reproduce general``: every case's claims, its figure, and that a wrong bound is caught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from priorwise.experiments.experiment import Block
from priorwise.experiments.general.experiment import CASES, EXPERIMENT, earned_by
from priorwise.testing import base_seed

REPLICATES = 10


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    blocks = EXPERIMENT.blocks(REPLICATES)
    return EXPERIMENT.tables([(block, EXPERIMENT.run(block, base_seed())) for block in blocks])


@pytest.mark.slow
def test_claims_hold(tables: dict[str, Any]) -> None:
    claims = EXPERIMENT.claims(tables)
    assert len(claims) == 3 * len(CASES)
    assert not [f"{each.statement}: {each.measured}" for each in claims if not each.holds]


@pytest.mark.slow
def test_a_bound_below_the_gap_is_caught(tables: dict[str, Any]) -> None:
    small = {**tables, "bounds": {**tables["bounds"], "bound": 1e-3 * tables["bounds"]["bound"]}}
    failed = [each.statement for each in EXPERIMENT.claims(small) if not each.holds]
    assert len(failed) == len(CASES)
    assert all("no more than the bound" in each for each in failed)


@pytest.mark.slow
def test_figures_show_what_the_tables_hold(tables: dict[str, Any], drawn: list[Figure]) -> None:
    assert list(EXPERIMENT.figures(tables)) == list(CASES)
    for figure, (name, case) in zip(drawn, CASES.items(), strict=True):
        rewards = {k: v[tables["rewards"]["case"] == name] for k, v in tables["rewards"].items()}
        earned, changed = figure.axes
        assert earned.get_xlabel() == case.axis
        line = next(each for each in earned.lines if len(each.get_xdata()) == len(case.grid))
        means = [earned_by(rewards, "wrong prior", x).mean() for x in case.grid]
        np.testing.assert_allclose(line.get_ydata(), means)
        own = tables["bounds"]["case"] == name
        line = next(each for each in changed.lines if len(each.get_xdata()) == len(case.grid))
        order = np.argsort(tables["bounds"]["tv"][own])
        np.testing.assert_array_equal(line.get_ydata(), tables["bounds"]["bound"][own][order])
        words = {each.get_text() for each in (*earned.texts, *changed.texts)}
        assert {"true prior", "vague prior", "wrong prior", "bound", "any two policies"} <= words


def test_blocks_do_not_depend_on_the_split(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name, case = next(iter(CASES.items()))
    monkeypatch.setitem(CASES, name, replace(case, tasks=64, grid=case.grid[:2]))
    whole = EXPERIMENT.run(Block(name, 0, 3), seed)["rewards"]
    parts = [EXPERIMENT.run(Block(name, first, 1), seed)["rewards"] for first in range(3)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert len(np.unique(whole[:, 0])) == 3  # replicates differ
