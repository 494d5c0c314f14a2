"""The figure of meta-simulations: average reward so far by episode, and how far each is short of
another. It never simulates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from priorwise.core.types import FloatArray
from priorwise.figures.curves import draw_line, number_places
from priorwise.figures.style import (
    BAND,
    DASHES,
    FAINT,
    Picture,
    label_ends,
    label_room,
    look,
    sheet,
    short_label,
)

LEFT, BETWEEN, PANEL, TALL = 0.75, 0.85, 3.9, 3.1  # inches


@dataclass(frozen=True, eq=False)
class Averages:
    """Means over replicates up to each episode, ``(episode,)``, with their standard errors."""

    mean: FloatArray
    std_error: FloatArray


def episode_curves(
    averages: Mapping[str, Averages], short: Mapping[str, Averages], reference: str, title: str
) -> Picture:
    """Draw the averages; where there is a reference also how far the others are ``short`` of it, in
    pairs.
    """
    margin = label_room(averages)
    panels = {"Average reward so far": (averages, "reward per episode")}
    if short:
        panels[f"Short of {short_label(reference)}"] = (short, "reward per episode, paired")
    width = LEFT + len(panels) * (PANEL + margin) + (len(panels) - 1) * BETWEEN
    text = (
        f"Averages over the episodes up to each one. Bands: ±{BAND:g} standard errors over "
        "replicates."
    )
    looks = {name: look(index) for index, name in enumerate(averages)}
    with sheet(width, TALL, title, text, left=LEFT, top=0.85, bottom=0.7) as page:
        for index, (panel, (curves, unit)) in enumerate(panels.items()):
            axes = page.axes(LEFT + index * (PANEL + margin + BETWEEN), PANEL, TALL)
            ends = [
                draw_line(axes, name, each.mean, each.std_error, looks[name])
                for name, each in curves.items()
            ]
            if index:
                axes.axhline(0.0, color=FAINT, linewidth=0.9, linestyle=DASHES)
            number_places(axes, max(each.mean.size for each in curves.values()))
            label_ends(axes, ends)
            axes.set(title=panel, xlabel="episode", ylabel=unit)
    return page.picture
