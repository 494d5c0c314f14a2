"""Check the words of the project: sentences and names that a newcomer reads once.

``python tools/plain_words.py`` prints what breaks a rule, with its place, and then the measures.
It exits with 1 if anything breaks a rule or a measure passes its limit. With ``--pages`` it reads
the documentation alone, as ``make lint`` does.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

FILLER = re.compile(
    r"each|found|places?|known|own|told|tell|held|hold|said|say|shown?|kinds?|things?|others?|whole"
    r"|seen|made|given|taken|wanted|needed|here|there|what|which|who|such|some|any|both|rest|same"
    r"|another|ones?"
)
BANNED = re.compile(
    r"\b(told|tells?|deems?|refuse[sd]?|middling|of one's own|all the same|as ever|who thinks)\b",
    re.IGNORECASE,
)
LONGEST = 45  # words of one sentence in code
LIMITS = {
    "median sentence of the documentation, words": 13,
    "90th percentile of the same": 25,
    "semicolons per 1,000 words": 3,
    "banned words": 0,
    "filler names, %": 1,
    "lines over 88 characters, %": 2,
}
LATER = ("families",)  # folders whose names do not count yet


@dataclass
class Report:
    """What breaks a rule, and the counts behind the measures."""

    broken: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # words of each sentence of the documentation
    semicolons: int = 0
    banned: int = 0
    names: int = 0
    filler: int = 0
    lines: int = 0
    long: int = 0

    def measures(self) -> dict[str, float]:
        """Value of each measure that has a limit."""
        lengths = sorted(self.lengths) or [0]
        values = (
            median(lengths),
            lengths[int(0.9 * (len(lengths) - 1))],
            1000 * self.semicolons / max(sum(lengths), 1),
            self.banned,
            100 * self.filler / max(self.names, 1),
            100 * self.long / max(self.lines, 1),
        )
        return dict(zip(LIMITS, values, strict=True))

    def passes(self) -> bool:
        """Return whether no rule is broken and every measure is within its limit."""
        return not self.broken and all(
            value <= LIMITS[name] for name, value in self.measures().items()
        )


def prose_of(text: str) -> Iterator[str]:
    """Paragraphs of a Markdown page, without code, tables, headings, links and HTML."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    rows = [row for row in text.splitlines() if not row.lstrip().startswith(("|", "#", "!", "<"))]
    text = re.sub(r"`[^`]*`", "x", re.sub(r"\]\([^)]*\)", "]", "\n".join(rows)))
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*] |\n\s*\d+\. ", text):
        yield " ".join(paragraph.split())


def sentence_lengths(paragraph: str) -> Iterator[int]:
    """Words of each sentence; fragments of one or two words do not count."""
    for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*])", paragraph):
        words = len(re.findall(r"[A-Za-z][\w'-]*", sentence))
        if words >= 3:
            yield words


def check_page(path: Path, report: Report) -> None:
    """Count the sentences of a page, and report its banned words."""
    for paragraph in prose_of(path.read_text(encoding="utf8")):
        report.lengths.extend(sentence_lengths(paragraph))
        report.semicolons += paragraph.count(";")
        for match in BANNED.finditer(paragraph):
            report.banned += 1
            report.broken.append(f"{path}: banned word {match[0]!r}: {_around(paragraph, match)}")


def _around(text: str, match: re.Match[str]) -> str:
    return f"... {text[max(match.start() - 30, 0) : match.end() + 30]} ..."


def texts_of(source: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings, comments and message strings of a module, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a module assigns, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def lasting_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names at the level of a module, a class or an attribute."""
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in scope.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                yield node.lineno, node.name
            for part in ast.walk(node) if isinstance(node, ast.Assign | ast.AnnAssign) else ():
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.lineno, part.id
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def is_filler(name: str) -> bool:
    """Return whether a name says nothing."""
    return FILLER.fullmatch(name.strip("_").lower()) is not None


def check_module(path: Path, report: Report, *, names: bool = True) -> None:
    """Report the banned words, endless sentences and empty names of a module."""
    source = path.read_text(encoding="utf8")
    tree = ast.parse(source)
    for line, text in texts_of(source, tree):
        flat = " ".join(re.sub(r"``[^`]*``|`[^`]*`", "x", text).split())
        for match in BANNED.finditer(flat):
            report.broken.append(f"{path}:{line}: banned word {match[0]!r}: {_around(flat, match)}")
        if max(sentence_lengths(flat), default=0) > LONGEST:
            report.broken.append(f"{path}:{line}: a sentence of more than {LONGEST} words")
    if not names:
        return
    rows = source.splitlines()
    report.lines += len(rows)
    report.long += sum(len(row) > 88 for row in rows)
    every = [name for _, name in names_of(tree) if name not in ("self", "cls", "_")]
    report.names += len(every)
    report.filler += sum(map(is_filler, every))
    for line, name in lasting_names(tree):
        if is_filler(name):
            report.broken.append(f"{path}:{line}: the name {name!r} says nothing")


def check(root: Path, *, pages_alone: bool = False) -> Report:
    """Check a project: its Markdown pages and, unless they are asked for alone, its package."""
    report = Report()
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        check_page(page, report)
    source = root / "src" / "priorwise"
    for module in () if pages_alone else sorted(source.rglob("*.py")):
        check_module(module, report, names=module.relative_to(source).parts[0] not in LATER)
    return report


def main() -> int:
    """Check the project that this file is in, or the one named."""
    roots = [each for each in sys.argv[1:] if each != "--pages"]
    root = Path(roots[0]) if roots else Path(__file__).parents[1]
    report = check(root, pages_alone="--pages" in sys.argv)
    print(*report.broken, sep="\n")
    for name, value in report.measures().items():
        print(f"{name}: {value:.3g} (limit {LIMITS[name]})")
    return 0 if report.passes() else 1


if __name__ == "__main__":
    sys.exit(main())
