"""Gaussian Thompson sampling beside a NumPy loop, a textbook loop and a C program; two threads;
Beta-Bernoulli.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import priorwise as pw
from benchmarks.children import processor
from benchmarks.report import Check, Goal, Section, ratio, rounds_of, show, timing_table
from benchmarks.timing import TILE, Spent, interleaved, sized, timed
from benchmarks.yardstick.textbook import gaussian_ts
from priorwise.experiments import problems
from priorwise.simulate.engine import Engine
from priorwise.simulate.sizes import NUMPY_BLOCK, available_threads

KNOWN = 5.383  # mean total reward of Thompson sampling on the paper's Gaussian problem
PULLS = 10
PUBLISHED_BETA_NS = 8_700  # per pull, fastest published library
SOURCE = Path(__file__).parent / "yardstick" / "gaussian_ts.c"
PRINTED = re.compile(r"mean (\S+)  std_error (\S+)  ns_per_pull (\S+)")


def simulated(tasks: int, engine: Engine = "compiled", threads: int = 1, seed: int = 1) -> pw.Run:
    """Run the paper's Gaussian problem with the true prior."""
    problem = problems.gaussian()
    return pw.simulate(
        problem.prior,
        pw.ThompsonSampling(),
        horizon=PULLS,
        tasks=tasks,
        seed=seed,
        engine=engine,
        threads=threads,
    )


def compiled_c(folder: str) -> tuple[Path | None, str]:
    """Compile the C program; returns it, or None and the reason."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None, "no C compiler"
    program = Path(folder) / "gaussian_ts"
    command = [compiler, "-O3", "-march=native", "-o", str(program), str(SOURCE), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (
            None,
            (
                f"{Path(compiler).name} failed: "
                f"{(done.stderr.strip() or 'no message').splitlines()[0]}"
            ),
        )
    return program, f"{Path(compiler).name} -O3 -march=native"


def run_c(program: Path, tasks: int, seed: int = 1) -> tuple[float, float, float]:
    """Mean, standard error and nanoseconds per pull: the program times its own loop, without its
    start.
    """
    printed = subprocess.run(
        [str(program), str(tasks), str(seed), "true"], capture_output=True, text=True, check=True
    ).stdout
    match = PRINTED.match(printed)
    if match is None:
        raise RuntimeError(f"cannot read what the C program printed: {printed!r}")
    mean, error, ns = (float(each) for each in match.groups())
    return mean, error, ns


def timed_c(program: Path, tasks: int) -> Spent:
    """Nanoseconds per pull: on the program's own clock, and of its processor time, start
    included.
    """

    before = processor()
    clock = run_c(program, tasks)[2]
    return Spent(clock, 1e9 * (processor() - before) / (tasks * PULLS))


def gaussian(quick: bool) -> Section:
    """Section 1."""
    seconds, rounds = (0.05, 3) if quick else (0.12, 31)
    many, some, few = (200_000, 20_000, 500) if quick else (1_000_000, 100_000, 4_000)
    section = Section("1. Gaussian Thompson sampling, 6 arms, 10 pulls, one thread")
    ours, loop, textbook, c = (
        "compiled engine",
        "NumPy loop of the library",
        "textbook loop",
        "C program",
    )
    with tempfile.TemporaryDirectory() as folder:
        program, reason = compiled_c(folder)
        for who, run in ((ours, simulated(many)), (loop, simulated(some, "numpy"))):
            section.checks.append(Check(who, run.mean_reward, run.std_error, KNOWN))
        totals = gaussian_ts(few, PULLS, 1)
        section.checks.append(
            Check(textbook, float(totals.mean()), float(totals.std(ddof=1) / np.sqrt(few)), KNOWN)
        )
        runs: dict[str, Callable[[int], object]] = {
            ours: simulated,
            loop: lambda tasks: simulated(tasks, "numpy"),
            textbook: lambda tasks: gaussian_ts(tasks, PULLS, 2),
        }
        if program is not None:
            mean, error, _ = run_c(program, many)
            section.checks.append(Check(c, mean, error, KNOWN))
            runs[c] = lambda tasks: run_c(program, tasks)
        tasks = {
            name: sized(run, seconds, least=NUMPY_BLOCK if name == loop else TILE)
            for name, run in runs.items()
        }
        contenders = {
            name: timed(lambda run=run, n=tasks[name]: run(n), tasks[name] * PULLS)
            for name, run in runs.items()
        }
        if program is not None:
            contenders[c] = lambda: timed_c(program, tasks[c])
        timings = interleaved(contenders, rounds)
    section.goals = [
        ratio("NumPy loop ÷ compiled", timings[loop], timings[ours], at_least=10),
        ratio("textbook ÷ compiled", timings[textbook], timings[ours], at_least=300),
        ratio("compiled ÷ C program", timings[ours], timings.get(c), reason, at_most=2.5, aim=1.6),
    ]
    sizes = {name: f"{count:,} tasks" for name, count in tasks.items()}
    section.tables.append(
        timing_table(f"best of {rounds} interleaved rounds", "ns per pull", timings, sizes)
    )
    section.numbers = {"ns_per_pull": rounds_of(timings), "tasks": tasks, "c": reason}
    return section


def threads(quick: bool) -> Section:
    """Section 2."""
    tasks, rounds = (500_000, 3) if quick else (8_000_000, 5)
    section = Section(f"2. Two threads, Gaussian Thompson sampling, {tasks:,} tasks")
    if available_threads() < 2:
        section.goals = [
            Goal(
                "one thread ÷ two threads",
                None,
                "×",
                at_least=1.7,
                note="one processor: not measured",
            )
        ]
        return section
    answers = [simulated(tasks // 4, threads=count) for count in (1, 2)]
    if answers[0].mean_reward != answers[1].mean_reward:
        raise AssertionError(f"one and two threads disagree: {answers[0]} and {answers[1]}")
    section.checks = [
        Check(f"threads: {1 + i}", run.mean_reward, run.std_error, KNOWN)
        for i, run in enumerate(answers)
    ]
    names = {1: "one thread", 2: "two threads"}
    contenders = {
        name: timed(lambda count=count: simulated(tasks, threads=count), tasks * PULLS)
        for count, name in names.items()
    }
    timings = interleaved(contenders, rounds)
    # processor time says nothing of threads
    one, two = (timings[name].best for name in names.values())
    section.goals = [
        Goal(
            "one thread ÷ two threads",
            one / two,
            "×",
            at_least=1.7,
            note="needs both processors to itself",
        )
    ]
    sizes = dict.fromkeys(timings, f"{tasks:,} tasks")
    section.tables.append(
        timing_table(f"best of {rounds} interleaved rounds", "ns per pull", timings, sizes)
    )
    section.numbers = {"ns_per_pull": rounds_of(timings), "tasks": tasks}
    return section


def beta(quick: bool) -> Section:
    """Section 3."""
    seconds, rounds, horizon, arms = (0.1, 3, 100, 10) if quick else (0.2, 21, 100, 10)
    prior = pw.BetaPrior(np.ones(arms), np.ones(arms))

    def run(tasks: int, engine: Engine = "compiled", seed: int = 1) -> pw.Run:
        return pw.simulate(
            prior,
            pw.ThompsonSampling(),
            horizon=horizon,
            tasks=tasks,
            seed=seed,
            engine=engine,
            threads=1,
        )

    few = NUMPY_BLOCK  # a whole block: with fewer tasks NumPy pays mostly for its calls
    loop = run(few, "numpy", seed=2)  # other tasks: the two errors are independent
    tasks = sized(run, seconds)
    ours = run(tasks)
    runs = {"compiled engine": (tasks, "compiled"), "NumPy loop of the library": (few, "numpy")}
    contenders = {
        name: timed(lambda count=count, engine=engine: run(count, engine), count * horizon)
        for name, (count, engine) in runs.items()
    }
    timings = interleaved(contenders, rounds)
    compiled, numpy_loop = timings.values()
    best = compiled.best
    section = Section(
        f"3. Beta-Bernoulli Thompson sampling, {arms} arms, {horizon} pulls, one thread"
    )
    section.checks = [
        Check(
            "compiled engine; known: NumPy loop",
            ours.mean_reward,
            ours.std_error,
            loop.mean_reward,
            loop.std_error,
        )
    ]
    section.goals = [
        Goal(
            "published ÷ compiled",
            PUBLISHED_BETA_NS / best,
            "×",
            note=f"fastest published library: {PUBLISHED_BETA_NS:,} ns, not measured here",
        ),
        ratio("NumPy loop ÷ compiled", numpy_loop, compiled),
        Goal(
            "compiled, per pull",
            best,
            " ns",
            at_most=600,
            aim=300,
            note=f"in processor time {show(compiled.processor)} ns",
        ),
    ]
    sizes = {name: f"{count:,} tasks" for name, (count, _) in runs.items()}
    section.tables.append(
        timing_table(f"best of {rounds} interleaved rounds", "ns per pull", timings, sizes)
    )
    section.numbers = {
        "ns_per_pull": rounds_of(timings),
        "tasks": {k: v[0] for k, v in runs.items()},
    }
    return section
