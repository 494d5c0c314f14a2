"""What ``priorwise simulate`` says: the numbers as data, as a figure and as a table."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from priorwise.cli.inputs import Entry
from priorwise.cli.output import counted, data, finite
from priorwise.core.estimates import Estimate, digits_of
from priorwise.core.protocols import Prior, monte_carlo_n
from priorwise.core.serial import Serializable
from priorwise.figures.curves import Curve, learning_curves
from priorwise.fitting.runs import Run
from priorwise.simulate.results import Comparison
from priorwise.simulate.run import simulate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

TIMED_SECONDS: Final = 0.05
MOST_TIMED_TASKS: Final = 1 << 14


@dataclass(frozen=True)
class Line:
    """One policy with one prior: its run, and its paired differences."""

    entry: Entry
    run: Run
    from_best: Estimate
    wrong_prior_gain: Estimate | None  # believed minus true prior, for the same policy
    monte_carlo_n: int | None
    ns_per_pull: float


def lines(prior: Prior, entries: Sequence[Entry], result: Comparison, batch: int = 1) -> list[Line]:
    """Gather the lines, best first."""
    out = []
    for entry in entries:
        run, short = result.runs[entry.name], result.difference(entry.name, result.best)
        gain = None if entry.true_prior else result.difference(entry.name, entry.word)
        known = monte_carlo_n(entry.policy, prior.arms)
        out.append(Line(entry, run, short, gain, known, ns_per_pull(prior, entry, run, batch)))
    return sorted(out, key=lambda line: -line.run.mean_reward)


def ns_per_pull(prior: Prior, entry: Entry, run: Run, batch: int) -> float:
    """Time a short separate run on one thread, everything compiled already."""
    tasks = 64
    while True:
        # of the run itself there is a progress bar
        alone: Any = {"believed": entry.believed, "batch": batch, "threads": 1, "progress": False}
        start = time.perf_counter()
        simulate(prior, entry.policy, horizon=run.horizon, tasks=tasks, seed=run.seed, **alone)
        seconds = time.perf_counter() - start
        if seconds >= TIMED_SECONDS or tasks >= MOST_TIMED_TASKS:
            return 1e9 * seconds / (tasks * run.horizon)
        tasks *= 4


def as_json(prior: Prior, believed: Prior | None, lines: Sequence[Line], batch: int = 1) -> str:
    """Return all numbers as JSON text; None where a number does not exist."""
    content = {
        "priorwise": 1,
        "command": "simulate",
        **data(lines[0].run, "horizon", "tasks", "seed"),
        "batch": batch,
        "prior": _prior(prior),
        "believed": _prior(believed),
        "policies": [_line(line) for line in lines],
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _prior(prior: Prior | None) -> Any:
    if isinstance(prior, Serializable):
        return json.loads(prior.to_json())
    return None if prior is None else repr(prior)


def _line(line: Line) -> dict[str, Any]:
    run, estimates = line.run, ("mean", "std_error")
    gain = line.wrong_prior_gain
    return {
        "name": line.entry.name,
        "policy": line.entry.word,
        "prior_held": line.entry.believed_name,
        **data(run, "mean_reward", "std_error", "mean_regret", "regret_std_error"),
        "from_best": data(line.from_best, *estimates),
        "wrong_prior_gain": None if gain is None else data(gain, *estimates),
        "monte_carlo_n": line.monte_carlo_n,
        "engine": run.engine,
        "ns_per_pull_one_thread": line.ns_per_pull,
        "resets": run.resets,
        "warnings": list(run.warnings),
        "by_step": {
            name: None if curve is None else [finite(float(value)) for value in curve]
            for name, curve in vars(run.by_step).items()
        },
    }


def as_figure(lines: Sequence[Line]) -> dict[str, bytes]:
    """Return the learning curves, as the content of files by suffix."""
    run = lines[0].run
    curves = [
        Curve(line.entry.name, line.run, line.entry.word, dashed=not line.entry.true_prior)
        for line in lines
    ]
    wrong, note = [line.entry for line in lines if not line.entry.true_prior], ""
    if wrong:
        which = wrong[0].believed_name
        note = f"Dashed: policies that believe the prior “{which}” instead of the true one."
    title = f"{run.tasks:,} tasks of {counted(run.horizon, 'pull')}, seed {run.seed}"
    return learning_curves(curves, title, note)


def plus_minus(estimates: Sequence[Estimate | None], *, sign: bool = False) -> list[str]:
    """Means and standard errors for a column, with as many digits as the smallest of the latter
    needs for two; "" for None.
    """
    errors = [each.std_error for each in estimates if each is not None]
    known = [error for error in errors if math.isfinite(error) and error > 0]
    digits = min(digits_of(min(known)), 6) if known else 4
    form = f"{'+' if sign else ''}.{digits}f"

    def shown(each: Estimate) -> str:
        error = f"{each.std_error:.{digits}f}" if math.isfinite(each.std_error) else "?"
        return f"{each.mean:{form}} ± {error}"

    return ["" if each is None else shown(each) for each in estimates]


def as_tables(lines: Sequence[Line], width: int) -> "Iterator[Table]":
    """Return the numbers, best policy first: one table, or several where the terminal is too narrow
    for one.
    """
    from rich import box
    from rich.table import Table

    run = lines[0].run
    pulls, of = counted(run.horizon, "pull"), f"mean over {run.tasks:,} tasks ± standard error"
    title: str | None = f"Reward of {pulls}, {of} (seed {run.seed})"
    first, others = _columns(lines)
    while others:
        shown, room = dict(first), width - sum(map(_width, first.items()))
        while others and (len(shown) == len(first) or _width(next(iter(others.items()))) <= room):
            header = next(iter(others))
            room -= _width((header, others[header]))
            shown[header] = others.pop(header)
        look: Any = {"title_justify": "left", "title_style": "bold", "pad_edge": False}
        table = Table(title=title, box=box.SIMPLE_HEAD, **look)
        title = None
        for header in shown:
            side: Any = "left" if header in {*first, "engine"} else "right"
            table.add_column(header, justify=side, vertical="bottom", no_wrap=True)
        for line, cells in zip(lines, zip(*shown.values(), strict=True), strict=True):
            style = "" if line.entry.true_prior else "yellow"
            table.add_row(*cells, style="bold green" if line is lines[0] else style)
        yield table


def show(lines: Sequence[Line], console: "Console") -> None:
    """Print the tables, and say whose belief started again or is rough."""
    for table in as_tables(lines, console.width):
        console.print(table)
    for line in lines:
        if line.run.resets:
            console.print(
                f"[yellow]{line.entry.name}: in {line.run.resets:,} tasks it saw rewards that are "
                "impossible under the prior it believes; its belief started again there.[/]"
            )
        for warning in line.run.warnings:
            console.print(f"[yellow]{line.entry.name}: {warning}.[/]")


def _width(column: tuple[str, list[str]]) -> int:
    return 3 + max(len(text) for cell in (column[0], *column[1]) for text in cell.split("\n"))


def _columns(lines: Sequence[Line]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Columns that name the lines, and columns of numbers."""
    first = {"policy": [line.entry.word for line in lines]}
    runs = [line.run for line in lines]
    out = {"reward": plus_minus([Estimate(run.mean_reward, run.std_error) for run in runs])}
    if runs[0].mean_regret is not None:
        out["regret"] = plus_minus([_regret(run) for run in runs])
    out["minus the best"] = ["best", *plus_minus([line.from_best for line in lines[1:]], sign=True)]
    if any(line.wrong_prior_gain for line in lines):
        first["holds"] = [line.entry.believed_name for line in lines]
        gains = [line.wrong_prior_gain for line in lines]
        out["due to the\nwrong prior"] = plus_minus(gains, sign=True)
    out["n"] = ["–" if line.monte_carlo_n is None else f"{line.monte_carlo_n:,}" for line in lines]
    out["engine"] = [line.run.engine for line in lines]
    out["ns per\npull"] = [f"{line.ns_per_pull:,.0f}" for line in lines]
    return first, out


def _regret(run: Run) -> Estimate | None:
    if run.mean_regret is None or run.regret_std_error is None:
        return None
    return Estimate(run.mean_regret, run.regret_std_error)
