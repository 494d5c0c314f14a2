"""Pictures of running tasks, for the page that watches them: what arms are worth, which were
played, what it earned. They read tables, which can be downloaded beside them, and compute nothing.

SVG only, in two widths, for a column and for a phone. One at a time: Matplotlib is not thread-safe.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.figures.style import (
    BAND,
    COLOURS,
    FAINT,
    INK,
    LABEL_SHADE,
    NOTE,
    REFERENCE,
    SETTINGS,
    EndLabel,
    Picture,
    Sheet,
    draw_band,
    label_ends,
    look,
    name_rows,
    sheet,
    whole_numbers,
    write,
)

WIDE: Final = 5.9
"""Inches of a picture in a column of the page."""
NARROW: Final = 3.75
"""Inches of a picture on a phone, where it is shown as large as it is drawn."""
ROWS: Final = 20
"""Arms that are drawn; the others are in the table."""
LINES: Final = 8
"""Arms whose pulls are drawn over time."""
DRAWING: Final = threading.RLock()
"""Hold this while drawing anything beside other threads."""


@contextmanager
def _page(
    width: float, tall: float, title: str, note: str, left: float, **space: float
) -> Iterator[Sheet]:
    """Draw one picture at a time; names may have letters that the font has not."""
    space = {"top": 0.55, "bottom": 0.62, **space}
    with DRAWING, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        with sheet(
            width, tall, title, note, left=left, title_left=0.1, suffixes=("svg",),
            top=space["top"], bottom=space["bottom"],
        ) as page:  # fmt: skip
            yield page


def labels_of(names: Sequence[str], width: float) -> list[str]:
    """Short labels of arms: without their middle where too long, numbered where these are alike."""
    most = 22 if width > 5.0 else 13
    half = most // 2
    plain = ["".join(c if c.isprintable() else "·" for c in name) for name in names]
    short = [each if len(each) <= most else f"{each[:half]}…{each[-half + 1 :]}" for each in plain]
    return [
        f"{each} ({place + 1})" if short.count(each) > 1 else each
        for place, each in enumerate(short)
    ]


def _room(labels: Sequence[str]) -> float:
    """Inches for the names of rows."""
    return 0.3 + 0.075 * max(map(len, labels), default=1)


def posterior_figure(
    arms: Mapping[str, Any], densities: Mapping[str, Any], width: float = WIDE
) -> Picture:
    """Draw what is believed of each arm's mean reward: density, 95 % and mean.

    ``arms`` has columns ``arm``, ``mean``, ``low``, ``high`` and ``pulls``, one row for each arm;
    ``densities`` has ``arm``, ``value`` and ``density``, many rows for each.
    """
    order = _first(arms["mean"])
    names = [arms["arm"][at] for at in order]
    labels = labels_of(names, width)
    left, step = _room(labels), 0.52 if len(order) <= 8 else 0.36
    text = "Line: the middle 95 %. Dot: mean. Hill: density. The best mean is on top."
    text += _left_out(len(arms["arm"]), len(order))
    owner = np.asarray(densities["arm"], dtype=object)
    title = "What each arm is believed to earn"
    with _page(width, step * len(order) + 0.15, title, text, left) as page:
        axes = page.axes(left, width - left - 0.72, step * len(order) + 0.15)
        peak = max(map(float, densities["density"]), default=0.0)
        for row, at in enumerate(order):
            colour = COLOURS[0] if row == 0 else FAINT
            mine = owner == arms["arm"][at]
            if mine.any() and peak > 0.0:
                x = np.asarray(densities["value"], dtype=float)[mine]
                # hills of one area: a flat one stays flat beside a steep one, but is seen
                high = np.asarray(densities["density"], dtype=float)[mine]
                rise = 0.78 * high / max(high.max(), 0.25 * peak)
                axes.fill_between(x, row, row - rise, color=colour, alpha=0.3, linewidth=0)
                axes.plot(x, row - rise, color=colour, linewidth=0.9)
            low, mean, top = (float(arms[each][at]) for each in ("low", "mean", "high"))
            axes.plot([low, top], [row, row], color=colour, linewidth=2.6, solid_capstyle="butt")
            axes.plot([mean], [row], "o", color="white", markeredgecolor=INK, markersize=5.5)
            spot = (1.0, row)
            how: Any = {"xycoords": axes.get_yaxis_transform(), "va": "center", "fontsize": 8.5}
            write(axes, f"{mean:.3g}", spot, (6, 0), fontweight="bold" if row == 0 else None, **how)
        name_rows(axes, labels, range(len(order)))
        axes.set_ylim(len(order) - 0.65, -0.95)
        axes.set(xlabel="mean reward of a pull")
        axes.locator_params(axis="x", nbins=5)
    return page.picture


def best_figure(arms: Mapping[str, Any], width: float = WIDE) -> Picture:
    """Draw how likely each arm is the best, and what stopping with it is expected to lose: columns
    ``arm``, ``prob_best`` and ``expected_loss``.
    """
    order = _first(arms["prob_best"])
    names = [arms["arm"][at] for at in order]
    labels = labels_of(names, width)
    left, rows = _room(labels), len(order)
    tall = 0.34 * rows + 0.1
    space = width - left - 0.25
    half = (space - 0.75) / 2
    text = "Left: probability of being the best arm. Right: reward lost in each pull, on average, "
    text += "if this arm is played for good." + _left_out(len(arms["arm"]), rows)
    with _page(width, tall, "Which arm is best", text, left, top=0.8, bottom=0.42) as page:
        panels = (
            (left, "prob_best", "probability", COLOURS[0]),
            (left + half + 0.6, "expected_loss", "expected loss", COLOURS[1]),
        )
        for start, column, title, colour in panels:
            axes = page.axes(start, half, tall)
            values = np.array([float(arms[column][at]) for at in order])
            axes.barh(range(rows), values, height=0.62, color=colour, alpha=0.85)
            for row, value in enumerate(values):
                how: Any = {"va": "center", "fontsize": 8.5}
                write(axes, _written(column, value), (value, row), (4, 0), **how)
            axes.set_title(title, fontsize=9.0)
            axes.set_xlim(0.0, max(1.0 if column == "prob_best" else values.max(), 1e-12))
            axes.set_ylim(rows - 0.5, -0.5)
            name_rows(axes, labels if column == "prob_best" else [""] * rows, range(rows))
            axes.set_xticks([])
            axes.spines["bottom"].set_visible(False)
            axes.spines["left"].set_visible(True)
    return page.picture


def _written(column: str, value: float) -> str:
    if column == "prob_best":
        shown = f"{100.0 * value:.1f} %"
        return "< 0.1 %" if 0.0 < value < 0.0005 else "> 99.9 %" if 0.9995 < value < 1 else shown
    return f"{value:.2g}"


def allocation_figure(table: Mapping[str, Any], width: float = WIDE) -> Picture:
    """Draw how many pulls each arm got: columns ``step``, ``arm`` and ``pulls``, running sums."""
    owner = np.asarray(table["arm"], dtype=object)
    names = list(dict.fromkeys(table["arm"]))
    last = {name: float(np.asarray(table["pulls"])[owner == name][-1]) for name in names}
    kept = sorted(names, key=lambda name: -last[name])[:LINES]
    labels = dict(zip(names, labels_of(names, width), strict=True))
    beside = 0.35 + 0.068 * max((len(labels[name]) + 5 for name in kept), default=4)
    text = "Pulls of each arm so far; a steep line is an arm that is played much."
    text += _left_out(len(names), len(kept))
    tall, left = (2.3 if width > 5.0 else 2.1), 0.55
    with _page(width, tall, "Which arms were played", text, left) as page:
        axes = page.axes(left, width - left - beside, tall)
        ends = []
        for name in names:
            if name not in kept:
                continue
            x = np.asarray(table["step"], dtype=float)[owner == name]
            y = np.asarray(table["pulls"], dtype=float)[owner == name]
            colour, marker = look(names.index(name))
            every = max(1, len(x) // 6)
            axes.plot(x, y, color=colour, marker=marker, markevery=every)
            axes.plot(x[-1:], y[-1:], marker=marker, color=colour)
            ends.append(
                EndLabel(float(x[-1]), float(y[-1]), f"{labels[name]} {y[-1]:,.0f}", colour)
            )
        axes.set(xlabel="pull of the task", ylabel="pulls of the arm")
        axes.set_ylim(0.0, max([*(last[name] for name in kept), 1.0]) * 1.05)
        whole_numbers(axes.xaxis, 5, [1, 2, 5, 10])
        whole_numbers(axes.yaxis, 5, [1, 2, 5, 10])
        label_ends(axes, ends)
    return page.picture


def earned_figure(table: Mapping[str, Any], width: float = WIDE) -> Picture:
    """Draw what was earned beside what uniform allocation would have: columns ``time``,
    ``earned``, ``uniform`` and ``std_error``, running sums.
    """
    time = np.asarray(table["time"], dtype=float)
    mine, other = np.asarray(table["earned"], float), np.asarray(table["uniform"], float)
    error = np.asarray(table["std_error"], float)
    text = f"Band: ± {BAND:g} standard errors of the estimate from propensities. Time is UTC."
    tall, left, beside = (2.3 if width > 5.0 else 2.1), 0.6, (1.3 if width > 5.0 else 1.15)
    with _page(width, tall, "Reward so far", text, left, bottom=0.45) as page:
        axes = page.axes(left, width - left - beside, tall)
        draw_band(axes, time, other, BAND * error, COLOURS[1])
        axes.plot(time, mine, color=COLOURS[0], linewidth=2.2)
        axes.plot(time, other, color=COLOURS[1], linestyle=REFERENCE["linestyle"])
        ticks, words = clock_ticks(time, 4 if width < 5.0 else 6)
        axes.set_xticks(ticks, words)
        axes.set(ylabel="reward, summed")
        top = max(float(mine.max(initial=0.0)), float((other + BAND * error).max(initial=0.0)))
        low = min(float(mine.min(initial=0.0)), float((other - BAND * error).min(initial=0.0)), 0.0)
        axes.set_ylim(low, top * 1.05 if top > low else low + 1.0)
        axes.locator_params(axis="y", nbins=5)
        if len(time):
            labels = [
                EndLabel(time[-1], mine[-1], f"earned {mine[-1]:,.4g}", COLOURS[0]),
                EndLabel(time[-1], other[-1], f"uniform {other[-1]:,.4g}", COLOURS[1]),
            ]
            label_ends(axes, labels)
    return page.picture


def clock_ticks(time: FloatArray, most: int) -> tuple[list[float], list[str]]:
    """Return round moments of a span of seconds, and how they are written."""
    if not len(time):
        return [], []
    low, high = float(time.min()), float(time.max())
    steps = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
    days = tuple(86_400 * each for each in (1, 2, 7, 14, 28, 91, 364))
    step = next((s for s in (*steps, *days) if (high - low) / s <= most), days[-1])
    first = np.ceil(low / step) * step
    ticks = [float(each) for each in np.arange(first, high + 1e-9, step)]
    ticks = ticks or [low]
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86_400 else "%d %b"
    return ticks, [datetime.fromtimestamp(each, UTC).strftime(form) for each in ticks]


def ratio_figure(table: Mapping[str, Any], width: float = WIDE) -> Picture:
    """Draw how often each arm was chosen beside what its propensities let expect: columns ``arm``,
    ``chosen``, ``expected`` and ``std_dev``.
    """
    order = _first(table["expected"])
    labels = labels_of([table["arm"][at] for at in order], width)
    left, rows = _room(labels), len(order)
    tall = 0.36 * rows + 0.1
    text = f"Diamond: times chosen, less what is expected. Line: ± {BAND:g} standard deviations, "
    text += "where it lies by chance. Right: both numbers." + _left_out(len(table["arm"]), rows)
    title = "Are arms chosen as their propensities say?"
    with _page(width, tall, title, text, left) as page:
        axes = page.axes(left, width - left - 1.05, tall)
        axes.axvline(0.0, **REFERENCE)
        for row, at in enumerate(order):
            chosen, expected, std = (float(table[c][at]) for c in ("chosen", "expected", "std_dev"))
            thick: Any = {"linewidth": 6.0, "solid_capstyle": "butt"}
            axes.plot([-BAND * std, BAND * std], [row, row], color=FAINT, alpha=0.55, **thick)
            spot: Any = {"markersize": 5.5, "markeredgecolor": INK}
            axes.plot([chosen - expected], [row], "D", color=COLOURS[0], **spot)
            how: Any = {"xycoords": axes.get_yaxis_transform(), "va": "center", "fontsize": 8.0}
            write(axes, f"{chosen:,.0f} : {expected:,.0f}", (1.0, row), (6, 0), **how)
        name_rows(axes, labels, range(rows))
        axes.set_ylim(rows - 0.5, -0.5)
        axes.set(xlabel="chosen more often than expected")
        axes.locator_params(axis="x", nbins=5)
    return page.picture


def _first(values: Any) -> list[int]:
    """Places of the largest values, the largest first."""
    order = np.argsort(-np.asarray(values, dtype=float), kind="stable")
    return [int(each) for each in order[:ROWS]]


def _left_out(count: int, drawn: int) -> str:
    return "" if count <= drawn else f" {count - drawn} more arms are in the table."


# -- dark

_LIGHT: Final = {
    INK: "#dde1e6",
    FAINT: "#8b95a1",
    NOTE: "#9aa4af",
    str(SETTINGS["grid.color"]): "#2f363e",
    "#ffffff": "#1d2126",
    "#000000": "#dde1e6",
}
_BRIGHT: Final = {
    "#0072B2": "#5aaee8",
    "#D55E00": "#f08a4b",
    "#009E73": "#35c79c",
    "#CC79A7": "#dd95bd",
    "#E69F00": "#f0b53c",
    "#56B4E9": "#86cbf3",
    "#000000": "#dde1e6",
    "#882255": "#d9779f",
    "#999933": "#c2c25a",
    "#777777": "#a4a4a4",
}
"""Each colour of a series on a dark ground; its name is written in the same."""


def _shaded(colour: str) -> str:
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(LABEL_SHADE * each):02x}" for each in parts)


def dark(svg: bytes) -> bytes | None:
    """Return a picture for a dark page; None where it has colours whose dark twin is not known, as
    of a heat map: that stays on white.
    """
    twins = {old.lower(): new for old, new in _BRIGHT.items()}
    twins |= {_shaded(old): new for old, new in _BRIGHT.items()}
    twins |= {old.lower(): new for old, new in _LIGHT.items()}
    known = True

    def twin(match: re.Match[str]) -> str:
        nonlocal known
        found = twins.get(match[0].lower())
        known = known and found is not None
        return found or match[0]

    # ids and links begin with # too, but stand in quotes or brackets
    text = re.sub(r"(?<=: )#[0-9a-fA-F]{6}\b", twin, svg.decode())
    return text.encode() if known else None
