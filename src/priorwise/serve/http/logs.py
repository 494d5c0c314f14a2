"""Logs as lines of JSON on standard error: no bodies, no keys."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from typing import Final, TextIO, final

import msgspec

TOGETHER: Final = 0.02
"""Seconds that a line waits for others: one write for each would take turns with requests."""
WAITING: Final = 10_000
"""Lines that wait for who reads them."""
Value = str | float | bool | None
LEVELS: Final = {"info": 20, "warning": 30, "error": 40}


@final
class Log:
    """Writes one line for each thing that happens.

    Standard error may be a pipe that nobody reads, so a thread writes to it. Lines that come when
    too many wait are dropped, and the next line says how many.
    """

    def __init__(self, stream: TextIO | None = None, least: str = "info") -> None:
        """Write to a stream, by default standard error, what is at least so important."""
        self._stream, self._least = stream, LEVELS[least]
        self._encode = msgspec.json.Encoder().encode
        self._second, self._date = 0, ""
        self._lines: Queue[str] = Queue(WAITING)
        self._dropped = 0
        self._thread: threading.Thread | None = None

    def write(self, level: str, event: str, **fields: Value) -> None:
        """Write a line; it must not be able to end a request."""
        if LEVELS[level] < self._least:
            return
        now = time.time()
        if int(now) != self._second:
            self._second = int(now)
            self._date = datetime.fromtimestamp(self._second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        start = {"time": f"{self._date}.{int(now % 1 * 1e6):06d}Z", "level": level, "event": event}
        if self._dropped:
            start["dropped"] = str(self._dropped)
        line = self._encode(start | fields).decode() + "\n"
        if self._stream is not None:
            _written(self._stream, line)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="priorwise-log", daemon=True)
            self._thread.start()
        try:
            self._lines.put_nowait(line)
            self._dropped = 0
        except Full:
            self._dropped += 1

    def _serve(self) -> None:
        while True:
            lines = [self._lines.get()]
            time.sleep(TOGETHER)
            with suppress(Empty):
                while len(lines) < WAITING:
                    lines.append(self._lines.get_nowait())
            _written(sys.stderr, "".join(lines))
            for _ in lines:
                self._lines.task_done()

    def drain(self, seconds: float) -> None:
        """Wait until all lines are written, but not long."""
        end = time.monotonic() + seconds
        while self._lines.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def bug(self, error: BaseException, **fields: Value) -> None:
        """Write what no request should be able to bring about, with its trace."""
        lines = "".join(traceback.format_exception(error, limit=-30))
        self.write("error", "bug", **fields, error=type(error).__name__, trace=lines[-8000:])


def _written(stream: TextIO, line: str) -> None:
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError):  # closed, or full
        return


@final
class Handler(logging.Handler):
    """Takes what other packages log, as uvicorn does."""

    def __init__(self, log: Log) -> None:
        """Write to our log."""
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as one of ours."""
        level = "error" if record.levelno >= 40 else "warning" if record.levelno >= 30 else "info"
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            self._log.bug(record.exc_info[1], message=text.strip(), source=record.name)
        else:
            self._log.write(level, "server", message=text, source=record.name)


def take_over(log: Log) -> None:
    """Send what the HTTP server logs to ours, and to no other."""
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Handler(log)], False
        logger.setLevel(logging.WARNING)
