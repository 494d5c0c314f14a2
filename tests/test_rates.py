"""How the cost of a wrong prior grows, as `reproduce theory` judges it."""

from __future__ import annotations

import numpy as np
import pytest

from priorwise.experiments import rates
from priorwise.experiments.experiment import Block
from priorwise.figures.theory import rates_of_growth


def made(seed, powers=(2.0, 1.0), factor=0.5, upper=2.0):
    """Tables of a cost ``factor H^a eps^b``, with noise of 5% on what is simulated."""
    rng = np.random.default_rng(seed)
    done = []
    for over, points in rates.POINTS.items():
        for index, (pulls, eps) in enumerate(points):
            cost = factor * pulls ** powers[0] * eps ** powers[1]
            row = {"pulls": pulls, "eps": eps, "theorem": 0.9 * cost, "improved": 0.95 * cost}
            row |= {"exact": cost, "measured": cost * (1 + 0.05 * rng.normal())}
            row |= {"std_error": 0.05 * cost, "upper": upper * pulls**2 * eps}
            arrays = {name: np.array([value]) for name, value in row.items()}
            done.append((Block(f"rates {over}", index, 1), arrays))
    return rates.table(done)


@pytest.mark.parametrize(
    ("change", "verdicts"),
    [
        ({}, [True, True, True]),
        ({"powers": (1.5, 1.0), "factor": 3.0}, [False, True, True]),
        ({"powers": (2.0, 0.7), "factor": 0.03}, [True, False, True]),
        ({"upper": 0.4}, [True, True, False]),
    ],
)
def test_claims_follow_the_powers(change, verdicts, seed):
    """Powers of a known cost are fitted; another power, or a bound below the cost, fails its claim.

    The limits are 5 standard errors and more, so that a false alarm has a chance below 1e-5.
    """
    assert [claim.holds for claim in rates.claims(made(seed, **change))] == verdicts


def test_power_is_weighted_least_squares(seed):
    """Against the normal equations, and the scatter of slopes over 4000 repetitions: its standard
    deviation is within 6% of the standard error, 5 times its own error.
    """
    rng = np.random.default_rng(seed)
    x, errors = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.01, 0.02, 0.01, 0.03])
    slopes = []
    for _ in range(4000):
        y = 3.0 * x**1.5 * np.exp(errors * rng.normal(size=4))
        fitted = rates.power(x, y, errors * y)
        slopes.append(fitted.mean)
    design = np.stack([np.ones(4), np.log(x)], axis=1) / errors[:, None]
    by_hand = np.linalg.lstsq(design, np.log(y) / errors, rcond=None)[0][1]
    assert fitted.mean == pytest.approx(by_hand)
    assert np.std(slopes) == pytest.approx(fitted.std_error, rel=0.06)
    assert np.mean(slopes) == pytest.approx(1.5, abs=5 * fitted.std_error / 4000**0.5)


def test_a_block_lies_between_its_bounds(seed):
    """The cheapest point, simulated: the cost within 5 standard errors of its closed form."""
    row = rates.run(Block("rates eps", len(rates.EPS) - 1, 1), seed)
    assert row["theorem"] <= row["exact"] <= row["upper"]
    assert np.abs(row["measured"] - row["exact"]) <= 5.0 * row["std_error"]


def test_the_figure_shows_slopes(drawn, seed):
    """Two panels on logarithmic axes, with the slopes of the theory as guides."""
    rates_of_growth(made(seed))
    first, second = drawn[0].axes
    for axes, power in ((first, 2), (second, 1)):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert f"slope {power}" in {text.get_text() for text in axes.texts}
        guide = np.log(axes.lines[-1].get_xydata())
        assert np.polyfit(*guide.T, 1)[0] == pytest.approx(power)
