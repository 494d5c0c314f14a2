"""Logs as lines of JSON on standard error: no bodies, no keys."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any, Final, TextIO, final

import msgspec

LEVELS: Final = {"info": 20, "warning": 30, "error": 40}


@final
class Log:
    """Writes one line for each thing that happens."""

    def __init__(self, stream: TextIO | None = None, least: str = "info") -> None:
        """Write to a stream, by default standard error, what is at least so important."""
        self._stream, self._least = stream, LEVELS[least]
        self._encode = msgspec.json.Encoder().encode
        self._second, self._date = 0, ""

    def write(self, level: str, event: str, **fields: Any) -> None:
        """Write a line; it must not be able to end a request."""
        if LEVELS[level] < self._least:
            return
        now = time.time()
        if int(now) != self._second:
            self._second = int(now)
            self._date = datetime.fromtimestamp(self._second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        start = {"time": f"{self._date}.{int(now % 1 * 1e6):06d}Z", "level": level, "event": event}
        stream = self._stream or sys.stderr
        try:
            stream.write(self._encode(start | fields).decode() + "\n")
            stream.flush()
        except (OSError, ValueError):  # closed, or full
            return

    def bug(self, error: BaseException, **fields: Any) -> None:
        """Write what no request should be able to bring about, with its trace."""
        lines = "".join(traceback.format_exception(error, limit=-30))
        self.write("error", "bug", **fields, error=type(error).__name__, trace=lines[-8000:])


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
