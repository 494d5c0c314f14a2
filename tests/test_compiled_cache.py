"""Compiled code on disk is never older than the sources that it was made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import priorwise as pw
from priorwise.kernels.compiling import sources_stamp

PACKAGE = Path(pw.__file__).parent
COMPILED = sorted(
    path.relative_to(PACKAGE)
    for path in PACKAGE.rglob("*.py")
    if any(f"\n@{word}" in path.read_text() for word in ("tile(", "entry(", "inline\n", "cached\n"))
)
CONSTANTS = {  # a module of constants that compiled code has inlined, and a source that does
    "core/choosing.py": "kernels/policies_exact.py",
    "core/hashing.py": "families/finite/tiles_counts.py",
    "core/lookahead.py": "kernels/policies_exact.py",
    "core/tiles.py": "families/beta/tiles.py",
    "families/logit_normal/propagation.py": "families/logit_normal/tiles_propagation.py",
    "families/logit_normal/tilted.py": "families/logit_normal/tiles_propagation.py",
    "families/normal_gamma/student.py": "families/normal_gamma/tiles_exact.py",
    "kernels/random.py": "families/beta/tiles.py",
    "kernels/simd.py": "families/tabular_mdp/tiles_draw.py",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path_factory.mktemp("copy") / "priorwise", ignore=ignored)


def stamp(package: Path, source: Path | str) -> str:
    return sources_stamp(package / source)


def test_compiled_sources_are_found() -> None:
    assert len(COMPILED) > 35


@pytest.mark.parametrize(("edited", "source"), CONSTANTS.items())
def test_an_edit_of_what_a_source_imports_misses_the_cache(
    copy: Path, edited: str, source: str
) -> None:
    before, text = stamp(copy, source), (copy / edited).read_text()
    (copy / edited).write_text(text + "\nEDITED = 1\n")
    assert stamp(copy, source) != before
    (copy / edited).write_text(text)
    assert stamp(copy, source) == before


@pytest.mark.parametrize("source", COMPILED, ids=str)
def test_every_module_that_a_compiled_function_reads_is_in_its_key(
    copy: Path, source: Path
) -> None:
    """The globals of a module are what Numba inlines: all of ours count."""
    from importlib import import_module

    module = import_module(".".join(["priorwise", *source.with_suffix("").parts]))
    before = stamp(copy, source)
    homes = {getattr(value, "__module__", None) for value in vars(module).values()}
    for home in sorted(each for each in homes if each and each.startswith("priorwise.")):
        path = copy.parent.joinpath(*home.split(".")).with_suffix(".py")
        if path.is_file():
            text = path.read_text()
            path.write_text(text + "\n")
            assert stamp(copy, source) != before, home
            path.write_text(text)
