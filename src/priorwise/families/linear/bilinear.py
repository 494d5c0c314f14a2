"""Bilinear rewards ``v_a'L x``: arms have known features v_a, a pull shows one context x, and the
matrix L is unknown (the paper's example of a contextual bandit).

As ``v_a'L x = sum_ij L_ij v_ai x_j``, they are linear in the weights ``vec(L)``, row after row,
with the features ``vec(v_a x')`` of arm a. So every prior over weights serves.
"""

from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Covariance, arrays
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray

ROUNDING: Final = 1e-9
"""How far features may be from ``vec(v_a x')``, relative to the largest."""


def bilinear(arm_features: ArrayLike, contexts: ArrayLike) -> FloatArray:
    """Features ``vec(v_a x')`` of each arm in each of some contexts, ``(context, arm, n * d)``: a
    pool for :class:`GivenContexts`.

    Parameters
    ----------
    arm_features
        ``v_a`` of each arm, ``(arm, n)``.
    contexts
        ``x``, ``(context, d)``.

    Examples
    --------
    >>> bilinear([[1.0, 0.0], [1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[[3.0, 4.0, 0.0, 0.0], [3.0, 4.0, 6.0, 8.0]]]

    """
    v = validation.matrix("arm_features", arm_features)
    x = validation.matrix("contexts", contexts)
    return _products(v, x)


def matrix_normal(
    mean: ArrayLike, row_cov: ArrayLike, column_cov: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Mean ``(n * d,)`` and covariance of ``vec(L)`` where ``L = mean + A Z B'`` with standard
    normal Z, ``A A' = row_cov`` and ``B B' = column_cov``: what priors over weights take.

    ``Cov(L_ij, L_kl) = row_cov_ik column_cov_jl``.

    Parameters
    ----------
    mean
        ``(n, d)``: a row for each feature of an arm, a column for each of a context.
    row_cov, column_cov
        ``(n, n)`` and ``(d, d)``.

    Examples
    --------
    >>> m, cov = matrix_normal([[1.0, 2.0]], [[4.0]], [[1.0, 0.5], [0.5, 1.0]])
    >>> m.tolist(), cov.tolist()
    ([1.0, 2.0], [[4.0, 2.0], [2.0, 4.0]])

    """
    m = validation.matrix("mean", mean)
    rows = validation.covariance("row_cov", row_cov, m.shape[0])
    columns = validation.covariance("column_cov", column_cov, m.shape[1])
    return m.ravel(), np.asarray(np.kron(rows, columns), dtype=np.float64)


@final
@frozen(eq=False, slots=False)
class NormalContexts(Serializable):
    """One context ``x ~ N(mean, cov)`` at each pull, independent of the past; the features of arm a
    are ``vec(v_a x')``.

    Parameters
    ----------
    arm_features
        ``v_a`` of each arm, ``(arm, n)``. With ``np.eye(arms)`` each arm has its own weights for
        one context.
    cov
        Covariance of a context, not singular, ``(d, d)``.
    mean
        Mean of a context; 0 by default, ``(d,)``.

    Examples
    --------
    >>> import priorwise as pw
    >>> contexts = NormalContexts(arm_features=np.eye(3), cov=np.eye(2))
    >>> law = matrix_normal(np.zeros((3, 2)), np.eye(3), np.eye(2))
    >>> pw.LinearGaussianPrior(*law, contexts=contexts).dim
    6

    """

    family: ClassVar[str] = "normal-contexts"

    arm_features: FloatArray = field(converter=arrays, validator=Array(("arm", "n")))
    cov: FloatArray = field(converter=arrays, validator=Covariance(("d", "d")))
    mean: FloatArray = field(default=None, converter=arrays, validator=Array(("d",), fill=0.0))

    def __attrs_post_init__(self) -> None:
        if not self.arm_features.any():
            raise ArgumentError("arm_features", "must not all be 0: the context would stay hidden")
        scale = np.sqrt(np.diag(self.cov))
        if not scale.all() or np.linalg.eigvalsh(self.cov / scale[:, None] / scale)[0] < ROUNDING:
            raise ArgumentError(
                "cov", "must not be singular", cure="leave out entries that the others determine"
            )

    @cached_property
    def _root(self) -> FloatArray:
        """L with ``L L' = cov``."""
        return validation.square_root(self.cov)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(self.arm_features)

    @property
    def dim(self) -> int:
        """Number of features, n d."""
        return self.arm_features.shape[1] * self.mean.size

    def draw(self, rng: Stream, dim: int) -> FloatArray:
        """``vec(v_a x')`` with ``x ~ N(mean, cov)``."""
        if dim != self.dim:
            raise ArgumentError(
                "contexts",
                f"have {self.dim} features, but there are {dim} weights",
                cure=(
                    f"a matrix of {self.arm_features.shape[1]} x {self.mean.size} of them is needed"
                ),
            )
        x = self.mean + np.einsum("tj,ij->ti", rng.normal(self.mean.size), self._root)
        return _products(self.arm_features, x)

    @property
    def measure(self) -> Any:
        """Densities of x, given the features of the arms."""
        return "contexts of arms with features", self.arm_features.tolist()

    def log_density(self, features: FloatArray) -> FloatArray:
        """Log density of the context x that features ``(task, arm, n * d)`` show, ``(task,)``; -inf
        where none does.
        """
        v, (tasks, arms, dim) = self.arm_features, features.shape
        if (arms, dim) != (self.arms, self.dim):
            return np.full(tasks, -np.inf)
        shown = features.reshape(tasks, arms, v.shape[1], self.mean.size)
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.einsum("an,tand->td", v, shown) / np.einsum("an,an->", v, v)
            off = np.abs(_products(v, x) - features).max(axis=(1, 2))
            z = np.einsum("ij,tj->ti", self._whitening, x - self.mean)
            half = 0.5 * np.einsum("ti,ti->t", z, z) - np.log(np.diag(self._whitening)).sum()
        logs = -half - 0.5 * self.mean.size * np.log(2.0 * np.pi)
        return np.where(off <= ROUNDING * np.abs(features).max(axis=(1, 2)), logs, -np.inf)

    @cached_property
    def _whitening(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self._root), dtype=np.float64)


def _products(v: FloatArray, x: FloatArray) -> FloatArray:
    """``v_ai x_tj``, ``(task, arm, n * d)``."""
    return np.einsum("an,td->tand", v, x).reshape(len(x), len(v), -1)
