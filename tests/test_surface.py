"""The public names: one table per package, found when first used, and told where they are."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import priorwise as pw
from priorwise._lazy import STUB, names_in

PACKAGES = ("advise", "core", "families", "fitting", "meta", "policies", "sensitivity")
AREAS = (*PACKAGES, "logs", "serve")
HEAVY = ("matplotlib", "numba", "pandas", "pyarrow", "rich", "scipy", "typer")


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stub_of(module: ModuleType) -> dict[str, str]:
    assert module.__file__ is not None
    return names_in(Path(module.__file__).with_name(STUB))


@pytest.mark.parametrize("name", ["", *PACKAGES])
def test_every_name_of_a_stub_is_there(name: str) -> None:
    package = getattr(pw, name) if name else pw
    homes = stub_of(package)
    assert package.__all__ == sorted(homes)
    assert dir(package) == sorted(homes)
    for each, home in homes.items():
        value = getattr(package, each)
        if home != "priorwise":
            assert value is getattr(importlib.import_module(home), each)


def test_about_sixty_names_stand_on_top() -> None:
    assert len([each for each, home in stub_of(pw).items() if home != "priorwise"]) <= 72


def test_every_name_on_top_but_three_stands_in_an_area() -> None:
    """As README.md says: ``simulate``, ``compare`` and ``Comparison`` stand on top alone."""
    areas = set().union(*(stub_of(getattr(pw, name)) for name in AREAS))
    functions = {each for each, home in stub_of(pw).items() if home != "priorwise"}
    assert functions - areas == {"simulate", "compare", "Comparison"}
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert all(f"`pw.{name}`" in readme for name in AREAS)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_name_is_also_that_of_a_module_beside_it(name: str) -> None:
    """Whichever is imported last would win."""
    package = getattr(pw, name)
    folder = Path(package.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir()}
    assert not modules & set(package.__all__)


def test_simulate_is_the_function_whatever_was_imported_before() -> None:
    code = "import priorwise.sensitivity.ladder.ladder; import priorwise as pw; print(pw.simulate)"
    assert run(code).startswith("<function simulate")


def test_a_name_that_moved_is_told_its_place() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'kl'; it is priorwise.sensitivity"):
        _ = pw.kl
    with pytest.raises(AttributeError, match=r"'GaussianPrior'; it is priorwise\.GaussianPrior$"):
        _ = pw.meta.GaussianPrior
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        _ = pw.nonsense


@pytest.mark.parametrize(
    ("code", "light"),
    [
        ("import priorwise", (*HEAVY, "numpy")),
        ("import priorwise as pw; pw.GaussianPrior; pw.ThompsonSampling; dir(pw)", HEAVY),
        ("import priorwise as pw; pw.simulate", HEAVY),
        ("import priorwise.cli", ("matplotlib", "numba", "numpy", "pandas", "pyarrow", "scipy")),
    ],
)
def test_what_is_not_needed_is_not_imported(code: str, light: tuple[str, ...]) -> None:
    loaded = run(f"{code}\nimport sys; print(*sys.modules)").split()
    assert not [each for each in light if each in loaded]


def test_help_imports_no_more_than_it_prints() -> None:
    code = """
import sys
sys.argv = ["priorwise", "--help"]
from priorwise.cli import main
try:
    main()
except SystemExit:
    print("LOADED", *sys.modules)
"""
    text, _, loaded = run(code).partition("LOADED")
    assert "reproduce" in text
    assert not {"matplotlib", "numba", "numpy", "pandas", "pyarrow", "scipy"} & set(loaded.split())


def test_json_finds_families_that_were_not_imported() -> None:
    text = pw.BetaPrior([1.0, 2.0], 3.0).to_json()
    assert "BetaPrior" in run(
        f"from priorwise.core.serial import load_prior; print(load_prior({text!r}))"
    )


@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("core", "Family", "families"),
        ("core", "Run", "fitting"),
        ("core.fits", "PriorFit", "fitting.fits"),
        ("core.family", "family_of", "families.registry"),
        ("core.runs", "Trajectory", "core.trajectories"),
        ("core.distance", "Pair", "theory.distance"),
        ("core.allocation", "allocate", "policies.allocation"),
    ],
)
def test_a_name_that_moved_stays_importable_and_warns(old: str, name: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"import it from priorwise.{new}"):
        value = getattr(import_module(f"priorwise.{old}"), name)
    assert value is getattr(import_module(f"priorwise.{new}"), name)
