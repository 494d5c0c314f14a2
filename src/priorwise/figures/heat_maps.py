"""Heat maps of the discrete bandit: the reward of each arm in each task with the prior beside them,
and how often each algorithm opens an episode with each arm.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.figures import style
from priorwise.figures.learning import looks
from priorwise.figures.tables import Table, checked, codes

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

INSTANCE: Final = {"task": "whole", "arm": "whole", "reward": "real", "probability": "real"}
IDENTIFYING: Final = (0, 5, 10, 15)
"""Arms whose reward distinguishes tasks: A1, A6, A11, A16."""
PALETTE: Final = "Blues"
MARK: Final = style.COLOURS[1]
EVEN: Final = 0.245
"""Relative luminance on which white and ink contrast alike."""
CELL: Final = 0.36  # inches
FIRST_PULLS: Final = {"algorithm": "text", "arm": "whole", "count": "whole"}
POWER: Final = 0.4
"""Colours go by share to this power: a few per cent are seen beside a hundred."""
TICKS: Final = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def instance_map(
    instance: Table, title: str, *, identifying: Sequence[int] = IDENTIFYING, note: str = ""
) -> style.Picture:
    """Draw rewards as a heat map, tasks down and arms across, and the probability of each task as a
    bar.

    ``instance`` has the columns ``task`` and ``arm`` (from 0; shown from 1), ``reward``, and
    ``probability`` of the task. Returns the content of the files, by suffix.
    """
    table = checked("instance", instance, INSTANCE)
    rewards = grid("instance", table, "task", "reward")
    each = grid("instance", table, "task", "probability")
    probability = each[:, 0]
    if np.ptp(each, axis=1).any() or (probability < 0).any() or abs(probability.sum() - 1) > 1e-6:
        raise ArgumentError(
            "instance",
            "must give each task one probability, and they must sum to 1",
            cure=f"got a sum of {probability.sum():g}",
        )
    tasks, arms = rewards.shape
    left, gap, bars, right = 0.62, 0.14, 1.1, 0.95
    wide, tall = CELL * arms, 0.27 * tasks
    width = left + wide + gap + bars + right
    said = (
        "▾ Identifying arms: best in no task, but their reward identifies the task within a group. "
        "Blank: 0."
    )
    words = [[f"{value:.2g}" if value else "" for value in row] for row in rewards]
    with style.sheet(width, tall, title, f"{said} {note}", left=left, top=0.92, bottom=0.3) as page:
        from matplotlib.colors import Normalize

        axes = page.axes(left, wide, tall)
        scale = Normalize(min(0.0, rewards.min()), max(rewards.max(), 1e-12))
        colours = heat(axes, rewards, scale, words)
        name_arms(axes, arms, identifying)
        axes.set_yticks(np.arange(tasks) + 0.5, [str(task + 1) for task in range(tasks)])
        axes.set_ylabel("task")
        _prior(page.axes(left + wide + gap, bars, tall), probability)
        bar = page.axes(width - right + 0.2, 0.13, tall)
        page.figure.colorbar(colours, cax=bar, label="reward").outline.set_visible(False)
    return page.picture


def first_pull_map(
    first_pulls: Table,
    title: str,
    *,
    identifying: Sequence[int] = IDENTIFYING,
    ours: Collection[str] = (),
    note: str = "",
) -> style.Picture:
    """Draw the share of first pulls as a heat map, algorithms down and arms across, on a power
    scale of colours.

    ``first_pulls`` has the columns ``algorithm``, ``arm`` (from 0; shown from 1) and ``count`` of
    episodes. Algorithms named in ``ours`` are not the paper's, and get a star. Returns the content
    of the files, by suffix.
    """
    table = checked("first_pulls", first_pulls, FIRST_PULLS)
    names, code = codes(table["algorithm"])
    shown = looks(names, ours)
    counts = grid("first_pulls", table | {"algorithm": code}, "algorithm", "count")
    episodes = counts.sum(axis=1, keepdims=True)
    if (episodes == 0).any():
        raise ArgumentError(
            "first_pulls",
            "must count at least one episode for each algorithm, but "
            f"{names[int(episodes.argmin())]} has none",
        )
    shares = counts / episodes
    rows, arms = shares.shape
    left = 0.3 + 0.072 * max(len(name) + len(shown[name].star) for name in names)
    wide, tall = CELL * arms, 0.33 * rows
    said = (
        "▾ Identifying arms. Numbers: per cent of an algorithm's episodes that open with the arm; "
        f"blank: never.{' * Not in the paper.' if any(ours) else ''} {note}"
    )
    words = [[_percent(share) for share in row] for row in shares]
    with style.sheet(left + wide + 1.2, tall, title, said, left=left, top=0.92, bottom=0.3) as page:
        from matplotlib.colors import PowerNorm

        axes = page.axes(left, wide, tall)
        colours = heat(axes, shares, PowerNorm(POWER, 0.0, 1.0), words)
        name_arms(axes, arms, identifying)
        axes.set_yticks(np.arange(rows) + 0.5, [f"{name}{shown[name].star}" for name in names])
        bar = page.axes(left + wide + 0.18, 0.13, tall)
        percent: Any = {"ticks": TICKS, "format": lambda share, _: f"{100 * share:.0f}%"}
        scaled = page.figure.colorbar(colours, cax=bar, **percent)
        scaled.outline.set_visible(False)
        scaled.set_label(f"share of first pulls\n(non-linear: power {POWER:g})", fontsize=8)
        bar.tick_params(labelsize=7.5)
    return page.picture


def _percent(share: float) -> str:
    """Up to four characters; rounding makes neither a never nor an always."""
    if share == 0.0:
        return ""
    if share < 0.0005:
        return "<0.1"
    if 0.995 <= share < 1.0:
        return f"{min(100 * share, 99.9):.1f}"
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"


def grid(name: str, table: Table, row: str, value: str) -> FloatArray:
    """A column as a matrix, with a row for each number in ``row`` and a column for each arm; every
    pair must be there once.
    """
    places = table[row].astype(np.int64), table["arm"].astype(np.int64)
    shape = int(places[0].max()) + 1, int(places[1].max()) + 1
    index = np.ravel_multi_index(places, shape)
    if index.size != shape[0] * shape[1] or np.unique(index).size != index.size:
        raise ArgumentError(
            name, f"must have each pair of {row} and arm once, {shape[0]} x {shape[1]} rows"
        )
    out = np.empty(shape)
    out.flat[index] = table[value]
    return out


def heat(
    axes: style.Axes,
    values: FloatArray,
    scale: Normalize,
    texts: Sequence[Sequence[str]],
    palette: str = PALETTE,
) -> ScalarMappable:
    """Draw a matrix as coloured cells, the first row on top, with a text in each cell that is read
    on its colour.
    """
    import matplotlib as mpl

    edges: Any = {"edgecolors": "#dddddd", "linewidth": 0.6, "clip_on": False}
    cells = axes.pcolormesh(values, cmap=palette, norm=scale, **edges)
    axes.set_ylim(values.shape[0], 0)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    colours = mpl.colormaps[palette](scale(values))
    light = colours[..., :3] ** 2.2 @ [0.2126, 0.7152, 0.0722] > EVEN
    for (row, column), pale in np.ndenumerate(light):
        if text := str(texts[row][column]):
            look: Any = {"ha": "center", "va": "center", "color": style.INK if pale else "white"}
            axes.text(column + 0.5, row + 0.5, text, fontsize=7, **look)
    return cells


def name_arms(axes: style.Axes, arms: int, identifying: Sequence[int]) -> None:
    """Write A1, A2, ... above the columns, and mark the identifying ones."""
    wrong = [arm for arm in identifying if not 0 <= arm < arms]
    if wrong:
        raise ArgumentError("identifying", f"must be arms from 0 to {arms - 1}", got=wrong)
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(arms) + 0.5, [f"A{arm + 1}" for arm in range(arms)], fontsize=8)
    axes.tick_params(axis="x", length=0, pad=2)
    up = axes.get_xaxis_transform()
    for arm in identifying:
        label: Any = axes.get_xticklabels()[arm]
        label.set(color=MARK, weight="bold")
        look: Any = {"ha": "center", "va": "bottom", "color": MARK, "fontsize": 9}
        style.write(axes, "▾", (arm + 0.5, 1.0), (0, 13), xycoords=up, **look)


def _prior(axes: style.Axes, probability: FloatArray) -> None:
    places = np.arange(probability.size) + 0.5
    axes.barh(places, probability, height=0.72, color=style.FAINT)
    for place, value in zip(places, probability, strict=True):
        style.write(axes, _fraction(value), (value, place), (3, 0), va="center", fontsize=7.5)
    axes.set_ylim(probability.size, 0)
    axes.set(xlim=(0, 1.55 * probability.max()), xticks=[], yticks=[])
    axes.grid(visible=False)
    for side in ("bottom", "right", "top"):
        axes.spines[side].set_visible(False)
    style.write(
        axes, "prior", (0, 1.0), (0, 4), xycoords="axes fraction", fontsize=8, color=style.NOTE
    )


def _fraction(value: float) -> str:
    fraction = Fraction(float(value)).limit_denominator(1000)
    return str(fraction) if abs(float(fraction) - value) < 1e-9 else f"{value:.3g}"
