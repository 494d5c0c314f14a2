"""The figure of a diagnosis: how many particles count, pull by pull."""

from collections.abc import Mapping
from typing import Any

from priorwise.figures import style

WIDE, TALL, LEFT = 4.2, 2.7, 0.75


def effective_sizes(
    table: Mapping[str, Any], particles: int, fewest: int, title: str
) -> style.Picture:
    """Draw the median, the 5 % quantile and the least effective size over tasks, beside the number
    of particles and the fewest that will do.
    """
    names = {"median": "median", "low": "5 % of tasks below", "least": "least"}
    width = LEFT + WIDE + style.label_room([*names.values(), "all particles"])
    note = f"Below {fewest} a posterior mean is off by more than a tenth of a standard deviation."
    with style.sheet(width, TALL, title, note, left=LEFT, top=0.62, bottom=0.6) as page:
        axes = page.axes(LEFT, WIDE, TALL)
        axes.set_yscale("log")
        steps, ends = table["step"], []
        for index, (column, name) in enumerate(names.items()):
            colour, marker = style.look(index)
            axes.plot(steps, table[column], color=colour, marker=marker, markersize=3.5)
            ends.append(style.EndLabel(steps[-1], float(table[column][-1]), name, colour))
        for height, name in ((particles, "all particles"), (fewest, "fewest")):
            axes.axhline(height, **style.REFERENCE)
            ends.append(style.EndLabel(steps[-1], float(height), name, style.INK))
        axes.set(xlabel="pulls", ylabel="effective particles")
        style.number_plainly(axes.yaxis)
        style.whole_numbers(axes.xaxis, 10, [1, 2, 5, 10])
        style.label_ends(axes, ends)
    return page.picture
