"""What an experiment is: blocks of work that return arrays, tables made from them, figures and
claims that read the tables.

A block is a range of replicates. What it returns depends on the experiment, the seed and the range
alone, so blocks may run anywhere and in any order, and a finished block never has to run again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from priorwise.figures.tables import Table

Arrays = dict[str, NDArray[Any]]
"""What a block returns: named arrays, replicate axis first."""

Tables = Mapping[str, Table]

Files = dict[str, bytes]
"""Content of a figure's files, by suffix."""


@final
@dataclass(frozen=True)
class Block:
    """Replicates ``first`` to ``first + count - 1`` of one part of an experiment."""

    part: str
    first: int
    count: int

    @property
    def replicates(self) -> range:
        """Their numbers."""
        return range(self.first, self.first + self.count)


@final
@dataclass(frozen=True)
class Claim:
    """A statement, what was measured about it, what it takes to hold, and whether it does; from
    tables, never typed in.
    """

    statement: str
    measured: str
    holds: bool
    source: str  # "paper" or "ours"
    needed: str = ""  # where the statement does not say it


class Experiment(Protocol):
    """One experiment: constants, blocks of work, tables, figures, claims."""

    @property
    def name(self) -> str:
        """Short name, such as ``gaussian``; also that of its directory."""
        ...

    @property
    def title(self) -> str:
        """One line for people."""
        ...

    def constants(self) -> Mapping[str, Any]:
        """All that results depend on besides the seed: numbers, strings and lists of them."""
        ...

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Split the work; the sum of what they return must not depend on the split."""
        ...

    def run(self, block: Block, seed: int) -> Arrays:
        """Do a block of work."""
        ...

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Put the blocks, in order, into tidy tables."""
        ...

    def figures(self, tables: Tables) -> dict[str, Files]:
        """Draw from the tables alone."""
        ...

    def claims(self, tables: Tables) -> list[Claim]:
        """Judge from the tables alone."""
        ...


WARM_UP: Final = Block("warm-up", 0, 0)
"""No replicates: a worker that runs it has compiled what the experiment needs, and the compiled
code is in the cache of all.
"""


@runtime_checkable
class WarmsUp(Protocol):
    """An experiment whose workers can compile ahead of its blocks, each something else."""

    def warm_up(self, seed: int) -> None:
        """Run a very small part of every kind of work."""


def stacked(done: Sequence[tuple[Block, Arrays]], part: str) -> Arrays:
    """Arrays of one part with all replicates, in order."""
    own = sorted((each for each in done if each[0].part == part), key=lambda each: each[0].first)
    names = own[0][1] if own else ()
    return {name: np.concatenate([arrays[name] for _, arrays in own]) for name in names}


def ranges(part: str, replicates: int, size: int) -> list[Block]:
    """Blocks of at most ``size`` replicates."""
    return [
        Block(part, first, min(size, replicates - first)) for first in range(0, replicates, size)
    ]
