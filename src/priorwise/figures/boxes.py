"""The figure of test performance: a box over replicates for each algorithm. It reads tables and
never simulates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import std_error
from priorwise.core.types import FloatArray
from priorwise.figures import style
from priorwise.figures.learning import GOLDEN, Look, ending, looks
from priorwise.figures.tables import Table, checked, codes, panels

TEST: Final = {"algorithm": "text", "t0": "whole", "replicate": "whole", "reward": "real"}


def performance_boxes(
    test: Table | Mapping[str, Table],
    title: str,
    *,
    ours: Collection[str] = (),
    oracle: str = "OracleTS",
    note: str = "",
) -> style.Picture:
    """Draw quartiles, whiskers, mean and every replicate, against the mean of ``oracle``.

    ``test`` is one table with the columns ``algorithm``, ``t0`` (one for each algorithm; 0 if it
    does not explore), ``replicate`` and ``reward`` (mean per episode over the test episodes), or
    several by title of their panel, drawn side by side. Algorithms named in ``ours`` are not the
    paper's: dashed, with a star. Returns the content of the files, by suffix.
    """
    rows = {panel: _rows(table, oracle) for panel, table in panels("test", test).items()}
    shown = looks([name for each in rows.values() for name in each], ours)
    longest = max(len(name) + 2 * shown[name].ours for each in rows.values() for name in each)
    wide, left, right = 3.3 if len(rows) > 1 else 4.0, 0.3 + 0.072 * longest, 1.05
    width, top = len(rows) * (left + wide + right), 1.12 if any(rows) else 0.8
    tall, said = 0.5 * max(len(each) for each in rows.values()), _note(rows, shown, note)
    with style.sheet(width, tall, title, said, left=0.2, top=top, bottom=0.72) as page:
        for index, (panel, each) in enumerate(rows.items()):
            share = 0.5 * len(each)
            axes = page.axes(left + index * (left + wide + right), wide, share, tall - share)
            _boxes(axes, each, shown, oracle)
            axes.set_title(panel, pad=24)
            axes.set_xlabel("average reward per test episode")
    return page.picture


def _rows(table: Table, oracle: str) -> dict[str, tuple[int, FloatArray]]:
    """Exploration length and rewards by algorithm."""
    columns = checked("test", table, TEST)
    names, code = codes(columns["algorithm"])
    out = {}
    for index, name in enumerate(names):
        mine = code == index
        lengths = np.unique(columns["t0"][mine])
        if lengths.size > 1:
            raise ArgumentError(
                "test",
                f"must have one t0 for each algorithm, but {name} has {lengths.tolist()}",
                cure="choose one",
            )
        if np.unique(columns["replicate"][mine]).size < mine.sum():
            raise ArgumentError(
                "test", f"must have one row for each replicate, but {name} has a replicate twice"
            )
        out[name] = int(lengths[0]), columns["reward"][mine].astype(np.float64)
    if oracle not in out:
        raise ArgumentError(
            "oracle", f"must be an algorithm of the table ({', '.join(names)})", got=oracle
        )
    return out


def _boxes(
    axes: style.Axes,
    rows: Mapping[str, tuple[int, FloatArray]],
    shown: Mapping[str, Look],
    oracle: str,
) -> None:
    level, across = rows[oracle][1].mean(), axes.get_yaxis_transform()
    small: Any = {"fontsize": 7.5, "color": style.NOTE}
    axes.axvline(level, color=style.INK, linewidth=0.9, linestyle=(0, (4, 2.5)), zorder=1)
    for place, (name, (t0, rewards)) in enumerate(rows.items()):
        look = shown[name]
        dash = (0, (3, 1.2)) if look.ours else "-"
        line: Any = {"color": look.colour, "linewidth": 1.2}
        box = {"facecolor": f"{look.colour}2e", "edgecolor": look.colour, "linewidth": 1.2}
        mean = {"marker": "D", "markersize": 4.5, "markerfacecolor": "white"}
        jitter = 0.24 + 0.16 * ((np.arange(rewards.size) * GOLDEN) % 1.0)
        dots: Any = {"markersize": 1.7, "alpha": 0.4, "markeredgewidth": 0}
        axes.plot(rewards, place + jitter, "o", linestyle="", color=look.colour, **dots)
        axes.boxplot(
            rewards,
            positions=[place - 0.02],
            orientation="horizontal",
            widths=0.34,
            patch_artist=True,
            showmeans=True,
            showfliers=False,  # every replicate is drawn below
            manage_ticks=False,
            boxprops={**box, "linestyle": dash},
            medianprops={**line, "linestyle": "-", "linewidth": 1.8},
            whiskerprops={**line, "linestyle": dash},
            capprops={**line, "linestyle": "-"},
            meanprops={**mean, "markeredgecolor": style.INK, "markeredgewidth": 0.9},
            zorder=3,
        )
        beside: Any = {"xycoords": across, "fontsize": style.LABEL_SIZE, "va": "center"}
        known = f" ± {style.BAND * std_error(rewards):.2f}" if rewards.size > 1 else ""
        style.write(axes, f"{rewards.mean():.2f}{known}", (1.03, place), (0, 0), **beside)
        if t0:
            below: Any = {"xycoords": across, "ha": "right", "va": "center", **small}
            style.write(axes, f"T₀ = {t0:,}", (0.0, place), (-3.5, -11), **below)
    up = axes.get_xaxis_transform()
    style.write(axes, f"{oracle}, mean", (level, 1.0), (0, 4), xycoords=up, ha="center", **small)
    style.name_rows(axes, [f"{name}{shown[name].star}" for name in rows], range(len(rows)))
    axes.set_ylim(len(rows) - 0.5, -0.5)


def _note(
    rows: Mapping[str, Mapping[str, tuple[int, FloatArray]]], shown: Mapping[str, Look], more: str
) -> str:
    counts = {rewards.size for each in rows.values() for _, rewards in each.values()}
    over = f"{counts.pop()} replicates" if len(counts) == 1 else "replicates"
    parts = [f"Boxes: median and quartiles over {over} (dots);"]
    parts += ["whiskers: at most 1.5 times the box beyond it;"]
    parts += [f"diamonds and numbers: mean, ±{style.BAND:g} standard errors."]
    if any(t0 for each in rows.values() for t0, _ in each.values()):
        parts.append("T₀: episodes of exploration.")
    return " ".join(parts) + ending(shown, more)
