"""The figure: time of a pull by arms and by pulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.files import replace_file
from priorwise.figures.style import INK, look, new_figure, style

TITLES = {"arms": "By arms, 10 pulls", "pulls": "By pulls, 6 arms"}


def draw(numbers: dict[str, Any], path: Path) -> None:
    """Draw the growth section's curves, both axes logarithmic, names at the ends of the lines."""
    with style():
        figure = new_figure(9.0, 3.8)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (axis, title) in zip(panels, TITLES.items(), strict=True):
            sizes = numbers[axis]["sizes"]
            for index, (name, ns) in enumerate(numbers[axis]["ns_per_pull"].items()):
                colour, marker = look(index)
                axes.loglog(sizes, ns, color=colour, marker=marker)
                axes.annotate(
                    name,
                    (sizes[-1], ns[-1]),
                    xytext=(7, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                    annotation_clip=False,
                )
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.minorticks_off()
            axes.set(title=title, xlabel=axis)
            axes.tick_params(labelleft=True)
        panels[0].set_ylabel("ns per pull")
        figure.text(
            0.075,
            0.955,
            "Thompson sampling, compiled engine, one thread: time of one pull",
            fontsize=10,
            color=INK,
            va="center",
        )
        figure.subplots_adjust(left=0.075, right=0.885, top=0.82, bottom=0.15, wspace=0.46)
        replace_file(
            path,
            lambda temporary: figure.savefig(temporary, format=path.suffix.lstrip(".") or "png"),
        )
