"""Which two priors can be compared, and what each family supplies for it.

A distance between priors says something about trajectories only if everything else is shared:
number of arms, reward law and law of contexts. Priors that differ in those are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.distance import BetaPair
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.finite.distance import FinitePair
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.normal.distance import GaussianPair


class Pair(Protocol):
    """Two laws of one family, written so that what they share drops out."""

    def total_variation(self) -> float | None:
        """Exact value, or None."""
        ...

    def parts(self) -> FloatArray:
        """Exact total variations of independent parts."""
        ...

    def log_affinity(self) -> float:
        """Logarithm of the integral of sqrt(p q)."""
        ...

    def kl(self) -> float:
        """KL(p || q)."""
        ...

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        ...

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Return log q/p at a draw from p and at a draw from q, ``(task,)`` each."""
        ...


_PAIRS: Final[dict[type, Callable[[Any, Any], Pair]]] = {
    FinitePrior: lambda p, q: FinitePair.of(p.means, p.probs, q.means, q.probs),
    GaussianPrior: lambda p, q: GaussianPair.of(p.mean, p.cov, q.mean, q.cov),
    LinearGaussianPrior: lambda p, q: GaussianPair.of(p.mean, p.cov, q.mean, q.cov),
    BetaPrior: lambda p, q: BetaPair.of(p.alpha, p.beta, q.alpha, q.beta),
}


def pair_of(p: Any, q: Any) -> Pair:
    """Return the pair of two priors that differ in nothing but their law over tasks."""
    _check_comparable(p, q)
    return _PAIRS[type(p)](p, q)


def ordered_pair(p: Any, q: Any) -> Pair:
    """Return the pair in an order that does not depend on that of the arguments, so that distances
    are symmetric bit for bit.
    """
    _check_comparable(p, q)
    return pair_of(*sorted((p, q), key=_order))


def _order(prior: Any) -> list[Any]:
    names = {FinitePrior: ("means", "probs"), BetaPrior: ("alpha", "beta")}.get(
        type(prior), ("mean", "cov")
    )
    return [getattr(prior, name).tolist() for name in names]


def _check_comparable(p: Any, q: Any) -> None:
    """Check that two priors differ in nothing but their law over tasks."""
    for name, prior in (("p", p), ("q", q)):
        if isinstance(prior, (ExchangeableGaussianPrior, ExchangeableBetaPrior)):
            raise ValueError(
                f"the distance between {type(prior).__name__}s depends on the number of arms: pass "
                "prior.for_arms(n) for both"
            )
        if type(prior) not in _PAIRS:
            known = ", ".join(family.__name__ for family in _PAIRS)
            raise TypeError(
                f"{name} must be a prior of a known family: distances are known for {known}, not "
                f"for a {type(prior).__name__}; "
                "bounds and the ladder take its total variation from the other prior as tv=..."
            )
    if type(p) is not type(q):
        raise ValueError(
            f"the priors are of different families, {type(p).__name__} and {type(q).__name__}; "
            "write both in one family to compare them"
        )
    if p.arms != q.arms:
        raise ValueError(
            f"the priors have {p.arms} and {q.arms} arms; restrict both to the arms they share"
        )
    if isinstance(p, LinearGaussianPrior):
        if p.dim != q.dim:
            raise ValueError(
                f"the priors have {p.dim} and {q.dim} weights; use the same features for both"
            )
        if p.contexts is not q.contexts and p.contexts != q.contexts:
            raise ValueError(
                "the priors have different laws of contexts; give both the same contexts=..."
            )
    if p.reward_law != q.reward_law:
        raise ValueError(
            f"the priors have different reward laws, {p.reward_law} and {q.reward_law}: "
            "a distance between priors says nothing about rewards then; give both the same noise "
            "(and noise_var)"
        )
