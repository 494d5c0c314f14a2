"""Distances between two priors: total variation, Kullback-Leibler, Hellinger."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core import sizes, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import std_error
from priorwise.core.streams import Purpose, Streams
from priorwise.sensitivity.distance.pairs import ordered_pair, pair_of, with_divergences
from priorwise.theory.distance import CoupledPair, Distance, DivergentPair, Pair, SampledPair

DRAWS: Final = 200_000
BLOCK: Final = 25_000  # draws at a time
ROUNDING: Final = 1e-9
"""Relative room that certified bounds leave for rounding and quadrature."""


def total_variation(
    p: Any, q: Any, *, seed: int | None = None, draws: int = DRAWS, estimate: bool = True
) -> Distance:
    """Total variation ``TV = sup_A |P(A) - Q(A)| = integral |p - q| / 2`` between two priors of one
    family.

    Exact for finite priors, for normal priors of equal covariance (``2 Phi(d / 2) - 1``, d the
    Mahalanobis distance of the means) or that differ in one direction v only (covariances by ``c v
    v'``, means by ``d v``, up to rounding), for Beta priors that differ in at most two arms, and
    for priors that exclude each other (1). Otherwise ``TV = E |p - q| / (p + q)`` under the mixture
    ``(p + q) / 2`` is estimated by sampling, and ``upper`` is the least of

    * ``sqrt(1 - BC^2)`` with BC the integral of sqrt(p q),
    * ``sqrt(KL / 2)`` (Pinsker) and ``sqrt(1 - exp(-KL))`` (Bretagnolle-Huber), in both directions,
    * ``1 - prod_i (1 - TV_i)`` over independent parts;

    for laws of a user's own, whose densities are known at draws only, it is 1. For mixtures it is
    the least ``sum_ij pi_ij TV(P_i, Q_j)`` over couplings ``pi`` of the components' probabilities.

    Parameters
    ----------
    p, q
        Two priors of one family, with the same arms, reward law and contexts.
    seed
        Needed where the distance is estimated; the same seed gives the same number.
    draws
        How many draws from each prior an estimate takes.
    estimate
        False: return the upper bound if there is no closed form. It needs no seed.

    Examples
    --------
    >>> from priorwise.families.gaussian.prior import GaussianPrior
    >>> print(total_variation(GaussianPrior([0.0], [[1.0]]), GaussianPrior([1.0], [[1.0]])))
    0.3829 (exact)

    """
    draws = validation.count("draws", draws)
    sizes.check_memory("draws", draws, 16.0 * sizes.as_float(draws), "lower draws")
    if seed is not None:
        seed = validation.seed(seed)
    estimate = validation.flag("estimate", estimate)
    return of_pair(ordered_pair(p, q, "total_variation"), p, seed, draws if estimate else 0)


def of_pair(supplied: Pair, p: Any, seed: int | None, draws: int) -> Distance:
    """Total variation of a pair whose first prior is p; see :func:`total_variation`."""
    exact = supplied.total_variation()
    if exact is not None:
        return Distance(exact, "exact", 0.0, exact)
    if isinstance(supplied, CoupledPair):
        upper = _coupled(supplied, p)
        if draws == 0 or not isinstance(supplied, SampledPair):
            return Distance(upper, "upper", 0.0, upper)
        mean, std_error = _estimate(supplied, _seed(seed, p), draws)
        return Distance(min(mean, upper), "estimate", std_error, upper)
    known = isinstance(supplied, DivergentPair) or not isinstance(supplied, SampledPair)
    pair: Any = with_divergences(supplied, p, "total_variation") if known else supplied
    upper = _upper(pair) if known else 1.0
    if draws == 0:
        return Distance(upper, "upper", 0.0, upper)
    mean, std_error = _estimate(pair, _seed(seed, p), draws)
    lower = -np.expm1(pair.log_affinity()) if known else 0.0  # 1 - BC <= TV
    return Distance(float(min(max(mean, lower), upper)), "estimate", std_error, upper)


def _seed(seed: int | None, p: Any) -> int:
    if seed is None:
        raise ArgumentError(
            "seed",
            f"is missing: the total variation between these {type(p).__name__}s is "
            "estimated by sampling",
            cure="pass it, or estimate=False for a certified upper bound",
        )
    return seed


def _coupled(pair: CoupledPair, p: Any) -> float:
    """``min sum_ij pi_ij TV_ij`` over couplings pi of the components, each ``TV_ij`` at its bound.

    The bound allows for the rounding of the linear program: it adds how far the marginals of its
    coupling are from the components' probabilities.
    """
    from scipy.optimize import linprog

    first, second, pairs = pair.coupled()
    costs = [
        [1.0 if each is None else of_pair(each, p, None, 0).upper for each in row] for row in pairs
    ]
    rows, columns = np.indices((first.size, second.size)).reshape(2, -1)
    ends = np.concatenate(
        [rows == np.arange(first.size)[:, None], columns == np.arange(second.size)[:, None]]
    ).astype(float)
    masses = np.concatenate([first, second])
    solution = linprog(np.ravel(costs), A_eq=ends, b_eq=masses, method="highs").x
    if solution is None:
        return 1.0
    coupling = np.maximum(solution, 0.0)
    missed = np.abs(ends @ coupling - masses).sum() / 2.0
    return float(min(1.0, (coupling @ np.ravel(costs) + missed) * (1.0 + ROUNDING)))


def kl(p: Any, q: Any) -> float:
    """Kullback-Leibler divergence ``KL(p || q) = integral p log(p / q)``, in nats; infinite where p
    is not covered by q.

    * finite: ``sum p log(p / q)``
    * normal, linear: ``(tr(S2^-1 S1) - d + log(det S2 / det S1) + (m2 - m1)' S2^-1 (m2 - m1)) / 2``
      in the common range
    * Beta: ``log B(q) / B(p) + (a1 - a2) psi(a1) + (b1 - b2) psi(b1) - (a1 + b1 - a2 - b2) psi(a1 +
      b1)``, summed over arms
    """
    return max(with_divergences(pair_of(p, q, "kl"), p, "kl").kl(), 0.0)


def hellinger(p: Any, q: Any) -> float:
    """Hellinger distance ``H = sqrt(1 - BC)`` with ``BC = integral sqrt(p q)``, between 0 and 1;
    ``H^2 <= TV <= H sqrt(2 - H^2)``.

    * finite: ``BC = sum sqrt(p q)``
    * normal, linear: ``log BC = -(m2 - m1)' M^-1 (m2 - m1) / 8 - log(det M / sqrt(det S1 det S2)) /
      2`` with ``M = (S1 + S2) / 2``
    * Beta: ``BC = prod B((a1 + a2) / 2, (b1 + b2) / 2) / sqrt(B(a1, b1) B(a2, b2))``
    """
    pair = with_divergences(ordered_pair(p, q, "hellinger"), p, "hellinger")
    return float(np.sqrt(-np.expm1(min(pair.log_affinity(), 0.0))))


def _upper(pair: DivergentPair) -> float:
    forward, backward = pair.kl(), pair.reverse_kl()
    with np.errstate(divide="ignore"):
        bounds = [
            np.sqrt(-np.expm1(min(2.0 * pair.log_affinity(), 0.0))),
            *(np.sqrt(divergence / 2.0) for divergence in (forward, backward)),
            *(np.sqrt(-np.expm1(-divergence)) for divergence in (forward, backward)),
            -np.expm1(np.log1p(-pair.parts()).sum()),
        ]
    return float(min(1.0, min(bounds) * (1.0 + ROUNDING)))


def _estimate(pair: SampledPair, seed: int, draws: int) -> tuple[float, float]:
    """Mean and standard error of ``|p - q| / (p + q) = |tanh(log(q/p) / 2)|``, half of each draw
    from p and half from q.
    """
    values = np.empty(draws)
    for start in range(0, draws, BLOCK):
        tasks = np.arange(start, min(start + BLOCK, draws), dtype=np.uint64)
        ratios = pair.log_ratios(Streams(seed, tasks).at(Purpose.POLICY, 0))
        values[start : start + BLOCK] = sum(np.abs(np.tanh(ratio / 2.0)) for ratio in ratios) / 2.0
    return float(values.mean()), float(std_error(values))
