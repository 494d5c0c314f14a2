"""Tasks needed, as `reproduce theory` measures and judges them."""

from __future__ import annotations

import numpy as np
import pytest

from priorwise.experiments import needs
from priorwise.experiments.experiment import Block
from priorwise.experiments.theory import EXPERIMENT


def made(spread: float, seed: int, power: float = 0.0) -> list[tuple[Block, dict]]:
    """Blocks whose total variations are those of normal errors in as many directions as the theory
    counts; ``power`` lets them grow with the arms beyond it.
    """
    rng = np.random.default_rng(seed)
    done = []
    for name, learned in needs.LEARNED.items():
        columns = [
            spread * a**power * np.sqrt(rng.chisquare(2 * a, size=4000) / (2 * a))
            for a in learned.arms
        ]
        done.append((Block(f"needs {name}", 0, 4000), {"tv": np.stack(columns, axis=1)}))
    return done


def test_needs_follow_from_quantiles(seed):
    """At one number of tasks T the need is T (q / eps)^2; the rates and certified tasks stand
    beside.
    """
    done = made(0.08, seed)
    table = needs.table(done)
    assert set(table) == {"prior", "arms", "delta", "tasks", "certified", "rate"}
    assert len(table["arms"]) == 27
    row = (table["prior"] == "Beta") & (table["arms"] == 8) & (table["delta"] == 0.1)
    quantile = np.quantile(done[0][1]["tv"][:, 1], 0.9)
    assert table["tasks"][row] == pytest.approx([6400 * (quantile / 0.1) ** 2])
    assert table["rate"][row] == pytest.approx([64 * np.log(320) / 0.01])
    assert (table["certified"] > table["tasks"]).all()


def test_claims_can_fail(seed):
    """True with errors as the theory has them; an error that grows with the arms, or that is so
    large that the lemmas would be wrong, fails the claim about it.
    """
    verdicts = [claim.holds for claim in needs.claims(needs.table(made(0.08, seed)))]
    assert verdicts == [True] * 5
    grown = needs.claims(needs.table(made(0.02, seed, power=0.6)))
    assert not any(claim.holds for claim in grown[:3])
    assert not needs.claims(needs.table(made(3.0, seed)))[-1].holds


@pytest.mark.slow
def test_a_block_measures_fits(seed):
    """Two replicates of the smallest kind: distances as small as the tasks allow, and different."""
    block = Block("needs normal, covariance known", 3, 2)
    found = EXPERIMENT.run(block, seed)["tv"]
    assert found.shape == (2, 3)
    assert (found > 0.0).all()
    assert (found < 0.3).all()
    assert (found[0] != found[1]).all()
    again = EXPERIMENT.run(Block(block.part, 4, 1), seed)["tv"]
    np.testing.assert_array_equal(again[0], found[1])


def test_the_lower_bound_over_draws_is_a_part():
    parts = {block.part for block in EXPERIMENT.blocks(100)}
    assert {"draws", "gap", "estimators", *(f"needs {name}" for name in needs.LEARNED)} <= parts
