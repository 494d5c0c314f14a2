"""The figure of first pulls: how often each algorithm opens an episode with each arm. It reads a
table and never simulates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from priorwise.experiments.curves_figure import looks
from priorwise.experiments.envelope import checked, codes
from priorwise.experiments.instance_figure import CELL, IDENTIFYING, grid, heat, name_arms
from priorwise.experiments.work import Files, Table
from priorwise.figures.style import (
    NOTE_LINE,
    new_figure,
    note_lines,
    render,
    style,
    write_note,
    write_title,
)

FIRST_PULLS: Final = {"algorithm": "text", "arm": "whole", "count": "whole"}
POWER: Final = 0.4
"""Colours go by share to this power: a few per cent are seen beside a hundred."""
TICKS: Final = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def first_pull_map(
    first_pulls: Table,
    title: str,
    *,
    identifying: Sequence[int] = IDENTIFYING,
    ours: Collection[str] = (),
    note: str = "",
) -> Files:
    """Draw the share of first pulls as a heat map, algorithms down and arms across, on a power
    scale of colours.

    ``first_pulls`` has the columns ``algorithm``, ``arm`` (from 0; shown from 1) and ``count`` of
    episodes. Algorithms named in ``ours`` are not the paper's, and get a star. Returns the content
    of the files, by suffix.
    """
    table = checked("first_pulls", first_pulls, FIRST_PULLS)
    names, code = codes(table["algorithm"])
    shown = looks(names, ours)
    counts = grid("first_pulls", code, table["arm"], table["count"], ("algorithm", "arm"))
    episodes = counts.sum(axis=1, keepdims=True)
    if (episodes == 0).any():
        raise ValueError(
            "first_pulls must count at least one episode for each algorithm, but "
            f"{names[int(episodes.argmin())]} has none"
        )
    shares = counts / episodes
    rows, arms = shares.shape
    left, right, top, bottom = (
        0.3 + 0.072 * max(len(name) + len(shown[name].star) for name in names),
        1.2,
        0.92,
        0.3,
    )
    wide, tall = CELL * arms, 0.33 * rows
    width = left + wide + right
    said = (
        "▾ Identifying arms. Numbers: per cent of an algorithm's episodes that open with the arm; "
        "blank: never."
    )
    parts = [said, *(["* Not in the paper."] if any(ours) else []), *([note] if note else [])]
    notes = note_lines(" ".join(parts), width - left - 0.1)
    bottom += NOTE_LINE * len(notes)
    height = top + tall + bottom
    with style():
        from matplotlib.colors import PowerNorm

        figure = new_figure(width, height)
        axes = figure.add_axes((left / width, bottom / height, wide / width, tall / height))
        scale = PowerNorm(POWER, 0.0, 1.0)
        colours = heat(axes, shares, scale, [[_percent(share) for share in row] for row in shares])
        name_arms(axes, arms, identifying)
        axes.set_yticks(np.arange(rows) + 0.5, [f"{name}{shown[name].star}" for name in names])
        bar = figure.add_axes(
            ((left + wide + 0.18) / width, bottom / height, 0.13 / width, tall / height)
        )
        scaled = figure.colorbar(
            colours, cax=bar, ticks=TICKS, format=lambda share, _: f"{100 * share:.0f}%"
        )
        scaled.outline.set_visible(False)
        scaled.set_label(f"share of first pulls\n(non-linear: power {POWER:g})", fontsize=8)
        bar.tick_params(labelsize=7.5)
        write_title(figure, title, left)
        write_note(figure, notes, left)
        return render(figure)


def _percent(share: float) -> str:
    """Up to four characters; rounding makes neither a never nor an always."""
    if share == 0.0:
        return ""
    if share < 0.0005:
        return "<0.1"
    if 0.995 <= share < 1.0:
        return f"{min(100 * share, 99.9):.1f}"
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
