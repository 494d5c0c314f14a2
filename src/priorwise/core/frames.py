"""How results leave the library: plain columns, and from them a pandas DataFrame for those who have
pandas.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

Table = dict[str, Sequence[Any] | NDArray[Any]]
"""Columns of a tidy table by name, all of one length: plain Python lists or NumPy arrays."""


class Tabular(ABC):
    """A result that can be told as one tidy table."""

    @abstractmethod
    def table(self) -> Table:
        """Columns of the table, by name, without any further package."""

    def to_frame(self) -> "DataFrame":
        """Return the table as a pandas DataFrame."""
        return frame(self.table())


def frame(columns: Mapping[str, Any]) -> "DataFrame":
    """Make a pandas DataFrame; pandas is imported here and nowhere else."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        needs = "to_frame() needs pandas: pip install pandas; table() returns the same columns"
        raise ModuleNotFoundError(needs, name="pandas") from None
    return DataFrame(dict(columns))
