"""Decisions while tasks run: a decision and its reward in memory, many at once, and room of tasks.

A textbook loop of NumPy runs beside it: Thompson sampling of Beta arms with a posterior in two
arrays, which is what peers do at best (obp measures 18 to 25 us, river 54, mabwiser 131 to 167).
"""

from __future__ import annotations

import time

import numpy as np

import priorwise as pw
from benchmarks.children import PEAK_OF, child
from benchmarks.report import Goal, Section, show, table

ARMS = 6
NAMES = list("abcdef")
CORRELATED = 0.1 * np.eye(ARMS) + 0.9
PRIORS = {
    "Beta": (pw.BetaPrior(np.full(ARMS, 2.0), 8.0, names=NAMES), 15.0),
    "Gaussian": (pw.GaussianPrior(np.zeros(ARMS), CORRELATED, names=NAMES), 15.0),
    "logit-normal": (
        pw.LogitNormalPrior(np.full(ARMS, -3.0), 0.4 * CORRELATED, names=NAMES),
        100.0,
    ),
}
ROOM = f"""
import priorwise as pw
{PEAK_OF}
names = list("abcdef")
made = pw.Decider(pw.BetaPrior([2.0] * 6, 8.0, names=names), pw.ThompsonSampling(), horizon=100,
                  seed=0, propensities=False)
made.reward(made.decide("first").token, 0.0)
reset()
before = peak()
for k in range(100_000):
    made.reward(made.decide(f"task {{k}}").token, 0.0)
print(peak() - before)
"""


def pairs(prior: object, rounds: int, *, propensities: bool) -> list[float]:
    """Microseconds of a decision with its reward, one by one."""
    made = pw.Decider(prior, pw.ThompsonSampling(), horizon=1000, seed=0, propensities=propensities)
    took = []
    for k in range(rounds):
        name = f"task {k % 50}"
        start = time.perf_counter()
        made.reward(made.decide(name).token, float(k % 7 == 0))
        took.append(1e6 * (time.perf_counter() - start))
    return took


def textbook(rounds: int) -> list[float]:
    """The same of a loop with NumPy's generator and two arrays for each task, nothing logged."""
    rng = np.random.default_rng(0)
    tasks = {f"task {k}": (np.full(ARMS, 2.0), np.full(ARMS, 8.0)) for k in range(50)}
    took = []
    for k in range(rounds):
        name = f"task {k % 50}"
        start = time.perf_counter()
        a, b = tasks[name]
        arm = int(rng.beta(a, b).argmax())
        reward = float(k % 7 == 0)
        a[arm] += reward
        b[arm] += 1.0 - reward
        took.append(1e6 * (time.perf_counter() - start))
    return took


def together(prior: object, tasks: int, rounds: int) -> float:
    """Decisions per second, many at once."""
    made = pw.Decider(prior, pw.ThompsonSampling(), horizon=1000, seed=0, propensities=False)
    names = [f"task {k}" for k in range(tasks)]
    made.decide_many(names)
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        made.decide_many(names)
        best = min(best, time.perf_counter() - start)
    return tasks / best


def live(quick: bool) -> Section:
    """Latency, throughput and room of live decisions."""
    rounds = 2_000 if quick else 40_000
    section = Section("12. Decisions while tasks run, in memory, six arms, Thompson sampling")
    out = table("a decision and its reward, µs", "", "median", "99 %", "with propensities")
    plain = textbook(rounds)
    out.add_row("a loop with NumPy, no log", show(_middle(plain)), show(_late(plain)), "")
    for name, (prior, most) in PRIORS.items():
        took = pairs(prior, rounds, propensities=False)
        known = pairs(prior, max(rounds // 40, 50), propensities=True)
        out.add_row(name, show(_middle(took)), show(_late(took)), show(_middle(known)))
        what = f"{name}: decision and reward, median"
        section.goals.append(Goal(what, _middle(took), " µs", at_most=most))
        section.numbers[name] = {"median": _middle(took), "with propensities": _middle(known)}
    for name in ("Beta", "Gaussian"):
        speed = together(PRIORS[name][0], 2_000 if quick else 10_000, 3 if quick else 10)
        what = f"{name}: many at once, per second"
        section.goals.append(Goal(what, speed / 1e6, " million", at_least=0.5))
    if not quick:
        room = float(child(ROOM).split()[-1])
        what = "100,000 open tasks, a decision and a reward each"
        section.goals.append(Goal(what, room, " MB", at_most=200.0))
    section.tables.append(out)
    return section


def _middle(took: list[float]) -> float:
    return float(np.median(took))


def _late(took: list[float]) -> float:
    return float(np.quantile(took, 0.99))
