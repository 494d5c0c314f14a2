"""Arithmetic of normal beliefs that several families share."""

import numpy as np

from priorwise.core.types import BoolArray, FloatArray


def condition(
    m: FloatArray, root: FloatArray, f: FloatArray, noise_var: FloatArray, residual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Condition N(m, L L') on an observation of x'w with noise: Potter's square-root update.

    ``f = L'x`` ``(task, dim)``, ``noise_var`` and ``residual = r - x'm`` ``(task,)``. With ``s =
    f'f + v``, ``m += L f (r - x'm) / s`` and ``L -= L f f' / (s + sqrt(v s))``.
    """
    s = np.einsum("tj,tj->t", f, f) + noise_var
    k = np.einsum("tij,tj->ti", root, f)
    shrink = k / (s + np.sqrt(noise_var * s))[:, None]
    less = shrink[:, :, None] * f[:, None, :]
    return m + k * (residual / s)[:, None], np.subtract(root, less, out=less)


def given(
    mean: FloatArray, root: FloatArray, precision: FloatArray, shift: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Condition N(mean, L L') on all that tasks saw at once: likelihoods ``exp(b'w - w'P w / 2)``.

    ``precision`` P ``(task, dim, dim)`` and ``shift`` b ``(task, dim)``. With ``P = H'H``, ``H'y =
    b - P m`` and the triangle ``[R z; 0 .]`` of the QR decomposition of ``[H L, y; I, 0]`` the
    posterior has the root ``L R^-1`` and the mean ``m + L R^-1 z``. ``R'R = I + L'P L`` is never
    formed: that would square the ratio of prior spread to noise, and with it the rounding. Singular
    priors need nothing special.
    """
    size = len(mean)
    squares, axes = np.linalg.eigh(precision)
    scale = np.sqrt(np.maximum(squares, 0.0))
    surprise = shift - np.einsum("tij,j->ti", precision, mean)
    stacked = np.zeros((len(shift), 2 * size, size + 1))
    stacked[:, :size, :size] = scale[:, :, None] * axes.transpose(0, 2, 1) @ root
    stacked[:, size:, :size] = np.eye(size)
    along = np.einsum("tij,ti->tj", axes, surprise)
    stacked[:, :size, size] = along / np.where(scale > 0.0, scale, np.inf)
    r = np.asarray(np.linalg.qr(stacked, mode="r"))[:, :size]
    r *= np.copysign(1.0, np.einsum("tii->ti", r[:, :, :size]))[:, :, None]  # as Cholesky's
    solved = np.linalg.solve(r[:, :, :size].transpose(0, 2, 1), root.T)
    new = np.ascontiguousarray(solved.transpose(0, 2, 1))
    return mean + np.einsum("tij,tj->ti", new, r[:, :, size]), new


def log_normal(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """Log density of normal residuals."""
    return np.asarray(-0.5 * (residual**2 / variance + np.log(2.0 * np.pi * variance)))


def expected_maximum(intercepts: FloatArray, slopes: FloatArray) -> FloatArray:
    """E[max_b (intercept_b + slope_b Z)] for standard normal Z, exactly; arrays ``(..., b)``, -inf
    intercepts never count.

    Line b is the highest on one interval, from the last crossing with a flatter line to the first
    with a steeper one. On (l, u) it contributes ``intercept (Phi(u) - Phi(l)) + slope (phi(l) -
    phi(u))``.
    """
    from scipy.special import ndtr

    intercepts, slopes = np.broadcast_arrays(intercepts, slopes)
    lower, upper, top = highest(intercepts, slopes)
    level = np.where(np.isfinite(intercepts), intercepts, 0.0)
    mass = np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
    densities = (np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) for x in (lower, upper))
    share = level * mass + slopes * np.subtract(*densities)
    return np.asarray(np.where(top, share, 0.0).sum(axis=-1))


def highest(intercepts: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return where each of several lines ``(..., b)`` is the highest, from and to, and whether it
    is anywhere.
    """
    usable = np.isfinite(intercepts)
    level = np.where(usable, intercepts, 0.0)
    lower = np.full(level.shape, -np.inf)
    upper = np.full(level.shape, np.inf)
    beaten = ~usable
    index = np.arange(level.shape[-1])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for other in index:
            rival, rival_slope = level[..., other : other + 1], slopes[..., other : other + 1]
            counts = usable[..., other : other + 1]
            crossing = (rival - level) / (slopes - rival_slope)
            lower = np.where(counts & (rival_slope < slopes), np.maximum(lower, crossing), lower)
            upper = np.where(counts & (rival_slope > slopes), np.minimum(upper, crossing), upper)
            parallel = counts & (rival_slope == slopes)
            beaten = beaten | (parallel & ((rival > level) | ((rival == level) & (other < index))))
    top = ~beaten & (lower < upper)
    return np.where(top, lower, 0.0), np.where(top, upper, 0.0), top
