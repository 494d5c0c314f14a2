"""Figures of the theory, from the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.figures.style import (
    COLOURS,
    INK,
    MARKERS,
    EndLabel,
    Picture,
    new_figure,
    render,
    style,
)
from priorwise.figures.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTE: Final = "#666666"


def ladders(table: Table) -> Picture:
    """Bounds on the reward over a grid of misspecifications, a panel for each policy."""
    policies = list(dict.fromkeys(table["policy"].tolist()))
    rungs = list(dict.fromkeys(table["rung"].tolist()))
    width, height, left, panel, between = 1.0 + 3.3 * len(policies) + 1.7, 4.2, 0.75, 3.0, 0.3
    with style():
        figure = new_figure(width, height)
        for index, policy in enumerate(policies):
            axes = figure.add_axes(
                ((left + index * (panel + between)) / width, 0.16, panel / width, 0.64)
            )
            chosen = table["policy"] == policy
            axes.set_xscale("log")
            axes.set_yscale("log")
            for place, rung in enumerate(rungs):
                rows = chosen & (table["rung"] == rung) & np.isfinite(table["reward"])
                _line(
                    axes,
                    table["shift"][rows],
                    table["reward"][rows],
                    rung,
                    COLOURS[place],
                    MARKERS[place],
                )
            one = chosen & (table["rung"] == rungs[0])
            gap = np.abs(table["gap"][one])
            seen = gap > 2 * table["gap_std_error"][one]
            _line(
                axes,
                table["shift"][one],
                np.where(seen, gap, np.nan),
                "measured gap",
                COLOURS[7],
                "X",
            )
            axes.axhline(
                float(table["trivial"][one][0]), color=INK, linewidth=0.9, linestyle=(0, (3, 2))
            )
            axes.set_ylim(1e-4, 60.0)
            axes.set_title(policy)
            axes.set_xlabel("shift of the mean of arm 1")
            if index == 0:
                axes.set_ylabel("bound on the reward in a task")
            else:
                axes.tick_params(labelleft=False)
        _legend(figure, axes, [*rungs, "measured gap"])
        figure.text(
            left / width,
            0.94,
            "The ladder over a grid of misspecifications",
            fontsize=11,
            va="center",
        )
        note = (
            "Gaussian problem of the paper. Dashed: what holds for any two policies. "
            "Gap: its size, where beyond noise. "
            "Coupled trajectories: 2-shot couples posterior draws instead of actions, a looser "
            "rung; the last has none."
        )
        figure.text(left / width, 0.02, note, fontsize=7.5, color=NOTE)
        return render(figure)


def _line(
    axes: Axes, x: np.ndarray, y: np.ndarray, name: str, colour: str, marker: str
) -> EndLabel:
    axes.plot(x, y, color=colour, marker=marker, markersize=4)
    return EndLabel(
        float(x[-1]) if x.size else np.nan, float(y[-1]) if y.size else np.nan, name, colour
    )


def _legend(figure: Figure, axes: Axes, names: list[str]) -> None:
    """List the lines beside the last panel, in the order of the ladder; not every panel has all of
    them.
    """
    from matplotlib.lines import Line2D

    looks = [*zip(COLOURS[: len(names) - 1], MARKERS, strict=False), (COLOURS[7], "X")]
    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=4, label=name)
        for name, (colour, marker) in zip(names, looks, strict=True)
    ]
    place = (axes.get_position().x1 + 0.005, 0.5)
    figure.legend(
        handles=handles, loc="center left", bbox_to_anchor=place, frameon=False, fontsize=8.5
    )


def _plain_ticks(axes: Axes, ticks: list[float]) -> None:
    """Write these numbers along the horizontal axis, and powers of ten along the other."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _label_log(axes: Axes, ends: list[EndLabel]) -> None:
    """Write names beside a logarithmic axis, apart from each other."""
    from priorwise.figures.style import LABEL_SIZE, spread

    low, high = np.log(axes.get_ylim())
    known = sorted((each for each in ends if np.isfinite(each.y)), key=lambda each: each.y)
    gap = 0.055 * (high - low)
    places = spread([float(np.log(each.y)) for each in known], gap, float(low), float(high))
    for each, place in zip(known, places, strict=True):
        axes.annotate(
            each.text,
            xy=(each.x, each.y),
            xytext=(1.05, float(np.exp(place))),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=LABEL_SIZE,
            color=each.colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.7,
                "color": each.colour,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 4,
            },
        )


def estimator_errors(table: Table) -> Picture:
    """Error of each estimator against the number of tasks."""
    names = list(dict.fromkeys(table["estimator"].tolist()))
    width, height, left, panel, between = 10.6, 4.0, 0.8, 3.6, 0.85
    with style():
        figure = new_figure(width, height)
        for index, of in enumerate(("mean", "covariance")):
            axes = figure.add_axes(
                ((left + index * (panel + between)) / width, 0.16, panel / width, 0.64)
            )
            axes.set_xscale("log")
            axes.set_yscale("log")
            ends = []
            for place, name in enumerate(names):
                rows = (table["estimator"] == name) & (table["of"] == of)
                sizes = np.unique(table["tasks"][rows])
                means = np.array(
                    [table["error"][rows & (table["tasks"] == size)].mean() for size in sizes]
                )
                ends.append(_line(axes, sizes, means, name, COLOURS[place], MARKERS[place]))
            guide = means[0] * 0.5 * np.sqrt(sizes[0] / sizes)
            axes.plot(sizes, guide, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
            axes.annotate(
                "slope −1/2",
                (float(sizes[1]), float(guide[1])),
                (-6, -16),
                textcoords="offset points",
                fontsize=8,
                ha="right",
            )
            axes.set(
                title=f"Error of the {of}",
                xlabel="tasks",
                ylabel="Euclidean norm" if index == 0 else "Frobenius norm",
            )
            _plain_ticks(axes, sizes.tolist())
            if index == 1:
                _label_log(axes, ends)
        figure.text(
            left / width, 0.94, "How estimators of the prior converge", fontsize=11, va="center"
        )
        figure.text(
            left / width,
            0.02,
            "Gaussian problem of the paper, 10 uniform pulls per task; means over replicates.",
            fontsize=7.5,
            color=NOTE,
        )
        return render(figure)


def gaps(table: Table) -> Picture:
    """What the wrong prior costs on the instance of the lower bound, between the bounds."""
    width, height = 6.8, 4.0
    with style():
        figure = new_figure(width, height)
        axes = figure.add_axes((0.11, 0.16, 0.58, 0.66))
        axes.set_xscale("log")
        axes.set_yscale("log")
        shown = (
            ("upper", "upper bound"),
            ("exact", "exact"),
            ("improved", "lower bound, sharper"),
            ("theorem", "lower bound, printed"),
        )
        ends = []
        for place, (column, name) in enumerate(shown):
            rows = table[column] > 0
            ends.append(
                _line(
                    axes,
                    table["pulls"][rows],
                    table[column][rows],
                    name,
                    COLOURS[place],
                    MARKERS[place],
                )
            )
        axes.errorbar(
            table["pulls"],
            table["measured"],
            2 * table["std_error"],
            fmt="none",
            ecolor=INK,
            elinewidth=1.0,
            capsize=2.5,
            zorder=4,
        )
        axes.set(xlabel="pulls in a task", ylabel="reward lost in a task")
        _plain_ticks(axes, table["pulls"].tolist())
        _label_log(axes, ends)
        figure.text(
            0.11,
            0.94,
            "What the wrong prior costs on the (N + 1)-arm instance",
            fontsize=11,
            va="center",
        )
        note = "2,000 arms, kHε = 0.04. Whiskers: simulation, ±2 standard errors."
        figure.text(0.11, 0.02, note, fontsize=7.5, color=NOTE)
        return render(figure)
