"""What must run compiled: every registered prior with every registered policy, in both directions,
and as the NumPy loop does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from registry import (
    COMPILED,
    COMPILED_WITH_A_STATE,
    POLICIES,
    PRIORS,
    SAMPLING_POLICIES,
    STATE_PRIORS,
)

import priorwise as pw
from priorwise.testing.twins import offers, same_run, some_arms

EVERY: dict[str, Any] = {**SAMPLING_POLICIES, **POLICIES}


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True], ids=["all arms", "some arms"])
@pytest.mark.parametrize("family", PRIORS)
@pytest.mark.parametrize("name", EVERY)
def test_the_engine_is_the_one_in_the_table(
    name: str, family: str, masked: bool, seed: int
) -> None:
    """Left to choose, the compiled loop runs what the table names, the NumPy loop all else; both
    play the same.
    """
    prior, believed = PRIORS[family]
    options: dict[str, Any] = {
        "horizon": 4,
        "tasks": 66,
        "seed": seed,
        "believed": believed,
        "keep": True,
    }
    options["available"] = some_arms(66, prior.arms, seed) if masked else None
    chosen = pw.simulate(prior, EVERY[name], **options)
    if name in COMPILED:
        assert chosen.engine == "compiled"
        same_run(chosen, pw.simulate(prior, EVERY[name], engine="numpy", **options))
    else:
        assert chosen.engine == "numpy"
        policy = type(EVERY[name]).__name__
        with raises("engine", f"the policy {policy} has no tile functions"):
            pw.simulate(prior, EVERY[name], engine="compiled", **options)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True], ids=["all arms", "some arms"])
@pytest.mark.parametrize("family", STATE_PRIORS)
@pytest.mark.parametrize("name", EVERY)
def test_the_engine_of_problems_with_a_state(
    name: str, family: str, masked: bool, seed: int
) -> None:
    """The same with the second table; states are logged alike, and rounds end alike."""
    prior, believed = STATE_PRIORS[family]
    if not offers(prior, EVERY[name]):
        with pytest.raises(TypeError, match="needs a belief with"):
            pw.simulate(prior, EVERY[name], horizon=2, tasks=2, seed=seed)
        return
    options: dict[str, Any] = {
        "horizon": 10,
        "tasks": 66,
        "seed": seed,
        "believed": believed,
        "keep": True,
    }
    options["available"] = some_arms(66, prior.arms, seed) if masked else None
    chosen = pw.simulate(prior, EVERY[name], **options)
    compiled = name in COMPILED_WITH_A_STATE and family != "mdp-normal"
    assert chosen.engine == ("compiled" if compiled else "numpy")
    if compiled:
        literal = pw.simulate(prior, EVERY[name], engine="numpy", **options)
        same_run(chosen, literal)
        np.testing.assert_array_equal(chosen.kept.log, literal.kept.log)
        assert chosen.by_step.expected_reward is literal.by_step.expected_reward is None


@pytest.mark.parametrize("family", PRIORS)
def test_every_belief_offers_what_every_policy_needs(family: str) -> None:
    """The contract of a prior leaves out the policies that its belief does not serve: for the
    package's own there are none.
    """
    for prior in PRIORS[family]:
        assert [name for name, policy in EVERY.items() if not offers(prior, policy)] == []


def test_the_table_names_policies_of_the_registry() -> None:
    assert set(EVERY) > COMPILED
