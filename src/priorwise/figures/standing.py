"""Where a task stands: means of its arms with 95 % intervals, and how likely each is the best."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from priorwise.core.estimates import percent
from priorwise.core.types import FloatArray
from priorwise.figures.style import COLOURS, INK, Picture, name_rows, sheet, short_label, write

TALL: Final = 0.34  # inches of an arm
LEFT: Final = 2.0
RIGHT: Final = 1.5


def standing_figure(
    arms: Sequence[str],
    means: FloatArray,
    low: FloatArray,
    high: FloatArray,
    best: FloatArray,
    leader: str,
    title: str,
    note: str,
) -> Picture:
    """Draw an interval for each arm, the best mean on top; the leader's is thick."""
    order = np.argsort(-means, kind="stable")
    tall = max(TALL * len(arms), 0.9)
    with sheet(7.2, tall, title, note, left=LEFT, top=0.62, bottom=0.6, title_left=0.12) as page:
        axes = page.axes(LEFT, 7.2 - LEFT - RIGHT, tall)
        for row, arm in enumerate(order.tolist()):
            ahead = arms[arm] == leader
            colour = COLOURS[0] if ahead else INK
            wide = 2.6 if ahead else 1.2
            axes.plot([low[arm], high[arm]], [row, row], color=colour, linewidth=wide)
            axes.plot([means[arm]], [row], "D" if ahead else "o", color=colour, markersize=5.5)
            text = f"best with {percent(float(best[arm]))}"
            beside = axes.get_yaxis_transform()
            look: Any = {"ha": "left", "va": "center", "fontsize": 8, "xycoords": beside}
            write(axes, text, (1.0, row), (6, 0), **look)
        name_rows(axes, [short_label(arms[int(arm)]) for arm in order], range(len(arms)))
        axes.set_ylim(len(arms) - 0.5, -0.5)
        axes.set(xlabel="mean reward of a pull, with 95 % intervals")
    return page.picture
