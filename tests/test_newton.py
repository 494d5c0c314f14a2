"""Newton's method, which every likelihood estimator climbs by; files of earlier fits; how many
functions a fit runs through.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks.trace import gaussian_fit, simulation, step_of_work
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.newton import climb, climb_by_gradient, positive_root

EARLIER = json.loads((Path(__file__).parent / "earlier_fits.json").read_text())


@dataclass(frozen=True)
class Hill:
    """``-(x - 1)^4 / 4 - (x - 1)^2 / 2 + 3 x y - y^4 / 4``: a saddle at the bottom, tops beyond."""

    x: np.ndarray

    @property
    def value(self) -> float:
        a, b = self.x
        return float(-((a - 1) ** 4) / 4 - (a - 1) ** 2 / 2 + 3 * a * b - b**4 / 4)

    @property
    def gradient(self) -> np.ndarray:
        a, b = self.x
        return np.array([-((a - 1) ** 3) - (a - 1) + 3 * b, 3 * a - b**3])

    def information(self) -> np.ndarray:
        a, b = self.x
        return np.array([[3 * (a - 1) ** 2 + 1, -3.0], [-3.0, 3 * b**2]])


@pytest.mark.parametrize("start", [(0.0, 0.0), (50.0, 50.0), (1.0, 0.1), (-3.0, -3.0)])
def test_it_climbs_from_anywhere_and_never_down(start: tuple[float, float]) -> None:
    found = climb(Hill, np.array(start), longest=3.0)
    assert found.converged
    np.testing.assert_allclose(found.place.gradient, 0.0, atol=1e-6)
    assert np.linalg.eigvalsh(found.place.information())[0] > 0.0
    assert np.all(np.diff(found.values) >= 0.0)
    assert found.iterations == len(found.values) - 1
    slow = climb_by_gradient(Hill, np.array(start), tolerance=1e-12, limit=50)
    assert slow.place.value <= max(climb(Hill, slow.place.x).place.value, found.place.value) + 1e-9


def test_bounds_hold_and_too_few_steps_are_said() -> None:
    held = climb(Hill, np.array([0.5, 0.5]), low=np.array([-1.0, -1.0]), high=np.array([1.5, 9.0]))
    assert held.converged
    assert held.place.x[0] == 1.5
    assert held.place.gradient[0] > 0.0
    assert abs(held.place.gradient[1]) < 1e-6
    assert not climb(Hill, np.array([50.0, 50.0]), limit=2).converged


def test_what_is_not_known_gets_the_floor() -> None:
    root, determined = positive_root(np.diag([4.0, 0.01]), floor=0.25)
    assert not determined
    np.testing.assert_allclose(root @ root.T, np.diag([0.25, 4.0]))
    root, determined = positive_root(np.diag([4.0, 1.0]), floor=0.25)
    assert determined
    np.testing.assert_allclose(root @ root.T, np.diag([0.25, 1.0]))


@pytest.mark.parametrize(
    "fit", EARLIER, ids=lambda fit: f"{fit['estimator']} {fit['prior']['family']}"
)
def test_files_of_earlier_fits_are_read(fit: dict, seed: int) -> None:
    """Written before arms and features shared one likelihood. Means of 4,000 plausible priors are
    known to 0.02 standard deviations, and these are below 1.6 for what is drawn here: 0.13 is four
    standard errors of four numbers at most, false alarm below 1e-3 in all.
    """
    loaded = PriorFit.load(json.dumps(fit))
    assert json.loads(loaded.to_json()) == fit
    name = "probs" if "probs" in fit["std_errors"] else "mean"
    drawn = loaded.draw(np.random.default_rng(seed), 4000)
    spread = np.std([getattr(prior, name) for prior in drawn], axis=0)
    centre = np.mean([getattr(prior, name) for prior in drawn], axis=0)
    if name in loaded.std_errors and "Moments" not in fit["estimator"]:
        assert np.all(spread < 1.6 * np.asarray(loaded.std_errors[name]) + 1e-9)
        gap = np.abs(centre - getattr(loaded.prior, name))
        assert np.all(gap < 0.13 * np.asarray(loaded.std_errors[name]) + 0.02)


def test_a_gaussian_fit_runs_through_few_functions() -> None:
    """At most 20 functions of ours in 8 modules; ``python -m benchmarks.trace`` lists them."""
    steps = [place for place in gaussian_fit() if step_of_work(place)]
    assert len(steps) <= 20, steps
    assert len({module for module, _ in steps}) <= 8, steps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_a_simulation_runs_through_few_functions_before_its_first_random_number(
    engine: str,
) -> None:
    """At most 8 functions of ours; ``python -m benchmarks.trace`` lists them."""
    steps = [place for place in simulation(engine) if step_of_work(place)]
    assert len(steps) <= 8, steps
