"""The table of ``priorwise simulate``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from priorwise.cli.output import counted
from priorwise.cli.report import Line
from priorwise.core.estimates import Estimate
from priorwise.core.runs import Run

if TYPE_CHECKING:
    from rich.table import Table


def plus_minus(estimates: Sequence[Estimate | None], *, sign: bool = False) -> list[str]:
    """Means and standard errors for a column, with as many digits as the smallest of the latter
    needs for two; "" for None.
    """
    errors = [
        each.std_error
        for each in estimates
        if each is not None and math.isfinite(each.std_error) and each.std_error > 0
    ]
    digits = min(max(1 - math.floor(math.log10(min(errors))), 0), 6) if errors else 4
    form = f"{'+' if sign else ''}.{digits}f"
    return [
        ""
        if each is None
        else f"{each.mean:{form}} ± "
        + (f"{each.std_error:.{digits}f}" if math.isfinite(each.std_error) else "?")
        for each in estimates
    ]


def as_tables(lines: Sequence[Line], width: int) -> Iterator[Table]:
    """Return the numbers, best policy first: one table, or several where the terminal is too narrow
    for one.
    """
    from rich import box
    from rich.table import Table

    run = lines[0].run
    title: str | None = (
        f"Reward of {counted(run.horizon, 'pull')}, mean over {run.tasks:,} tasks ± standard error "
        f"(seed {run.seed})"
    )
    first, others = _columns(lines)
    while others:
        shown, room = dict(first), width - sum(map(_width, first.items()))
        while others and (len(shown) == len(first) or _width(next(iter(others.items()))) <= room):
            header = next(iter(others))
            room -= _width((header, others[header]))
            shown[header] = others.pop(header)
        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        title = None
        for header in shown:
            table.add_column(
                header,
                justify="left" if header in {*first, "engine"} else "right",
                vertical="bottom",
                no_wrap=True,
            )
        for line, cells in zip(lines, zip(*shown.values(), strict=True), strict=True):
            table.add_row(
                *cells,
                style="bold green"
                if line is lines[0]
                else ""
                if line.entry.true_prior
                else "yellow",
            )
        yield table


def _width(column: tuple[str, list[str]]) -> int:
    return 3 + max(len(text) for cell in (column[0], *column[1]) for text in cell.split("\n"))


def _columns(lines: Sequence[Line]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Columns that name the lines, and columns of numbers."""
    first = {"policy": [line.entry.word for line in lines]}
    out = {
        "reward": plus_minus([Estimate(line.run.mean_reward, line.run.std_error) for line in lines])
    }
    if lines[0].run.mean_regret is not None:
        out["regret"] = plus_minus([_regret(line.run) for line in lines])
    out["minus the best"] = ["best", *plus_minus([line.from_best for line in lines[1:]], sign=True)]
    if any(line.wrong_prior_gain for line in lines):
        first["holds"] = [line.entry.held_name for line in lines]
        out["due to the\nwrong prior"] = plus_minus(
            [line.wrong_prior_gain for line in lines], sign=True
        )
    out["n"] = ["–" if line.monte_carlo_n is None else f"{line.monte_carlo_n:,}" for line in lines]
    out["engine"] = [line.run.engine for line in lines]
    out["ns per\npull"] = [f"{line.ns_per_pull:,.0f}" for line in lines]
    return first, out


def _regret(run: Run) -> Estimate | None:
    return (
        None
        if run.mean_regret is None or run.regret_std_error is None
        else Estimate(run.mean_regret, run.regret_std_error)
    )
