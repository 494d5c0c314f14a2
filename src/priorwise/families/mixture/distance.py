"""Distances between mixtures whose components are told apart by their laws of contexts.

An environment is a component with what that draws, so that different components exclude each other,
and every distance is one of the components' probabilities and one for each component:

    TV = sum_k (integral |p_k P_k - q_k Q_k|) / 2,    KL = sum_k p_k (log(p_k / q_k) + KL_k),
    BC = sum_k sqrt(p_k q_k) BC_k.

Where components share the law of contexts they overlap, and no distance is known.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from priorwise.core.distance import DivergentPair
from priorwise.core.family import ask
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.mixture.prior import MixturePrior


def pair(p: MixturePrior, q: MixturePrior) -> "MixturePair":
    """Pair the components; the laws of contexts are those of both."""
    laws = [] if p._own is None else list(p._own.laws)
    if p._own is None or any(law in laws[:place] for place, law in enumerate(laws)):
        raise TypeError(
            "a distance between mixtures is known only where each component has a law of contexts "
            "of its own, so that components exclude each other; pass tv=... to bounds, such as "
            "that of the components' probabilities"
        )
    pairs = tuple(
        ask(mine, "pair", "a mixture")(mine, yours)
        for mine, yours in zip(p.components, q.components, strict=True)
    )
    for each in pairs:
        if not isinstance(each, DivergentPair):
            raise TypeError(f"a distance between mixtures needs densities: {type(each).__name__}")
    return MixturePair(p.probs / p.probs.sum(), q.probs / q.probs.sum(), pairs)


@final
@dataclass(frozen=True, eq=False)
class MixturePair:
    """Probabilities of the components, and the pairs of them."""

    p: FloatArray  # (component,)
    q: FloatArray
    pairs: tuple[Any, ...]

    def total_variation(self) -> float | None:
        """Exact where each component is the same for both or equally likely, or excludes its
        fellow.
        """
        total = 0.0
        for p, q, each in zip(self.p.tolist(), self.q.tolist(), self.pairs, strict=True):
            if p == 0.0 or q == 0.0:
                total += (p + q) / 2.0
                continue
            tv = each.total_variation()
            if tv is None or (p != q and 0.0 < tv < 1.0):
                return None
            total += p * tv if p == q else (abs(p - q) if tv == 0.0 else p + q) / 2.0
        return min(total, 1.0)

    def parts(self) -> FloatArray:
        """Nothing is independent: no more than 1 is known."""
        return np.ones(1)

    def log_affinity(self) -> float:
        """``log sum_k sqrt(p_k q_k) BC_k``."""
        both = (self.p > 0.0) & (self.q > 0.0)
        if not both.any():
            return -np.inf
        each = np.array([self.pairs[k].log_affinity() for k in np.flatnonzero(both)])
        return float(logsumexp(0.5 * np.log(self.p[both] * self.q[both]) + each))

    def kl(self) -> float:
        """``sum_k p_k (log(p_k / q_k) + KL(P_k || Q_k))``."""
        return self._kl(self.p, self.q, [each.kl for each in self.pairs])

    def reverse_kl(self) -> float:
        """``sum_k q_k (log(q_k / p_k) + KL(Q_k || P_k))``."""
        return self._kl(self.q, self.p, [each.reverse_kl for each in self.pairs])

    @staticmethod
    def _kl(p: FloatArray, q: FloatArray, each: list[Any]) -> float:
        some = np.flatnonzero(p > 0.0)
        if (q[some] == 0.0).any():
            return np.inf
        return float(sum(p[k] * (np.log(p[k] / q[k]) + each[k]()) for k in some))

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Log q/p at a draw from each: that of the component, and within it."""
        rows, shape = np.arange(rng.tasks), (rng.tasks, self.p.size)
        index = [rng.choice(np.broadcast_to(probs, shape)) for probs in (self.p, self.q)]
        drawn = [each.log_ratios(rng) for each in self.pairs]
        with np.errstate(divide="ignore"):
            log_odds = np.log(self.q) - np.log(self.p)
        first, second = (
            log_odds[chosen] + np.stack([each[side] for each in drawn])[chosen, rows]
            for side, chosen in enumerate(index)
        )
        return first, second
