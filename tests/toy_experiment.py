"""An experiment that takes no time, unless the environment says so. As a script: ``priorwise`` with
it registered as ``toy``.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.experiments import registry
from priorwise.experiments.experiment import Arrays, Block, Claim, Files, Tables, ranges, stacked
from priorwise.figures.tables import Table

SECONDS = "TOY_SECONDS"
WRONG = "TOY_WRONG"
WHERE = "toy_experiment:EXPERIMENT"


@dataclass(frozen=True)
class Toy:
    name: str = "toy"
    title: str = "A toy <experiment>"
    scale: float = 1.0
    size: int = 2
    fails_at: int | None = None  # not constants: the numbers do not depend on them
    dies_at: int | None = None

    def constants(self) -> Mapping[str, Any]:
        return {"scale": self.scale, "sizes": [1, 2]}

    def blocks(self, replicates: int) -> Sequence[Block]:
        return ranges("a/b", replicates, self.size) + ranges("long", replicates, 2 * self.size)

    def cost(self, block: Block) -> float:
        return block.count

    def run(self, block: Block, seed: int) -> Arrays:
        time.sleep(float(os.environ.get(SECONDS, "0")))
        here = range(block.first, block.first + block.count)
        if self.fails_at in here:
            raise RuntimeError("as asked")
        if self.dies_at in here:
            os.kill(os.getpid(), signal.SIGKILL)
        rngs = [
            np.random.default_rng([seed, replicate, len(block.part)])
            for replicate in range(block.first, block.first + block.count)
        ]
        values = np.stack([self.scale * rng.normal(size=(3, 2)) for rng in rngs])
        return {
            "values": values.transpose(0, 2, 1),
            "count": np.array([rng.integers(9) for rng in rngs]),
        }

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        short, long = (stacked(done, part) for part in ("a/b", "long"))
        values = short["values"] + long["values"].mean(axis=1, keepdims=True)
        replicate, algorithm, _ = (index.ravel() for index in np.indices(values.shape))
        return {
            "values": {
                "algorithm": np.array(["TS", "KG"])[algorithm],
                "replicate": replicate,
                "value": values.ravel(),
                "large": values.ravel() > 0,
            },
            "counts": {"replicate": np.arange(len(short["count"])), "count": short["count"]},
            "fixed": {
                "word": np.array(["é", ""]),
                "small": np.array([1, 2], dtype=np.int8),
                "nan": np.array([np.nan, 1.5]),
            },
        }

    def figures(self, tables: Tables) -> dict[str, Files]:
        total = f"{tables['values']['value'].sum():.6f}"
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 20"><text '
            f'y="15">{total}</text></svg>'
        )
        return {"all_values": {"svg": svg.encode(), "png": b"\x89PNG" + total.encode()}}

    def claims(self, tables: Tables) -> list[Claim]:
        largest = float(np.abs(tables["values"]["value"]).max())
        return [
            Claim("values are < 100 & finite", f"largest {largest:.3g}", largest < 100, "ours"),
            Claim("values are as the environment says", "…", WRONG not in os.environ, "paper"),
        ]


EXPERIMENT = Toy()
OTHER = Toy(name="other", title="Another toy")

if __name__ == "__main__":
    from priorwise.cli import main

    registry.EXPERIMENTS["toy"] = ("paper", WHERE)
    main()
