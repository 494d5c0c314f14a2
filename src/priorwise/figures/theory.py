"""Figures of the theory, from the tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.figures import style
from priorwise.figures.tables import Table

COST = "What the wrong prior costs on the (N + 1)-arm instance"
GAP = (style.COLOURS[7], "X")  # of what is measured
MANY = {1e2: "100", 1e4: "10,000", 1e6: "1 million", 1e8: "100 million", 1e10: "10 billion"}


def ladders(table: Table) -> style.Picture:
    """Bounds on the reward over a grid of misspecifications, a panel for each policy."""
    policies = list(dict.fromkeys(table["policy"].tolist()))
    rungs = list(dict.fromkeys(table["rung"].tolist()))
    looks = {rung: style.look(index) for index, rung in enumerate(rungs)}
    looks["measured gap"] = GAP
    width, left, panel, tall = 1.0 + 3.3 * len(policies) + 1.7, 0.75, 3.0, 2.7
    note = (
        "Gaussian problem of the paper. Dashed: what holds for any two policies. Gap: its size, "
        "where beyond noise. Coupled trajectories: 2-shot couples posterior draws instead of "
        "actions, a looser rung; the last has none."
    )
    title = "The ladder over a grid of misspecifications"
    with style.sheet(width, tall, title, note, left=left, top=0.84, bottom=0.6) as page:
        for index, policy in enumerate(policies):
            axes = page.axes(left + index * (panel + 0.3), panel, tall)
            chosen = table["policy"] == policy
            axes.loglog()
            for rung in rungs:
                rows = chosen & (table["rung"] == rung) & np.isfinite(table["reward"])
                _line(axes, table["shift"][rows], table["reward"][rows], rung, looks[rung])
            one = chosen & (table["rung"] == rungs[0])
            gap = np.abs(table["gap"][one])
            seen = gap > 2 * table["gap_std_error"][one]
            _line(axes, table["shift"][one], np.where(seen, gap, np.nan), "measured gap", GAP)
            any_two = float(table["trivial"][one][0])
            axes.axhline(any_two, **style.REFERENCE)
            axes.set_ylim(1e-4, 60.0)
            _number_plainly(axes)
            axes.set(title=policy, xlabel="shift of the mean of the first arm")
            axes.set_ylabel("" if index else "bound on the reward in a task")
            axes.tick_params(labelleft=index == 0)
        _legend(axes, looks)
    return page.picture


def _line(
    axes: style.Axes, x: np.ndarray, y: np.ndarray, name: str, look: tuple[str, str]
) -> style.EndLabel:
    colour, marker = look
    axes.plot(x, y, color=colour, marker=marker, markersize=4)
    ends = (float(x[-1]), float(y[-1])) if x.size else (np.nan, np.nan)
    return style.EndLabel(*ends, name, colour)


def _legend(axes: style.Axes, looks: dict[str, tuple[str, str]]) -> None:
    """List the lines beside the last panel, in the order of the ladder; not every panel has all of
    them.
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=4, label=name)
        for name, (colour, marker) in looks.items()
    ]
    place: Any = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5), "borderaxespad": 0.0}
    axes.legend(handles=handles, frameon=False, fontsize=8.5, **place)


def _number_plainly(axes: style.Axes) -> None:
    style.number_plainly(axes.xaxis)
    style.number_plainly(axes.yaxis)


def _plain_ticks(axes: style.Axes, ticks: list[float]) -> None:
    """Write these numbers along the horizontal axis, and 1, 2, 5, 10, ... along the other."""
    from matplotlib.ticker import FixedLocator, LogLocator

    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    _number_plainly(axes)


def estimator_errors(table: Table) -> style.Picture:
    """Error of each estimator against the number of tasks."""
    names = list(dict.fromkeys(table["estimator"].tolist()))
    looks = {name: style.look(index) for index, name in enumerate(names)}
    left, panel, tall = 0.8, 3.6, 2.56
    title = "How estimators of the prior converge"
    note = "Gaussian problem of the paper, 10 uniform pulls per task; means over replicates."
    with style.sheet(10.6, tall, title, note, left=left, top=0.8, bottom=0.6) as page:
        for index, (of, norm) in enumerate((("mean", "Euclidean"), ("covariance", "Frobenius"))):
            axes = page.axes(left + index * (panel + 0.85), panel, tall)
            axes.loglog()
            ends = []
            for name in names:
                rows = (table["estimator"] == name) & (table["of"] == of)
                sizes = np.unique(table["tasks"][rows])
                each = (table["error"][rows & (table["tasks"] == size)] for size in sizes)
                means = np.array([errors.mean() for errors in each])
                ends.append(_line(axes, sizes, means, name, looks[name]))
            guide = means[0] * 0.5 * np.sqrt(sizes[0] / sizes)
            axes.plot(sizes, guide, **style.REFERENCE)
            at = (float(sizes[1]), float(guide[1]))
            style.write(axes, "slope −1/2", at, (-6, -16), fontsize=8, ha="right")
            axes.set(title=f"Error of the {of}", xlabel="tasks", ylabel=f"{norm} norm")
            _plain_ticks(axes, sizes.tolist())
            if index == 1:
                style.label_ends(axes, ends)
    return page.picture


def tasks_needed(table: Table) -> style.Picture:
    """Tasks it takes to come within 0.1 of the prior, a panel for each; above them what the lemmas
    certify.
    """
    names = list(dict.fromkeys(table["prior"].tolist()))
    deltas = np.unique(table["delta"])[::-1].tolist()
    looks = {f"needed, δ = {delta:g}": style.look(i) for i, delta in enumerate(deltas)}
    looks["certified, δ = 0.1"] = GAP
    left, panel, tall = 1.15, 2.75, 2.56
    title = "Tasks it takes to learn a prior"
    note = (
        "Total variation at most 0.1 with probability 1 − δ. Moment estimators of the theorems, "
        "from the quantile of the error at one number of tasks. Dashed: the theory's power of A."
    )
    with style.sheet(11.9, tall, title, note, left=left, top=0.8, bottom=0.6) as page:
        for index, name in enumerate(names):
            axes = page.axes(left + index * (panel + 0.4), panel, tall)
            axes.loglog()
            for delta, look in zip(deltas, looks.values(), strict=False):
                rows = (table["prior"] == name) & (table["delta"] == delta)
                _line(axes, table["arms"][rows], table["tasks"][rows], "", look)
            rows = (table["prior"] == name) & (table["delta"] == 0.1)
            arms, tasks = table["arms"][rows], table["tasks"][rows]
            _line(axes, arms, table["certified"][rows], "", GAP)
            power = 4 if name.endswith("unknown") else 2
            axes.plot(arms, 0.4 * tasks[0] * (arms / arms[0]) ** power, **style.REFERENCE)
            at = (float(arms[1]), float(0.4 * tasks[0] * (arms[1] / arms[0]) ** power))
            style.write(axes, "A⁴" if power == 4 else "A²", at, (6, -10), fontsize=8)
            axes.set_ylim(100.0, 1e10)
            _plain_ticks(axes, arms.tolist())
            axes.set_yticks(list(MANY), list(MANY.values()))
            axes.set(title=name, xlabel="arms", ylabel="" if index else "tasks")
            axes.tick_params(labelleft=index == 0)
        _legend(axes, looks)
    return page.picture


def gaps_over_draws(table: Table) -> style.Picture:
    """The same as :func:`gaps` against the number of draws k."""
    note = "2,000 arms, 40 pulls, ε = 0.00025. Whiskers: simulation, ±2 standard errors."
    return _gaps(table, "k", "posterior draws k", note)


def gaps(table: Table) -> style.Picture:
    """What the wrong prior costs on the instance of the lower bound, between the bounds."""
    note = "2,000 arms, kHε = 0.04. Whiskers: simulation, ±2 standard errors."
    return _gaps(table, "pulls", "pulls in a task", note)


def _gaps(table: Table, over: str, label: str, note: str) -> style.Picture:
    with style.sheet(6.8, 2.64, COST, note, left=0.75, top=0.72, bottom=0.6) as page:
        axes = page.axes(0.75, 3.95, 2.64)
        ends = _cost(axes, table, over)
        axes.set(xlabel=label, ylabel="reward lost in a task")
        style.label_ends(axes, ends)
    return page.picture


def rates_of_growth(table: Table) -> style.Picture:
    """Cost of a wrong prior and its bounds, against the horizon and against the distance."""
    left, panel, tall = 0.85, 3.3, 2.9
    by_horizon, by_distance = (
        {name: column[table["over"] == over] for name, column in table.items()}
        for over in ("H", "eps")
    )
    eps, pulls = float(by_horizon["eps"][0]), int(by_distance["pulls"][0])
    note = (
        "The (N + 1)-arm instance, Thompson sampling. Exact: |R(p, alg(p)) − R(p, alg(q))|, where "
        "ε is the total variation of p and q. Whiskers: simulation, ±2 standard errors."
    )
    title = "The cost of a wrong prior grows as H² and as ε"
    with style.sheet(10.4, tall, title, note, left=left, top=0.84, bottom=0.6) as page:
        panels = (
            (by_horizon, "pulls", "pulls H in a task", f"ε = {eps:g}", 2),
            (by_distance, "eps", "distance ε of the priors", f"H = {pulls}", 1),
        )
        for index, (rows, over, label, fixed, power) in enumerate(panels):
            axes = page.axes(left + index * (panel + 0.75), panel, tall)
            ends = _cost(axes, rows, over)
            x, low = rows[over], 0.35 * float(rows["theorem"][0])
            guide = low * (x / x[0]) ** power
            axes.plot(x, guide, **style.REFERENCE)
            at = (float(x[2]), float(guide[2]))
            style.write(axes, f"slope {power}", at, (6, -12), fontsize=8)
            axes.set(title=fixed, xlabel=label, ylabel="" if index else "reward lost in a task")
            if index == 1:
                style.label_ends(axes, ends)
    return page.picture


def _cost(axes: style.Axes, table: Table, over: str) -> list[style.EndLabel]:
    """Draw the bounds, the exact cost between them and the simulated one."""
    shown = {
        "upper": "upper bound",
        "exact": "exact",
        "improved": "lower bound, sharper",
        "theorem": "lower bound, printed",
    }
    axes.loglog()
    ends = []
    for index, (column, name) in enumerate(shown.items()):
        rows = table[column] > 0
        ends.append(_line(axes, table[over][rows], table[column][rows], name, style.look(index)))
    bars: Any = {"fmt": "none", "zorder": 4, **style.WHISKERS}
    axes.errorbar(table[over], table["measured"], 2 * table["std_error"], **bars)
    _plain_ticks(axes, table[over].tolist())
    return [each for each in ends if np.isfinite(each.y)]
