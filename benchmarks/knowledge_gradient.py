"""Discrete knowledge gradient, k1 = k2 = 10, with the ties and the collapse of the paper's
experiments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import priorwise as pw
from benchmarks.report import Check, Section, ratio, rounds_of, show, table
from benchmarks.timing import interleaved, timed
from benchmarks.yardstick.vectorised_kg import discrete_kg, paper_instance
from priorwise.experiments import problems
from priorwise.simulate.engine import Engine

KNOWN = {"true prior": 9.04, "uniform prior": 7.67}
KNOWN_ERROR = 0.005
K, PULLS = 10, 10
OURS, LOOP, HAND = "compiled engine", "NumPy loop of the library", "vectorised by hand"


@dataclass(frozen=True)
class Played:
    """What a contender did in a run: its answer, and at how many decisions several tasks were still
    possible.
    """

    mean: float
    std_error: float
    look_aheads: int


def library(
    held: str, tasks: int, engine: Engine, *, keep: bool = False, pulls: int = PULLS
) -> pw.Run:
    """Run the library, with the true or the uniform prior held."""
    problem = problems.discrete()
    policy = pw.KnowledgeGradient(K, K, ties="random", when_certain="best")
    believed = problem.prior if held == "true prior" else problem.misspecified
    return pw.simulate(
        problem.prior,
        policy,
        horizon=pulls,
        tasks=tasks,
        seed=1,
        believed=believed,
        engine=engine,
        threads=1,
        keep=keep,
    )


def library_played(held: str, tasks: int, engine: Engine) -> Played:
    """Replay a kept run to count its look-aheads; the same seed gives the timed runs the same
    decisions.
    """
    means, _ = paper_instance()
    run = library(held, tasks, engine, keep=True)
    possible = np.ones((tasks, len(means)), dtype=bool)
    look_aheads = 0
    for step in range(PULLS):
        look_aheads += int((possible.sum(axis=1) > 1).sum())
        possible &= np.abs(means[:, run.actions[:, step]].T - run.rewards[:, step][:, None]) < 1e-9
    return Played(run.mean_reward, run.std_error, look_aheads)


def by_hand(held: str, tasks: int, pulls: int = PULLS) -> Played:
    """Play the yardstick."""
    means, probs = paper_instance()
    believed = probs if held == "true prior" else np.full(len(means), 1 / len(means))
    totals, look_aheads = discrete_kg(means, probs, pulls, tasks, K, K, 1, believed)
    return Played(float(totals.mean()), float(totals.std(ddof=1) / np.sqrt(tasks)), look_aheads)


def knowledge_gradient(quick: bool) -> Section:
    """Section 4."""
    rounds, slow_rounds = (2, 1) if quick else (40, 3)
    tasks = {OURS: 2048, LOOP: 128, HAND: 200} if quick else {OURS: 16384, LOOP: 512, HAND: 1000}
    few = "too few tasks for NumPy" if quick else ""
    section = Section(
        "4. Discrete knowledge gradient, 20 arms, 16 possible tasks, k1 = k2 = 10, 10 pulls, one "
        "thread"
    )
    absolute = table(
        f"best of {rounds} interleaved rounds ({slow_rounds} of the NumPy loop); "
        "a look-ahead is a decision with several tasks still possible",
        "", "µs per decision", "µs per look-ahead", "look-aheads, share", "median above best",
        "each run",
    )  # fmt: skip
    for held, known in KNOWN.items():
        played = {
            OURS: library_played(held, tasks[OURS], "compiled"),
            LOOP: library_played(held, tasks[LOOP], "numpy"),
            HAND: by_hand(held, tasks[HAND]),
        }
        section.checks += [
            Check(f"{who}, {held}", p.mean, p.std_error, known, KNOWN_ERROR)
            for who, p in played.items()
        ]
        contenders = {
            OURS: timed(
                lambda held=held: library(held, tasks[OURS], "compiled"), tasks[OURS] * PULLS
            ),
            HAND: timed(lambda held=held: by_hand(held, tasks[HAND]), tasks[HAND] * PULLS),
        }
        slow = {
            LOOP: timed(lambda held=held: library(held, tasks[LOOP], "numpy"), tasks[LOOP] * PULLS)
        }
        timings = interleaved(contenders, rounds) | interleaved(slow, slow_rounds)
        shares = {name: played[name].look_aheads / (tasks[name] * PULLS) for name in timings}
        section.goals.append(
            ratio(
                f"{HAND} ÷ compiled, {held}, whole runs",
                timings[HAND],
                timings[OURS],
                "",
                at_least=25.0,
            )
        )
        first = interleaved(
            {
                OURS: timed(
                    lambda held=held: library(held, tasks[OURS], "compiled", pulls=1), tasks[OURS]
                ),
                HAND: timed(lambda held=held: by_hand(held, tasks[HAND], pulls=1), tasks[HAND]),
            },
            rounds,
        )
        slow = {
            LOOP: timed(
                lambda held=held: library(held, 2 * tasks[LOOP], "numpy", pulls=1), 2 * tasks[LOOP]
            )
        }
        first |= interleaved(slow, slow_rounds)
        for name, note in ((HAND, ""), (LOOP, few)):
            goal = f"{name} ÷ compiled, {held}, first decision: all look ahead"
            section.goals.append(ratio(goal, first[name], first[OURS], note, at_least=25.0))
        for name, timing in timings.items():
            micros = timing.best / 1000
            shown = (
                show(micros),
                show(micros / shares[name]),
                f"{shares[name]:.3f}",
                f"{100 * timing.noise:.0f} %",
            )
            absolute.add_row(f"{name}, {held}", *shown, f"{tasks[name]:,} tasks")
        section.numbers[held] = {
            "ns_per_decision": rounds_of(timings),
            "share_of_look_aheads": shares,
            "tasks": tasks,
        }
    section.tables.append(absolute)
    return section
