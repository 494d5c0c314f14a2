"""The pages as HTML: each is a frame with a part that is fetched again every few seconds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, Final

from priorwise.core.estimates import percent
from priorwise.serve.page.data import Alarm, Overview, PriorView, Shown, TaskView, uniform_words
from priorwise.serve.page.html import (
    Safe,
    address,
    facts,
    link,
    moment,
    name,
    number,
    paragraph,
    span,
    table,
    text,
)

EVERY: Final = 4
"""Seconds between looks."""
STATES: Final = {"": "all", "live": "live", "closed": "closed"}


def document(title: str, parts: Iterable[str], *, inside: bool = True, open: bool = False) -> str:  # noqa: A002
    """Return a whole page; ``inside`` has the way around and out."""
    out = Safe('<form method="post" action="logout"><button>Log out</button></form>')
    ways = [link("./", "Overview"), link("prior", "Prior"), Safe("" if open else out)]
    nav = f'<nav aria-label="Pages">{"".join(ways)}</nav>' if inside else ""
    head = (
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="robots" content="noindex">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)} · priorwise</title>",
        '<link rel="icon" href="data:,">',
        '<link rel="stylesheet" href="style.css">',
        '<script src="live.js" defer></script>' if inside else "",
    )
    return "\n".join(
        (
            "<!doctype html>", '<html lang="en">', "<head>", *head, "</head>", "<body>",
            '<a class="skip" href="#content">Skip to the content</a>',
            f'<header><p class="brand">priorwise <span>live decisions</span></p>{nav}</header>',
            '<main id="content">', *parts, "</main>", "</body>", "</html>", "",
        )
    )  # fmt: skip


STATUS: Final = (
    f'<p id="status" class="small soft" role="status" data-every="{EVERY}">'
    f"Refreshed every {EVERY} s.</p>"
)
"""Says when numbers were looked up, and when that fails."""


def refreshed(address_: str, fragment: str) -> str:
    """Return a part that is fetched again from an address, which is escaped already."""
    return f'<div data-from="{address_}">{fragment}</div>'


def login(message: str = "") -> str:
    """Return the form that asks for a key."""
    told = f'<p class="note" role="alert">{escape(message)}</p>' if message else ""
    form = (
        '<form class="login" method="post" action="login">'
        '<input name="user" autocomplete="username" value="reader" hidden>'
        '<label for="key">Key with the scope <code>read</code></label>'
        '<input id="key" name="key" type="password" autocomplete="current-password" required '
        'maxlength="500" autofocus>'
        "<button>Log in</button></form>"
    )
    return document("Log in", ["<h1>Log in</h1>", told, form], inside=False)


def sorry(title: str, message: object, *, open: bool = False) -> str:  # noqa: A002
    """Return a page that says what is not there."""
    return document(title, [f"<h1>{escape(title)}</h1>", paragraph(message)], open=open)


def picture(shown: Shown, query: Mapping[str, Any]) -> str:
    """Return a picture with its tables to download, for wide and narrow, light and dark."""
    narrow, night = "(max-width: 40rem)", "(prefers-color-scheme: dark)"
    sources = "".join(
        f'<source media="{media}" srcset="{address("picture.svg", {**query, **more})}">'
        for media, more in (
            (f"{narrow} and {night}", {"narrow": 1, "dark": 1}),
            (narrow, {"narrow": 1}),
            (night, {"dark": 1}),
        )
    )
    image = f'<img src="{address("picture.svg", query)}" alt="{escape(shown.caption)}">'
    plain = {key: value for key, value in query.items() if key != "at"}
    files = ", ".join(
        link("table.csv", f"{part} (CSV)", {**plain, "part": part}, " download")
        for part in shown.tables
    )
    caption = f"<figcaption>{escape(shown.caption)}. Table: {files}</figcaption>"
    return f"<figure><picture>{sources}{image}</picture>{caption}</figure>"


def section(title: str, parts: Iterable[str], key: str) -> str:
    """Return a part with a heading."""
    body = "".join(parts)
    return f'<section aria-labelledby="{key}"><h2 id="{key}">{escape(title)}</h2>{body}</section>'


# -- overview


def overview(view: Overview) -> str:
    """Return what comes first: counts, alarms and rewards."""
    count = [
        (f"{view.open:,}", "live tasks"),
        (f"{view.closed:,}", "closed tasks"),
        (f"{view.decisions:,}", "decisions"),
        (f"{view.uniform.total:,.5g}", "reward so far"),
    ]
    query = {"of": "overview", "at": f"{view.number:x}"}
    return "".join(
        (
            facts(count),
            '<div class="columns">',
            section("Reward against uniform allocation", _reward(view, query), "reward"),
            section("Alarms", _alarms(view.alarms), "alarms"),
            "</div>",
        )
    )


def health(view: Overview) -> str:
    """Return how rewards come in, and whether arms are chosen as they should."""
    query = {"of": "overview", "at": f"{view.number:x}"}
    return section("Health", _health(view, query), "health")


def _alarms(alarms: Iterable[Alarm]) -> Iterator[str]:
    rows = ""
    for each in alarms:
        word = "ALARM" if each.raised else "quiet"
        kind = "raised" if each.raised else "calm"
        rows += (
            f'<li class="{kind}"><span class="badge">{"⚠ " if each.raised else ""}{word}</span> '
            f"<b>{escape(each.about)}</b>: {escape(each.text)}</li>"
        )
    yield f'<ul class="alarms">{rows}</ul>'


def _reward(view: Overview, query: Mapping[str, Any]) -> Iterator[str]:
    for line in uniform_words(view.uniform):
        yield paragraph(line)
    if view.tasks_read < view.open + view.closed:
        yield paragraph(
            f"Over the newest {view.tasks_read:,} tasks with {view.decisions_read:,} decisions.",
            "soft small",
        )
    if view.batched:
        yield paragraph(
            f"{view.batched:,} pulls that were decided in batches have no propensities and are "
            "left out.",
            "soft small",
        )
    if "earned" in view.shown:
        yield picture(view.shown["earned"], {**query, "kind": "earned"})


def _health(view: Overview, query: Mapping[str, Any]) -> Iterator[str]:
    known = view.health
    rows = [
        (what, span(value) if unit == "seconds" else f"{value:,.0f}")
        for what, value, unit in zip(known["what"], known["value"], known["unit"], strict=True)
    ]
    inner = "<h3>Rewards</h3>" + table("How rewards come in", ("What", "Value"), rows)
    files = link("table.csv", "health (CSV)", {"of": "overview", "part": "health"}, " download")
    inner += f'<p class="small soft">Table: {files}</p>'
    parts = [f"<div>{inner}</div>"]
    for kind in ("chosen", "rewarded"):
        if kind in view.shown:
            ratio = view.chosen if kind == "chosen" else view.rewarded
            said = ratio.verdict("chosen" if kind == "chosen" else "rewarded")
            shown = view.shown[kind]
            parts.append(
                f"<div><h3>{escape(shown.title)}</h3>{paragraph(said)}"
                f"{picture(shown, {**query, 'kind': kind})}</div>"
            )
    yield f'<div class="columns">{"".join(parts)}</div>'


def tasks(
    rows: list[dict[str, Any]], more: str | None, words: str, state: str, after: str | None
) -> str:
    """Return the list of tasks."""
    lines = [
        (
            link("task", name(row["name"]), {"name": row["name"]}),
            "live" if row["closed"] is None else "closed",
            f"{row['steps']:,}",
            _leader(*row["leader"]),
            row["version"],
            moment(row["opened"]),
        )
        for row in rows
    ]
    titles = ("Task", "State", "Pulls", "Leading arm", "Prior", "Opened (UTC)")
    shown = paragraph("No task has such a name." if words else "There is no task yet.")
    if rows:
        told = ("State", "Leading arm")
        shown = table("Tasks, the newest first", titles, lines, told, titles[4:])
    ways = []
    query = {"q": words, "state": state}
    if after:
        ways.append(link("./", "Newest", query))
    if more:
        ways.append(link("./", "Older tasks", {**query, "after": more}))
    paging = f'<nav class="paging" aria-label="More tasks">{"".join(ways)}</nav>' if ways else ""
    return shown + paging


def search(words: str, state: str) -> str:
    """Return the form that searches tasks."""
    options = "".join(
        f'<option value="{value}"{" selected" if value == state else ""}>{label}</option>'
        for value, label in STATES.items()
    )
    return (
        '<form class="search" method="get" action="./" role="search">'
        '<label for="q">Name contains</label>'
        f'<input id="q" name="q" type="search" maxlength="500" value="{escape(words)}">'
        f'<label for="state">State</label><select id="state" name="state">{options}</select>'
        "<button>Search</button></form>"
    )


def _leader(arm: str, mean: float) -> Safe:
    return Safe(f"{name(arm, 30)} {number(mean, 3)}" if arm else "")


# -- task


def task(view: TaskView) -> str:
    """Return the part of a task's page that changes."""
    row, summary = view.task, view.summary
    count = [
        ("closed" if row.closed is not None else "live", "state"),
        (f"{row.steps:,} of {view.horizon:,}", "pulls"),
        (f"{view.outstanding:,}", "rewards outstanding"),
    ]
    if summary is not None:
        count.append((Safe(name(summary.leader, 40)), "leading arm"))
        count.append((f"{summary.expected_loss:.2g}", "expected loss of stopping now, per pull"))
    parts = [facts(count)]
    opened = f"Opened {moment(row.opened)} UTC"
    if row.closed is not None:
        opened += f", closed {moment(row.closed)} UTC"
    version = link("prior", f"prior version {row.version}", {"version": row.version})
    parts.append(paragraph(Safe(f"{opened}, under {version}."), "soft small"))
    query = {"of": "task", "name": row.name, "at": view.key}
    if summary is None:
        parts.append(paragraph("What arms are worth depends on a context, and none was shown yet."))
    else:
        parts.append(section("Advice", [paragraph(summary.advice, "advice")], "advice"))
    figures = []
    for kind in ("posterior", "best", "allocation"):
        if kind in view.shown:
            shown = view.shown[kind]
            drawn = picture(shown, {**query, "kind": kind})
            figures.append(section(shown.title, [drawn], kind))
    parts.append(f'<div class="columns">{"".join(figures)}</div>')
    if summary is not None:
        parts.append(section("Arms", [_arms(summary.table())], "arms"))
    parts.append(section("Latest decisions", [_latest(view)], "latest"))
    return "".join(parts)


def _arms(columns: Mapping[str, Any]) -> str:
    rows = [
        (
            name(arm), number(pulls, 6), number(mean), f"{number(low)} to {number(high)}",
            percent(float(best)), number(loss, 3),
        )
        for arm, pulls, mean, low, high, best, loss in zip(
            *(columns[each] for each in
              ("arm", "pulls", "mean", "low", "high", "prob_best", "expected_loss")),
            strict=True,
        )
    ]  # fmt: skip
    titles = ("Arm", "Rewards", "Mean", "Middle 95 %", "Best with", "Expected loss")
    return table("What is believed of each arm", titles, rows)


def _latest(view: TaskView) -> str:
    columns = view.latest
    rows = [
        (
            f"{step:,}", moment(when), name(arm, 40), number(chance),
            "outstanding" if delay is None else number(reward) or "left out",
            "" if delay is None else span(delay),
        )
        for step, when, arm, chance, reward, delay in zip(*columns.values(), strict=True)
    ]  # fmt: skip
    if not rows:
        return paragraph("No decision yet: rewards were recorded without.")
    titles = ("Pull", "Time (UTC)", "Arm", "Propensity", "Reward", "After")
    query = {"of": "task", "name": view.task.name, "part": "latest"}
    files = link("table.csv", "latest decisions (CSV)", query, " download")
    return (
        table("The last decisions", titles, rows, ("Time (UTC)", "Arm"))
        + f'<p class="small soft">Table: {files}</p>'
    )


# -- prior


def prior(view: PriorView) -> str:
    """Return the part of the prior's page that changes."""
    query = {"of": "prior", "version": view.version.number, "at": view.key}
    parts = []
    title = f"Version {view.version.number}, {_status(view, view.version.number)}"
    figures = []
    for kind in ("prior", "predictive"):
        if kind in view.shown:
            shown = view.shown[kind]
            drawn = [picture(shown, {**query, "kind": kind})]
            if kind == "predictive":
                drawn.insert(
                    0, paragraph(view.said, "note" if view.check and view.check.doubts else "")
                )
            figures.append(f"<div><h3>{escape(shown.title)}</h3>{''.join(drawn)}</div>")
    if "predictive" not in view.shown:
        figures.append(f"<div><h3>Predictive check</h3>{paragraph(view.said)}</div>")
    body = [f'<div class="columns">{"".join(figures)}</div>', _story(view.version.story)]
    parts.append(section(title, body, "version"))
    rows = [
        (
            link("prior", f"Version {each.number}", {"version": each.number}),
            _status(view, each.number), moment(each.made), moment(each.accepted),
            f"{view.running.get(each.number, 0):,}", _brief(each.story),
        )
        for each in reversed(view.versions)
    ]  # fmt: skip
    titles = ("Version", "Status", "Made (UTC)", "Accepted (UTC)", "Live tasks", "Fitted on")
    versions = table(
        "Versions of the prior, the newest first",
        titles,
        rows,
        ("Status", titles[2], titles[3], "Fitted on"),
    )
    parts.append(section("Every version", [versions], "versions"))
    return "".join(parts)


def _status(view: PriorView, at: int) -> str:
    each = next(each for each in view.versions if each.number == at)
    return "in use for new tasks" if at == view.current else str(each.status)


def _brief(story: Mapping[str, Any]) -> str:
    if not story:
        return "given, not fitted here"
    words = [f"{key} {_plain(value)}" for key, value in list(story.items())[:3]]
    return ", ".join(words)[:160]


def _story(story: Mapping[str, Any]) -> str:
    if not story:
        return paragraph("This prior was given when the service started.", "soft")
    rows = [(key, Safe(f'<span class="plain">{text(_plain(story[key]))}</span>')) for key in story]
    return "<h3>What it was fitted on</h3>" + table(
        "Where it comes from", ("What", "Value"), rows, ("Value",)
    )


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value[:2000]
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, default=str)[:2000]
