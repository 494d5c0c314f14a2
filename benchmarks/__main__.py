"""``python -m benchmarks``: see README.md beside this file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.children import start
from benchmarks.figure import draw
from benchmarks.files import replace_file
from benchmarks.gaussian import beta, gaussian, threads
from benchmarks.growth import families, growth
from benchmarks.knowledge_gradient import knowledge_gradient
from benchmarks.live import live
from benchmarks.logs import logs
from benchmarks.repeated import repeated
from benchmarks.report import Section, SectionMaker, goal_table
from benchmarks.reproduce import reproduce
from benchmarks.stores import stores
from priorwise.kernels import compiling
from priorwise.kernels.compiling import sources_stamp

SOURCES = Path(compiling.__file__).parents[1].glob("families/*/tiles*.py")

SECTIONS: dict[str, SectionMaker] = {
    "gaussian": gaussian,
    "threads": threads,
    "beta": beta,
    "kg": knowledge_gradient,
    "families": families,
    "growth": growth,
    "start": start,
    "reproduce": reproduce,
    "logs": logs,
    "repeated": repeated,
    "live": live,
    "stores": stores,
}
FIGURES = (".png", ".svg", ".pdf")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; what cannot work is refused before the work."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed of priorwise beside other implementations."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few rounds: does everything run?"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(SECTIONS),
        metavar="SECTION",
        help=f"some of: {', '.join(SECTIONS)}",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every number to this file")
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="PATH",
        help="draw growth with arms and pulls (.png, .svg or .pdf)",
    )
    chosen = parser.parse_args(argv)
    if chosen.figure is not None:
        if chosen.only and "growth" not in chosen.only:
            parser.error("--figure draws the section growth: add it to --only")
        if chosen.figure.suffix not in FIGURES:
            parser.error(f"--figure must end in {', '.join(FIGURES)}, got {chosen.figure.name}")
    for option, path in (("--json", chosen.json), ("--figure", chosen.figure)):
        if path is not None and path.is_dir():
            parser.error(f"{option}: {path} is a directory")
    return chosen


def machine() -> dict[str, Any]:
    """Where and when the numbers were taken."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "system": platform.platform(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "kernels": sources_stamp(*SOURCES)[:12],  # which code was timed
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "priorwise")},
    }


def processor() -> str:
    """Name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def main(argv: list[str] | None = None) -> int:
    """Run the sections; the status is 1 if a contender computes something wrong, whatever the
    speeds.
    """
    chosen = arguments(argv)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=140)
    about = machine()
    versions = ", ".join(f"{name} {about[name]}" for name in ("python", "numpy", "numba"))
    console.print(f"{about['processor']}, {about['processors']} processors, {versions}")
    if about["load"] is not None and about["load"] > 0.5:
        console.print(
            f"[yellow]load average {about['load']:.1f}: other work runs on this machine; trust "
            "ratios, not absolutes[/]"
        )
    console.print()
    status = Console(stderr=True)
    done: dict[str, Section] = {}
    for name in chosen.only or SECTIONS:
        with status.status(f"{name} ..."):
            done[name] = SECTIONS[name](chosen.quick)
        done[name].print_to(console)
    goals = [
        replace(goal, what=f"{name}: {goal.what}", note=goal.note if goal.value is None else "")
        for name, each in done.items()
        for goal in each.goals
        if goal.bound
    ]
    if goals:
        console.rule("[bold]All targets", align="left")
        console.print(goal_table(goals))
    if chosen.json is not None:
        results = {
            "machine": about,
            "quick": chosen.quick,
            "sections": {name: each.as_dict() for name, each in done.items()},
        }
        text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
        replace_file(chosen.json, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    if chosen.figure is not None:
        draw(done["growth"].numbers, chosen.figure)
    wrong = [name for name, section in done.items() if not section.right]
    if wrong:
        console.print(f"[bold red]wrong answers in: {', '.join(wrong)}[/]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
