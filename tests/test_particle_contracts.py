"""The contracts of ``priorwise.testing`` over models of one's own.

All tasks share the particles, so that calibration sees what they lack of the prior. Particles fill
the prior evenly: with twice as many as tasks that adds less than a tenth to the chi-square
statistic, and a p-value below 1e-4 is met with probability below 5e-4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import particle_models as models
import pytest

from priorwise.testing import FamilyContract, JsonContract, PriorContract, calibration
from priorwise.testing import twins as runs
from priorwise.testing.calibration import Forgetful, Gullible
from priorwise.testing.prior import EVERY_POLICY

FEW = 96
ALARM = 1e-4


def moving_clicks(**options: Any) -> Any:
    return models.clicks(log_prior=models.beta_log_prior, **options)


MODELS = {
    "gaussian": models.gaussian,
    "clicks": models.clicks,
    "times": models.times,
    "logistic": models.logistic,
    "moving-clicks": moving_clicks,
}
GIVEN = {"given": models.given, "given-normal": models.given_normal}


class TestModels(PriorContract):
    """With few particles, which is all that shapes, streams and batches need."""

    test_posterior_is_calibrated = None  # type: ignore[assignment]  # below, with more particles
    test_calibration_rejects_wrong_beliefs = None  # type: ignore[assignment]

    @pytest.fixture(params=MODELS)
    def model(self, request: Any) -> Any:
        return MODELS[request.param]

    @pytest.fixture
    def prior(self, model: Any) -> Any:
        return model(particles=FEW)

    @pytest.fixture
    def believed(self, model: Any, seed: int) -> Any:
        return model(particles=FEW // 2, seed=seed + 1)

    @EVERY_POLICY
    def test_mask_of_all_arms_is_no_mask(self, prior: Any, name: str, seed: int) -> None:
        """As for all priors, with fewer tasks."""
        policy = runs.POLICIES[name]
        if runs.offers(prior, policy):
            masks = (None, np.ones(prior.arms, dtype=bool))
            kept = (runs.kept_run(prior, policy, seed, tasks=16, available=each) for each in masks)
            runs.same_run(*kept)


class TestGivenDraws(PriorContract):
    """Draws that are the prior itself are as exact as any family."""

    @pytest.fixture(params=GIVEN)
    def model(self, request: Any) -> Any:
        return GIVEN[request.param]

    @pytest.fixture
    def prior(self, model: Any) -> Any:
        return model()

    @pytest.fixture
    def believed(self, model: Any) -> Any:
        return model(weights=[0.0, 0.5, 0.25, 0.25])


EVERY = {name: model(particles=FEW) for name, model in MODELS.items()} | {
    name: model() for name, model in GIVEN.items()
}


class TestFamily(FamilyContract):
    @pytest.fixture(params=EVERY)
    def prior(self, request: Any) -> Any:
        return EVERY[request.param]


class TestJson(JsonContract):
    @pytest.fixture(params=EVERY)
    def value(self, request: Any) -> Any:
        return EVERY[request.param]


def still_times(**options: Any) -> Any:
    return models.times(log_prior=None, **options)


CALIBRATED = {
    "gaussian": (models.gaussian, 4, 1024),
    "clicks": (models.clicks, 4, 1024),
    "times": (still_times, 4, 1024),
    "logistic": (models.logistic, 6, 384),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALIBRATED)
def test_models_are_calibrated(name: str, seed: int) -> None:
    """False alarms with probability below 5e-4; beliefs that forget or count twice must fail, and
    so must 16 particles.
    """
    make, pulls, tasks = CALIBRATED[name]
    options: Any = {"tasks": tasks, "pulls": pulls, "seed": seed}
    prior = make(particles=2 * tasks)
    assert calibration(prior, **options) > ALARM
    for wrong in (Forgetful, Gullible):
        assert calibration(prior, wrap=wrong, **options) < ALARM
    assert calibration(make(particles=16), **options) < ALARM


@pytest.mark.validate
@pytest.mark.parametrize(("make", "pulls"), [(models.times, 10), (moving_clicks, 12)])
def test_particles_that_move_stay_calibrated(make: Any, pulls: int, seed: int) -> None:
    """The same where most tasks were resampled."""
    options: Any = {"tasks": 512, "pulls": pulls, "seed": seed}
    prior = make(particles=512)
    assert calibration(prior, **options) > ALARM
    for wrong in (Forgetful, Gullible):
        assert calibration(prior, wrap=wrong, **options) < ALARM
