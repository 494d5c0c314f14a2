"""Gaussian Thompson sampling as a textbook writes it: one task at a time, one pull at a time, plain
NumPy.

The slow end of the speed comparison, and an independent check of the law: no batching, no square
roots, no tricks.
"""

import sys
import time

import numpy as np
from numpy.typing import NDArray

MEAN = np.array([0.5, 0.0, 0.0, 0.1, 0.0, 0.0])
COV = np.kron(np.eye(2), 0.1 * np.eye(3) + 0.9)  # two 3x3 blocks, 1 on and 0.9 off the diagonal
NOISE_VAR = 1.0


def gaussian_ts(tasks: int, horizon: int, seed: int) -> NDArray[np.float64]:
    """Total reward of Thompson sampling, with the true prior, in each task of the paper's 6-armed
    Gaussian problem.
    """
    rng = np.random.default_rng(seed)
    prior_precision = np.linalg.inv(COV)
    totals = np.zeros(tasks)
    for task in range(tasks):
        mu = rng.multivariate_normal(MEAN, COV)  # the environment
        precision = prior_precision.copy()
        weighted = prior_precision @ MEAN  # precision times posterior mean
        for _ in range(horizon):
            cov = np.linalg.inv(precision)
            draw = rng.multivariate_normal(cov @ weighted, cov)  # mu~ ~ P(mu | history)
            arm = int(np.argmax(draw))
            reward = rng.normal(mu[arm], np.sqrt(NOISE_VAR))
            precision[arm, arm] += 1.0 / NOISE_VAR
            weighted[arm] += reward / NOISE_VAR
            totals[task] += reward
    return totals


def main() -> None:
    """Print mean total reward, its standard error and microseconds per pull; arguments: TASKS
    SEED.
    """
    tasks, seed = int(sys.argv[1]), int(sys.argv[2])
    start = time.perf_counter()
    totals = gaussian_ts(tasks, 10, seed)
    micros = 1e6 * (time.perf_counter() - start) / (10 * tasks)
    error = totals.std(ddof=1) / np.sqrt(tasks)
    print(f"mean {totals.mean():.5f}  std_error {error:.5f}  us_per_pull {micros:.2f}")


if __name__ == "__main__":
    main()
