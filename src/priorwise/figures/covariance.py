"""What policies earn that believe a wrong covariance, from the table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.estimates import mean_estimate
from priorwise.figures import style
from priorwise.figures.tables import Table

LEFT, PANEL, TALL, ACROSS, BETWEEN = 0.85, 2.75, 2.0, 0.35, 0.8
AXES: Final = {
    "width": "believed covariance, times the true one",
    "correlation": "believed correlation in both blocks",
    "one block": "believed correlation in the first block",
}
NAMES: Final = {"gaussian": "Gaussian bandit", "linear": "Linear contextual bandit"}
WIDTHS: Final = ("1/64", "1/16", "1/4", "1", "4", "16", "64")


def covariances(table: Table, truth: dict[str, float]) -> style.Picture:
    """Reward of each policy against each misspecification: a row for each problem, a column for
    each sweep. ``truth`` is the misspecification at which nothing is wrong.
    """
    problems, sweeps, policies = (
        list(dict.fromkeys(table[name].tolist())) for name in ("problem", "sweep", "policy")
    )
    rows = len(problems)
    tall = rows * TALL + (rows - 1) * BETWEEN
    width = LEFT + len(sweeps) * (PANEL + ACROSS) + style.label_room(policies)
    note = (
        "The believed mean is right. The vertical line marks the true covariance. "
        f"Bands: ±{style.BAND:g} standard errors."
    )
    title = "What a wrong covariance costs"
    with style.sheet(width, tall, title, note, left=LEFT, top=0.8, bottom=0.6) as page:
        for row, problem in enumerate(problems):
            up = (rows - 1 - row) * (TALL + BETWEEN)
            panels = [
                page.axes(LEFT + column * (PANEL + ACROSS), PANEL, TALL, up)
                for column in range(len(sweeps))
            ]
            ends: list[style.EndLabel] = []
            for axes, sweep in zip(panels, sweeps, strict=True):
                own = (table["problem"] == problem) & (table["sweep"] == sweep)
                part = {name: column[own] for name, column in table.items()}
                ends = [
                    _curve(axes, part, name, style.look(index))
                    for index, name in enumerate(policies)
                ]
                axes.axvline(truth[sweep], **style.REFERENCE)
                _name_axis(axes, sweep)
                axes.set_xlabel(AXES[sweep] if row == rows - 1 else "")
            panels[0].set(title=NAMES[problem], ylabel="reward of a task")
            limits = np.array([axes.get_ylim() for axes in panels])
            for axes in panels:
                axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
                axes.tick_params(labelleft=axes is panels[0])
            style.label_ends(panels[-1], ends)
    return page.picture


def _curve(axes: style.Axes, part: Table, policy: str, look: tuple[str, str]) -> style.EndLabel:
    """Draw the mean over replicates with its band."""
    colour, marker = look
    grid = np.unique(part["misspecification"])
    chosen = part["policy"] == policy
    values = [part["reward"][chosen & (part["misspecification"] == x)] for x in grid]
    means = np.array([mean_estimate(each).mean for each in values])
    errors = np.array([mean_estimate(each).std_error for each in values])
    axes.plot(grid, means, color=colour, marker=marker, markersize=4)
    wide = style.BAND * np.where(np.isfinite(errors), errors, 0.0)
    style.draw_band(axes, grid, means, wide, colour)
    return style.EndLabel(float(grid[-1]), float(means[-1]), policy, colour)


def _name_axis(axes: style.Axes, sweep: str) -> None:
    """Number widths as powers of 4, and correlations by steps of 0.2."""
    from matplotlib.ticker import MultipleLocator, NullLocator

    if sweep != "width":
        axes.xaxis.set_major_locator(MultipleLocator(0.2))
        return

    axes.set_xscale("log")
    ticks: list[Any] = [4.0**power for power in range(-3, 4)]
    axes.set_xticks(ticks, WIDTHS)
    axes.xaxis.set_minor_locator(NullLocator())
