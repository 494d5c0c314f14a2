"""The one progress bar: on a terminal, long calls show how far they are, and say beforehand how
long they will take.

A bar appears once a call has taken, or will take, more than a few seconds. It goes to standard
error, and nowhere else: into a pipe or a log nothing is written unless the call says
``progress=True``. The calls within a call share its bar.
"""

import multiprocessing
import sys
import threading
import time
from typing import Any, Final, Self

from priorwise.core.errors import ArgumentTypeError

PATIENCE: Final = 3.0  # seconds that a call may take without a bar
LONG: Final = 20.0  # seconds of an estimate from which on a line says so, and stays
SECONDS_OF_SPEED: Final = 120.0
"""The time left comes from the speed over so long: blocks end in bursts."""

COMPILING: Final = "compiling, once per machine: about 20 s"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a long call: ``partial`` is the result computed from what was done, ``fit`` the
    prior that was learned; None where there is none yet.
    """

    def __init__(self, note: str = "", partial: Any = None, fit: Any = None) -> None:
        super().__init__(note)
        self.partial, self.fit = partial, fit


# the bars of calls in progress, innermost last; threads that work for a call see its bar
_here: "list[Progress]" = []


class Progress:
    """How far a call is: of ``total`` units of work, which may be numbers of things or costs."""

    def __init__(
        self, total: float, unit: str, shown: bool | None, parallel: int | None, why: str
    ) -> None:
        """Begin; with ``shown=None`` wait whether the call turns out to be long."""
        self._parallel, self._why = parallel, why
        self._total, self._done, self._text = total, 0.0, unit
        self._shown = shown
        self._lock = threading.Lock()
        self._begun = time.perf_counter()
        self._bar: Any = None
        self._task: Any = None
        self._ended = self._told = False
        self._timer: threading.Timer | None = None

    @property
    def watched(self) -> bool:
        """Whether somebody may look."""
        return self._shown is not False

    def advance(self, amount: float) -> None:
        """Tell what was done; the first time this also tells how long the rest will take."""
        if not self.watched:
            return
        self._done += amount
        if not self._told and self._parallel is not None and 0.0 < self._done < self._total:
            self.expect(running(self._begun) * (self._total / self._done - 1.0) / self._parallel)
        self._update(completed=self._done, description=self._text)

    def expect(self, seconds: float, why: str = "") -> None:
        """Tell how long the rest will take, and why so long."""
        if not self.watched or self._told:
            return
        self._told = True
        if self._shown or seconds > PATIENCE:
            self._show()
        if seconds > LONG:
            self._print(f"{duration(seconds)}: {why or self._text}")

    def say(self, text: str) -> None:
        """Write beside the bar what goes on now."""
        self._text = text
        self._update(description=text)

    def skip(self, amount: float) -> None:
        """Take away what was done before, which does not count as speed."""
        self._total -= amount
        self._update(total=self._total)

    def compiling(self) -> None:
        """Tell that code is being compiled."""
        if self.watched:
            self._show()
            self._update(description=COMPILING)

    def _late(self) -> None:
        """Show the bar after a while, and why nothing is done yet."""
        self._show()
        if self._why and not self._told:
            self._print(self._why)

    def _print(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _update(self, **what: Any) -> None:
        if self._bar is not None:
            self._bar.update(self._task, **what)

    def _show(self) -> None:
        """Show the bar, if it is not there yet."""
        with self._lock:
            if self._bar is not None or self._ended:
                return
            from rich import progress as rich
            from rich.console import Console

            text = rich.TextColumn("{task.description}", markup=False)
            share = (rich.BarColumn(), rich.TaskProgressColumn())
            times = (rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn())
            console = Console(stderr=True)
            bar = rich.Progress(
                *(text, *share, *times),
                console=console,
                speed_estimate_period=SECONDS_OF_SPEED,
                transient=console.is_terminal,
                redirect_stdout=False,  # what a user prints stays where it is
            )
            self._task = bar.add_task(self._text, total=self._total)
            bar.update(self._task, completed=self._done)
            bar.start()
            self._bar = bar

    def __enter__(self) -> Self:
        """Wait for the call to become long, or show the bar at once."""
        _here.append(self)
        if self._shown:
            self._show()
        elif self._shown is None:
            self._timer = threading.Timer(PATIENCE, self._late)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take the bar away."""
        _here.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()


def check_progress(value: bool | None) -> None:
    """Refuse what says neither whether to show a bar nor that the call should decide."""
    if value is not None and not isinstance(value, bool):
        raise ArgumentTypeError("progress", "must be True, False or None", got=value)


def progress_of(
    total: float, unit: str, *, shown: bool | None, parallel: int | None = 1, why: str = ""
) -> "Progress":
    """Show how far a call is: ``True`` at once, ``False`` never, ``None`` on a terminal and only if
    it takes long.

    ``parallel`` is how many parts run at a time, from which follows how long the rest takes once
    the first part is done; None where the first part does not tell. ``why`` says why the first part
    may take long. A call within another one has no bar of its own.
    """
    check_progress(shown)
    if _here or (shown is None and not _on_terminal()):
        shown = False
    return Progress(total, unit, shown, parallel, why)


def compiling() -> None:
    """Tell whoever looks that code is being compiled: on the bar of the call, or in a line of its
    own.
    """
    if _here:
        _here[0].compiling()
    elif _on_terminal() and not _said:
        _said.append(True)
        sys.stderr.write(f"priorwise: {COMPILING}\n")


def ready() -> None:
    """Note that code was just compiled or loaded."""
    global _ready  # noqa: PLW0603  # the clock of the process
    _ready = time.perf_counter()


def running(begun: float) -> float:
    """Seconds since then, not counting what went into compiling and loading code at first."""
    return time.perf_counter() - max(begun, _ready)


def duration(seconds: float) -> str:
    """``about 40 s``, ``about 7 min``, ``about 3.2 h``."""
    if seconds < 90.0:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60.0
    return f"about {minutes:.0f} min" if minutes < 90.0 else f"about {seconds / 3600.0:.1f} h"


def _on_terminal() -> bool:
    """Whether a person sees what this process writes to standard error; workers leave that to the
    process they work for.
    """
    person = sys.stderr is not None and sys.stderr.isatty()
    return person and multiprocessing.current_process().name == "MainProcess"


_said: list[bool] = []
_ready = 0.0
