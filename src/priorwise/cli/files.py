"""Where a command writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from priorwise.cli.errors import fail
from priorwise.core.files import write_together


def check_directory(option: str, directory: Path) -> None:
    """Stop before the work if its results could not be written; creates nothing."""
    nearest = directory.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        fail(option, f"{nearest} is a file, not a directory; choose another directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        fail(option, f"no permission to write in {nearest}; choose another directory")


def write_all(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write all files of a directory, or none."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = {directory / name: content for name, content in contents.items()}
    write_together(paths)
    return list(paths)
