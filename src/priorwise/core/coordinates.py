"""Free coordinates of a prior: any numbers make a prior, so that a search may walk in them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from priorwise.core.types import FloatArray


@final
@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where a prior stands, and how to make others of its form.

    ``x`` are its coordinates and ``width`` a long way in each of them, ``(size,)``: a mean has ten
    standard deviations, a logarithm or log odds 3. ``make`` returns the prior at other coordinates,
    with the same noise and names. ``names`` are the attributes that the coordinates decide on.
    """

    x: FloatArray
    width: FloatArray
    make: Callable[[FloatArray], Any]
    names: tuple[str, ...]
