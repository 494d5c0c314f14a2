"""Many arms and few pulls: the product form of the posterior's root is the same belief as the NumPy
loop's.
"""

from __future__ import annotations

import numpy as np
import pytest

import priorwise as pw
from priorwise.families.gaussian import tiles_wide as gaussian_wide


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "horizon"), [(12, 6), (37, 10), (120, 4)])
@pytest.mark.parametrize(
    "policy", [pw.ThompsonSampling(), pw.Greedy(), pw.PosteriorSampling(3, "sum")], ids=str
)
@pytest.mark.parametrize("rank", ["full", "half"])
def test_compiled_run_equals_numpy_run(
    arms: int, horizon: int, policy: object, rank: str, seed: int
) -> None:
    rng = np.random.default_rng([seed, arms])
    root = rng.normal(size=(arms, arms if rank == "full" else arms // 2))
    prior = pw.GaussianPrior(
        rng.normal(size=arms), root @ root.T / arms, rng.uniform(0.5, 2.0, arms)
    )
    assert prior.tiles(horizon, frozenset()).start is gaussian_wide.start
    held = pw.GaussianPrior(np.zeros(arms), np.eye(arms), 1.0)
    for believed in (prior, held):
        runs = [
            pw.simulate(
                prior,
                policy,
                horizon=horizon,
                tasks=130,
                seed=seed,
                believed=believed,
                keep=True,
                engine=engine,
            )
            for engine in ("compiled", "numpy")
        ]
        np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
        np.testing.assert_allclose(runs[0].rewards, runs[1].rewards, rtol=1e-9, atol=1e-12)


def test_memory_grows_with_arms_times_pulls() -> None:
    """A root for each of the 64 tasks of a tile would take 128 MB at 500 arms; the product takes
    under 3 MB.
    """
    prior = pw.GaussianPrior(np.zeros(500), np.eye(500), 1.0)
    assert prior.tiles(10, frozenset({"draw"})).belief_rows * 64 * 8 < 3e6
    assert prior.tiles(10, frozenset({"look"})).belief_rows == 500 + 500 * 500
