"""Pieces of HTML: everything that comes from elsewhere is escaped here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np

from priorwise.figures.pages import tag

SHORT: Final = 80
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for a formula where a text begins with it."""


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> str:
    """Return HTML of anything: escaped, unless it is HTML already."""
    return value if isinstance(value, Safe) else escape(str(value))


def name(value: str, most: int = SHORT) -> Safe:
    """Return a name that somebody chose: kept apart from the text around it, and cut if long."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)
    half = most // 2
    short = visible if len(visible) <= most else f"{visible[:half]}…{visible[-half:]}"
    return Safe(f'<bdi class="name">{escape(short)}</bdi>')


def link(page: str, label: object, query: Mapping[str, Any] | None = None, more: str = "") -> Safe:
    """Return a link to a page."""
    return Safe(f'<a href="{address(page, query)}"{more}>{text(label)}</a>')


def address(page: str, query: Mapping[str, Any] | None = None) -> str:
    """Return an address for an attribute."""
    wanted = {key: value for key, value in (query or {}).items() if value not in (None, "")}
    return escape(f"{page}?{urlencode(wanted)}" if wanted else page)


def table(
    caption: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    words: Sequence[str] = (),
    rest: Sequence[str] = (),
) -> str:
    """Return a table; the first of each row is its name. On a phone every row is a list.

    Columns are numbers, but for ``words``; those of ``rest`` are left out on a phone.
    """
    kinds = [
        ("words" if title in words else "number") + (" rest" if title in rest else "")
        for title in titles
    ]
    head = "".join(
        f'<th scope="col" class="{kind if at else "words"}">{escape(title)}</th>'
        for at, (title, kind) in enumerate(zip(titles, kinds, strict=True))
    )
    body = ""
    for first, *cells in rows:
        body += f'<tr><th scope="row">{text(first)}</th>'
        for title, kind, cell in zip(titles[1:], kinds[1:], cells, strict=True):
            inner = f"<span>{text(cell)}</span>"
            body += f'<td class="{kind}" data-title="{escape(title)}">{inner}</td>'
        body += "</tr>"
    inside = f'<caption class="unseen">{escape(caption)}</caption>'
    inside += f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<table class="{"pairs" if len(titles) == 2 else "stacked"}">{inside}</table>'


def paragraph(content: object, kind: str = "") -> str:
    """Return a paragraph."""
    return tag("p", text(content), kind)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return numbers, each with what it is."""
    shown = "".join(
        f"<div><dt>{escape(what)}</dt><dd>{text(value)}</dd></div>" for value, what in pairs
    )
    return f'<dl class="facts">{shown}</dl>'


def moment(seconds: float | None) -> str:
    """Write a time."""
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g} s"


def span(seconds: float) -> str:
    """Write how long something takes."""
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= 2.0 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:.3g} s"


def number(value: Any, digits: int = 3) -> str:
    """Write a number, or nothing where there is none."""
    if value is None or value != value:
        return ""
    return f"{value:,.{digits}g}"


def as_csv(columns: Mapping[str, Any]) -> bytes:
    """Return a table as a file. Texts that a spreadsheet would take for a formula get a quotation
    mark before them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([_cell(each) for each in row])
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return "" if value is None else repr(value) if isinstance(value, float) else value
