"""HTML pages that need no other file and nothing from the network: one look, figures embedded."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

CSS: Final = Path(__file__).with_name("pages.css")
LARGEST_SVG: Final = 1_500_000  # bytes; beyond, the PNG is embedded instead


def document(title: str, parts: Iterable[str]) -> str:
    """Return a whole page around the parts of its body."""
    head = (
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>priorwise: {escape(title)}</title>",
        f"<style>{CSS.read_text(encoding='utf-8')}</style>",
    )
    start = ("<!doctype html>", '<html lang="en">', "<head>", *head, "</head>", "<body>")
    return "\n".join((*start, *parts, "</body>", "</html>", ""))


def tag(name: str, content: object, kind: str = "") -> str:
    """Return an element of a class, or of none."""
    return f'<{name} class="{kind}">{content}</{name}>' if kind else f"<{name}>{content}</{name}>"


def wide(content: str, kind: str = "") -> str:
    """Return a table that may be wider than the page."""
    return tag("div", tag("table", content, kind), "wide")


def stacked(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, the first of each row its name; on a phone every row is a list, with
    the title of its column before each text.
    """
    kinds = ["", *["number"] * (len(titles) - 1)]
    head = "".join(tag("th", escape(t), k) for t, k in zip(titles, kinds, strict=True))
    body = ""
    for name, *texts in rows:
        cells = [tag("th", escape(name))]
        for title, text in zip(titles[1:], texts, strict=True):
            label = f' data-title="{escape(title)}"' if text else ""
            cells.append(f'<td class="number"{label}>{escape(text)}</td>')
        body += tag("tr", "".join(cells))
    return wide(tag("thead", tag("tr", head)) + tag("tbody", body), "stacked")


def folded(title: str, content: str) -> str:
    """Return what opens when it is asked for."""
    return f"<details><summary>{title}</summary>{content}</details>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return numbers, each with what it is."""
    shown = "".join(
        tag("div", tag("b", escape(value)) + tag("span", escape(what))) for value, what in pairs
    )
    return tag("div", shown, "facts")


def embedded(caption: str, files: Mapping[str, bytes]) -> str:
    """Return a figure with its content, as SVG unless that is large."""
    svg = files.get("svg", b"")
    small = bool(svg) and (len(svg) <= LARGEST_SVG or "png" not in files)
    kind, content = ("svg+xml", svg) if small else ("png", files["png"])
    source = f"data:image/{kind};base64,{b64encode(content).decode()}"
    text = escape(caption)
    return tag("figure", f'<img src="{source}" alt="{text}">' + tag("figcaption", text))
