"""``python -m benchmarks.advice [SRC]``: how long advice takes, by the families of logs.

Logs are simulated: tests with new arms in each, clicks or real rewards. Each call runs in a process
of its own and is timed by its clock and its processor time, compilation included. With ``SRC``, the
``src`` folder of another checkout, the same calls run with it right after. A call that the other
checkout does not offer has a dash.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.against import checked_source

GOALS: Final = {"backtest": 30.0, "certify": 30.0, "recommend": 60.0}
"""Seconds of the clock on two processors, for 2,000 tests, 5 arms and 1,000 pulls in 50 batches."""
CLICKS: Final = (
    "beta:exchangeable",
    "logit-normal:exchangeable",
    "two of beta",
    "two of logit-normal",
)
REAL: Final = (
    "gaussian:exchangeable",
    "normal-gamma:exchangeable",
    "two of gaussian",
    "two of normal-gamma",
)
ROWS: Final = 100
"""Rewards of an arm in a log of real rewards, which needs a row for each."""
CALL: Final = """
import json, resource, sys, time
import priorwise as pw
path, tool, family, horizon, batch = sys.argv[1:]
how = {"horizon": int(horizon), "batch": int(batch), "seed": 0, "progress": False}
best = pw.ExactKnowledgeGradient("online", pulls="best")
policy = pw.Greedy() if family.startswith("two of") else best  # mixtures have no such rule
begun = time.perf_counter()
if tool == "recommend":
    pw.recommend(path, family=family, **how)
elif tool == "backtest":
    policies = {"ts": pw.ThompsonSampling(), "greedy": pw.Greedy(), "kg-best": policy}
    pw.backtest(path, policies, family=family, **how)
else:
    pw.certify(pw.fit_prior(path, family, seed=0), policy, **how)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([time.perf_counter() - begun, used.ru_utime + used.ru_stime]))
"""


def write_log(path: Path, tests: int, arms: int, *, clicks: bool) -> None:
    """Write a log of tests with correlated arms."""
    rng = np.random.default_rng(0)
    level = rng.normal(-4.1, 0.47, tests)[:, None] + rng.normal(0.0, 0.17, (tests, arms))
    names = {"test": np.repeat(np.arange(tests), arms), "arm": np.tile(np.arange(arms), tests)}
    frame = pd.DataFrame(names)
    frame["arm"] = frame.test.astype(str) + "-" + frame.arm.astype(str)
    if clicks:
        frame["impressions"] = 2_500
        frame["clicks"] = rng.binomial(2_500, 1.0 / (1.0 + np.exp(-level.ravel())))
    else:
        frame = frame.loc[np.repeat(frame.index, ROWS)]
        frame["reward"] = rng.normal(np.repeat(level.ravel(), ROWS), 1.0)
    frame.to_parquet(path)


def timed(path: Path, tool: str, family: str, size: tuple[int, int], source: Path) -> list[float]:
    """Seconds of the clock and of processors that one call takes."""
    words = [sys.executable, "-c", CALL, str(path), tool, family, *map(str, size)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    taken: list[float] = json.loads(done.stdout.splitlines()[-1])
    return taken


def main() -> None:
    """Run all calls and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", type=checked_source)
    parser.add_argument("--tests", type=int, nargs="+", default=[2_000])
    parser.add_argument("--arms", type=int, nargs="+", default=[5])
    parser.add_argument("--horizon", type=int, nargs="+", default=[1_000])
    parser.add_argument("--only", nargs="+", default=[*CLICKS, *REAL], metavar="FAMILY")
    parser.add_argument("--tools", nargs="+", default=list(GOALS))
    asked = parser.parse_args()
    own = checked_source(Path(__file__).parents[1] / "src")
    table = Table("tool", "family", "tests", "arms", "pulls", "clock, s", "processor, s", "goal, s")
    if asked.source:
        table.add_column("processor before, s")
        table.add_column("ratio")
    sizes = [(t, a, h) for t in asked.tests for a in asked.arms for h in asked.horizon]
    with tempfile.TemporaryDirectory() as folder:
        for tests, arms, horizon in sizes:
            for family in asked.only:
                path = Path(folder) / "log.parquet"
                write_log(path, tests, arms, clicks=family in CLICKS)
                for tool in asked.tools:
                    size = horizon, max(horizon // 50, 1)
                    clock, used = timed(path, tool, family, size, own)
                    goal = GOALS[tool] if (tests, arms, horizon) == (2_000, 5, 1_000) else None
                    cells = [tool, family, f"{tests:,}", f"{arms}", f"{horizon:,}"]
                    cells += [f"{clock:.1f}", f"{used:.1f}", "" if goal is None else f"{goal:g}"]
                    if asked.source:
                        try:
                            _, before = timed(path, tool, family, size, asked.source)
                        except subprocess.CalledProcessError as error:
                            print(error.stderr.splitlines()[-1], file=sys.stderr)
                            cells += ["–", "–"]
                        else:
                            cells += [f"{before:.1f}", f"{before / used:.1f}"]
                    print(*cells, sep=" | ", file=sys.stderr, flush=True)  # those that are done
                    table.add_row(*cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
