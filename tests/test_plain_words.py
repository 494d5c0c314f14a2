"""The checker of words notices what it has to: planted sentences and names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import plain_words

PAGE = "# Title\n\nThe prior starts each task. The policy pulls an arm.\n"
MODULE = (
    '"""Draw arms."""\n\n\ndef draw(arms: int) -> int:\n    """Draw one arm."""\n    return arms\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a small project that breaks no rule."""
    package = tmp_path / "src" / "priorwise"
    package.mkdir(parents=True)
    (package / "arms.py").write_text(MODULE)
    (tmp_path / "README.md").write_text(PAGE)
    return tmp_path


def test_plain_words_pass(project: Path) -> None:
    report = plain_words.check(project)
    assert report.passes()
    assert report.lengths == [5, 5]
    assert report.names == 2


@pytest.mark.parametrize(
    "sentence",
    [
        "What cannot be is refused.",
        "The loop " + "draws and " * 30 + "stops.",
        "It draws; it plays; it stops.",
    ],
)
def test_a_planted_sentence_of_the_documentation_fails(project: Path, sentence: str) -> None:
    (project / "README.md").write_text(sentence)
    assert not plain_words.check(project).passes()
    assert not plain_words.check(project, pages_alone=True).passes()


@pytest.mark.parametrize(
    "planted",
    [
        'def draw() -> None:\n    """Tell the arm."""\n',
        "ARM = 1  # what nobody deems likely\n",
        'def draw() -> None:\n    raise ValueError("what cannot be is refused")\n',
        f'"""Draw {"and draw " * 30}."""\n',
    ],
    ids=["docstring", "comment", "message", "endless"],
)
def test_a_planted_sentence_in_code_fails(project: Path, planted: str) -> None:
    (project / "src" / "priorwise" / "planted.py").write_text(planted)
    report = plain_words.check(project)
    assert [line for line in report.broken if "planted.py:" in line]
    assert plain_words.check(project, pages_alone=True).passes()
    assert not report.passes()


@pytest.mark.parametrize(
    "planted",
    [
        "known = 1\n",
        "class Found:\n    pass\n",
        "def told() -> None:\n    pass\n",
        "class Arm:\n    kind: int = 0\n",
        "class Arm:\n    def __init__(self) -> None:\n        self.whole = 1\n",
    ],
)
def test_a_planted_name_fails(project: Path, planted: str) -> None:
    (project / "src" / "priorwise" / "planted.py").write_text(planted)
    report = plain_words.check(project)
    assert any("says nothing" in line for line in report.broken)
    assert not report.passes()


def test_long_lines_are_counted(project: Path) -> None:
    (project / "src" / "priorwise" / "planted.py").write_text("x = 1  # " + "x" * 90 + "\n")
    assert not plain_words.check(project).passes()


def test_inner_names_have_a_share_only(project: Path) -> None:
    lines = "".join(f"    name{i} = {i}\n" for i in range(300))
    planted = "def draw() -> None:\n    other = 1\n" + lines
    (project / "src" / "priorwise" / "planted.py").write_text(planted)
    report = plain_words.check(project)
    assert report.filler == 1
    assert report.passes()
