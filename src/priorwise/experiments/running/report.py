"""One HTML page about a run: claims, figures, tables, times. It needs no other file and nothing
from the network.
"""

import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Final

from priorwise.experiments.experiment import Claim, Files
from priorwise.experiments.running import summary
from priorwise.experiments.running.headline import headline
from priorwise.experiments.running.run import Outcome, Results
from priorwise.experiments.running.store import write_whole
from priorwise.experiments.running.summary import seconds_text
from priorwise.figures.pages import document, embedded, facts, folded, tag, wide
from priorwise.figures.tables import Table
from priorwise.simulate.sizes import available_threads

NAME: Final = "report.html"
MOST_OPEN_ROWS: Final = 12  # longer tables are folded
PACKAGES: Final = ("priorwise", "numpy", "scipy", "numba", "pyarrow", "joblib", "matplotlib")


def write_report(results: Results) -> Path:
    """Write the page into the directory of the results."""
    path = results.out / NAME
    write_whole(path, as_html(results).encode())
    return path


def as_html(results: Results) -> str:
    """Return the page."""
    title, ran = "Reproduction report", len(results.outcomes)
    parts = (
        *("<header>", f"<h1>{title}</h1>", f"{_top(results)}</header>", "<main>"),
        *(_experiment(each, kept=place >= ran) for place, each in enumerate(results.shown)),
        *("</main>", _foot(results)),
    )
    return document(title, parts)


def _top(results: Results) -> str:
    claims = sum(len(each.claims) for each in results.shown)
    held = claims - sum(len(each.failed) for each in results.shown)
    numbers = [(f"{held} of {claims}", "claims hold")]
    for group, seconds in summary.group_seconds(results).items():
        numbers.append((seconds_text(seconds), f"{group}, time on the wall"))
    if results.compiling >= summary.SHORT:
        numbers.append((seconds_text(results.compiling), "compiling, about"))
    numbers += [(f"{results.replicates:,}", "replicates"), (str(results.seed), "seed")]
    names = " · ".join(
        f'<a href="#{escape(each.name)}">{escape(each.title)}</a>' for each in results.shown
    )
    notes = [text for text in (summary.reduced(results), *summary.others_text(results)) if text]
    wrong = [
        replace(claim, statement=f"{each.name}: {claim.statement}")
        for each in results.shown
        for claim in each.failed
    ]
    parts = (
        tag("p", "Every number on this page is computed from the tables beside it.", "soft"),
        facts(numbers),
        "\n".join(tag("p", escape(text), "note") for text in notes),
        tag("p", names),
        f"<h3>Claims that do not hold</h3>\n{_claims(wrong)}" if wrong else "",
        "",
    )
    return "\n".join(parts)


def _experiment(outcome: Outcome, *, kept: bool) -> str:
    held = len(outcome.claims) - len(outcome.failed)
    work = f"{outcome.blocks:,} blocks, {seconds_text(outcome.block_seconds)} together"
    time = f"{seconds_text(outcome.seconds)} on the wall; {work}"
    if summary.resumed_text(outcome):
        time += f" when they ran; {summary.resumed_text(outcome)}"
    if kept:
        time = f"From an earlier call; {work} when they ran"
    parts = [
        f'<section id="{escape(outcome.name)}">\n<h2>{escape(outcome.title)}</h2>',
        tag("p", f"{escape(time)}.", "soft small"),
        f"<h3>Claims: {held} of {len(outcome.claims)} hold</h3>\n{_claims(outcome.claims)}",
        *(_figure(outcome.title, name, files) for name, files in outcome.figures.items()),
        *(_headline(name, table) for name, table in outcome.tables.items()),
        _files(outcome),
        _constants(outcome),
        "</section>",
    ]
    return "\n".join(parts)


def _claims(claims: Sequence[Claim]) -> str:
    titles = ("Statement", "Measured (± standard error)", "Needed", "From", "Holds")
    rows = ""
    for each in claims:
        holds = tag("span", *(("✓ yes", "yes") if each.holds else ("✗ no", "no")))
        cells = (
            tag("td", escape(each.statement)),
            tag("td", escape(each.measured), "measured"),
            tag("td", escape(each.needed), "soft"),
            tag("td", escape(each.source), "soft source"),
            tag("td", holds, "holds"),
        )
        rows += tag("tr", "".join(cells))
    head = tag("tr", "".join(tag("th", title) for title in titles))
    return wide(tag("thead", head) + tag("tbody", rows), "claims")


def _figure(title: str, name: str, files: Files) -> str:
    return embedded(f"{title}: {name.replace('_', ' ').replace('-', ' ')}", files)


def _headline(name: str, table: Table) -> str:
    shown = headline(table)
    if shown is None:
        return ""
    title = f"Table {escape(name)}"
    if shown.replicates is not None:
        title += f", mean over {shown.replicates:,} replicates ± standard error"
    kinds = ["number" if number else "word" for number in shown.numbers]

    def row(cell: str, values: Iterable[str]) -> str:
        cells = zip(values, kinds, strict=True)
        return tag("tr", "".join(tag(cell, escape(value), kind) for value, kind in cells))

    head = row("th", (column.replace("_", " ") for column in shown.columns))
    body = "".join(row("td", each) for each in shown.rows)
    content = wide(tag("thead", head) + tag("tbody", body))
    if len(shown.rows) > MOST_OPEN_ROWS:
        return folded(title, content)
    return f"<h3>{title}</h3>\n{content}"


def _files(outcome: Outcome) -> str:
    rows = '<tr><th>File</th><th class="number">Rows</th><th>Columns</th></tr>'
    for name, table in outcome.tables.items():
        file = tag("td", tag("code", f"{escape(outcome.name)}/{escape(name)}.parquet"))
        size = tag("td", f"{len(next(iter(table.values()))):,}", "number")
        rows += tag("tr", file + size + tag("td", escape(", ".join(table))))
    return folded("All tables", wide(rows))


def _constants(outcome: Outcome) -> str:
    rows = ""
    for name, value in outcome.constants.items():
        several = isinstance(value, (list, tuple))
        text = ", ".join(map(str, value)) if several else " ".join(str(value).split())
        rows += tag("tr", tag("td", escape(str(name))) + tag("td", tag("code", escape(text))))
    return folded("Constants", wide(rows))


def _foot(results: Results) -> str:
    versions = [f"{name} {version(name)}" for name in PACKAGES]
    processors = f"{available_threads()} processors"
    digests = ", ".join(f"{each.name} {each.digest}" for each in results.shown)
    lines = (
        " · ".join([f"Python {platform.python_version()}", *versions]),
        f"{platform.system()} {platform.machine()}, {processors}; blocks ran on {results.workers}",
        f"Digests of constants, seed and sources: {digests}",
    )
    return tag("footer", "".join(tag("p", escape(line)) for line in lines), "soft small")
