"""Random numbers for particles that fill the unit cube evenly: a Sobol sequence, shifted at random.

Averages over n such points are off by about 1/n where independent draws are off by 1/sqrt(n), as
long as what is averaged is smooth and depends on few numbers. The shift (by exclusive or, with a
hash of the seed for each coordinate) makes every point uniform, so that averages stay without bias.
"""

from math import prod
from typing import Any, Final, final

import numpy as np

from priorwise.core import hashing
from priorwise.core.streams import Purpose, Stream
from priorwise.core.types import FloatArray, UIntArray

COORDINATES: Final = 64
"""Numbers of a row that fill the cube; further ones are independent draws."""
BITS: Final = 52
HALF: Final = 2.0**-53


@final
class QuasiStream(Stream):
    """A stream whose rows are the first points of a sequence; every request takes the next
    coordinates.
    """

    def __init__(self, seed: int, rows: int) -> None:
        """Number the rows from 0."""
        numbers = np.arange(rows, dtype=np.uint64)
        super().__init__(hashing.task_keys(seed, Purpose.ENVIRONMENT, numbers), 0)
        shifts = hashing.task_keys(seed, Purpose.WORLD, np.arange(COORDINATES, dtype=np.uint64))
        self._points = _sobol(rows) ^ (shifts >> np.uint64(64 - BITS))
        self._used = 0

    def uniform(self, *shape: int) -> FloatArray:
        """Uniform on [0, 1)."""
        first, count = self._used, prod(shape)
        if first + count > COORDINATES:
            return hashing.unit(super().bits(*shape))
        self._used += count
        some = self._points[:, first : first + count]
        return (some * 2.0**-BITS).reshape(self.tasks, *shape)

    def bits(self, *shape: int) -> UIntArray:
        """64 random bits each, the first of which fill the cube."""
        low = super().bits(*shape) >> np.uint64(BITS)
        return (self.uniform(*shape) * 2.0**BITS).astype(np.uint64) << np.uint64(12) | low

    def normal(self, *shape: int) -> FloatArray:
        """Draw standard normals, by inversion."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(*shape) + HALF))

    def beta(self, alpha: FloatArray, beta: FloatArray, draws: int = 1) -> FloatArray:
        """Beta draws, ``(task, draw, n)``, by inversion."""
        from scipy.special import betaincinv

        slots, a, b = self._parameters(draws, alpha=alpha, beta=beta)
        return np.asarray(betaincinv(a, b, self.uniform(*slots.shape[1:]) + HALF))

    def log_gamma(self, shape: FloatArray, draws: int = 1, name: str = "shape") -> FloatArray:
        """Logarithms of gammas, by inversion; near 0 by ``P(x) = x^a / Gamma(a + 1)``."""
        from scipy.special import gammaincinv, gammaln

        slots, a = self._parameters(draws, **{name: shape})
        u = self.uniform(*slots.shape[1:]) + HALF
        small = (np.log(u) + gammaln(a + 1.0)) / a
        with np.errstate(divide="ignore"):
            return np.where(small < -40.0, small, np.log(gammaincinv(a, u)))

    def student(self, freedom: FloatArray, draws: int = 1) -> FloatArray:
        """Student's t, ``(task, draw, n)``, by inversion."""
        from scipy.special import stdtrit

        slots, nu = self._parameters(draws, freedom=freedom)
        return np.asarray(stdtrit(nu, self.uniform(*slots.shape[1:]) + HALF))


def _sobol(rows: int) -> Any:
    """First points of the sequence as integers of 52 bits, ``(row, coordinate)``."""
    from scipy.stats.qmc import Sobol

    power = max(rows - 1, 0).bit_length()
    points = Sobol(COORDINATES, scramble=False, bits=BITS).random_base2(power)[:rows]
    return (points * 2.0**BITS).astype(np.uint64)
