"""How far two particle priors are apart, and their posteriors after the same pulls.

Draws that were given are compared point by point, exactly. Of priors with densities p and q the
total variation is estimated from draws of both. Their posteriors are compared on the particles of
both together, which are draws from ``(p + q) / 2``: with weights ``p / (p + q)`` and ``q / (p +
q)`` they stand for p and for q, and both see the same likelihoods.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np

from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.distance import FinitePair
from priorwise.families.particle.belief import ParticleBelief
from priorwise.families.particle.prior import ParticlePrior
from priorwise.families.particle.weights import drawn
from priorwise.theory.conditions import Bounded, TailCondition
from priorwise.theory.diameters import DiameterLaw, FiniteLaw
from priorwise.theory.distance import BothBeliefs

SIGMAS: Final = 6.0
"""Standard errors by which two densities may seem not to have one constant."""
UNMET: Final = 20.0  # draws that a rare event may be short of
ENOUGH: Final = 100  # draws that are enough


def pair(p: ParticlePrior, q: ParticlePrior) -> Any:
    """Return the pair of two priors: exact for given draws, sampled for densities."""
    if p == q:
        return SamePair()
    if p.given and q.given:
        return FinitePair.of(p, q)  # type: ignore[arg-type]
    _check_densities(p, q)
    return DensityPair(p, q)


def _check_densities(p: ParticlePrior, q: ParticlePrior) -> None:
    """Raise an error for priors whose densities are not known, or of which one has none."""
    if p.given != q.given:
        raise ArgumentError(
            "q",
            "must be of given draws if the other prior is, and only then",
            cure="write both in one way to compare them",
        )
    if p.log_prior is None or q.log_prior is None:
        raise MissingCapability(
            "log_prior",
            "is missing: the distance needs the densities of both priors",
            cure="pass it, or let bounds and the ladder take the distance as tv=...",
        )
    if p.parameters.shape[1] != q.parameters.shape[1]:
        raise ArgumentError(
            "q",
            f"must have {p.parameters.shape[1]} parameters, as the other prior",
            got=q.parameters.shape[1],
        )


@final
@dataclass(frozen=True)
class SamePair:
    """Two equal priors."""

    def total_variation(self) -> float:
        """There is none."""
        return 0.0


@final
@dataclass(frozen=True, eq=False)
class DensityPair:
    """Two priors whose densities are known."""

    p: ParticlePrior
    q: ParticlePrior

    def total_variation(self) -> None:
        """Not known exactly."""
        return

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Return log q/p at a draw from p and at a draw from q.

        ``E_p[q / (p + q)] + E_q[q / (p + q)] = 1`` if both densities have their constants; draws
        that contradict it raise an error.
        """
        at = [self.log_ratio(prior.sample_parameters(rng)) for prior in (self.p, self.q)]
        shares = sum(1.0 / (1.0 + np.exp(-np.clip(each, -700.0, 700.0))) for each in at)
        off, error = float(np.mean(shares)) - 1.0, float(np.std(shares)) / np.sqrt(len(at[0]))
        if len(at[0]) >= ENOUGH and abs(off) > SIGMAS * error + UNMET / len(at[0]):
            raise ArgumentError(
                "log_prior",
                "of the two priors must be log densities with their constants, and of what "
                "sample draws",
                cure=(
                    f"their ratio averages to {1.0 + off:.3g} where it should to 1 (± {error:.2g})"
                ),
            )
        return at[0], at[1]

    def log_ratio(self, parameters: FloatArray) -> FloatArray:
        """Log q/p at some parameters, ``(row,)``."""
        with np.errstate(invalid="ignore"):
            return self.q.log_prior_at(parameters) - self.p.log_prior_at(parameters)


@final
@dataclass(frozen=True, eq=False)
class ParticlePosteriors(BothBeliefs):
    """Weights that two posteriors give to the same particles."""

    exact: bool

    @classmethod
    def start(cls, p: ParticlePrior, q: ParticlePrior, tasks: int) -> Self:
        """Put the particles of both priors together, and weigh them for each."""
        rows = np.concatenate([p.parameters, q.parameters])
        if p.given and q.given:
            first, second = _matched(p, q, rows, tasks)
            return cls(first, second, exact=True)
        _check_densities(p, q)
        ratio = np.clip(DensityPair(p, q).log_ratio(rows), -700.0, 700.0)
        laws = [1.0 / (1.0 + np.exp(sign * ratio)) for sign in (1.0, -1.0)]
        first, second = (_held(p, rows, law / law.sum()).belief(tasks) for law in laws)
        return cls(first, second, exact=False)

    def total_variation(self, rng: Stream) -> FloatArray:
        """``sum |p - q| / 2``."""
        first, second = self.p.probabilities(), self.q.probabilities()
        return np.asarray(np.abs(first - second).sum(axis=1) / 2.0)

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the drawn particles."""
        first, second = self.p.probabilities(), self.q.probabilities()
        at: IntArray = drawn(rng, self.p.log_weights, draws)
        rows = np.arange(len(at))[:, None]
        return np.minimum(1.0, second[rows, at] / first[rows, at])


def _held(prior: ParticlePrior, rows: FloatArray, law: FloatArray) -> ParticlePrior:
    """Return a prior on these rows alone, with these weights."""
    changes = {"sample": rows, "weights": law, "seed": None, "log_prior": None}
    return prior.replaced(**changes, impossible="reset")


def _matched(
    p: ParticlePrior, q: ParticlePrior, rows: FloatArray, tasks: int
) -> Iterator[ParticleBelief]:
    """Beliefs of two priors of given draws on the points of both, equal ones put together."""
    points, place = np.unique(rows + 0.0, axis=0, return_inverse=True)
    places = np.split(place.reshape(-1), [len(p.probs)])
    for prior, at in zip((p, q), places, strict=True):
        law = np.bincount(at, prior.probs, len(points))
        yield _held(prior, points, law / law.sum()).belief(tasks)


def tail_conditions(prior: ParticlePrior) -> tuple[TailCondition, ...]:
    """The largest diameter of a possible task: of the given draws, or of any rewards in their
    range.
    """
    if prior.given and prior.values is not None:
        return (Bounded(float(np.ptp(prior.values[:, prior.probs > 0.0], axis=0).max())),)
    between = prior.reward_range
    if between is None or not np.isfinite(between).all():
        return ()
    return (Bounded(between[1] - between[0]),)


def diameter(prior: ParticlePrior) -> DiameterLaw | None:
    """Law of the diameter, of given draws."""
    if not prior.given or prior.values is None:
        return None
    return FiniteLaw.of(np.ptp(prior.values, axis=0), prior.probs)
