"""What pages are rendered with: templates that escape what comes from elsewhere, and how values are
written.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup, escape

from priorwise.core.frames import Table
from priorwise.serve.types import Json

if TYPE_CHECKING:
    from jinja2 import Environment

EVERY: Final = 4
"""Seconds between looks."""
STATES: Final = {"": "all", "live": "live", "closed": "closed"}
SHORT: Final = 80
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for a formula where a text begins with it."""


def name(value: str, most: int = SHORT) -> Markup:
    """Return a name that somebody chose: kept apart from the text around it, and cut if long."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)
    half = most // 2
    short = visible if len(visible) <= most else f"{visible[:half]}…{visible[-half:]}"
    return Markup('<bdi class="name">{}</bdi>').format(escape(short))


def address(page: str, query: Mapping[str, str | int]) -> str:
    """Return an address with the values that are not empty."""
    wanted = {key: value for key, value in query.items() if value != ""}
    return f"{page}?{urlencode(wanted)}" if wanted else page


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


def number(value: float | None, digits: int = 3) -> str:
    """Write a number, or nothing where there is none."""
    return "" if value is None or value != value else f"{value:,.{digits}g}"


def plain(value: object) -> str:
    """Write a value of a story."""
    if isinstance(value, str):
        return value[:2000]
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, default=str)[:2000]


def brief(story: Json) -> str:
    """Write a story in a line."""
    words = [f"{key} {plain(value)}" for key, value in list(story.items())[:3]]
    return ", ".join(words)[:160] or "given, not fitted here"


def as_csv(columns: Table) -> bytes:
    """Return a table as a file. Texts that a spreadsheet would take for a formula get a quotation
    mark before them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([_cell(each) for each in row])
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return "" if value is None else repr(value) if isinstance(value, float) else value


@cache
def _templates() -> Environment:
    # with the first page: a service that shows none does without
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    result = Environment(
        autoescape=True,
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    result.filters |= {"brief": brief, "moment": moment, "name": name, "number": number}
    result.globals |= {"address": address, "every": EVERY, "states": STATES}
    return result


def rendered(template: str, **values: object) -> str:
    """Return a page, or a part of one."""
    page = _templates().get_template(f"{template}.html")
    return page.render({"message": "", "outside": False, "open": False, **values})
