"""The figure of a sensitivity ladder: bounds as bars, the measured gap below them. It reads numbers
and never simulates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from priorwise.figures.style import (
    BAND,
    COLOURS,
    DASHES,
    INK,
    NOTE,
    Picture,
    name_rows,
    note_lines,
    number_plainly,
    sheet,
    write,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALE: Final = "#c9c9c9"
"""Of rungs that say hardly more than the trivial bound."""
TELLING: Final = 0.95
"""Share of the trivial bound below which a bound says something."""
DECADES: Final = 7.0
PAPER: Final[dict[str, Any]] = {"facecolor": "white", "edgecolor": "none"}


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
) -> Picture:
    """Draw probabilities on the left and rewards on the right, on logarithmic scales; what follows
    from them stands above.
    """
    rows, width, left, between, panel = len(bars) + 1, 10.6, 1.85, 0.45, 3.75
    told = [line for sentence in summary for line in note_lines(sentence, 0.9 * (width - 0.3))]
    tall, top = 0.46 * rows, 1.02 + 0.2 * len(told)
    places = [float(rows - 1 - row) for row in range(rows)]
    colours = [COLOURS[0] if bar.reward < TELLING * trivial else PALE for bar in bars]
    looks = list(zip(bars, colours, strict=True))
    deltas = [Mark(bar.delta, bar.delta_error, colour) for bar, colour in looks]
    rewards = [Mark(bar.reward, bar.reward_error, colour) for bar, colour in looks]
    rewards.append(Mark(abs(gap), gap_error, COLOURS[2] if gap > 0 else COLOURS[1]))
    note = "Dots are bounds, with ±2 standard errors. Grey: says hardly more than the dashed line."
    with sheet(width, tall, title, note, left=left, top=top, bottom=0.6, title_left=0.12) as page:
        often, much = (page.axes(x, panel, tall) for x in (left, left + panel + between))
        name_rows(often, [*(bar.name for bar in bars), "measured gap"], places)
        name_rows(much, [""] * rows, places)
        _draw(often, places, deltas, 1.0, "certain")
        _draw(much, places, rewards, trivial, "any two policies")
        for place, bar in zip(places, bars, strict=False):
            _below(often, place, bar.how)
        _below(much, places[-1], said)
        often.set_title("How often", pad=18)  # above the name of the dashed line
        much.set_title("How much", pad=18)
        often.set_xlabel("probability that trajectories diverge")
        much.set_xlabel("reward in a task")
        height = page.figure.get_figheight()
        for index, line in enumerate(told):
            up = 1 - (0.58 + 0.19 * index) / height
            page.figure.text(0.12 / width, up, line, fontsize=8.5, va="center")
    return page.picture


@dataclass(frozen=True)
class Mark:
    """A number to draw, with its standard error."""

    value: float
    error: float
    colour: str


def _draw(
    axes: Axes, places: Sequence[float], marks: Sequence[Mark], limit: float, meaning: str
) -> None:
    """Draw a dot for each number at the end of a line, and the limit beyond which a bound says
    nothing.
    """
    axes.set_xscale("log")
    number_plainly(axes.xaxis)
    positive = [mark.value for mark in marks if mark.value > 0] + [limit] * (limit > 0)
    high = max(positive, default=1.0)
    low = max(min(positive, default=high) / 3.0, high / 10**DECADES)
    axes.set_xlim(low, high * 4.0)
    axes.set_ylim(-0.6, len(places) - 0.4 if len(places) > len(marks) else len(marks) - 0.4)
    if limit > 0:
        axes.axvline(limit, color=INK, linewidth=0.9, linestyle=DASHES, zorder=1)
        up = axes.get_xaxis_transform()
        write(axes, meaning, (limit, 1.0), (0, 3), xycoords=up, fontsize=7.5, ha="center")
    for place, mark in zip(places, marks, strict=False):
        value, spread = max(mark.value, low), BAND * mark.error if np.isfinite(mark.error) else 0.0
        line: Any = {"linewidth": 2.2, "solid_capstyle": "butt", "zorder": 2}
        axes.plot([low, value], [place, place], color=mark.colour, **line)
        around = [[min(spread, value * 0.999)], [spread]]
        bar: Any = {"ecolor": INK, "elinewidth": 1.0, "capsize": 2.5, "zorder": 3}
        axes.errorbar(value, place, xerr=around, fmt="o", markersize=6.5, color=mark.colour, **bar)
        number = f"{mark.value:.3g}" if mark.value > 0 else "0"
        look: Any = {"va": "center", "fontsize": 8.5, "bbox": PAPER | {"pad": 1.0}, "zorder": 4}
        write(axes, number, (value + spread, place), (8, 0), **look)


def _below(axes: Axes, place: float, text: str) -> None:
    """Write how a number was found, under its line."""
    look: Any = {"fontsize": 7, "color": NOTE, "va": "center", "zorder": 2}
    across = axes.get_yaxis_transform()
    write(axes, text, (0.0, place), (2, -10), xycoords=across, bbox=PAPER | {"pad": 0.6}, **look)
