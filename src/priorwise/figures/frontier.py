"""The figure of a recommendation: what policies earn against what a wrong prior costs them. It
reads numbers and never simulates.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from priorwise.core.estimates import Estimate
from priorwise.figures.style import (
    BAND,
    COLOURS,
    FAINT,
    REFERENCE,
    EndLabel,
    Picture,
    label_ends,
    label_room,
    sheet,
)

LEFT: Final = 0.85
WIDE, TALL = 4.4, 3.4


class Place(NamedTuple):
    """A policy: what a wrong prior costs it, what it earns, the standard error of its distance to
    the chosen one, and whether it is that.
    """

    name: str
    loss: Estimate
    reward: Estimate
    gap_error: float
    chosen: bool


def frontier_figure(places: Sequence[Place], title: str) -> Picture:
    """Draw a dot for each policy, names at the right."""
    note = (
        f"Up: earns more. Right: hangs more on the prior being right. Bars: ±{BAND:g} standard "
        "errors, upwards of the difference from the recommended policy. A/B tests and uniform "
        "play use no learned prior."
    )
    names = [f"{each.name} (recommended)" if each.chosen else each.name for each in places]
    width = LEFT + WIDE + label_room(names)
    with sheet(width, TALL, title, note, left=LEFT, top=0.55, bottom=0.72) as page:
        axes = page.axes(LEFT, WIDE, TALL)
        labels = []
        for name, each in zip(names, places, strict=True):
            colour = COLOURS[1] if each.chosen else COLOURS[0]
            look: Any = {"color": colour, "ecolor": FAINT, "elinewidth": 0.9, "zorder": 3}
            x, y = each.loss.mean, each.reward.mean
            across = BAND * each.loss.std_error
            marker: Any = {"fmt": "o", "markersize": 8 if each.chosen else 5}
            axes.errorbar(x, y, yerr=BAND * each.gap_error, xerr=across, **marker, **look)
            labels.append(EndLabel(x, y, name, colour))
        axes.axvline(0.0, **REFERENCE)
        axes.margins(0.08)
        axes.locator_params(axis="x", nbins=5)
        axes.set(xlabel="lost by believing the learned prior, reward of a task")
        axes.set_ylabel("earned, reward of a task")
        label_ends(axes, labels)
    return page.picture
