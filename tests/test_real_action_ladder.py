"""The ladder, break-even and the command line where actions are real numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.stats import norm
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.families import (
    FiniteLinearQuadraticPrior,
    FiniteLqgPrior,
    HiddenPlant,
    LinearQuadraticPrior,
    Plant,
)
from priorwise.policies import CertaintyEquivalence

TS = pw.ThompsonSampling()
PLANT = Plant(state_cost=[[1.0]], action_cost=[[0.1]], noise_var=0.25, start=[1.0])
HIDDEN = HiddenPlant([[1.0]], [[1.0]], [[0.1]], noise_var=0.05, output_var=0.2, start=[1.0])
MATRICES: Any = ([[[1.0]], [[1.0]], [[1.2]]], [[[0.5]], [[-0.5]], [[0.3]]])
TRUE, WRONG = [0.6, 0.3, 0.1], [0.5, 0.3, 0.2]
PAIRS = {
    "finite": [FiniteLinearQuadraticPrior(*MATRICES, probs, PLANT) for probs in (TRUE, WRONG)],
    "hidden": [FiniteLqgPrior(*MATRICES, probs, HIDDEN) for probs in (TRUE, WRONG)],
    "normal": [LinearQuadraticPrior([[a]], [[0.5]], 0.1 * np.eye(2), PLANT) for a in (1.0, 1.05)],
}


def gains() -> tuple[Any, Any, Any]:
    """``A``, ``B`` and the gain with two steps left, when the next state costs 1, of each
    candidate. With one step left nobody acts.
    """
    a, b = (np.array(m)[:, 0, 0] for m in MATRICES)
    return a, b, a * b / (0.1 + b * b)


@pytest.mark.parametrize("name", ["finite", "hidden"])
def test_actions_of_candidates_by_hand(name: str, seed: int) -> None:
    """Only the first step of two differs, because the last action is 0 under every candidate."""
    assert len(set(gains()[2].round(9))) == 3
    ladder = pw.sensitivity_ladder(*PAIRS[name], TS, 2, seed=seed, tasks=200)
    known = np.abs(np.subtract(TRUE, WRONG)).sum() / 2.0
    assert ladder["actions"].delta == pytest.approx(known, abs=1e-12)
    assert ladder["actions"].delta < ladder["posteriors"].delta
    assert ladder.in_order, ladder.disorders


@pytest.mark.parametrize("name", ["finite", "hidden"])
def test_posteriors_of_candidates_by_quadrature(name: str, seed: int) -> None:
    """``E TV`` after one step, on a grid of what is shown next; 5 standard errors, one false alarm
    in 1.7 million. The control takes the distance of the priors at both steps.

    The first state is known, so with noise .05 and .2 a hidden state shows what one in plain sight
    does with noise .25.
    """
    ladder = pw.sensitivity_ladder(*PAIRS[name], TS, 2, seed=seed, tasks=200, histories=4000)
    a, b, gain = gains()
    p, q = np.array(TRUE), np.array(WRONG)
    y = np.arange(-8.0, 8.0, 0.002)
    second = 0.0
    for drawn in range(3):
        density = norm.pdf(y[:, None], a - b * gain[drawn], 0.5)
        mine, theirs = (density * each for each in (p, q))
        odds = mine / mine.sum(axis=1, keepdims=True) - theirs / theirs.sum(axis=1, keepdims=True)
        second += p[drawn] * (mine.sum(axis=1) * np.abs(odds).sum(axis=1)).sum() * 0.002 / 2.0
    first, rung = np.abs(p - q).sum() / 2.0, ladder["posteriors"]
    assert abs(rung.delta - first - second) < 5.0 * rung.std_error
    assert abs(rung.delta - 2.0 * first) > 5.0 * rung.std_error


@pytest.mark.parametrize("name", PAIRS)
def test_the_ladder_of_real_actions_is_in_order(name: str, seed: int) -> None:
    p, q = PAIRS[name]
    ladder = pw.sensitivity_ladder(p, q, TS, 4, seed=seed, tasks=2000, histories=200)
    assert ladder.in_order, ladder.disorders
    names = {rung.name for rung in ladder.rungs}
    if name == "normal":  # what is missing has a name
        assert any(reason.startswith("actions: ") for reason in ladder.left_out)
        assert any(reason.startswith("posteriors: ") for reason in ladder.left_out)
        assert names == {"worst case", "common random numbers"}
    else:
        assert {"posteriors", "actions", "coupled trajectories"} <= names
        both = pw.compare(p, {"p": (TS, p), "q": (TS, q)}, horizon=4, tasks=2000, seed=seed)
        assert ladder.gap.mean == pytest.approx(both.difference("q", "p").mean)


def test_certainty_equivalence_has_an_action_law(seed: int) -> None:
    """Two means of candidates never agree, so trajectories part at once."""
    ladder = pw.sensitivity_ladder(
        *PAIRS["finite"], CertaintyEquivalence(), 2, seed=seed, tasks=200, histories=50
    )
    assert ladder["coupled trajectories"].delta == pytest.approx(1.0)
    assert ladder.n is None


@pytest.mark.parametrize("name", PAIRS)
def test_break_even_of_real_actions(name: str, seed: int) -> None:
    p, q = PAIRS[name]
    found = pw.break_even(p, q, TS, 3, seed=seed, tasks=500, fallback=q)
    # at scale 1 both believe the same
    assert found.advantages[found.scales == 1.0] == pytest.approx(0.0, abs=1e-12)
    with raises("fallback", "must be given where actions are real"):
        pw.break_even(p, q, TS, 3, seed=seed, tasks=500)


@pytest.mark.parametrize("name", PAIRS)
def test_the_command_line_takes_real_actions(name: str, tmp_path: Path, seed: int) -> None:
    files = [str(tmp_path / f"{word}.json") for word in ("true", "wrong")]
    for file, prior in zip(files, PAIRS[name], strict=True):
        Path(file).write_text(prior.to_json(), encoding="utf-8")
    size = ["--policy", "ts", "--horizon", "3", "--tasks", "200", "--seed", str(seed), "--json"]
    played = CliRunner().invoke(app, ["simulate", files[0], "--believed", files[1], *size])
    assert played.exit_code == 0, played.output
    bound = CliRunner().invoke(app, ["bound", *files, *size])
    assert bound.exit_code == 0, bound.output
    assert '"worst case"' in bound.stdout
