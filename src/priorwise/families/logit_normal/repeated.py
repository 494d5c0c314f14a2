"""What several pulls of an arm with a logit-normal belief teach, to a good approximation.

The exact value needs a belief of its own for each number of successes. Instead posterior means are
taken to move together as lognormal variables, with one standard normal Z: ``E[mu_b given m rewards
of a] = m_b exp(d_b Z - d_b^2 / 2)``. Of the pulled arm the variance is that of a Beta belief with
the same two moments: ``Var mu_a m / (m + n)`` with ``n = m_a (1 - m_a) / Var mu_a - 1``. The other
arms follow by the correlation of their log odds with its, ``d_b = rho_ab D_b d_a / D_a``, where
``D^2 = log(1 + Var mu / m^2)``. Means average to what they are now, so a pull never seems to cost.

The largest of such curves is a finite sum over the intervals of Z on which each is highest, as for
lines.
"""

import numpy as np

from priorwise.core.types import BoolArray, FloatArray


def expected_best(
    mean: FloatArray, var: FloatArray, cov: FloatArray, pulls: int, mask: BoolArray | None
) -> FloatArray:
    """``E max_b E[mu_b given m rewards of a]`` for each arm a ``(task, arm)``, from means and
    variances of the rates ``(task, arm)`` and the covariance of the log odds ``(task, arm, arm)``.
    """
    square = var / mean**2
    spread = np.sqrt(np.log1p(square))
    worth = np.maximum(mean * (1.0 - mean) / np.maximum(var, 1e-300) - 1.0, 0.0)  # in pulls
    moved = np.sqrt(np.log1p(square * pulls / (pulls + worth)))
    std = np.sqrt(np.einsum("taa->ta", cov))
    correlation = cov / np.maximum(std[:, :, None] * std[:, None, :], 1e-300)
    share = moved / np.maximum(spread, 1e-300)
    slopes = correlation * spread[:, None, :] * share[:, :, None]
    logs = np.log(mean if mask is None else np.where(mask, mean, 1e-300))
    return expected_largest(logs[:, None, :] - slopes**2 / 2.0, slopes)


def expected_largest(intercepts: FloatArray, slopes: FloatArray) -> FloatArray:
    """``E exp(max_b (intercept_b + slope_b Z))``, exactly; arrays ``(..., b)``.

    On (l, u) the highest line contributes ``exp(intercept + slope^2 / 2) (Phi(u - slope) - Phi(l -
    slope))``.
    """
    from scipy.special import ndtr

    from priorwise.families.normal.arithmetic import highest

    lower, upper, top = highest(intercepts, slopes)
    low, high = lower - slopes, upper - slopes
    mass = np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return np.asarray(np.where(top, np.exp(intercepts + slopes**2 / 2.0) * mass, 0.0).sum(axis=-1))
