"""The figure of a certificate: losses under plausible truths, as dots. It reads numbers and never
simulates.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.figures.style import COLOURS, REFERENCE, Picture, name_rows, sheet, write

TALL: Final = 0.75  # inches of a row
LEFT: Final = 2.15


def certificate_figure(
    rows: Mapping[str, FloatArray],
    expected: float,
    upper: float,
    bound: tuple[float, bool] | None,
    title: str,
) -> Picture:
    """Draw a row of dots for each kind of error, the first with its mean and 95 %."""
    note = "A dot: one truth that the data leave plausible. Right of 0 is lost."
    if bound is not None:
        vacuous = ", which says nothing" if bound[1] else ""
        note += f" The theorem's bound: {bound[0]:.3g}{vacuous}."
    tall = TALL * len(rows)
    with sheet(7.2, tall, title, note, left=LEFT, top=0.62, bottom=0.6, title_left=0.12) as page:
        axes = page.axes(LEFT, 7.2 - LEFT - 0.3, tall)
        for row, values in enumerate(rows.values()):
            # heights in an order that has nothing to do with the values
            heights = row + 0.5 * (np.arange(len(values)) * 0.618034 % 1.0 - 0.5)
            look: Any = {"color": COLOURS[min(row, 2)], "alpha": 0.55, "markersize": 3.2}
            axes.plot(values, heights, "o", markeredgewidth=0.0, **look)
        axes.axvline(0.0, **REFERENCE)
        for value, text, side in ((expected, "mean", "right"), (upper, "95 %", "left")):
            axes.plot([value, value], [-0.36, 0.36], color=COLOURS[6], linewidth=1.8, zorder=4)
            shift = -3 if side == "right" else 3
            label = f"{text} {value:.3g}"
            write(axes, label, (value, -0.34), (shift, -1), ha=side, va="bottom", fontsize=8)
        name_rows(axes, list(rows), range(len(rows)))
        axes.set_ylim(len(rows) - 0.5, -0.62)
        axes.set(xlabel="reward of a task")
    return page.picture
