"""What the tests keep to: seeds that ``PRIORWISE_TEST_SEED`` shifts, and no clock that judges."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parent.glob("*.py"))
CLOCKS = {"perf_counter", "process_time", "thread_time", "perf_counter_ns", "process_time_ns"}
GENERATORS = {"default_rng", "Streams"}


def fixed_seeds(tree: ast.AST) -> Iterator[int]:
    """Lines with a whole number for a seed."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        given = [keyword.value for keyword in call.keywords if keyword.arg == "seed"]
        given += call.args[:1] if _name(call.func) in GENERATORS else []
        if any(isinstance(value, ast.Constant) and type(value.value) is int for value in given):
            yield call.lineno


def clocks(tree: ast.AST) -> Iterator[int]:
    """Lines that read a clock to measure."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and _name(node) in CLOCKS:
            yield node.lineno


def _name(node: ast.expr) -> str:
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_seed_can_be_shifted(path: Path) -> None:
    assert list(fixed_seeds(ast.parse(path.read_text()))) == [], (
        "take the fixture `seed`, or base_seed()"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name.startswith("test_")], ids=lambda path: path.name
)
def test_no_test_reads_a_clock(path: Path) -> None:
    assert list(clocks(ast.parse(path.read_text()))) == [], (
        "count the work instead: see counting.py"
    )


def test_the_checks_see_what_they_look_for() -> None:
    wrong = (
        "simulate(prior, seed=0)\nnp.random.default_rng(3)\nStreams(1, tasks)\nbegin = "
        "time.perf_counter()\n"
    )
    assert list(fixed_seeds(ast.parse(wrong))) == [1, 2, 3]
    assert list(clocks(ast.parse(wrong))) == [4]
    right = "simulate(prior, seed=seed + 1)\nnp.random.default_rng(base_seed())\ntime.sleep(1)\n"
    assert [*fixed_seeds(ast.parse(right)), *clocks(ast.parse(right))] == []
