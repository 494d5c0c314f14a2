"""What a policy earns that believes a wrong prior, against how wrong it is, from the tables."""

from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from priorwise.core.estimates import mean_estimate
from priorwise.figures import style
from priorwise.figures.tables import Table

PANEL, TALL, LEFT = 3.4, 2.7, 0.75
NARROW = 300.0  # powers of ten are too few marks on an axis that spans less


def misspecification(
    rewards: Table, bounds: Table, title: str, axis: str, note: str = ""
) -> style.Picture:
    """Reward under the true prior, a vague one and wrong ones; and beside it what the wrong ones
    change of it, with the bound above.
    """
    grid = bounds["misspecification"]
    oracle, vague = (_earned(rewards, believed) for believed in ("true prior", "vague prior"))
    wrong = [_earned(rewards, "wrong prior", x) for x in grid]
    margin = style.label_room(["any two policies"])
    width = LEFT + 2 * (PANEL + margin) + 0.4
    text = f"{note} Band: ±{style.BAND:g} standard errors. "
    text += "Triangles, where beyond noise: up, the wrong prior earns more; down, less."
    with style.sheet(width, TALL, title, text, left=LEFT, top=0.84, bottom=0.6) as page:
        axes = page.axes(LEFT, PANEL, TALL)
        axes.set_xscale("log")
        means = np.array([mean_estimate(each).mean for each in wrong])
        errors = np.array([mean_estimate(each).std_error for each in wrong])
        axes.plot(grid, means, color=style.COLOURS[1], marker="s", markersize=4)
        wide = style.BAND * np.where(np.isfinite(errors), errors, 0.0)
        style.draw_band(axes, grid, means, wide, style.COLOURS[1])
        ends = [style.EndLabel(grid[-1], means[-1], "wrong prior", style.COLOURS[1])]
        for values, name, colour in (
            (oracle, "true prior", style.COLOURS[0]),
            (vague, "vague prior", style.COLOURS[2]),
        ):
            height = float(values.mean())
            axes.plot(grid[[0, -1]], [height] * 2, color=colour)
            ends.append(style.EndLabel(float(grid[-1]), height, name, colour))
        axes.set(title="What it earns", xlabel=axis, ylabel="reward of a task")
        if grid[-1] < NARROW * grid[0]:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        style.number_plainly(axes.xaxis)
        style.label_ends(axes, ends)
        beside = page.axes(LEFT + PANEL + margin + 0.4, PANEL, TALL)
        beside.loglog()
        order = np.argsort(bounds["tv"])
        tv, bound = bounds["tv"][order], bounds["bound"][order]
        trivial = float(bounds["trivial"].max())  # where it depends on what is believed
        gaps = [mean_estimate(wrong[place] - oracle) for place in order]
        seen = np.array([abs(g.mean) if abs(g.mean) > 2 * g.std_error else np.nan for g in gaps])
        beside.plot(tv, bound, color=style.COLOURS[0], marker="o", markersize=4)
        for more, marker, fill in ((True, "^", "none"), (False, "v", style.COLOURS[7])):
            rows = np.array([(g.mean > 0.0) == more for g in gaps])
            look: Any = {"color": style.COLOURS[7], "markerfacecolor": fill, "markersize": 5}
            beside.plot(tv[rows], seen[rows], marker, **look)
        beside.axhline(trivial, **style.REFERENCE)
        head = "What the wrong prior changes"
        labels = {"xlabel": "total variation of the two priors, at most", "title": head}
        beside.set(ylabel="size of the change", **labels)
        style.number_plainly(beside.xaxis)
        style.number_plainly(beside.yaxis)
        named = [
            style.EndLabel(tv[-1], float(bound[-1]), "bound", style.COLOURS[0]),
            style.EndLabel(tv[-1], trivial, "any two policies", style.INK),
        ]
        if np.isfinite(seen).any():
            last = int(np.flatnonzero(np.isfinite(seen))[-1])
            named.append(style.EndLabel(tv[last], float(seen[last]), "measured", style.COLOURS[7]))
        style.label_ends(beside, named)
    return page.picture


def _earned(rewards: Table, believed: str, x: float | None = None) -> np.ndarray:
    chosen = rewards["believed"] == believed
    if x is not None:
        chosen &= rewards["misspecification"] == x
    return np.asarray(rewards["reward"][chosen][np.argsort(rewards["replicate"][chosen])])
