"""What a family says of a prior whose mean is linear in features of tasks."""

from dataclasses import dataclass
from typing import final

from priorwise.core.fits import PriorFit
from priorwise.core.types import FloatArray


@final
@dataclass(frozen=True, eq=False)
class Regression:
    """A fit of ``mean + B z`` for tasks with features z, and how sure it is of the effects B.

    ``fit`` is that of a task without features (z = 0); its standard errors count that B is
    estimated, its law of plausible priors holds for the fitted B. ``effects`` are B, ``(arm,
    feature)``, or ``(feature,)`` where one number serves all arms. ``covariance`` is theirs, row by
    row, and ``slope`` says how the centre of the law moves with them.
    """

    fit: PriorFit
    effects: FloatArray
    covariance: FloatArray
    slope: FloatArray  # (coordinate of the law, effect)
