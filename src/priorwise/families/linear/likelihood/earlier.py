"""Laws of plausible priors in files of fits from before arms and features shared one likelihood."""

from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core.parameters import Array, arrays
from priorwise.core.types import FloatArray
from priorwise.families.normal.likelihood.certainty import NormalUncertainty, centred
from priorwise.families.normal.likelihood.model import Structure
from priorwise.fitting.fits import Uncertainty
from priorwise.fitting.newton import positive_root


@final
@frozen(eq=False, slots=False)
class LinearUncertainty(Uncertainty):
    """Normal law of the mean, of E in a covariance ``A exp(E) A'``, and of the log noise variance
    where that was estimated; drawn as :class:`NormalUncertainty`, to which it is equal to first
    order.

    Parameters
    ----------
    root
        A, ``(dim, dim)``.
    diagonal
        Whether only the diagonal of E varies.
    information
        About the mean, in ``units``, E in its lower triangle, row by row, in which entries off the
        diagonal are multiplied by sqrt(2), and the log noise.
    units
        Units of the mean, ``(dim,)``.

    """

    family: ClassVar[str] = "linear-uncertainty"

    root: FloatArray = field(converter=arrays, validator=Array(("row", "column")))
    diagonal: bool
    information: FloatArray = field(converter=arrays, validator=Array(("coordinate", "coordinate")))
    units: FloatArray = field(converter=arrays, validator=Array(("row",)))

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``L = A (I + E / 2)``."""
        d = len(self.root)
        rows, columns = (np.arange(d),) * 2 if self.diagonal else np.tril_indices(d)
        moves, _ = positive_root(self.information, floor=0.5)
        mean, spread, noise = np.split(moves, (d, d + len(rows)))
        E = np.zeros((d, d, len(moves)))
        E[rows, columns] = spread * np.where(rows == columns, 1.0, np.sqrt(0.5))[:, None]
        E[columns, rows] = E[rows, columns]
        axes = np.linalg.eigh(self.root @ self.root.T)[1]
        structure: Structure = "diagonal" if self.diagonal else "full"
        means = np.ones(d), prior.mean, self.units[:, None] * mean
        roots = centred(self.root, 0.5 * np.tensordot(self.root, E, axes=1), axes)
        noises = prior.noise_var[0], noise if noise.size else np.zeros((1, len(moves)))
        return NormalUncertainty(structure, *means, *roots, *noises).draw(prior, rng, n)
