"""The figure of a break-even: the advantage over the fallback as the prior goes wrong. It reads
numbers and never simulates.
"""

import math
from collections.abc import Mapping
from typing import Any

from priorwise.figures.style import BAND, COLOURS, REFERENCE, Picture, draw_band, sheet, write


def break_even_figure(
    curve: Mapping[str, Any],
    crossing: float | None,
    between: tuple[float, float],
    title: str,
    fallback: str,
) -> Picture:
    """Draw the curve, the level of the fallback, and where they cross."""
    scales, advantages = curve["scale"], curve["advantage"]
    note = f"Band: ±{BAND:g} standard errors."
    if crossing is not None and math.isfinite(between[1]):
        note += " Shaded: where the break-even may lie."
    last = float(scales[-1])
    with sheet(6.4, 2.7, title, note, left=0.77, top=0.62, bottom=0.6) as page:
        axes = page.axes(0.77, 5.31, 2.7)
        draw_band(axes, scales, advantages, BAND * curve["std_error"], COLOURS[0])
        axes.plot(scales, advantages, color=COLOURS[0], marker="o", markersize=3.5)
        axes.axhline(0.0, **REFERENCE)
        axes.set_xlim(float(scales[0]), last)
        across = axes.get_yaxis_transform()
        write(axes, fallback, (0.99, 0.0), (0, 4), xycoords=across, ha="right", fontsize=8)
        if crossing is not None:
            low, high = between
            axes.axvspan(low, min(high, last), color=COLOURS[1], alpha=0.12, linewidth=0)
            axes.plot([crossing], [0.0], marker="o", color=COLOURS[1], markersize=7, zorder=4)
            side, ha = (-8, "right") if crossing > 0.6 * last else (8, "left")
            text = f"break-even {crossing:.3g}"
            write(axes, text, (crossing, 0.0), (side, -14), ha=ha, fontsize=9, color=COLOURS[1])
        axes.set(xlabel="how far the believed prior is off", ylabel="reward above the fallback")
    return page.picture
