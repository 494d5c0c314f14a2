"""The three problems of the paper's experiments: true prior, misspecified prior, horizon."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from priorwise.core.protocols import Prior
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.prior import LinearGaussianPrior

P = TypeVar("P", bound=Prior)


@dataclass(frozen=True)
class Problem(Generic[P]):
    """A true prior, the misspecified one of the paper, and the number of pulls."""

    name: str
    prior: P
    misspecified: P
    horizon: int


def blocks() -> np.ndarray:
    """Two blocks of three, 1 on and 0.9 off the diagonal."""
    return np.kron(np.eye(2), np.full((3, 3), 0.9) + 0.1 * np.eye(3))


def gaussian() -> Problem[GaussianPrior]:
    """Six arms with a joint normal prior, ten pulls."""
    prior = GaussianPrior([0.5, 0.0, 0.0, 0.1, 0.0, 0.0], blocks(), noise_var=1.0)
    wrong = GaussianPrior(np.zeros(6), np.eye(6), noise_var=1.0)
    return Problem("gaussian", prior, wrong, horizon=10)


def linear() -> Problem[LinearGaussianPrior]:
    """Six arms with six features each on the sphere, twenty pulls."""
    contexts = SphereContexts(arms=6)
    prior = LinearGaussianPrior(np.ones(6), 0.1 * blocks(), noise_var=1.0, contexts=contexts)
    wrong = LinearGaussianPrior(np.zeros(6), np.eye(6), noise_var=1.0, contexts=contexts)
    return Problem("linear", prior, wrong, horizon=20)


def discrete() -> Problem[FinitePrior]:
    """Sixteen noiseless tasks over twenty arms, ten pulls.

    The paper draws the reward matrix and does not print it; this is a reconstruction. Arms 0, 5, 10
    and 15 identify: each distinguishes its group's four tasks by rewards 0.1, 0.2, 0.3, 0.4 and
    earns 0 elsewhere. Each task has its own best arm, worth 1.
    """
    means = np.zeros((16, 20))
    for task in range(16):
        group, index = divmod(task, 4)
        means[task, 5 * group] = 0.1 * (1 + index)
        means[task, 5 * group + 1 + index] = 1.0
    probs = np.where(np.arange(16) < 4, 9 / 40, 1 / 120)
    wrong = FinitePrior(means, np.full(16, 1 / 16))
    return Problem("discrete", FinitePrior(means, probs), wrong, horizon=10)


ALL: Final[dict[str, Callable[[], Problem[Any]]]] = {
    "gaussian": gaussian,
    "linear": linear,
    "discrete": discrete,
}
"""By name."""
