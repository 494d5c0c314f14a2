"""The figure of a sensitivity ladder: bounds as bars, the measured gap below them. It reads numbers
and never simulates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.figures.style import COLOURS, INK, Picture, new_figure, note_lines, render, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALE: Final = "#c9c9c9"
"""Of rungs that say hardly more than the trivial bound."""
TELLING: Final = 0.95
"""Share of the trivial bound below which a bound says something."""
DECADES: Final = 7.0
BAND: Final = 2.0  # standard errors


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
    rows = len(bars) + 1
    width, left, between, panel, top, bottom = 10.6, 1.85, 0.45, 3.75, 1.02, 0.75
    told = [line for sentence in summary for line in note_lines(sentence, 0.9 * (width - 0.3))]
    top += 0.2 * len(told)
    height = top + bottom + 0.46 * rows
    places = [float(rows - 1 - row) for row in range(rows)]
    with style():
        figure = new_figure(width, height)
        box = (bottom / height, panel / width, 1 - (top + bottom) / height)
        often, much = (figure.add_axes((x / width, *box)) for x in (left, left + panel + between))
        colours = [COLOURS[0] if bar.reward < TELLING * trivial else PALE for bar in bars]
        deltas = [
            Mark(bar.delta, bar.delta_error, colour)
            for bar, colour in zip(bars, colours, strict=True)
        ]
        rewards = [
            Mark(bar.reward, bar.reward_error, colour)
            for bar, colour in zip(bars, colours, strict=True)
        ]
        _draw(often, places, deltas, 1.0, "certain")
        _draw(
            much,
            places,
            [*rewards, Mark(abs(gap), gap_error, COLOURS[2] if gap > 0 else COLOURS[1])],
            trivial,
            "any two policies",
        )
        for place, bar in zip(places, bars, strict=False):
            _below(often, place, bar.how)
        _below(much, places[-1], said)
        often.set_yticks(places, [*(bar.name for bar in bars), "measured gap"])
        much.set_yticks(places, [""] * rows)
        often.set_title("How often", pad=18)  # above the name of the dashed line
        much.set_title("How much", pad=18)
        often.set_xlabel("probability that trajectories diverge")
        much.set_xlabel("reward in a task")
        figure.text(0.12 / width, 1 - 0.3 / height, title, fontsize=11, va="center", weight="bold")
        for index, line in enumerate(told):
            figure.text(
                0.12 / width, 1 - (0.58 + 0.19 * index) / height, line, fontsize=8.5, va="center"
            )
        note = (
            "Dots are bounds, with ±2 standard errors. Grey: says hardly more than the dashed line."
        )
        figure.text(left / width, 0.16 / height, note, fontsize=7.5, color="#666666", va="center")
        return render(figure)


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
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    positive = [mark.value for mark in marks if mark.value > 0] + [limit] * (limit > 0)
    high = max(positive, default=1.0)
    low = max(min(positive, default=high) / 3.0, high / 10**DECADES)
    axes.set_xlim(low, high * 4.0)
    axes.set_ylim(-0.6, len(places) - 0.4 if len(places) > len(marks) else len(marks) - 0.4)
    if limit > 0:
        axes.axvline(limit, color=INK, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)
        axes.annotate(
            meaning, (limit, 1.0), (0, 3), xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            fontsize=7.5, color=INK, ha="center", annotation_clip=False,
        )  # fmt: skip
    for place, mark in zip(places, marks, strict=False):
        value, spread = max(mark.value, low), BAND * mark.error if np.isfinite(mark.error) else 0.0
        axes.plot(
            [low, value],
            [place, place],
            color=mark.colour,
            linewidth=2.2,
            solid_capstyle="butt",
            zorder=2,
        )
        axes.errorbar(
            value, place, xerr=[[min(spread, value * 0.999)], [spread]], fmt="o", markersize=6.5,
            color=mark.colour, ecolor=INK, elinewidth=1.0, capsize=2.5, zorder=3,
        )  # fmt: skip
        axes.annotate(
            f"{mark.value:.3g}" if mark.value > 0 else "0", (value + spread, place), (8, 0),
            textcoords="offset points",
            va="center", fontsize=8.5, color=INK, bbox={"facecolor": "white", "edgecolor": "none",
            "pad": 1.0}, zorder=4,
        )  # fmt: skip


def _below(axes: Axes, place: float, text: str) -> None:
    """Write how a number was found, under its line."""
    axes.annotate(
        text, (0.0, place), (2, -10), xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        fontsize=7, color="#666666", va="center", annotation_clip=False, zorder=2,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )  # fmt: skip
