"""The progress bar of a run: all blocks of all experiments, by what they cost, with the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

SECONDS_OF_SPEED: Final = 120.0
"""The time left comes from the speed over so long: blocks end in bursts."""


class Progress(Protocol):
    """What the engine reports."""

    def start(self, name: str) -> None:
        """An experiment begins."""
        ...

    def skip(self, cost: float) -> None:
        """A block was there already."""
        ...

    def finish(self, cost: float) -> None:
        """A block is done."""
        ...


class Silent:
    """Shows nothing."""

    def start(self, name: str) -> None:
        """Show nothing."""

    def skip(self, cost: float) -> None:
        """Show nothing."""

    def finish(self, cost: float) -> None:
        """Show nothing."""


class Bar:
    """A bar in the terminal; blocks that were there already shorten it, so that they do not count as speed."""

    def __init__(self, bar: Any, total: float) -> None:
        """Begin with the cost of all blocks."""
        self._bar = bar
        self._total = total
        self._task = bar.add_task("", total=total)

    def start(self, name: str) -> None:
        """Write the experiment's name beside the bar."""
        self._bar.update(self._task, description=name)

    def skip(self, cost: float) -> None:
        """Shorten the bar."""
        self._total -= cost
        self._bar.update(self._task, total=self._total)

    def finish(self, cost: float) -> None:
        """Fill the bar."""
        self._bar.update(self._task, advance=cost)


@contextmanager
def show_progress(total: float, *, shown: bool) -> Iterator[Progress]:
    """Show a bar while the work goes on, or nothing."""
    if not shown:
        yield Silent()
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, transient=True, speed_estimate_period=SECONDS_OF_SPEED) as bar:
        yield Bar(bar, total)
