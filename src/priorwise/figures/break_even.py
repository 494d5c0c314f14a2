"""The figure of a break-even: the advantage over the fallback as the prior goes wrong. It reads
numbers and never simulates.
"""

from __future__ import annotations

import math
from typing import Final

from priorwise.core.types import FloatArray
from priorwise.figures.style import COLOURS, INK, Picture, new_figure, render, style

BAND: Final = 2.0  # standard errors


def break_even_figure(
    scales: FloatArray,
    advantages: FloatArray,
    std_errors: FloatArray,
    crossing: float | None,
    between: tuple[float, float],
    title: str,
    fallback: str,
) -> Picture:
    """Draw the curve, the level of the fallback, and where they cross."""
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_axes((0.12, 0.15, 0.83, 0.68))
        wide = BAND * std_errors
        axes.fill_between(
            scales, advantages - wide, advantages + wide, color=COLOURS[0], alpha=0.18, linewidth=0
        )
        axes.plot(scales, advantages, color=COLOURS[0], marker="o", markersize=3.5)
        axes.axhline(0.0, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.set_xlim(float(scales[0]), float(scales[-1]))
        axes.annotate(
            f"{fallback}",
            (0.99, 0.0),
            (0, 4),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        if crossing is not None:
            low, high = between
            axes.axvspan(
                low, min(high, float(scales[-1])), color=COLOURS[1], alpha=0.12, linewidth=0
            )
            axes.plot([crossing], [0.0], marker="o", color=COLOURS[1], markersize=7, zorder=4)
            right = crossing > 0.6 * float(scales[-1])
            axes.annotate(
                f"break-even {crossing:.3g}",
                (crossing, 0.0),
                (-8 if right else 8, -14),
                textcoords="offset points",
                ha="right" if right else "left",
                fontsize=9,
                color=COLOURS[1],
            )
        axes.set(xlabel="how far the held prior is off", ylabel="reward above the fallback")
        figure.text(0.02, 0.94, title, fontsize=10.5, weight="bold", va="center")
        known = (
            ""
            if crossing is None or not math.isfinite(between[1])
            else " Shaded: where the break-even may lie."
        )
        figure.text(
            0.12, 0.02, f"Band: ±{BAND:g} standard errors.{known}", fontsize=7.5, color="#666666"
        )
        return render(figure)
