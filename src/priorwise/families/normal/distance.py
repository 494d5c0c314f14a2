"""Two normal laws in coordinates that diagonalise both covariances.

With ``M = (S1 + S2) / 2`` and ``E = (S2 - S1) / 2``, let the columns of V solve ``V'MV = I``,
``V'EV = diag(e)``. In the coordinates ``V'x`` the laws are products of N(-delta_i / 2, 1 - e_i) and
N(delta_i / 2, 1 + e_i), up to a shift of the origin. So every distance becomes a sum or a product
over coordinates, and those in which the laws agree drop out. ``E`` is a difference of the inputs,
so a small distance keeps its digits.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.normal.beliefs import NormalPrior
from priorwise.theory.numerics import exp_excess, normal_mass

EPS: Final = float(np.finfo(np.float64).eps)
EQUAL: Final = 1e-12
"""Relative differences of variances below this may pass for rounding; they move the total variation
by less.
"""
BLUR: Final = 1e-8
"""Rounding of the inputs that may move a total variation by more than about this is not rounded
away.
"""
FAR: Final = 1e6
"""Mean differences beyond this many pooled standard deviations put the total variation at 1, to all
digits.
"""


@dataclass(frozen=True, eq=False)
class GaussianPair:
    """Coordinates in which two normal laws differ, or ``singular``: they live on different affine
    subspaces.

    ``s1``, ``s2``: variances, of mean 1; ``e = (s2 - s1) / 2``; ``t = log(s2 / s1) / 2 =
    artanh(e)``; ``delta``: difference of means.
    """

    delta: FloatArray
    e: FloatArray
    s1: FloatArray
    s2: FloatArray
    t: FloatArray
    singular: bool = field(default=False, kw_only=True)

    @classmethod
    def of(cls, p: NormalPrior[Any], q: NormalPrior[Any]) -> "GaussianPair":
        """Diagonalise; directions of zero variance under both laws are left out if the means agree
        there.
        """
        if p.mean.size != q.mean.size:
            raise ArgumentError(
                "q",
                f"must have {p.mean.size} weights, as the other prior",
                got=q.mean.size,
                cure="use the same features for both",
            )
        none = [np.empty(0)] * 5
        apart = cls(*none, singular=True)
        shift = q.mean - p.mean
        moving = (np.diag(p.cov) > 0) | (np.diag(q.cov) > 0)
        if np.any(shift[~moving] != 0.0):
            return apart
        if not moving.any():
            return cls(*none)
        shift, block = shift[moving], np.ix_(moving, moving)
        one, two = p.cov[block], q.cov[block]
        size = np.abs(p.mean[moving]) + np.abs(q.mean[moving])
        scale = np.sqrt(np.diag(one) / 2 + np.diag(two) / 2)
        laws = (one / scale[:, None] / scale, two / scale[:, None] / scale)
        pooled, change = (laws[0] + laws[1]) / 2, (laws[1] - laws[0]) / 2
        roots, vectors = np.linalg.eigh(pooled)
        inside = roots > _floor(len(roots))
        if not covariance_rank(one) == covariance_rank(two) == int(inside.sum()):
            return apart
        basis, step = vectors[:, inside], shift / scale
        outside = step - basis @ (basis.T @ step)
        far = float(np.linalg.norm(size / scale))
        if np.linalg.norm(outside) > 1e-10 * np.linalg.norm(step) + 64 * EPS * far:
            return apart
        whiten = basis / np.sqrt(roots[inside])
        e, turn = np.linalg.eigh(whiten.T @ change @ whiten)
        v = (whiten @ turn) / scale[:, None]
        roots_of = (validation.square_root(s) for s in (one, two))
        s1, s2 = (np.maximum(((root.T @ v) ** 2).sum(axis=0), 1e-300) for root in roots_of)
        near = np.abs(e) < 0.5
        e = np.where(near, e, (s2 - s1) / 2)
        s1, s2 = np.where(near, 1.0 - e, s1), np.where(near, 1.0 + e, s2)
        t = np.where(near, np.arctanh(np.where(near, e, 0.0)), np.log(s2 / s1) / 2)
        # what rounding of the inputs does to e
        noise = min(16 * EPS * len(e) / float(roots[inside].min(initial=1.0)), EQUAL)
        # the sign of a coordinate is free
        pair = cls(np.abs(v.T @ shift), e, s1, s2, t)._reduced(noise)
        if pair.e.size < 2:
            return pair
        blur = 16 * EPS * len(step) * far
        return cls._in_one_direction(step, change, laws, whiten, blur) or pair

    @classmethod
    def _in_one_direction(
        cls,
        step: FloatArray,
        change: FloatArray,
        laws: tuple[FloatArray, FloatArray],
        whiten: FloatArray,
        blur: float,
    ) -> "GaussianPair | None":
        """Pair of laws with ``change = c v v'`` and ``step = d v`` for one direction v, up to
        rounding; None for all others.

        Rounding moves an entry of a covariance by a few EPS of its arms' scales, which are 1 here,
        and ``step`` by ``blur``. Whitened coordinates would blow it up, and eigenvectors of a small
        change turn with it: v is looked for both in ``change`` and in ``step``, of which one is
        always sharp enough. Along v the narrower law S has variance ``1 / v'S^-1 v`` and the wider
        one ``2 |c|`` more.
        """
        values, vectors = np.linalg.eigh(change)
        for along in (vectors[:, np.argmax(np.abs(values))], step):
            v = along / (np.linalg.norm(along) or 1.0)
            c, d = float(v @ change @ v), float(v @ step)
            rest, left = change - c * np.outer(v, v), step - d * v
            if np.abs(rest).max() > 16 * EPS * len(step) or np.abs(left).max() > blur:
                continue
            if np.linalg.norm(whiten.T @ rest @ whiten) + np.linalg.norm(whiten.T @ left) > BLUR:
                continue
            inner = whiten.T @ laws[0 if c > 0.0 else 1] @ whiten
            roots, turn = np.linalg.eigh(inner)
            if not roots[0] > 0.0:
                continue
            precision = float(np.sum((turn.T @ whiten.T @ v) ** 2 / roots))
            pooled = 1.0 / precision + abs(c)
            t = np.copysign(np.log1p(2.0 * abs(c) * precision) / 2.0, c)
            variances = np.array([1.0 / precision, 1.0 / precision + 2.0 * abs(c)]) / pooled
            s1, s2 = variances if c > 0.0 else variances[::-1]
            return cls(*np.array([[abs(d) / np.sqrt(pooled)], [c / pooled], [s1], [s2], [t]]))
        return None

    def _reduced(self, noise: float) -> "GaussianPair":
        """Gather the coordinates of equal variance into one, along the difference of means; drop
        what does not differ.
        """
        equal = np.abs(self.e) <= noise
        along = float(np.linalg.norm(self.delta[equal]))
        differ = ~equal
        extra = int(along > (noise if differ.any() else 0.0))
        ends = zip(self._rows(), (along, 0.0, 1.0, 1.0, 0.0), strict=True)
        return GaussianPair(*(np.append(row[differ], [end] * extra) for row, end in ends))

    def _rows(self) -> tuple[FloatArray, ...]:
        return self.delta, self.e, self.s1, self.s2, self.t

    def total_variation(self) -> float | None:
        """Exact value where one coordinate differs (equal covariances are such a case), None where
        several do.
        """
        if self.singular:
            return 1.0
        return None if self.e.size > 1 else float(self.parts().sum())

    def parts(self) -> FloatArray:
        """Total variation of each coordinate."""
        return np.array([_one_dimension(*row) for row in zip(*self._rows(), strict=True)])

    def log_affinity(self) -> float:
        """Log of the integral of sqrt(p q): ``-sum_i (log(cosh t_i) / 2 + delta_i^2 / 8)``."""
        if self.singular:
            return -np.inf
        with np.errstate(over="ignore"):
            log_cosh = np.log1p(2.0 * np.sinh(self.t / 2.0) ** 2)
            return float(-(log_cosh / 2.0 + self.delta**2 / 8.0).sum())

    def kl(self) -> float:
        """KL(p || q): ``sum_i (s1 / s2 - 1 - log(s1 / s2) + delta^2 / s2) / 2``."""
        if self.singular:
            return np.inf
        with np.errstate(over="ignore"):
            return float((exp_excess(-2.0 * self.t) + self.delta**2 / self.s2).sum() / 2.0)

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        e, t = -self.e, -self.t
        return replace(self, delta=-self.delta, e=e, s1=self.s2, s2=self.s1, t=t).kl()

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Log q/p at a draw from p and at a draw from q, ``(task,)`` each; both from the same
        standard normals.
        """
        z = rng.normal(self.e.size)
        delta = np.clip(self.delta, -FAR, FAR)
        level = -self.t.sum()
        # at -delta/2 + sqrt(s1) z: -t + (e z^2 + sqrt(s1) delta z - delta^2 / 2) / s2
        moved = z * (self.e * z + np.sqrt(self.s1) * delta)
        under_p = level + (moved - delta**2 / 2) @ (1.0 / self.s2)
        # at delta/2 + sqrt(s2) z: -t + (e z^2 + sqrt(s2) delta z + delta^2 / 2) / s1
        moved = z * (self.e * z + np.sqrt(self.s2) * delta)
        under_q = level + (moved + delta**2 / 2) @ (1.0 / self.s1)
        return np.asarray(under_p), np.asarray(under_q)


def _floor(size: int) -> float:
    return 32 * EPS * size


def covariance_rank(cov: FloatArray) -> int:
    """Rank, judged on correlations so that arms of different scales do not matter."""
    used = np.diag(cov) > 0
    if not used.any():
        return 0
    scale = np.sqrt(np.diag(cov)[used])
    values = np.linalg.eigvalsh(cov[np.ix_(used, used)] / scale[:, None] / scale)
    return int((values > _floor(len(values))).sum())


def _one_dimension(delta: float, e: float, s1: float, s2: float, t: float) -> float:
    """Total variation of N(-delta/2, s1) and N(delta/2, s2), from the two points where the
    densities cross.
    """
    from scipy.special import erf

    delta = min(max(delta, -FAR), FAR)
    if e < 0.0:  # let the first law be the narrower one
        delta, e, s1, s2, t = -delta, -e, s2, s1, -t
    if e <= 1e-17 * abs(delta) or e < 1e-150:
        return float(erf(abs(delta) / np.sqrt(8.0)))  # 2 Phi(d / 2) - 1
    # in units of the narrower law: e z^2 + sqrt(s1) delta z - (delta^2 / 2 + t s2) = 0
    b = np.sqrt(s1) * delta
    larger = -(b + np.copysign(np.sqrt(s2 * (delta**2 + 4.0 * e * t)), b)) / 2.0
    crossings = (larger / e, -(delta**2 / 2.0 + t * s2) / larger)
    # Q(x <= z) - P(x <= z) is positive at the lower crossing and negative at the upper one, so
    # nothing cancels
    gains = [normal_mass(z, z * np.expm1(-t) - delta / np.sqrt(s2)) for z in crossings]
    return float(min(abs(gains[0] - gains[1]), 1.0))
