"""Where a command writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from priorwise.cli.errors import fail
from priorwise.core.files import write_together

LONGEST_NAME: Final = 255  # bytes, on every file system in use


def out_directory(text: str, *, files: Iterable[str] = (), folders: Iterable[str] = ()) -> Path:
    """Return the directory that ``--out`` names; stop before the work if its results could not be
    written. Creates nothing.
    """
    if not text.strip():
        fail(
            "--out",
            "is empty, as an unset variable of the shell is; name a directory, such as --out "
            "results",
        )
    if "\0" in text:
        fail("--out", "a name of a directory has no NUL character; choose another directory")
    directory = Path(text)
    longest = max(len(os.fsencode(part)) for part in (*directory.parts, ""))
    if longest > LONGEST_NAME:
        fail(
            "--out",
            f"a name of {longest} bytes is too long for a directory; the most is {LONGEST_NAME}",
        )
    try:
        nearest = directory.absolute()
        while not os.path.lexists(nearest):
            nearest = nearest.parent
        if not nearest.is_dir():
            fail("--out", f"{nearest} is a file, not a directory; choose another directory")
        if not os.access(nearest, os.W_OK | os.X_OK):
            fail("--out", f"no permission to write in {nearest}; choose another directory")
        for name in files:
            if (directory / name).is_dir():
                fail(
                    "--out",
                    f"{directory / name} is a directory where a file is to stand; move it away or "
                    "choose another directory",
                )
        for name in folders:
            if os.path.lexists(directory / name) and not (directory / name).is_dir():
                fail(
                    "--out",
                    f"{directory / name} is a file where a directory is to stand; move it away or "
                    "choose another directory",
                )
    except OSError as error:
        fail("--out", f"{error}; choose another directory")
    return directory


def unwritten(error: OSError) -> NoReturn:
    """Stop: files could not be written."""
    cure = "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "move what is in the way"
    fail("--out", f"{error}; {cure} or choose another directory")


def write_all(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write all files of a directory, or none."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = {directory / name: content for name, content in contents.items()}
    write_together(paths)
    return list(paths)
