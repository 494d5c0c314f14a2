"""An experiment of the paper: a sweep of learning curves with its figures and its claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from priorwise.experiments.learning import LearningCurves
from priorwise.experiments.work import Arrays, Block, Claim, Files, Table, Tables


@final
@dataclass(frozen=True)
class PaperExperiment:
    """Puts the parts of a folder together."""

    name: str
    title: str
    curves: LearningCurves
    draw: Callable[[Tables], dict[str, Files]]
    judge: Callable[[Tables], list[Claim]]
    extra: Callable[[], dict[str, Table]] = dict
    """Tables of what was given, not measured."""

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        return self.curves.constants()

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Few replicates at a time."""
        return self.curves.blocks(replicates)

    def run(self, block: Block, seed: int) -> Arrays:
        """Run the replicates of a block."""
        return self.curves.run(block, seed)

    def warm_up(self, seed: int) -> None:
        """Run a few episodes of every algorithm."""
        self.curves.warm_up(seed)

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Learning curves, test rewards, and what else the experiment keeps."""
        return self.curves.tables(done) | self.extra()

    def figures(self, tables: Tables) -> dict[str, Files]:
        """Draw."""
        return self.draw(tables)

    def claims(self, tables: Tables) -> list[Claim]:
        """Judge."""
        return self.judge(tables)
