"""Measured in child processes: memory by number of tasks, and cold and warm start."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.report import Goal, Section, ratio, rounds_of, show, table
from benchmarks.timing import Spent, Timing
from priorwise.simulate.sizes import available_threads

TASKS = (10_000, 100_000, 1_000_000, 4_000_000)
KEPT = 4  # bytes: half of one number per task

# The peak is reset where the system allows it: compiling and importing may have needed more than
# the run does.
PEAK_OF = """
import resource, sys
def peak():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        unit = 2**20 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
def reset():
    try:
        with open("/proc/self/clear_refs", "w") as control:
            control.write("5")
    except OSError:
        pass
"""
PEAK = f"""
{PEAK_OF}
import priorwise as pw
from priorwise.experiments import problems
def run(tasks):
    prior, policy = problems.gaussian().prior, pw.ThompsonSampling()
    how = {{"engine": "compiled", "threads": int(sys.argv[2])}}
    pw.simulate(prior, policy, horizon=10, tasks=tasks, seed=1, **how)
run(64)
reset()
before = peak()
run(int(sys.argv[1]))
print(before, peak() - before)
"""
IMPORT = "import priorwise"
NUMPY = "import numpy"
HELP = "import sys; sys.argv[1:] = ['--help']; from priorwise.cli import main; main()"
FIRST_RUN = """
import priorwise as pw
prior = pw.GaussianPrior([0.5, 0.0], [[1.0, 0.9], [0.9, 1.0]])
pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=1000, seed=0, engine="compiled")
"""


def child(code: str, *arguments: str, cache: str | None = None) -> str:
    """Run code in a new interpreter, with another cache of compiled functions if one is named."""
    environment = dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        raise RuntimeError(f"a child process failed:\n{done.stderr}")
    return done.stdout


def memory(section: Section) -> None:
    """Peak memory must not grow with tasks, unless trajectories are kept.

    With one thread it is settled at 10⁵ tasks. With more, the allocator's pools of the threads fill
    up to about 10⁶ tasks.
    """
    child(PEAK, "64", "1")  # compiles what is not in the cache
    # threads, and where it should be settled
    cases = {"one thread": (1, 1), "all processors": (available_threads(), 2)}
    grown: dict[str, list[float]] = {}
    before = 0.0
    for name, (count, settled) in cases.items():
        grown[name] = []
        for tasks in TASKS:
            before, more = (float(each) for each in child(PEAK, str(tasks), str(count)).split())
            grown[name].append(more)
        per_task = (
            (grown[name][settled + 1] - grown[name][settled])
            * 2**20
            / (TASKS[settled + 1] - TASKS[settled])
        )
        what = f"memory per further task, {TASKS[settled]:,} to {TASKS[settled + 1]:,}, {name}"
        section.goals.append(
            Goal(what, per_task, " bytes", at_most=KEPT, note="a number kept per task would be 8")
        )
    out = table(
        f"growth of peak memory by tasks, MB, over {before:.0f} before the run",
        "tasks",
        *(f"{n:,}" for n in TASKS),
    )
    for name, each in grown.items():
        out.add_row(name, *map(show, each))
    section.tables.append(out)
    section.numbers["memory"] = {"tasks": TASKS, "peak_growth_mb": grown, "before_mb": before}


def processor() -> float:
    """Seconds of processor time of the children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(code: str, cache: str) -> Spent:
    """Whole life of a child process."""
    clock, used = time.perf_counter(), processor()
    child(code, cache=cache)
    return Spent(time.perf_counter() - clock, processor() - used)


def start(quick: bool) -> Section:
    """Section 7."""
    colds, rounds = (1, 2) if quick else (2, 7)
    spent: dict[str, list[Spent]] = {
        "cold": [],
        "warm": [],
        "import priorwise": [],
        "priorwise --help": [],
        "import numpy": [],
        "interpreter alone": [],
    }
    for _ in range(colds):
        with tempfile.TemporaryDirectory() as cache:
            spent["cold"].append(seconds(FIRST_RUN, cache))
            for _ in range(rounds):
                spent["warm"].append(seconds(FIRST_RUN, cache))
                spent["import priorwise"].append(seconds(IMPORT, cache))
                spent["priorwise --help"].append(seconds(HELP, cache))
                spent["import numpy"].append(seconds(NUMPY, cache))
                spent["interpreter alone"].append(seconds("", cache))
    timings = {name: Timing(tuple(each)) for name, each in spent.items()}
    warm, numpy = timings["warm"], timings["import numpy"]
    section = Section("7. Start: a new process that imports priorwise and runs 1,000 tasks")
    section.goals = [
        ratio("cold ÷ warm", timings["cold"], warm, "cold: nothing compiled yet"),
        ratio("import priorwise ÷ import numpy", timings["import priorwise"], numpy, at_most=1.0),
        ratio("priorwise --help ÷ import numpy", timings["priorwise --help"], numpy, at_most=4.0),
        Goal(
            "warm", warm.best, " s", at_most=1.5, note=f"in processor time {show(warm.processor)} s"
        ),
    ]
    out = table(
        "seconds of a whole process", "", "best", "in processor time", "median above best", "runs"
    )
    for name, each in timings.items():
        out.add_row(
            name,
            f"{each.best:.2f}",
            f"{each.processor:.2f}",
            f"{100 * each.noise:.0f} %",
            str(len(each.rounds)),
        )
    section.tables.append(out)
    section.numbers = {"seconds": rounds_of(timings)}
    return section
