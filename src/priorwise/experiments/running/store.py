"""Finished blocks on disk: whole, checked when read, and never used for anything but the code and
constants that made them.

A block's file stands at ``<directory>/<experiment>/<digest>/<part>-<first>-<count>.npz``. The
digest covers the experiment's constants, the seed, the sources and the versions of what computes. A
file that is cut, altered or in the wrong place counts as missing, and its block runs again.
"""

import hashlib
import inspect
import io
import json
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import quote

import numpy as np

from priorwise.core import files
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.experiments.experiment import Arrays, Block, Experiment

DIGITS: Final = 16
CHECK: Final = "_check"
SECONDS: Final = "_seconds"
NOT_IN_RESULTS: Final = ("cli", "testing")  # no experiment imports these
COMPUTING: Final = ("numpy", "scipy", "numba")
# where a run writes; the directory may hold more than runs
LEFT_OVER: Final = (".*.html.*.tmp", "*/.*.tmp", "blocks/*/*/.*.tmp")
# as ``write_whole`` names it
WRITTEN: Final = re.compile(r"\..+\.(npz|parquet|png|svg|html)\.\d+\.tmp")


class InUseError(RuntimeError):
    """Another run writes to the same directory."""


@cache
def code_stamp() -> str:
    """Hash of the package's sources and of the versions of what computes: results are the same bits
    where it is the same.
    """
    package = Path(__file__).parents[2]
    digest = hashlib.sha256(platform.python_version().rpartition(".")[0].encode())
    for name in COMPUTING:
        digest.update(f"{name}={version(name)}\n".encode())
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] not in NOT_IN_RESULTS:
            content = path.read_bytes()
            digest.update(f"{place.as_posix()}:{len(content)}\n".encode() + content)
    return digest.hexdigest()


def digest_of(experiment: Experiment, seed: int) -> str:
    """Name what the results of an experiment depend on."""
    constants = json.dumps(dict(experiment.constants()), sort_keys=True)
    if re.search(r" at 0x[0-9a-f]+", constants):
        raise ArgumentError(
            "constants",
            f"of {experiment.name} hold a memory address, which changes with every run",
            got=constants,
        )
    parts = [experiment.name, constants, seed, code_stamp(), _own_source(experiment)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGITS]


def _own_source(experiment: Experiment) -> str:
    """Hash of the file that defines the experiment, which may stand outside the package."""
    try:
        return hashlib.sha256(Path(inspect.getfile(type(experiment))).read_bytes()).hexdigest()
    except (OSError, TypeError):  # defined in an interactive session
        return ""


@final
@dataclass(frozen=True)
class Finished:
    """What a block returned, and the seconds it took when it ran, without those spent compiling
    before it could.
    """

    arrays: Arrays
    seconds: float
    compiling: float = 0.0  # not kept on disk: compiled code is cached, and no block's own


@final
@dataclass(frozen=True)
class BlockStore:
    """Blocks of one experiment with one digest."""

    directory: Path
    digest: str

    def path(self, block: Block) -> Path:
        """Where a block's file stands."""
        return self.directory / f"{quote(block.part, safe='')}-{block.first}-{block.count}.npz"

    def save(self, block: Block, finished: Finished) -> None:
        """Write a block; its file appears whole or not at all."""
        arrays = {name: np.asarray(array, order="C") for name, array in finished.arrays.items()}
        for name, array in arrays.items():
            if array.dtype.hasobject or name.startswith("_"):
                raise ArgumentTypeError(
                    name, "must be an array of numbers or text, without a leading underscore"
                )
        buffer = io.BytesIO()
        extra = {CHECK: np.array(self._check(block, arrays)), SECONDS: np.array(finished.seconds)}
        np.savez(buffer, **arrays, **extra)  # type: ignore[arg-type]  # names, which the types take for an option
        write_whole(self.path(block), buffer.getvalue())

    def load(self, block: Block) -> Finished | None:
        """Read a block; None if it is missing or not as it was written."""
        try:
            with np.load(io.BytesIO(self.path(block).read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            seconds, check = float(arrays.pop(SECONDS)), str(arrays.pop(CHECK))
            whole = check == self._check(block, arrays)
        except Exception:  # not there, or damaged in whatever way
            return None
        return Finished(arrays, seconds) if whole else None

    def _check(self, block: Block, arrays: Arrays) -> str:
        """Hash of which block it is and of every array."""
        total = hashlib.sha256(f"{self.digest} {block.part} {block.first} {block.count}".encode())
        for name, array in sorted(arrays.items()):
            total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
            total.update(array.tobytes())
        return total.hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, and the directories it stands in; a reader, or the next run, finds all of it or
    none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, content)


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """Keep other runs out of a directory; the system gives it free when this process ends, however
    it ends.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        if not _locked(lock):
            raise InUseError(f"another run is writing to {out}")
        for pattern in LEFT_OVER:
            for left in out.glob(pattern):  # of a run that was killed
                if WRITTEN.fullmatch(left.name):
                    left.unlink(missing_ok=True)
        yield


def _locked(lock: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # a system without it: trust the user
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True
