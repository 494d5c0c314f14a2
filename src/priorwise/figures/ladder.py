"""The figure of a sensitivity ladder: bounds as bars, the measured gap below them. It reads numbers
and never simulates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priorwise.figures import style

PALE: Final = "#c9c9c9"
"""Of rungs that say hardly more than the trivial bound."""
TELLING: Final = 0.95
"""Share of the trivial bound below which a bound says something."""
DECADES: Final = 7.0
PAPER: Final[dict[str, Any]] = {"facecolor": "white", "edgecolor": "none"}

Mark = tuple[float, float, str]
"""A number to draw, its standard error, and a colour."""


@dataclass(frozen=True)
class Bar:
    """A rung: its name, probability and reward, with standard errors, and how it was found."""

    name: str
    delta: float
    delta_error: float
    reward: float
    reward_error: float
    how: str


def ladder_figure(
    bars: Sequence[Bar],
    gap: float,
    gap_error: float,
    trivial: float,
    title: str,
    said: str,
    summary: Sequence[str] = (),
    ends: Sequence[Bar] = (),
) -> style.Picture:
    """Draw probabilities on the left and rewards on the right, on logarithmic scales; what follows
    from them stands above. ``ends`` are signed rewards between which the gap lies.
    """
    rows, width, left, between, panel = len(bars) + len(ends) + 1, 10.6, 1.85, 0.45, 3.75
    room = 0.9 * (width - 0.3)
    lines_above = [line for sentence in summary for line in style.note_lines(sentence, room)]
    tall, top = 0.46 * rows, 1.02 + 0.2 * len(lines_above)
    places = [float(rows - 1 - row) for row in range(rows)]
    colours = [style.COLOURS[0] if bar.reward < TELLING * trivial else PALE for bar in bars]
    looks = list(zip(bars, colours, strict=True))
    deltas = [(bar.delta, bar.delta_error, colour) for bar, colour in looks]
    rewards = [(bar.reward, bar.reward_error, colour) for bar, colour in looks]
    for x, error in [*((end.reward, end.reward_error) for end in ends), (gap, gap_error)]:
        rewards.append((abs(x), error, style.COLOURS[2] if x > 0 else style.COLOURS[1]))
    note = "Dots are bounds, with ±2 standard errors. Grey: says hardly more than the dashed line."
    margins: Any = {"left": left, "top": top, "bottom": 0.6, "title_left": 0.12}
    with style.sheet(width, tall, title, note, **margins) as page:
        often, much = (page.axes(x, panel, tall) for x in (left, left + panel + between))
        style.name_rows(often, [*(bar.name for bar in (*bars, *ends)), "measured gap"], places)
        style.name_rows(much, [""] * rows, places)
        _draw(often, places, deltas, 1.0, "certain")
        _draw(much, places, rewards, trivial, "any two policies")
        for place, bar in zip(places, bars, strict=False):
            _below(often, place, bar.how)
        for place, text in zip(
            places[len(bars) :], [*(end.how for end in ends), said], strict=True
        ):
            _below(much, place, text)
        often.set_title("How often", pad=18)  # above the name of the dashed line
        much.set_title("How much", pad=18)
        often.set_xlabel("probability that trajectories diverge")
        much.set_xlabel("reward in a task")
        height = page.figure.get_figheight()
        for index, line in enumerate(lines_above):
            up = 1 - (0.58 + 0.19 * index) / height
            page.figure.text(0.12 / width, up, line, fontsize=8.5, va="center")
    return page.picture


def _draw(
    axes: style.Axes, places: Sequence[float], marks: Sequence[Mark], limit: float, meaning: str
) -> None:
    """Draw a dot for each number at the end of a line, and where a bound says nothing."""
    axes.set_xscale("log")
    style.number_plainly(axes.xaxis)
    positive = [value for value in (*(mark[0] for mark in marks), limit) if value > 0]
    high = max(positive, default=1.0)
    low = max(min(positive, default=high) / 3.0, high / 10**DECADES)
    axes.set_xlim(low, high * 4.0)
    axes.set_ylim(-0.6, max(len(places), len(marks)) - 0.4)
    if limit > 0:
        axes.axvline(limit, **style.REFERENCE, zorder=1)
        up = axes.get_xaxis_transform()
        style.write(axes, meaning, (limit, 1.0), (0, 3), xycoords=up, fontsize=7.5, ha="center")
    for place, (measured, error, colour) in zip(places, marks, strict=False):
        value, spread = max(measured, low), style.BAND * error if np.isfinite(error) else 0.0
        line: Any = {"linewidth": 2.2, "solid_capstyle": "butt", "zorder": 2}
        axes.plot([low, value], [place, place], color=colour, **line)
        around = [[min(spread, value * 0.999)], [spread]]
        dot: Any = {"fmt": "o", "markersize": 6.5, "color": colour, "zorder": 3}
        axes.errorbar(value, place, xerr=around, **dot, **style.WHISKERS)
        number = f"{measured:.3g}" if measured > 0 else "0"
        look: Any = {"va": "center", "fontsize": 8.5, "bbox": PAPER | {"pad": 1.0}, "zorder": 4}
        style.write(axes, number, (value + spread, place), (8, 0), **look)


def _below(axes: style.Axes, place: float, text: str) -> None:
    """Write how a number was found, under its line."""
    look: Any = {"fontsize": 7, "color": style.NOTE, "va": "center", "zorder": 2}
    look |= {"xycoords": axes.get_yaxis_transform(), "bbox": PAPER | {"pad": 0.6}}
    style.write(axes, text, (0.0, place), (2, -10), **look)
