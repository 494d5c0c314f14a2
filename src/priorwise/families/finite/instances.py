"""Problems on which a wrong prior costs as much as the sensitivity bounds allow, up to a constant.

The formulas that go with them are in ``priorwise.sensitivity.bounds.lower``.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.families.finite.prior import SAME_REWARD, FinitePrior

MOST_ENTRIES: Final = 1 << 25  # of a table of means


@dataclass(frozen=True, eq=False)
class Instance:
    """A true prior theta, a held prior theta' at total variation ``eps``, and nothing else that
    differs.
    """

    prior: FinitePrior
    other: FinitePrior
    eps: float


def noiseless_instance(arms: int, eps: float, delta: float) -> Instance:
    """Return the (N + 1)-arm instance with N = ``arms``, as priors on 2N possible tasks.

    Both priors have one table of means, of 2N (N + 1) numbers; the last arm comes last. It runs
    with every policy, and is meant for N up to some hundreds; ``lower_bound_gap`` goes further.

    Examples
    --------
    >>> noiseless_instance(2, eps=0.25, delta=0.01).prior.probs
    array([0.375, 0.375, 0.125, 0.125])

    """
    arms, eps = validation.count("arms", arms, least=2), validation.share("eps", eps)
    delta = validation.share("delta", delta, 0.5)
    if 2 * arms * (arms + 1) > MOST_ENTRIES:
        raise ArgumentError(
            "arms",
            f"must be fewer: the table of means would have {2 * arms * (arms + 1)} entries",
            cure="use lower_bound_gap",
        )
    if delta / (2 * arms) <= 10 * SAME_REWARD:
        raise ArgumentError(
            "delta",
            f"must be larger with {arms} arms",
            cure="the last arm's rewards differ by delta / (2 N), and must not tie",
        )
    means = np.full((2, arms, arms + 1), delta)  # b, a, arm
    means[:, np.arange(arms), np.arange(arms)] = 1.0 - delta
    means[0, :, arms] = delta * np.arange(1, arms + 1) / (2 * arms)
    means[1, :, arms] = 1.0
    table, each = means.reshape(2 * arms, arms + 1), np.full(arms, 1.0 / arms)
    true, held = (
        FinitePrior(table, np.concatenate([(1.0 - b) * each, b * each])) for b in (eps, 0.0)
    )
    return Instance(true, held, eps)


def two_point_instance(eps: float) -> Instance:
    """Return the two-arm Bernoulli instance: theta is (1/2, 0) for sure, theta' is (1/2, 1) with
    probability ``eps``.
    """
    eps = validation.share("eps", eps)
    means = [[0.5, 0.0], [0.5, 1.0]]
    true, held = (FinitePrior(means, [1.0 - p, p], noise="bernoulli") for p in (0.0, eps))
    return Instance(true, held, eps)
