"""Reducing a log: rows per second on two processors, memory, and growth with rows.

The log is written to a temporary folder: 200 rows a task, six arms, either real rewards and arms
that are numbers, or clicks and arms that are words.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.children import PEAK_OF, child
from benchmarks.report import Goal, Section, show, table

ROWS = (5_000_000, 10_000_000, 20_000_000)
PER_TASK = 200
LINEAR = 1.25
GROWTH = "processor time per row, most ÷ fewest rows"
KINDS = {
    "real rewards": ("hash(i) % 6", "hash(7 * i + 1) % 1000000 / 1e6"),
    "clicks, arms are words": ("'headline ' || (hash(i) % 6)", "(hash(7 * i + 1) % 50 = 0)::INT"),
}
WRITE = """
COPY (SELECT (i // {per_task})::BIGINT AS task, {action} AS action, {reward} AS reward
      FROM range({rows}) of(i)) TO '{path}' (FORMAT parquet)
"""
REDUCE = f"""
import os, sys, time
import pyarrow
from priorwise.logs import read_log
{PEAK_OF}
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
read_log(pyarrow.table({{"task": [1, 2], "action": ["a", "b"], "reward": [0.0, 0.5]}}))
reset()
before, clock, used = peak(), time.perf_counter(), time.process_time()
log = read_log(sys.argv[1])
print(time.perf_counter() - clock, time.process_time() - used, peak() - before)
print(log.pulls.sum(), log.sums.sum())
"""


def write(path: Path, kind: str, rows: int) -> tuple[float, float]:
    """Write a log; how many rows it has and what they sum to."""
    import duckdb

    action, reward = KINDS[kind]
    engine = duckdb.connect()
    engine.execute(
        WRITE.format(per_task=PER_TASK, action=action, reward=reward, rows=rows, path=path)
    )
    found = engine.execute(f"SELECT count(*), sum(reward)::DOUBLE FROM '{path}'").fetchone()
    assert found is not None
    return found


def reduced(path: Path, known: tuple[float, float], rounds: int) -> tuple[float, float, float]:
    """Seconds on the clock and of processors, the best of some processes, and MB more."""
    best = []
    for _ in range(rounds):
        spent, sums = child(REDUCE, str(path)).splitlines()
        for found, wanted in zip(map(float, sums.split()), known, strict=True):
            if abs(found - wanted) > 1e-9 * abs(wanted):
                raise RuntimeError(f"the log sums to {found}, and the file to {wanted}")
        best.append([float(each) for each in spent.split()])
    clock, used, more = zip(*best, strict=True)
    return min(clock), min(used), max(more)


def logs(quick: bool) -> Section:
    """Section 9."""
    sizes, rounds = (tuple(n // 20 for n in ROWS), 1) if quick else (ROWS, 3)
    section = Section("9. A log in Parquet reduced to sums by DuckDB, two processors")
    heads = ("million rows per second", "per second of processor", "MB more")
    out = table("by rows, a process of its own each", "", *heads)
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            spent = []
            for rows in sizes:
                path = Path(folder) / "log.parquet"
                spent.append(reduced(path, write(path, kind, rows), rounds))
                clock, used, more = spent[-1]
                speeds = (show(rows / clock / 1e6), show(rows / used / 1e6))
                out.add_row(f"{kind}, {rows:,}", *speeds, show(more))
                path.unlink()
            clock, used, more = spent[-1]
            speed, by_processor = sizes[-1] / clock / 1e6, sizes[-1] / used / 1e6
            growth = (used / spent[0][1]) / (sizes[-1] / sizes[0])
            note = f"a second of one processor: {show(by_processor)} million"
            section.goals += [
                Goal(f"rows per second, {kind}", speed, " million", at_least=8.0, note=note),
                Goal(f"memory, {kind}", more, " MB", at_most=1000.0),
                Goal(f"{kind}: {GROWTH}", growth, "×", at_most=LINEAR),
            ]
            section.numbers[kind] = {"rows": sizes, "clock_processor_mb": spent}
    section.tables.append(out)
    return section
