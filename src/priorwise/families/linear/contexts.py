"""Laws of contexts: what features the arms have at each pull. The law is known to the learner and
shared by all priors compared, unless it is a part of the unknown task: then features show which law
they follow (:mod:`priorwise.families.mixture.contexts`).
"""

from functools import cache
from typing import Any, ClassVar, Final, Protocol, final, runtime_checkable

import numpy as np
from attrs import field, frozen

from priorwise.core.errors import ArgumentError, ArgumentTypeError, shown
from priorwise.core.parameters import Array, Count, arrays
from priorwise.core.seen import Seen
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.normal.arithmetic import expected_maximum

REACH: Final = 9.0
"""Standard deviations beyond which nothing is integrated: 1e-18 of the mass."""


class Contexts(Protocol):
    """Where the features of the arms come from, drawn afresh at each pull."""

    @property
    def arms(self) -> int:
        """Number of arms."""
        ...

    def draw(self, rng: Stream, dim: int) -> FloatArray:
        """Features of each arm, ``(task, arm, dim)``; takes one call of ``rng``."""
        ...


@runtime_checkable
class IntegrableContexts(Contexts, Protocol):
    """Contexts over which the best expected value can be integrated exactly."""

    def expected_best(self, m: FloatArray, gains: FloatArray, seen: Seen) -> FloatArray:
        """E[max_b x_b'(m + g Z)] over fresh contexts x and standard normal Z, for ``m`` (task,
        dim), ``gains`` (task, a, dim).
        """
        ...


def law_of_contexts(contexts: Any) -> Contexts:
    """Return a law of contexts; an array stands for a pool of features."""
    if isinstance(contexts, (list, tuple, np.ndarray)):
        return GivenContexts(contexts)
    if isinstance(contexts, type) or not (hasattr(contexts, "arms") and hasattr(contexts, "draw")):
        raise ArgumentTypeError(
            "contexts",
            "must say where the features come from: SphereContexts(arms=...), an array (pool, "
            "arm, dim), or an object with arms and draw(rng, dim)",
            cure=f"got {shown(contexts)}",
        )
    law: Contexts = contexts
    return law


def check_weights(law: Contexts, size: int) -> None:
    """Raise an error for a law whose features are not as many as there are weights, where it says
    how many.
    """
    dim = law.features.shape[2] if isinstance(law, GivenContexts) else getattr(law, "dim", size)
    if dim != size:
        raise ArgumentError("contexts", f"have {dim} features, but mean has {size} weights")


@final
@frozen(eq=False, slots=False)
class SphereContexts(Serializable):
    """Each arm's features are uniform on the unit sphere, independent of the others and of the
    past.

    Parameters
    ----------
    arms
        Number of arms.

    """

    family: ClassVar[str] = "sphere-contexts"

    arms: int = field(validator=Count())

    def draw(self, rng: Stream, dim: int) -> FloatArray:
        """Normal vectors, scaled to length 1."""
        x = rng.normal(self.arms, dim)
        return np.asarray(x / np.sqrt(np.einsum("taj,taj->ta", x, x))[:, :, None])

    def expected_best(self, m: FloatArray, gains: FloatArray, seen: Seen) -> FloatArray:
        """The best of n directions along a vector w is worth ``|w|`` times a constant of n and the
        dimension.

        So what is left is E|m + g Z|, by Gauss-Legendre quadrature on both sides of the Z that
        comes nearest to 0, with nodes that crowd there: within 1e-6 of the exact value, relative to
        the spread.
        """
        available = np.full(len(m), self.arms) if seen.mask is None else seen.mask.sum(axis=1)
        factor = best_directions(self.arms, m.shape[1])[available]
        # |m + g z|^2 = |m|^2 + 2 z m'g + z^2 |g|^2
        mm = np.einsum("tj,tj->t", m, m)[:, None, None]
        mg = np.einsum("tj,taj->ta", m, gains)[:, :, None]
        gg = np.einsum("taj,taj->ta", gains, gains)[:, :, None]
        nearest = np.clip(-mg / np.maximum(gg, 1e-300), -REACH, REACH)
        nodes, weights = np.polynomial.legendre.leggauss(64)
        t, dt = (nodes + 1.0) / 2.0, weights / 2.0
        total = np.zeros(gains.shape[:2])
        for end in (-REACH, REACH):
            z = nearest + (end - nearest) * t**3  # dz = (end - nearest) 3 t^2 dt
            density = np.exp(-0.5 * z * z) * np.abs(end - nearest) * 3.0 * t**2
            density = density / np.sqrt(2.0 * np.pi)
            length = np.sqrt(np.maximum(mm + 2.0 * z * mg + z * z * gg, 0.0))
            total += np.einsum("taz,z->ta", length * density, dt)
        return factor[:, None] * total


@final
@frozen(eq=False, slots=False)
class GivenContexts(Serializable):
    """Each pull shows one entry of a pool of feature tables, drawn uniformly; a pool of one shows
    the same features always.

    Parameters
    ----------
    features
        Features of the arms in each entry, ``(pool, arm, dim)``.

    """

    family: ClassVar[str] = "given-contexts"

    features: FloatArray = field(
        converter=arrays, validator=Array(("pool", "arm", "dim"), spread=1)
    )

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.features.shape[1]

    def draw(self, rng: Stream, dim: int) -> FloatArray:
        """Pick an entry of the pool for each task."""
        return self.features[rng.integers(len(self.features))]

    @property
    def measure(self) -> Any:
        """Probabilities of single tables."""
        return "tables of features"

    def log_density(self, features: FloatArray) -> FloatArray:
        """Logarithm of the share of the pool that equals a task's features."""
        hits = sum((features == x).all(axis=(1, 2)) for x in self.features)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.asarray(hits, dtype=np.float64) / len(self.features)))

    def expected_best(self, m: FloatArray, gains: FloatArray, seen: Seen) -> FloatArray:
        """Average the exact value over the pool."""
        total = np.zeros(gains.shape[:2])
        for x in self.features:
            levels = seen.masked(np.einsum("tj,bj->tb", m, x))[:, None, :]
            total += expected_maximum(levels, np.einsum("taj,bj->tab", gains, x))
        return np.asarray(total / len(self.features))


def best_directions(arms: int, dim: int) -> FloatArray:
    """What the best of 0, 1, ..., ``arms`` directions on the sphere is worth, ``(arms + 1,)``."""
    return np.array([0.0] + [_best_direction(n, dim) for n in range(1, arms + 1)])


@cache
def _best_direction(arms: int, dim: int) -> float:
    """E[max of ``arms`` independent first coordinates of uniform points on the unit sphere in
    ``dim`` dimensions].
    """
    if dim == 1:  # coordinates are -1 or 1
        return float(1.0 - 2.0 ** (1 - arms))
    from scipy.integrate import quad
    from scipy.special import betainc

    half = (dim - 1) / 2

    def survival(t: float) -> float:
        below = betainc(half, half, (1 + t) / 2)
        return float(below**arms)

    return float(1.0 - quad(survival, -1.0, 1.0, epsabs=1e-13, limit=200)[0])
