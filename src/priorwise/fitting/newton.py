"""Newton's method: uphill from anywhere, and how sure its end is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from priorwise.core.types import FloatArray

ROUNDING: Final = 1e-14  # of a sum of as many terms as there are tasks, relative to its size
SMALL: Final = 6  # coordinates below which eigenvalues cost no more than a root
HALVINGS: Final = 50  # of a step that falls, before there is none that rises
IDLE: Final = 10  # after which a step that does not rise is the last


class Place(Protocol):
    """A function at some coordinates."""

    @property
    def x(self) -> FloatArray:
        """Coordinates."""
        ...

    @property
    def value(self) -> float:
        """Value; minus infinity or NaN outside the domain."""
        ...

    @property
    def gradient(self) -> FloatArray:
        """Gradient."""
        ...

    def information(self) -> FloatArray:
        """Minus the matrix of second derivatives."""
        ...


@dataclass(frozen=True, eq=False)
class Spot:
    """A place of a function that is given by its value, and by its gradient and information."""

    x: FloatArray
    value: float
    slopes: Callable[[FloatArray], tuple[FloatArray, FloatArray]]

    @cached_property
    def _found(self) -> tuple[FloatArray, FloatArray]:
        return self.slopes(self.x)

    @property
    def gradient(self) -> FloatArray:
        """Gradient."""
        return self._found[0]

    def information(self) -> FloatArray:
        """Minus the matrix of second derivatives."""
        return self._found[1]


P = TypeVar("P", bound=Place)


@dataclass(frozen=True, eq=False)
class Climb(Generic[P]):
    """Where an ascent ended; ``values`` holds the function at each iteration, which never falls."""

    place: P
    converged: bool
    values: tuple[float, ...]

    @property
    def iterations(self) -> int:
        """Number of steps taken."""
        return len(self.values) - 1


def climb(
    at: Callable[[FloatArray], P],
    start: FloatArray,
    *,
    tolerance: float = 1e-10,
    limit: int = 200,
    longest: float = np.inf,
    low: FloatArray | float = -np.inf,
    high: FloatArray | float = np.inf,
    scoring: Callable[[P], FloatArray] | None = None,
    last: bool = True,
) -> Climb[P]:
    """Climb until a step promises a rise below ``tolerance``; ``last`` says whether to take it.

    The step is ``H^-1 g`` with H the information; where that is not positive definite, what
    ``scoring`` gives instead, such as the expected one, or else the same with curvatures of the
    wrong sign turned, so that it leads away from saddles. It is shortened to ``longest``, and
    halved until the function does not fall. Being scale-free, the promise ``g'H^-1 g / 2`` says how
    far, in standard errors, the top is. Coordinates stay between ``low`` and ``high``.
    """
    here = at(np.minimum(np.maximum(start, low), high))
    values = [here.value]
    for _ in range(limit):
        gradient = here.gradient
        free = ~(((here.x <= low) & (gradient < 0.0)) | ((here.x >= high) & (gradient > 0.0)))
        gradient, inner = gradient[free], None if free.all() else np.ix_(free, free)
        tries: list[Callable[[], FloatArray]] = [here.information]
        if scoring is not None:
            tries.append(partial(scoring, here))
        for matrix in tries:
            H = matrix() if inner is None else matrix()[inner]
            scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-12 * np.abs(H).max(initial=1e-300)))
            H = H / scale / scale[:, None]
            if scoring is None and len(H) < SMALL:
                continue
            less = H.copy()
            less.flat[:: len(H) + 1] -= 1e-11
            try:
                np.linalg.cholesky(less)
            except np.linalg.LinAlgError:
                continue
            own = np.linalg.solve(H, gradient / scale) / scale
            break
        else:
            curves, axes = np.linalg.eigh(H)
            sizes = np.maximum(np.abs(curves), 1e-9 * np.abs(curves).max(initial=1e-300))
            own = axes @ ((axes.T @ (gradient / scale)) / sizes) / scale
        own = own * min(1.0, longest / max(float(np.abs(own).max(initial=0.0)), 1e-300))
        gain, step = 0.5 * float(gradient @ own), np.zeros_like(here.x)
        step[free] = own
        enough = tolerance + ROUNDING * abs(here.value)
        if gain < enough and not last:
            return Climb(here, True, tuple(values))
        moved, halved = False, 0
        while halved < HALVINGS:
            there = at(np.minimum(np.maximum(here.x + step, low), high))
            # within rounding of the value the step itself is still good
            moved = there.value >= here.value - (enough if gain < enough else 0.0)
            if moved:
                break
            step, halved = step / 2.0, halved + 1
        # a slope that is not quite that of the value, as quadrature's, leads nowhere in the end
        idle = moved and halved >= IDLE and there.value <= here.value
        if moved:
            here = there
            values.append(max(here.value, values[-1]))
        if gain < enough or not moved or idle:
            return Climb(here, gain < 1e3 * enough, tuple(values))
    return Climb(here, False, tuple(values))


def climb_by_gradient(
    at: Callable[[FloatArray], P], start: FloatArray, *, tolerance: float, limit: int
) -> Climb[P]:
    """Climb by a quasi-Newton method, where second derivatives in all coordinates cost too much."""
    from scipy.optimize import minimize

    values = [at(start).value]
    visited: dict[bytes, float] = {}

    def descent(x: FloatArray) -> tuple[float, FloatArray]:
        place = at(x)
        visited[x.tobytes()] = place.value
        return -place.value, -place.gradient

    def keep(x: FloatArray) -> None:
        values.append(visited[x.tobytes()])

    options: dict[str, Any] = {"maxiter": 20 * limit, "maxfun": 40 * limit, "gtol": 1e-6}
    options["ftol"] = tolerance / max(abs(values[0]), 1.0)
    found = minimize(descent, start, jac=True, method="L-BFGS-B", callback=keep, options=options)
    return Climb(at(found.x), bool(found.success), tuple(values))


def positive_root(
    information: FloatArray, *, least: float = 1e-12, floor: float = 0.0
) -> tuple[FloatArray, bool]:
    """Return a root C of the inverse, ``C C' = information^-1``, and whether all directions were
    determined.

    Directions whose eigenvalue is below ``least`` times the largest, or below ``floor``, are not
    determined by the data; they are given that much.
    """
    even = (information + information.T) / 2.0
    if np.diag(even).min() > 1e-300:
        scale = np.sqrt(np.diag(even))
        try:
            if floor:
                np.linalg.cholesky(even - floor * np.eye(len(even)))
            root = np.linalg.cholesky(
                even / scale / scale[:, None] - 10.0 * least * np.eye(len(even))
            )
        except np.linalg.LinAlgError:
            pass
        else:
            return np.asarray(np.linalg.inv(root).T / scale[:, None]), True
    values, vectors = np.linalg.eigh(even)
    lowest = max(least * float(values[-1]), floor, 1e-300)
    return np.asarray(vectors / np.sqrt(np.maximum(values, lowest))), bool(values[0] > lowest)
