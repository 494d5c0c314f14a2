"""Distances between mixtures.

If each component has a law of contexts of its own, an environment is a component with what that
draws, so different components exclude each other, and every distance is one of the components'
probabilities and one for each component:

    TV = sum_k (integral |p_k P_k - q_k Q_k|) / 2,    KL = sum_k p_k (log(p_k / q_k) + KL_k),
    BC = sum_k sqrt(p_k q_k) BC_k.

If components share the law of contexts, they overlap. Then a coupling of the components bounds the
total variation,

    TV <= min over couplings pi of p and q of sum_ij pi_ij TV(P_i, Q_j),

and draws from both mixtures estimate it, ``TV = E |p - q| / (p + q)`` under ``(p + q) / 2``, with
the densities ``p = sum_k p_k P_k`` and ``q``. Mixtures of finitely many tasks are one prior on
these, so their total variation is exact.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from priorwise.core.errors import MissingCapability
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.registry import family_for, family_of, has_part
from priorwise.theory.distance import DivergentPair, Pair
from priorwise.theory.enumeration import EnumerablePrior


def pair(p: MixturePrior, q: MixturePrior) -> Any:
    """Pair the components; the laws of contexts are those of both."""
    if p._own is None:
        return _overlapping(p, q)
    laws = list(p._own.laws)
    if any(law in laws[:place] for place, law in enumerate(laws)):
        raise MissingCapability(
            "contexts",
            "must be one law for all components, or one for each",
            cure="pass tv=... to bounds, such as that of the components' probabilities",
        )
    pairs = tuple(
        family_for(mine, "a mixture").pair(mine, yours)
        for mine, yours in zip(p.components, q.components, strict=True)
    )
    for each in pairs:
        if not isinstance(each, DivergentPair):
            raise MissingCapability("prior", "must have components with densities", got=type(each))
    return MixturePair(p.probs / p.probs.sum(), q.probs / q.probs.sum(), pairs)


def _overlapping(p: MixturePrior, q: MixturePrior) -> Any:
    """Pair mixtures whose components overlap."""
    one, two = _on_points(p), _on_points(q)
    if one is not None and two is not None and family_of(one) is family_of(two):
        return family_for(one, "a mixture").pair(one, two)
    sides = _Side.of(p), _Side.of(q)
    dense = all(side.densities is not None for side in sides)
    return (SampledOverlap if dense else Overlap)(*sides)


def _on_points(prior: MixturePrior) -> EnumerablePrior | None:
    """Return the one prior on finitely many tasks that a mixture of such priors is; None for
    others.
    """
    parts = prior.components
    if len({type(each) for each in parts}) > 1 or not isinstance(parts[0], EnumerablePrior):
        return None
    probs = np.concatenate([w * each.probs for w, each in zip(prior.probs, parts, strict=True)])
    every: Any = parts[0].pooled(parts[1:], np.ones(probs.size, dtype=bool))
    one: EnumerablePrior = every.replaced(probs=probs / probs.sum())
    return one


@final
@dataclass(frozen=True, eq=False)
class _Side:
    """One of two mixtures: its components that are possible."""

    prior: MixturePrior
    parts: tuple[Any, ...]
    probs: FloatArray  # (component,)
    densities: tuple[Any, ...] | None  # log densities of environments; None if one has none

    @classmethod
    def of(cls, prior: MixturePrior) -> "_Side":
        """Leave out components of probability 0."""
        some = np.flatnonzero(prior.probs > 0.0)
        parts = tuple(prior.components[k] for k in some)
        densities = [
            family_for(part, "a mixture").density(part) if has_part(part, "density") else None
            for part in parts
        ]
        dense = None if None in densities else tuple(densities)
        return cls(prior, parts, prior.probs[some] / prior.probs[some].sum(), dense)

    def log_density(self, environment: Any) -> FloatArray:
        """``log sum_k p_k P_k`` at environments, ``(task,)``."""
        assert self.densities is not None
        logs = np.stack([density(environment) for density in self.densities])
        return np.asarray(logsumexp(logs + np.log(self.probs)[:, None], axis=0))


@dataclass(frozen=True, eq=False)
class Overlap:
    """Two mixtures whose components overlap."""

    p: _Side
    q: _Side

    def total_variation(self) -> float | None:
        """Exact for equal mixtures, and for two that have one component each."""
        if self.p.prior == self.q.prior:
            return 0.0
        if len(self.p.parts) == len(self.q.parts) == 1:
            (only,) = self.coupled()[2][0]
            return None if only is None else only.total_variation()
        return None

    def coupled(self) -> tuple[FloatArray, FloatArray, list[list[Pair | None]]]:
        """Probabilities of the components, and the pairs of them; None across families."""
        pairs: list[list[Pair | None]] = [
            [
                family_for(mine, "a mixture").pair(mine, yours)
                if family_of(mine) is family_of(yours) and has_part(mine, "pair")
                else None
                for yours in self.q.parts
            ]
            for mine in self.p.parts
        ]
        return self.p.probs, self.q.probs, pairs


@final
@dataclass(frozen=True, eq=False)
class SampledOverlap(Overlap):
    """The same where all components have densities."""

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Log q/p at a draw from each."""
        drawn = [side.prior.sample(rng, rng.tasks) for side in (self.p, self.q)]
        first, second = (self.q.log_density(x) - self.p.log_density(x) for x in drawn)
        return first, second


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
