"""The figure of test performance: a box over replicates for each algorithm. It reads tables and
never simulates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.figures.learning import BAND, GOLDEN, Look, looks
from priorwise.figures.style import (
    INK,
    LABEL_SIZE,
    NOTE,
    NOTE_LINE,
    Picture,
    new_figure,
    note_lines,
    render,
    style,
    write_note,
    write_title,
)
from priorwise.figures.tables import Table, checked, codes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEST: Final = {"algorithm": "text", "t0": "whole", "replicate": "whole", "reward": "real"}


def performance_boxes(
    test: Table | Mapping[str, Table],
    title: str,
    *,
    ours: Collection[str] = (),
    oracle: str = "OracleTS",
    note: str = "",
) -> Picture:
    """Draw quartiles, whiskers, mean and every replicate, against the mean of ``oracle``.

    ``test`` is one table with the columns ``algorithm``, ``t0`` (one for each algorithm; 0 if it
    does not explore), ``replicate`` and ``reward`` (mean per episode over the test episodes), or
    several by title of their panel, drawn side by side. Algorithms named in ``ours`` are not the
    paper's: dashed, with a star. Returns the content of the files, by suffix.
    """
    rows = {panel: _rows(table, oracle) for panel, table in panels("test", test).items()}
    shown = looks([name for each in rows.values() for name in each], ours)
    longest = max(len(name) + 2 * shown[name].ours for each in rows.values() for name in each)
    wide, left, right, top = (
        3.3 if len(rows) > 1 else 4.0,
        0.3 + 0.072 * longest,
        1.05,
        1.12 if any(rows) else 0.8,
    )
    width = len(rows) * (left + wide + right)
    tall = 0.5 * max(len(each) for each in rows.values())
    notes = note_lines(_note(rows, shown, note), width - 0.3)
    bottom = 0.72 + NOTE_LINE * len(notes)
    height = top + tall + bottom
    with style():
        figure = new_figure(width, height)
        for index, (panel, each) in enumerate(rows.items()):
            x = left + index * (left + wide + right)
            share = 0.5 * len(each)
            axes = figure.add_axes(
                (x / width, (bottom + tall - share) / height, wide / width, share / height)
            )
            _boxes(axes, each, shown, oracle)
            axes.set_title(panel, pad=24)
            axes.set_xlabel("average reward per test episode")
        write_title(figure, title, 0.2)
        write_note(figure, notes, 0.2)
        return render(figure)


def _rows(table: Table, oracle: str) -> dict[str, tuple[int, FloatArray]]:
    """Exploration length and rewards by algorithm."""
    columns = checked("test", table, TEST)
    names, code = codes(columns["algorithm"])
    out = {}
    for index, name in enumerate(names):
        mine = code == index
        lengths = np.unique(columns["t0"][mine])
        if lengths.size > 1:
            raise ValueError(
                f"test must have one t0 for each algorithm, but {name} has {lengths.tolist()}; "
                "choose one"
            )
        if np.unique(columns["replicate"][mine]).size < mine.sum():
            raise ValueError(
                f"test must have one row for each replicate, but {name} has a replicate twice"
            )
        out[name] = int(lengths[0]), columns["reward"][mine].astype(np.float64)
    if oracle not in out:
        raise ValueError(
            f"oracle must be an algorithm of the table ({', '.join(names)}), got {oracle}"
        )
    return out


def _boxes(
    axes: Axes, rows: Mapping[str, tuple[int, FloatArray]], shown: Mapping[str, Look], oracle: str
) -> None:
    level = rows[oracle][1].mean()
    axes.axvline(level, color=INK, linewidth=0.9, linestyle=(0, (4, 2.5)), zorder=1)
    for place, (name, (t0, rewards)) in enumerate(rows.items()):
        look = shown[name]
        line = {
            "color": look.colour,
            "linewidth": 1.2,
            "linestyle": (0, (3, 1.2)) if look.ours else "-",
        }
        jitter = 0.24 + 0.16 * ((np.arange(rewards.size) * GOLDEN) % 1.0)
        axes.plot(
            rewards,
            place + jitter,
            linestyle="",
            marker="o",
            markersize=1.7,
            color=look.colour,
            alpha=0.4,
            markeredgewidth=0,
        )
        axes.boxplot(
            rewards,
            positions=[place - 0.02],
            orientation="horizontal",
            widths=0.34,
            patch_artist=True,
            showmeans=True,
            showfliers=False,  # every replicate is drawn below
            manage_ticks=False,
            boxprops={
                "facecolor": f"{look.colour}2e",
                "edgecolor": look.colour,
                "linewidth": 1.2,
                "linestyle": line["linestyle"],
            },
            medianprops={**line, "linestyle": "-", "linewidth": 1.8},
            whiskerprops=line,
            capprops={**line, "linestyle": "-"},
            meanprops={
                "marker": "D",
                "markersize": 4.5,
                "markerfacecolor": "white",
                "markeredgecolor": INK,
                "markeredgewidth": 0.9,
            },
            zorder=3,
        )
        axes.annotate(
            _measured(rewards),
            (1.03, place),
            xycoords=axes.get_yaxis_transform(),
            fontsize=LABEL_SIZE,
            va="center",
            annotation_clip=False,
        )
        if t0:
            axes.annotate(
                f"T₀ = {t0:,}", (0.0, place), (-3.5, -11), xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                fontsize=7.5, color=NOTE, ha="right", va="center", annotation_clip=False,
            )  # fmt: skip
    axes.annotate(
        f"{oracle}, mean", (level, 1.0), (0, 4), xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        fontsize=7.5, color=NOTE, ha="center", annotation_clip=False,
    )  # fmt: skip
    axes.set_yticks(range(len(rows)), [f"{name}{shown[name].star}" for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _measured(rewards: FloatArray) -> str:
    if rewards.size < 2:
        return f"{rewards.mean():.2f}"
    return f"{rewards.mean():.2f} ± {BAND * rewards.std(ddof=1) / np.sqrt(rewards.size):.2f}"


def _note(
    rows: Mapping[str, Mapping[str, tuple[int, FloatArray]]], shown: Mapping[str, Look], more: str
) -> str:
    counts = {rewards.size for each in rows.values() for _, rewards in each.values()}
    over = f"{counts.pop()} replicates" if len(counts) == 1 else "replicates"
    boxes = (
        f"Boxes: median and quartiles over {over} (dots); whiskers: at most 1.5 times the box "
        "beyond it;"
    )
    parts = [boxes, f"diamonds and numbers: mean, ±{BAND:g} standard errors."]
    if any(t0 for each in rows.values() for t0, _ in each.values()):
        parts.append("T₀: episodes of exploration.")
    if any(look.ours for look in shown.values()):
        parts.append("* Dashed: not in the paper.")
    return " ".join([*parts, more] if more else parts)
