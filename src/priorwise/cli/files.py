"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from priorwise.cli.errors import fail


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
    """Write every file under a temporary name, then rename them all."""
    directory.mkdir(parents=True, exist_ok=True)
    staged = {directory / name: directory / f".{name}.{os.getpid()}.tmp" for name in contents}
    try:
        for (path, temporary), content in zip(staged.items(), contents.values(), strict=True):
            temporary.write_bytes(content)
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a directory")
        for path, temporary in staged.items():
            temporary.replace(path)
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    return list(staged)
