"""The paper's experiments: compiled engine and NumPy loop on the same slice, and what a slice says
of the whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.report import Goal, Section, rounds_of, show, table
from benchmarks.timing import interleaved, timed
from priorwise.experiments import discrete, gaussian, linear
from priorwise.experiments.experiment import Block
from priorwise.experiments.learning import Sweep
from priorwise.simulate.engine import Engine

REPLICATES = 100
SWEEPS: dict[str, tuple[Sweep, int]] = {
    "gaussian": (gaussian.SWEEP, 20),
    "linear": (linear.SWEEP, 10),
    "discrete": (discrete.SWEEP, 4),
}
"""Sweeps, and by how much the slice is shorter: so many times fewer episodes and exploration
lengths.
"""


def slice_of(sweep: Sweep, share: int) -> Sweep:
    """Return the same work, with a share of the episodes and the first few exploration lengths."""
    episodes = sweep.episodes // share
    sizes = tuple(sorted({max(2, size // share) for size in sweep.sizes}))
    return replace(
        sweep,
        episodes=episodes,
        sizes=sizes,
        grid=(episodes,),
        test_size=sizes[-1],
        test_episodes=episodes - sizes[-1],
        first_pull_size=None,
    )


def reproduce(quick: bool) -> Section:
    """Section 8."""
    rounds = 1 if quick else 3
    section = Section("8. The paper's experiments, one replicate, one process")
    out = table(
        "milliseconds",
        "",
        "whole replicate, compiled",
        "slice, compiled",
        "slice, NumPy loop",
        "ratio",
    )
    goals, total = [], 0.0
    for name, (sweep, share) in SWEEPS.items():
        small = slice_of(sweep, share)
        engines: dict[str, Engine] = {"compiled": "auto", "numpy": "numpy"}
        answers = {
            key: replace(gaussian.EXPERIMENT, sweep=small, engine=engine).run(
                Block("curves", 0, 1), 1
            )
            for key, engine in engines.items()
        }
        np.testing.assert_allclose(
            answers["compiled"]["curves"], answers["numpy"]["curves"], rtol=1e-9
        )
        contenders = {
            key: timed(
                lambda engine=engine, s=small: replace(
                    gaussian.EXPERIMENT, sweep=s, engine=engine
                ).run(Block("curves", 0, 1), 1),
                1,
            )
            for key, engine in engines.items()
        }
        contenders["whole"] = timed(
            lambda s=sweep: replace(gaussian.EXPERIMENT, sweep=s).run(Block("curves", 0, 1), 1), 1
        )
        timings = interleaved(contenders, rounds)
        times = timings["numpy"].best / timings["compiled"].best
        out.add_row(
            name,
            *(show(timings[key].best / 1e6) for key in ("whole", "compiled", "numpy")),
            show(times),
        )
        goals.append(
            Goal(
                f"{name}: slice of the experiment, NumPy loop ÷ compiled", times, "×", at_least=1.0
            )
        )
        total += timings["whole"].processor / 1e9
        section.numbers[name] = rounds_of(timings)
    section.tables.append(out)
    goals.append(
        Goal(
            f"the paper, {REPLICATES} replicates, processor time of two cores",
            total * REPLICATES / 2,
            " s",
            at_most=30.0,
        )
    )
    section.goals.extend(goals)
    return section
