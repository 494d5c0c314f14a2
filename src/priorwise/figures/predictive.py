"""The figure of a predictive check: where a log lies among those that a prior generates."""

from collections.abc import Mapping

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.figures.style import COLOURS, INK, Picture, sheet

WIDE, TALL, GAP = 2.05, 1.35, 0.35
BETWEEN = 0.75  # inches between rows


def predictive_figure(
    observed: Mapping[str, float],
    drawn: Mapping[str, FloatArray],
    title: str,
    width: float | None = None,
) -> Picture:
    """Draw a histogram of the generated logs for each number, and the log as a line: all
    beside each other, or two by two in a picture of so many inches.
    """
    across, wide = len(observed), WIDE
    if width is not None:
        across, wide = 2, (width - 0.35) / 2 - GAP
    rows = -(-len(observed) // across)
    width = 0.35 + across * (wide + GAP)
    more = (rows - 1) * (TALL + BETWEEN)
    note = "Blue: logs that the prior generates, task by task with as many arms. Orange: the log."
    head = title or "Does the prior generate tasks like the log's?"
    with sheet(width, TALL + more, head, note, left=0.35, top=0.85, bottom=0.75) as page:
        for place, (name, value) in enumerate(observed.items()):
            down, right = divmod(place, across)
            up = (rows - 1 - down) * (TALL + BETWEEN)
            axes = page.axes(0.35 + right * (wide + GAP), wide, TALL, up)
            span = np.append(drawn[name], value)
            bins = np.linspace(span.min(), span.max(), 30).tolist() if np.ptp(span) else 3
            axes.hist(drawn[name], bins=bins, color=COLOURS[0], alpha=0.75)
            axes.axvline(value, color=COLOURS[1], linewidth=2.4)
            axes.set_title(name, fontsize=9.0, color=INK)
            axes.set(yticks=[])
            axes.grid(visible=False)
            axes.locator_params(axis="x", nbins=4)
    return page.picture
