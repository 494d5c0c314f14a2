"""The knowledge gradient of the best number of pulls, in batches: compiled and in NumPy."""

from __future__ import annotations

from typing import Any

import priorwise as pw
from benchmarks.report import Check, Section, ratio, rounds_of, show, table
from benchmarks.timing import TILE, interleaved, timed
from priorwise.simulate.engine import Engine

PULLS, BATCH = 3_000, 60
OURS, LOOP = "compiled engine", "NumPy loop of the library"
PRIORS = {
    "Gaussian": pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5, 100.0).for_arms(4),
    "Beta": pw.ExchangeableBetaPrior(1.5, 100.0).for_arms(4),
    "logit-normal": pw.ExchangeableLogitNormalPrior(-4.0, 0.2, 0.9).for_arms(4),
}


def library(prior: Any, tasks: int, engine: Engine, pulls: int) -> pw.Run:
    """One thread of the library."""
    policy = pw.ExactKnowledgeGradient("online", pulls="best")
    size: Any = {"horizon": pulls, "batch": BATCH, "tasks": tasks, "seed": 1}
    return pw.simulate(prior, policy, **size, engine=engine, threads=1)


def repeated(quick: bool) -> Section:
    """Section 10."""
    pulls, rounds = (2 * BATCH, 1) if quick else (PULLS, 5)
    tasks = {OURS: TILE, LOOP: TILE} if quick else {OURS: 8 * TILE, LOOP: 2 * TILE}
    section = Section(
        f"10. Knowledge gradient of the best number of pulls, 4 arms, {pulls:,} pulls in batches "
        f"of {BATCH}, one thread"
    )
    absolute = table(f"best of {rounds} interleaved rounds (1 of NumPy)", "", "µs per decision")
    for name, prior in PRIORS.items():
        contenders: dict[str, Engine] = {OURS: "compiled", LOOP: "numpy"}
        library(prior, TILE, "compiled", BATCH)  # warm
        runs = {who: library(prior, TILE, each, pulls) for who, each in contenders.items()}
        known = runs[LOOP]
        section.checks.append(
            Check(f"{OURS}, {name}", runs[OURS].mean_reward, known.std_error, known.mean_reward)
        )

        def contender(who: str, engine: Engine, prior: Any = prior) -> Any:
            decisions = tasks[who] * pulls // BATCH
            return timed(lambda: library(prior, tasks[who], engine, pulls), decisions)

        timings = interleaved({OURS: contender(OURS, "compiled")}, rounds)
        timings |= interleaved({LOOP: contender(LOOP, "numpy")}, 1)
        goal = f"{LOOP} ÷ compiled, {name}"
        note = "too few decisions" if quick else ""
        section.goals.append(ratio(goal, timings[LOOP], timings[OURS], note, at_least=10.0))
        for who, timing in timings.items():
            absolute.add_row(f"{who}, {name}", show(timing.best / 1000))
        section.numbers[name] = {"ns_per_decision": rounds_of(timings), "tasks": tasks}
    section.tables.append(absolute)
    return section
