"""The figure of a plan under hidden states: steps from left to right, beliefs from top to bottom.
It reads numbers and never plans.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from priorwise.figures.style import COLOURS, FAINT, Picture, sheet, write

WIDE, TALL, LEFT = 6.0, 3.0, 0.5
NAMED: Final = 24  # nodes up to which each has its action's name beside it


def plan_figure(rows: Mapping[str, Any], title: str, how: str) -> Picture:
    """Draw the nodes with their actions, and the outcomes that lead from one to another."""
    node, first = np.unique(rows["node"], return_index=True)
    step, action = rows["step"][first], rows["action"][first]
    names = list(dict.fromkeys(action.tolist()))
    height = np.empty(len(node))
    for each in np.unique(step):
        here = np.flatnonzero(step == each)
        height[here] = -(np.arange(len(here)) - (len(here) - 1) / 2.0)
    shown = ", ".join(dict.fromkeys(rows["observation"].tolist()))
    note = f"{how[0].upper()}{how[1:]}. Lines: {shown}; the more likely, the wider."
    with sheet(LEFT + WIDE + 0.4, TALL, title, note, left=LEFT, top=0.62, bottom=0.6) as page:
        axes = page.axes(LEFT, WIDE, TALL)
        for number, after, chance in zip(
            rows["node"], rows["next"], rows["probability"], strict=True
        ):
            if after:
                ends = [number - 1, after - 1]
                axes.plot(step[ends], height[ends], color=FAINT, linewidth=0.4 + 2.0 * chance)
        for place, name in enumerate(names):
            rows_of = action == name
            colour = COLOURS[place % len(COLOURS)]
            axes.plot(step[rows_of], height[rows_of], "o", color=colour, markersize=7, label=name)
            if len(node) <= NAMED:
                for x, y in zip(step[rows_of], height[rows_of], strict=True):
                    write(axes, name, (x, y), (0, 7), ha="center", fontsize=8, color=colour)
        if len(node) > NAMED:
            axes.legend(frameon=False, fontsize=8)
        axes.set(xlabel="step", xticks=np.unique(step), yticks=[])
        axes.grid(visible=False)
        axes.margins(0.1, 0.2)
    return page.picture
