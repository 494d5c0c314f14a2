"""A run in about ten lines, for the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from priorwise.experiments.registry import FULL_SIZE, group_of
from priorwise.experiments.running.run import Outcome, Results

if TYPE_CHECKING:
    from rich.console import Console

SHORT: Final = 0.05
"""Seconds of compiling that are not worth a word."""


def reduced(results: Results) -> str:
    """Say that there are fewer replicates than the paper has; "" if there are not."""
    if results.replicates >= FULL_SIZE:
        return ""
    few = f"{results.replicates} replicates instead of the paper's {FULL_SIZE}"
    return f"{few}: claims may fail by chance, and bands are wide."


def others_text(results: Results) -> list[str]:
    """Say which sections of the report come from earlier calls, and which experiments of earlier
    calls do not belong on the same page.
    """
    kept, stale = ", ".join(each.name for each in results.kept), ", ".join(results.stale)
    same = "From earlier calls, with the same seed, replicates and sources"
    other = "Left out, since an earlier call made them with another seed, replicates or sources"
    return [f"{said}: {names}." for said, names in ((same, kept), (other, stale)) if names]


def seconds_text(seconds: float) -> str:
    """``0.8 s``, ``12 s``, ``3 min 05 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02d} s"


def resumed_text(outcome: Outcome) -> str:
    """Say how much of the work was there already."""
    if not outcome.resumed:
        return ""
    which = "all" if outcome.resumed == outcome.blocks else f"{outcome.resumed:,} of"
    return f"{which} {outcome.blocks:,} blocks were there already and cost nothing"


def group_seconds(results: Results) -> dict[str, float]:
    """Time on the wall of each group of experiments, without compiling."""
    out: dict[str, float] = {}
    for each in results.outcomes:
        out[group_of(each.name)] = out.get(group_of(each.name), 0.0) + each.seconds
    return out


def print_summary(results: Results, report: Path, console: "Console") -> None:
    """Print each experiment's time and claims, those that failed, and where the report is."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    for each in results.outcomes:
        held = len(each.claims) - len(each.failed)
        table.add_row(
            Text(each.name, "bold"),
            Text(seconds_text(each.seconds), justify="right"),
            Text(f"{held} of {len(each.claims)} claims hold", "red" if each.failed else "green"),
            Text(resumed_text(each), "dim"),
        )
    console.print(table)
    groups = group_seconds(results).items()
    times = ", ".join(f"{group} {seconds_text(seconds)}" for group, seconds in groups)
    if results.compiling >= SHORT:
        spent = seconds_text(results.compiling)
        times += f"; compiling, which only the first run does, about {spent}"
    size = f"Seed {results.seed}, {results.replicates:,} replicates."
    lines = [Text(f"Time: {times}; on {results.workers}. {size}")]
    for each in results.outcomes:
        for claim in each.failed:
            said = f"{each.name}: {claim.statement}. Measured: {claim.measured}"
            said += f"; needed: {claim.needed}" if claim.needed else ""
            lines.append(Text.assemble(("Fails  ", "bold red"), said))
    if reduced(results):
        lines.append(Text(reduced(results), "yellow"))
    lines += [Text(text, "dim") for text in others_text(results)]
    for line in (*lines, Text(f"Report: {report}")):
        console.print(line, soft_wrap=True)
