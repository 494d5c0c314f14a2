"""The contracts of ``priorwise.testing`` over models of one's own.

All tasks share the particles, so that calibration over N tasks sees what P particles lack of the
prior unless N is small against P: errors of the shares of ranks have variance ``q (1 - q) / P`` where
chance has ``q (1 - q) / N``. With N = P / 8 the chi-square statistic of 16 ranks is larger by an
eighth, so that a p-value below 1e-4 is met with probability below 5e-4.
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
MODELS = {
    "gaussian": models.gaussian,
    "clicks": models.clicks,
    "times": models.times,
    "logistic": models.logistic,
    "moving-clicks": lambda **how: models.clicks(log_prior=models.beta_log_prior, **how),
}
GIVEN = {"given": models.given, "given-normal": models.given_normal}
ALARM = 1e-4


class TestModels(PriorContract):
    """With few particles, which is all that is asked of shapes, streams and batches."""

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

    test_posterior_is_calibrated = None  # type: ignore[assignment]  # below, with more particles
    test_calibration_rejects_wrong_beliefs = None  # type: ignore[assignment]


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


class TestFamily(FamilyContract):
    @pytest.fixture(params=[*MODELS, *GIVEN])
    def prior(self, request: Any) -> Any:
        made = MODELS | GIVEN
        return made[request.param]() if request.param in GIVEN else made[request.param](particles=FEW)


CALIBRATED = {
    "gaussian": (models.gaussian, 4, 1024),
    "clicks": (models.clicks, 4, 1024),
    "times": (lambda **how: models.times(log_prior=None, **how), 4, 1024),
    "logistic": (models.logistic, 6, 512),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALIBRATED)
def test_models_are_calibrated(name: str, seed: int) -> None:
    """False alarms with probability below 5e-4; beliefs that forget or count twice must fail, and
    so must 64 particles.
    """
    make, pulls, tasks = CALIBRATED[name]
    options: Any = {"tasks": tasks, "pulls": pulls, "seed": seed}
    prior = make(particles=8 * tasks)
    assert calibration(prior, **options) > ALARM
    for wrong in (Forgetful, Gullible):
        assert calibration(prior, wrap=wrong, **options) < ALARM
    assert calibration(make(particles=32), **options) < ALARM
