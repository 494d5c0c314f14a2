"""What a section of the benchmark returns, and how it is printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Timing


@dataclass(frozen=True)
class Goal:
    """A number with the bound it should meet."""

    what: str
    value: float | None  # None: not measured
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bound is met; None if there is no bound or no value."""
        if self.value is None or (self.at_least is None and self.at_most is None):
            return None
        if not math.isfinite(self.value):
            return False
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def bound(self) -> str:
        """The bound, in words."""
        sign, limit = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return (
            ""
            if limit is None
            else f"{sign} {limit:g}{self.unit}"
            + (f" (aim {self.aim:g})" if self.aim is not None else "")
        )


@dataclass(frozen=True)
class Check:
    """A contender's answer beside the known one."""

    who: str
    mean: float
    std_error: float
    known: float
    known_error: float = 0.0

    @property
    def distance(self) -> float:
        """From the known value, in standard errors."""
        return abs(self.mean - self.known) / math.hypot(self.std_error, self.known_error)

    @property
    def right(self) -> bool:
        """Whether the answer is within five standard errors."""
        return self.distance <= 5.0  # NaN is not


@dataclass
class Section:
    """Goals (ratios) first, then absolute numbers."""

    title: str
    goals: list[Goal] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)  # for JSON

    @property
    def right(self) -> bool:
        """Whether every contender computes what it should."""
        return all(check.right for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        goals = [{**vars(goal), "holds": goal.holds} for goal in self.goals]
        checks = [{**vars(check), "right": check.right} for check in self.checks]
        return {"title": self.title, "goals": goals, "checks": checks, "numbers": self.numbers}

    def print_to(self, console: Console) -> None:
        """Wrong answers make every ratio void, and are said first."""
        console.rule(f"[bold]{self.title}", align="left")
        parts = [] if self.right else ["[bold red]wrong answers: the speeds below mean nothing[/]"]
        for part in (*parts, *([goal_table(self.goals)] if self.goals else [])):
            console.print(part)
        for each in [*self.tables, *([check_table(self.checks)] if self.checks else [])]:
            # apart from the table, whose width it would be wrapped to
            console.print(f"\n[italic]{each.title}[/]")
            each.title = None
            console.print(each)
        console.print()


def table(title: str, first: str, *columns: str) -> Table:
    """Return an empty table: names left, numbers right."""
    out = Table(title=title or None, box=None, pad_edge=False, padding=(0, 3, 0, 0))
    out.add_column(first, no_wrap=True)
    for column in columns:
        out.add_column(column, justify="right")
    return out


def goal_table(goals: Sequence[Goal]) -> Table:
    """Say for each goal whether it holds."""
    out = table("", "", "measured", "target", "holds")
    out.add_column("")
    words = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: "–"}
    for goal in goals:
        value = "–" if goal.value is None else f"[bold]{show(goal.value)}{goal.unit}[/]"
        out.add_row(goal.what, value, goal.bound, words[goal.holds], goal.note)
    return out


def check_table(checks: Sequence[Check]) -> Table:
    """Say for each contender whether it computes what it should."""
    out = table(
        "mean total reward of each contender, checked before timing",
        "",
        "mean",
        "std. error",
        "known",
        "apart, s.e.",
        "right",
    )
    for check in checks:
        numbers = (
            f"{check.mean:.4f}",
            f"{check.std_error:.4f}",
            f"{check.known:g}",
            f"{check.distance:.1f}",
        )
        out.add_row(check.who, *numbers, "yes" if check.right else "[bold red]NO[/]")
    return out


def timing_table(
    title: str,
    unit: str,
    timings: Mapping[str, Timing],
    units: Mapping[str, str],
    scale: float = 1.0,
) -> Table:
    """Absolute times; ``units`` says what each contender ran."""
    out = table(title, "", unit, "in processor time", "median above best", "each run")
    for name, timing in timings.items():
        out.add_row(
            name,
            show(timing.best * scale),
            show(timing.processor * scale),
            f"{100 * timing.noise:.0f} %",
            units[name],
        )
    return out


def show(value: float) -> str:
    """Three digits, or all before the point."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rounds_of(timings: Mapping[str, Timing]) -> dict[str, Any]:
    """Every round's nanoseconds, for JSON."""
    return {
        name: {
            "best": each.best,
            "best_processor": each.processor,
            "rounds": [spent._asdict() for spent in each.rounds],
        }
        for name, each in timings.items()
    }


def ratio(
    what: str, above: Timing | None, below: Timing | None, note: str = "", **bounds: float | None
) -> Goal:
    """Compare two contenders on the clock, and say what processor time says; None: not measured."""
    if above is None or below is None:
        return Goal(what, None, "×", note=note, **bounds)
    by_processor = f"in processor time {show(above.processor / below.processor)}×"
    return Goal(
        what,
        above.best / below.best,
        "×",
        note=f"{by_processor}; {note}" if note else by_processor,
        **bounds,
    )


SectionMaker = Callable[[bool], Section]
