"""Tools ask a family and never test for one: no class of a family stands in an isinstance, a
comparison of types or a table of types outside the folder of the families.

The import contracts in pyproject.toml keep concrete families out of most modules; this test also
finds a test for a family by a class that came some other way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from raising import raises

import priorwise
from priorwise.families.registry import Family, family_for, register

ROOT = Path(priorwise.__file__).parent
FREE = ("families", "experiments")  # a family knows itself; experiments are about given families


def classes_of_families() -> set[str]:
    """Names of all classes that a family's folder defines, but for mixtures, which are of any."""
    names = set()
    for path in (ROOT / "families").rglob("*.py"):
        if "mixture" not in path.parts:
            tree = ast.parse(path.read_text())
            names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return names


def names_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def asked_for(source: str) -> set[str]:
    """Names in tests for a class: isinstance, comparisons of types, keys of tables, cases."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
                found |= set(names_in(node.args[1]))
        elif isinstance(node, ast.Compare):
            if any("type" in names_in(each) for each in (node.left, *node.comparators)):
                found |= {
                    name for each in (node.left, *node.comparators) for name in names_in(each)
                }
        elif isinstance(node, ast.Dict):
            found |= {key.id for key in node.keys if isinstance(key, ast.Name)}
        elif isinstance(node, ast.MatchClass):
            found |= set(names_in(node.cls))
    return found


def modules() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in FREE and "__pycache__" not in path.parts
    ]


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(prior, BetaPrior)",
        "isinstance(prior, (int, families.beta.BetaPrior))",
        "type(prior) is BetaPrior",
        "type(prior).__name__ == 'BetaPrior'",
        "TABLE = {BetaPrior: 1}",
        "match prior:\n    case BetaPrior():\n        pass",
    ],
)
def test_the_test_finds_each_way(source: str) -> None:
    assert "BetaPrior" in asked_for(source) & classes_of_families()


def test_nothing_outside_families_tests_for_one() -> None:
    classes = classes_of_families()
    assert {"BetaPrior", "GaussianBelief", "LinearStatistics", "FiniteCounts"} <= classes
    for path in modules():
        assert not asked_for(path.read_text()) & classes, path


def test_a_family_has_classes_of_priors_and_known_parts() -> None:
    for priors in (priorwise.BetaPrior, ("BetaPrior",), (priorwise.BetaPrior([1.0], [1.0]),)):
        with raises("priors", "of the family 'odd' must be a"):
            register(Family(name="odd", priors=priors))  # type: ignore[arg-type]
    with raises("part", "must be one of statistics, blank"):
        family_for(priorwise.BetaPrior([1.0], [1.0]), "a test").has("distance")
