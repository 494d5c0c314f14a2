"""The figure of meta-simulations: average reward so far by episode, and how far each is short of
another. It never simulates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from priorwise.core.types import FloatArray
from priorwise.figures.curves import BAND, draw_line, number_places
from priorwise.figures.style import (
    FAINT,
    NOTE_LINE,
    Picture,
    label_ends,
    label_room,
    look,
    new_figure,
    note_lines,
    render,
    short_label,
    style,
    write_note,
    write_title,
)

LEFT, BETWEEN, PANEL, TALL, TOP = 0.75, 0.85, 3.9, 3.1, 0.85  # inches


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
    lines = note_lines(text, width - LEFT - 0.1)
    bottom = 0.7 + NOTE_LINE * len(lines)
    height = TOP + TALL + bottom
    looks = {name: look(index) for index, name in enumerate(averages)}
    with style():
        figure = new_figure(width, height)
        for index, (panel, (curves, unit)) in enumerate(panels.items()):
            x = LEFT + index * (PANEL + margin + BETWEEN)
            axes = figure.add_axes((x / width, bottom / height, PANEL / width, TALL / height))
            ends = [
                draw_line(axes, name, each.mean, each.std_error, looks[name])
                for name, each in curves.items()
            ]
            if index:
                axes.axhline(0.0, color=FAINT, linewidth=0.9, linestyle=(0, (3, 2)))
            number_places(axes, max(each.mean.size for each in curves.values()))
            label_ends(axes, [each for each in ends if each.text])
            axes.set(title=panel, xlabel="episode", ylabel=unit)
        write_title(figure, title, LEFT)
        write_note(figure, lines, LEFT)
        return render(figure)
