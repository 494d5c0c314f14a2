"""Free coordinates of a prior, in which a search may walk, and regressions of its mean on features
of tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from priorwise.core.types import FloatArray
from priorwise.fitting.fits import PriorFit


@final
@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where a prior stands, and how to make others of its form.

    ``x`` are its coordinates and ``width`` a long way in each of them, ``(size,)``: a mean has ten
    standard deviations, a logarithm or log odds 3. ``make`` returns the prior at other coordinates,
    with the same noise and names. ``names`` are the attributes that the coordinates decide on.
    ``scored`` takes a prior of this form and statistics, and returns the log marginal likelihood of
    each task ``(task,)`` and its derivatives in the coordinates ``(task, size)``; None where
    differences have to do.
    """

    x: FloatArray
    width: FloatArray
    make: Callable[[FloatArray], Any]
    names: tuple[str, ...]
    scored: Callable[[Any, Any], tuple[FloatArray, FloatArray]] | None = None


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
