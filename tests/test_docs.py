"""The documentation runs: every Python block, its printed output, every shell command, and the
doctests of the package.
"""

from __future__ import annotations

import atexit
import contextlib
import doctest
import importlib
import inspect
import io
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import priorwise as pw
from priorwise.testing import base_seed

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")))
]
MODULES = [
    "priorwise",
    *sorted(module.name for module in pkgutil.walk_packages(pw.__path__, "priorwise.")),
]
# tile functions are cached beside the file they are in
SCRATCH = Path(tempfile.mkdtemp(prefix="priorwise-docs-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int  # of its first line of code
    language: str
    text: str
    output: str | None  # the text block that follows at once


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    found = []
    for fence, after in zip(fences, [*fences[1:], None][: len(fences)], strict=True):
        follows = (
            after is not None
            and after[1] == "text"
            and not text[fence.end() : after.start()].strip()
        )
        found.append(
            Block(
                page,
                text.count("\n", 0, fence.start(2)) + 1,
                fence[1],
                fence[2],
                after[2] if follows else None,
            )
        )
    return found


@cache
def executed(page: str) -> tuple[ModuleType, list[tuple[Block, str]]]:
    """Run the Python blocks of a page one after the other in one module; returns it and what each
    block printed.
    """
    name = "documented_" + re.sub(r"\W", "_", page.removesuffix(".md")).lower()
    module = sys.modules[name] = ModuleType(name)
    printed = []
    for block in (block for block in blocks(page) if block.language == "python"):
        file = SCRATCH / f"{name}_{block.line}.py"
        file.write_text("\n" * (block.line - 1) + block.text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(
                compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True),
                module.__dict__,
            )
        printed.append((block, out.getvalue()))
    return module, printed


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def refresh() -> None:
    """Write what the blocks print into the pages."""
    for page in PAGES:
        path = ROOT / page
        for block, printed in executed(page)[1]:
            if block.output is not None:
                text = path.read_text(encoding="utf-8")
                old, new = (
                    f"{block.text}```\n```text\n{output}```"
                    for output in (block.output, "\n".join(lines(printed)) + "\n")
                )
                assert text.count(old) == 1, (
                    f"{page}, line {block.line}: leave no blank line between a block and its output"
                )
                path.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    refresh()
    sys.exit()


WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_blocks_run_and_print_what_is_written(page: str) -> None:
    for block, printed in executed(page)[1]:
        where = f"{page}, line {block.line}"
        if block.output is None:
            assert not printed, f"{where}: prints, but no ```text block follows"
        else:
            assert lines(printed) == lines(block.output), where


# The skeletons of CONTRIBUTING.md pass the contracts that stand beside them there.
_skeletons = executed("CONTRIBUTING.md")[0]
TestPoissonPrior = _skeletons.TestPoissonPrior
TestPoissonJson = _skeletons.TestPoissonJson
TestMajorityVote = _skeletons.TestMajorityVote
TestCompiledMajorityVote = _skeletons.TestCompiledMajorityVote
TestEpsilonGreedy = _skeletons.TestEpsilonGreedy


def test_every_contract_of_the_skeletons_is_run_here() -> None:
    assert {name for name in vars(_skeletons) if name.startswith("Test")} <= set(globals())


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["of the experiments", "default"])
def test_enumerated_laws_are_those_of_the_policies(rule: str) -> None:
    """The laws that docs/corrections.md enumerates, against frequencies; false alarms with
    probability below 1e-6.
    """
    page = executed("docs/corrections.md")[0]
    paper = rule == "of the experiments"
    policy = (
        pw.KnowledgeGradient(1, 1, ties="random", when_certain="best")
        if paper
        else pw.KnowledgeGradient(1, 1)
    )
    tasks = 50_000
    for weights in (page.certain, page.nearly):
        held = pw.FinitePrior(page.means, [float(weight) for weight in weights])
        run = pw.simulate(held, policy, horizon=1, tasks=tasks, seed=base_seed(), keep=True)
        law = np.array([float(p) for p in page.action_law(weights, paper)])
        seen = np.bincount(run.actions[:, 0], minlength=3) / tasks
        assert np.all(np.abs(seen - law) <= 6.0 * np.sqrt(law * (1.0 - law) / tasks) + 1e-12)


JSON_BLOCKS = [block for page in PAGES for block in blocks(page) if block.language == "json"]


@pytest.mark.parametrize("block", JSON_BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_json_blocks_are_priors(block: Block) -> None:
    prior = pw.load_prior(block.text)
    assert pw.load_prior(prior.to_json()) == prior


def commands() -> list[tuple[str, list[str]]]:
    """Shell commands, as (where, words): the lines of sh blocks, and what starts with ``priorwise``
    or ``make`` in running text.
    """
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        code = [
            line
            for block in blocks(page)
            if block.language == "sh"
            for line in block.text.splitlines()
        ]
        code += re.findall(r"`((?:[A-Z_]+=\S+ )?(?:priorwise|make) [^`]+)`", FENCE.sub("", text))
        parts = (
            shlex.split(part, comments=True)
            for line in code
            for part in re.split(r"\||>\s*\S+", line)
        )
        found += [(page, words) for words in parts if words]
    return found


@pytest.mark.parametrize(
    ("page", "words"), [pytest.param(*c, id=f"{c[0]}: {' '.join(c[1])}") for c in commands()]
)
def test_shell_commands_exist(page: str, words: list[str]) -> None:
    words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\S+", word)]
    if words[0] == "make":
        targets = re.findall(
            r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(words[1:]) <= set(targets)
    elif words[0] == "priorwise":
        known = priorwise_commands()
        assert words[1] in known
        assert {word for word in words if word.startswith("--")} <= known[words[1]] | {"--help"}
    else:
        assert words == ["pip", "install", "."]


@cache
def priorwise_commands() -> dict[str, set[str]]:
    """Options of each command."""
    import typer

    from priorwise.cli import app

    def options(command) -> set[str]:
        """Those of a command, and of the commands in it."""
        inner = getattr(command, "commands", {}).values()
        own = {option for p in command.params for option in p.opts}
        return own.union(*(options(each) for each in inner))

    group = typer.main.get_command(app)
    return {name: options(command) for name, command in group.commands.items()}  # type: ignore[attr-defined]


@pytest.mark.slow
def test_shell_example_of_the_readme_runs(tmp_path: Path) -> None:
    """As written, in a shell, with the installed command."""
    script = next(
        block.text
        for block in blocks("README.md")
        if block.language == "sh" and "priorwise" in block.text
    )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    options = {
        "cwd": tmp_path,
        "env": environment,
        "capture_output": True,
        "text": True,
        "timeout": 300,
    }
    done = subprocess.run(["sh", "-ec", script], check=False, **options)
    assert done.returncode == 0, done.stderr
    assert "greedy" in done.stdout
    assert (tmp_path / "out" / "simulate.json").is_file()


def test_policy_names_in_the_readme_are_known() -> None:
    from priorwise.cli.policies import WORDS, parse_policy

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.search(r"Policy names:(.*?)\.\s", text, re.DOTALL)
    assert named is not None
    words = re.findall(r"`([^`]+)`", named[1])
    for word in words:
        parse_policy(word)
    assert {word.partition(":")[0] for word in words} == set(WORDS)


SIGNATURE = re.compile(r"`(?:pw\.)?(?:families\.)?([A-Z]\w+)\(([^`()]*)\)`")


@pytest.mark.parametrize("page", ["README.md", "docs/families.md"])
def test_written_signatures_have_parameters_that_exist(page: str) -> None:
    """``Name(first, second=...)`` in a table or at the head of a section."""
    checked = 0
    for name, written in SIGNATURE.findall(FENCE.sub("", (ROOT / page).read_text("utf-8"))):
        made = getattr(pw, name, None) or getattr(pw.families, name, None)
        words = [each.partition("=")[0].strip() for each in written.split(",")]
        named = [each for each in words if each.isidentifier()]
        if made is None or not named:
            continue
        parameters = set(inspect.signature(made).parameters)
        assert set(named) <= parameters, f"{page}: {name}({written})"
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("page", PAGES)
def test_results_are_not_sliced(page: str) -> None:
    """A page shows all reasons of an advice, or none."""
    assert not re.search(r"reasons\[", (ROOT / page).read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    for target, _ in LINK.findall(FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        assert target.startswith("https://") or ((ROOT / page).parent / target).exists(), target


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {
        target for target, _ in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    }
    assert set(PAGES) - {"README.md"} <= linked


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    if name.endswith("__main__"):
        return
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


def test_doctests_are_found() -> None:
    finder = doctest.DocTestFinder()
    assert (
        sum(
            bool(test.examples)
            for test in finder.find(importlib.import_module("priorwise.families.gaussian.prior"))
        )
        >= 1
    )


def test_policy_table_states_the_constants() -> None:
    """The constants in the table of docs/policies.md are those of the policies."""
    text = (ROOT / "docs/policies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+\([^`]*\))` \| (None|[\d,]+) \| -?\d", text, re.MULTILINE)
    assert len(rows) == 15
    names = {name: getattr(pw.policies, name) for name in pw.policies.__all__}
    for source, constant in rows:
        policy = eval(source, names)
        assert policy.monte_carlo_n(6) == (
            None if constant == "None" else int(constant.replace(",", ""))
        )
