"""Numbers stay as they were frozen: see ``golden.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import golden
import numpy as np
import pytest

TOLERANCES: Final = {"prior": 1e-8, "likelihood": 1e-8, "errors": 1e-5, "draws": 1e-5}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def frozen() -> dict[str, Any]:
    return golden.frozen()


def test_compiled_runs(frozen: Any) -> None:
    runs = golden.runs()
    assert len(runs) >= 200
    assert {name: run[0] for name, run in runs.items()} == {
        name: run[0] for name, run in frozen["runs"].items()
    }
    for name, run in runs.items():
        assert run[1] == pytest.approx(frozen["runs"][name][1], rel=1e-12), name


def test_fits(frozen: Any) -> None:
    fits = golden.fits()
    assert len(fits) >= 300
    assert fits.keys() == frozen["fits"].keys()
    for name, fit in fits.items():
        before = frozen["fits"][name]
        assert fit["flags"] == before["flags"], name
        for part, tolerance in TOLERANCES.items():
            np.testing.assert_allclose(
                fit[part], before[part], rtol=tolerance, atol=tolerance * 1e-3, err_msg=name
            )


def test_distances_tails_and_bounds(frozen: Any) -> None:
    theory = golden.theory()
    assert len(theory) >= 100
    assert theory.keys() == frozen["theory"].keys()
    for name, numbers in theory.items():
        np.testing.assert_allclose(numbers, frozen["theory"][name], rtol=1e-9, err_msg=name)


def test_documents(frozen: Any) -> None:
    assert golden.documents() == frozen["documents"]


@pytest.mark.parametrize("stored", [False, True])
def test_live_decisions(frozen: Any, stored: bool, tmp_path: Path) -> None:
    decisions = golden.decisions(tmp_path if stored else None)
    assert decisions.keys() == frozen["decisions"].keys()
    for name, made in decisions.items():
        for (arm, propensity, token), before in zip(made, frozen["decisions"][name], strict=True):
            assert [arm, token] == [before[0], before[2]], name
            assert propensity == pytest.approx(before[1], abs=1e-9)


def test_another_prior_is_noticed(frozen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the two priors of a problem swapped."""
    name = "gaussian"
    monkeypatch.setattr(golden, "PRIORS", {name: golden.PRIORS[name][::-1]})
    monkeypatch.setattr(golden, "STATE_PRIORS", {})
    changed = [run[0] != frozen["runs"][key][0] for key, run in golden.runs().items()]
    assert np.mean(changed) > 0.5
