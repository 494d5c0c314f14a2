"""One HTML page about a run: claims, figures, tables, times. It needs no other file and nothing
from the network.
"""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from priorwise.experiments.experiment import Claim, Files
from priorwise.experiments.running.headline import headline
from priorwise.experiments.running.run import Outcome, Results
from priorwise.experiments.running.store import write_whole
from priorwise.experiments.running.summary import (
    SHORT,
    group_seconds,
    kept_text,
    reduced,
    resumed_text,
    seconds_text,
    stale_text,
)
from priorwise.figures.tables import Table
from priorwise.simulate.sizes import available_threads

NAME: Final = "report.html"
CSS: Final = Path(__file__).with_name("report.css")
LARGEST_SVG: Final = 1_500_000  # bytes; beyond, the PNG is embedded instead
MOST_OPEN_ROWS: Final = 12  # longer tables are folded
PACKAGES: Final = ("priorwise", "numpy", "scipy", "numba", "pyarrow", "joblib", "matplotlib")


def write_report(results: Results) -> Path:
    """Write the page into the directory of the results."""
    path = results.out / NAME
    write_whole(path, as_html(results).encode())
    return path


def as_html(results: Results) -> str:
    """Return the page."""
    title = "Reproduction report"
    body = "\n".join(
        [
            *map(_experiment, results.outcomes),
            *(_experiment(each, kept=True) for each in results.kept),
        ]
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>priorwise: '
        f"{title}</title>\n"
        f"<style>{CSS.read_text()}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{_top(results)}</header>\n"
        f"<main>\n{body}\n</main>\n{_foot(results)}\n</body>\n</html>\n"
    )


def _top(results: Results) -> str:
    claims = sum(len(each.claims) for each in results.shown)
    held = claims - sum(len(each.failed) for each in results.shown)
    facts = [
        (f"{held} of {claims}", "claims hold"),
        *(
            (seconds_text(seconds), f"{group}, time on the wall")
            for group, seconds in group_seconds(results).items()
        ),
        *(
            [(seconds_text(results.compiling), "compiling, about")]
            if results.compiling >= SHORT
            else []
        ),
        (f"{results.replicates:,}", "replicates"),
        (str(results.seed), "seed"),
    ]
    shown = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>" for value, what in facts
    )
    names = " · ".join(
        f'<a href="#{escape(each.name)}">{escape(each.title)}</a>' for each in results.shown
    )
    notes = [text for text in (reduced(results), kept_text(results), stale_text(results)) if text]
    note = "\n".join(f'<p class="note">{escape(text)}</p>' for text in notes)
    lead = "Every number on this page is computed from the tables beside it."
    wrong = [
        replace(claim, statement=f"{each.name}: {claim.statement}")
        for each in results.shown
        for claim in each.failed
    ]
    failed = f"<h3>Claims that do not hold</h3>\n{_claims(wrong)}" if wrong else ""
    return (
        f'<p class="soft">{lead}</p>\n<div '
        f'class="facts">{shown}</div>\n{note}\n<p>{names}</p>\n{failed}\n'
    )


def _experiment(outcome: Outcome, *, kept: bool = False) -> str:
    held = len(outcome.claims) - len(outcome.failed)
    time = (
        f"{seconds_text(outcome.seconds)} on the wall; {outcome.blocks:,} blocks, "
        f"{seconds_text(outcome.block_seconds)} together"
    )
    if resumed_text(outcome):
        time += f" when they ran; {resumed_text(outcome)}"
    if kept:
        time = (
            f"From an earlier call; {outcome.blocks:,} blocks, "
            f"{seconds_text(outcome.block_seconds)} together when they ran"
        )
    parts = [
        f'<section id="{escape(outcome.name)}">\n<h2>{escape(outcome.title)}</h2>',
        f'<p class="soft small">{escape(time)}.</p>',
        f"<h3>Claims: {held} of {len(outcome.claims)} hold</h3>\n{_claims(outcome.claims)}",
        *(_figure(outcome.title, name, files) for name, files in outcome.figures.items()),
        *(_headline(name, table) for name, table in outcome.tables.items()),
        _files(outcome),
        _constants(outcome),
        "</section>",
    ]
    return "\n".join(parts)


def _claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr><td>{escape(each.statement)}</td><td class="measured">{escape(each.measured)}</td>'
        f'<td class="soft">{escape(each.needed)}</td>'
        f'<td class="soft source">{escape(each.source)}</td>'
        f'<td class="holds"><span class="{"yes" if each.holds else "no"}">'
        f"{'✓ yes' if each.holds else '✗ no'}</span></td></tr>"
        for each in claims
    )
    head = (
        "<tr><th>Statement</th><th>Measured (± standard "
        "error)</th><th>Needed</th><th>From</th><th>Holds</th></tr>"
    )
    return (
        '<div class="wide"><table '
        f'class="claims"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    )


def _figure(title: str, name: str, files: Files) -> str:
    svg = files.get("svg", b"")
    small = bool(svg) and (len(svg) <= LARGEST_SVG or "png" not in files)
    kind, content = ("svg+xml", svg) if small else ("png", files["png"])
    words = name.replace("_", " ").replace("-", " ")
    source = f"data:image/{kind};base64,{b64encode(content).decode()}"
    caption = f"{title}: {words}"
    return (
        f'<figure><img src="{source}" '
        f'alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _headline(name: str, table: Table) -> str:
    shown = headline(table)
    if shown is None:
        return ""
    over = (
        ""
        if shown.replicates is None
        else f", mean over {shown.replicates:,} replicates ± standard error"
    )

    def cells(tag: str, values: Iterable[str]) -> str:
        marked = zip(values, shown.numbers, strict=True)
        return "".join(
            f'<{tag} class="{"number" if number else "word"}">{escape(value)}</{tag}>'
            for value, number in marked
        )

    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in shown.rows)
    head = cells("th", (column.replace("_", " ") for column in shown.columns))
    content = (
        "<div "
        f'class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
    title = f"Table {escape(name)}{over}"
    if len(shown.rows) > MOST_OPEN_ROWS:
        return f"<details><summary>{title}</summary>{content}</details>"
    return f"<h3>{title}</h3>\n{content}"


def _files(outcome: Outcome) -> str:
    items = "".join(
        f"<tr><td><code>{escape(outcome.name)}/{escape(name)}.parquet</code></td>"
        f'<td class="number">{len(next(iter(table.values()))):,}</td>'
        f"<td>{escape(', '.join(table))}</td></tr>"
        for name, table in outcome.tables.items()
    )
    head = '<tr><th>File</th><th class="number">Rows</th><th>Columns</th></tr>'
    return (
        "<details><summary>All tables</summary><div "
        f'class="wide"><table>{head}{items}</table></div></details>'
    )


def _constants(outcome: Outcome) -> str:
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td><td><code>{escape(_value(value))}</code></td></tr>"
        for name, value in outcome.constants.items()
    )
    return (
        "<details><summary>Constants</summary><div "
        f'class="wide"><table>{rows}</table></div></details>'
    )


def _value(value: Any) -> str:
    return (
        ", ".join(map(str, value))
        if isinstance(value, (list, tuple))
        else " ".join(str(value).split())
    )


def _foot(results: Results) -> str:
    versions = [
        f"Python {platform.python_version()}",
        *(f"{name} {version(name)}" for name in PACKAGES),
    ]
    machine = (
        f"{platform.system()} {platform.machine()}, {available_threads()} processors; blocks ran "
        f"on {results.workers}"
    )
    digests = ", ".join(f"{each.name} {each.digest}" for each in results.shown)
    lines = (" · ".join(versions), machine, f"Digests of constants, seed and sources: {digests}")
    return (
        '<footer class="soft small">'
        + "".join(f"<p>{escape(line)}</p>" for line in lines)
        + "</footer>"
    )
