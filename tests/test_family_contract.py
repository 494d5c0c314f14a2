"""The contract of families, over those of the package and a stranger's; and that it can fail."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from registry import PRIORS, STATE_PRIORS
from stranger_family import PoissonPrior

import priorwise as pw
from priorwise.families import registry as families
from priorwise.testing import FamilyContract

EVERY = {name: prior for name, (prior, _) in (PRIORS | STATE_PRIORS).items()} | {
    "stranger": PoissonPrior([2.0, 2.0, 4.0], [1.0, 2.0, 4.0])
}


class TestFamilies(FamilyContract):
    @pytest.fixture(params=EVERY)
    def prior(self, request: Any) -> Any:
        return EVERY[request.param]


def test_it_notices_a_belief_that_forgets_its_statistics(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    prior = pw.BetaPrior([1.0, 2.0], [3.0, 1.0])
    wrong = lambda self, statistics: self.belief(statistics.tasks)  # noqa: E731
    monkeypatch.setattr(pw.BetaPrior, "belief_given", wrong)
    with pytest.raises(AssertionError):
        FamilyContract().test_statistics_tell_the_belief_all(prior, seed)


def test_it_notices_densities_that_mix_tasks(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:

    prior = pw.BetaPrior([1.0, 2.0], [3.0, 1.0])
    mixed = copy(families._FAMILIES[pw.BetaPrior])
    vars(mixed)["log_marginal"] = lambda prior, statistics: np.arange(float(statistics.tasks))
    monkeypatch.setitem(families._FAMILIES, pw.BetaPrior, mixed)
    with pytest.raises(AssertionError):
        FamilyContract().test_densities_are_of_tasks(prior, seed)
