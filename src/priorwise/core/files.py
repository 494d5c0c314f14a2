"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

from priorwise.core.errors import ArgumentError, ArgumentTypeError


def file_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write, if it can be one."""
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise ArgumentTypeError("path", "must be the path of a file", got=path)
    try:
        if 0 in os.fsencode(path):
            raise ArgumentError("path", "must not have a NUL character", got=str(path))
    except UnicodeEncodeError:
        raise ArgumentError(
            "path", "must be a name that the system can write", got=str(path)
        ) from None
    return Path(os.fsdecode(path))


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name, then rename: a reader finds all of it or none."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write every file under a temporary name, then rename them all; an error names the file that
    was asked for.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            with _named(path):
                if path.is_dir():
                    raise IsADirectoryError(f"{path} is a directory")
                staged[path] = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.tmp")
                staged[path].write_bytes(content)
        for path, temporary in staged.items():
            with _named(path):
                temporary.replace(path)
    finally:
        for path, temporary in staged.items():
            with _named(path):
                temporary.unlink(missing_ok=True)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let errors of the system name this path, not the temporary one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None
