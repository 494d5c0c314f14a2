"""What policies gain over random choice, and what share of that gain another policy keeps.

Most of a reward is earned by any arm. Choices add the gain ``g = reward - reward of random
choice``, so policies are compared by it. Gains come in pairs, of the same truths or of the same
tasks, ``(item,)``.

The share that a rival with gains h keeps is ``r = mean(h) / mean(g)``. Its error is Fieller's: r
belongs to the interval if ``mean(h) - r mean(g)`` is within one of its standard errors of 0.
"""

from typing import Final

import numpy as np
from scipy.stats import t as student

from priorwise.core.estimates import Estimate, mean_estimate, percent
from priorwise.core.types import FloatArray

MEASURABLE: Final = 2.0
"""Standard errors that a gain lies above 0 to be called one."""
KEPT: Final = 0.95
"""Share of the gain that an equally good policy keeps at least, and the probability of that."""


def is_measurable(gains: FloatArray) -> bool:
    """Return whether a mean gain lies more than two standard errors above 0."""
    gain = mean_estimate(gains)
    return bool(gain.mean > MEASURABLE * gain.std_error)


def share_kept(rival: FloatArray, gains: FloatArray) -> Estimate | None:
    """Return which share of the gain a rival keeps, or None if the gain is not measurable."""
    if not is_measurable(gains):
        return None
    h, g = float(rival.mean()), float(gains.mean())
    (v_h, c), (_, v_g) = np.cov(rival, gains) / len(gains)
    square, middle = g * g - v_g, h * g - c
    spread = max(middle**2 - square * (h * h - v_h), 0.0)
    return Estimate(h / g, float(np.sqrt(spread)) / square)


def is_as_good(rival: FloatArray, gains: FloatArray) -> bool:
    """Return whether a rival keeps at least 95% of the gain with a probability of 95% (Student's
    t). If there is no measurable gain, every rival within two standard errors is as good.
    """
    if not is_measurable(gains):
        gap = mean_estimate(gains - rival)
        return bool(gap.mean <= MEASURABLE * gap.std_error)
    more = mean_estimate(rival - KEPT * gains)
    return bool(more.mean >= student.ppf(KEPT, len(gains) - 1) * more.std_error)


def share_in_words(share: Estimate) -> str:
    """Write a share with its standard error, such as ``34 ± 5 %``."""
    return f"{percent(share.mean, 0).removesuffix(' %')} ± {percent(share.std_error, 0)}"


def given_away(kept: Estimate) -> str:
    """Write what a policy that keeps this share gives away of the gain."""
    lost = Estimate(1.0 - kept.mean, kept.std_error)
    if lost.mean < 0.0:
        return f"gains {share_in_words(Estimate(-lost.mean, lost.std_error))} more"
    return f"gives away {share_in_words(lost)} of the gain"
