"""Ctrl-C while the command line is still importing, which takes a second or two: the process ends
in one line, not in a traceback.

Nothing is open yet that could be left half done. The package imports this first; for anyone but the
command line it does nothing.
"""

import os
import signal
import sys

INTERRUPTED = 130


def is_command() -> bool:
    """Whether this process was started as ``priorwise`` or ``python -m priorwise``."""
    started = sys.orig_argv[1:3] == ["-m", "priorwise"]
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - no further import
    return started or name in ("priorwise", "priorwise.exe")


def leave(*_: object) -> None:
    """End at once."""
    os.write(2, b"Interrupted. No file was written or changed.\n")
    os._exit(INTERRUPTED)


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)
