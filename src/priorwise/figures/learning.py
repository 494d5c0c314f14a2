"""The figure of learning curves: cumulative average reward by episode. It reads tables and never
simulates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.figures.envelope import CURVES, envelope
from priorwise.figures.style import (
    BAND,
    COLOURS,
    MARKERS,
    EndLabel,
    Picture,
    draw_band,
    label_ends,
    sheet,
)
from priorwise.figures.tables import Table, checked, codes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS: Final = 8  # along a curve
GOLDEN: Final = 0.6180339887498949
OURS: Final = (0, (5, 1.6))  # dashes


@dataclass(frozen=True)
class Look:
    """Colour and marker of an algorithm; hollow markers are look-ahead algorithms, dashes and a
    star those that the paper lacks.
    """

    colour: str
    marker: str
    hollow: bool = False
    ours: bool = False

    @property
    def star(self) -> str:
        """What follows the name."""
        return " *" if self.ours else ""


# A hue and a shape for each role, dark and full with Thompson sampling, light and hollow with the
# knowledge gradient.
KNOWN: Final = {
    "OracleTS": Look(COLOURS[6], "o"),
    "MisTS": Look(COLOURS[1], "s"),
    "MetaTS": Look(COLOURS[0], "^"),
    "MetaTS:full": Look(COLOURS[0], "^"),
    "MetaTS:no-cov": Look(COLOURS[2], "D"),
    "OracleKG": Look(COLOURS[9], "o", hollow=True),
    "MisKG": Look(COLOURS[4], "s", hollow=True),
    "MetaKG": Look(COLOURS[5], "^", hollow=True),
}
SPARE: Final = tuple(COLOURS[index] for index in (3, 7, 8, 5, 4, 2, 9))


def learning_curves(
    curves: Table | Mapping[str, Table], title: str, *, ours: Collection[str] = (), note: str = ""
) -> Picture:
    """Draw the mean over replicates with a band of two standard errors; of several exploration
    lengths, the upper envelope.

    ``curves`` is one table (see ``envelope``) or several by title of their panel, drawn side by
    side. Algorithms named in ``ours`` are not the paper's: dashed, with a star. Returns the content
    of the files, by suffix.
    """
    tables = {
        panel: checked("curves", table, CURVES) for panel, table in panels("curves", curves).items()
    }
    lines = {panel: envelope(table) for panel, table in tables.items()}
    names = {panel: codes(table["algorithm"])[0] for panel, table in lines.items()}
    shown = looks([name for each in names.values() for name in each], ours)
    margin = 0.55 + 0.067 * max(
        len(_ending(name, shown[name], -9.99)) for each in names.values() for name in each
    )
    wide, tall, left, between, top = 3.7, 3.2, 0.72, 0.62, 0.95 if any(tables) else 0.62
    width = left + len(tables) * (wide + margin) + (len(tables) - 1) * between
    said = _note(tables, shown, note)
    with sheet(width, tall, title, said, left=left, top=top, bottom=0.72) as page:
        for place, panel in enumerate(tables):
            axes = page.axes(left + place * (wide + margin + between), wide, tall)
            ends = [
                _line(axes, lines[panel], name, shown[name], index)
                for index, name in enumerate(names[panel])
            ]
            _frame(axes, int(lines[panel]["episode"].max()))
            axes.set(title=panel, xlabel="episode", ylabel="cumulative average reward per episode")
            label_ends(axes, ends)
    return page.picture


def looks(algorithms: Sequence[str], ours: Collection[str] = ()) -> dict[str, Look]:
    """How to draw each algorithm: the paper's always alike, others in the colours that these
    leave.
    """
    names = list(dict.fromkeys(algorithms))
    unknown = sorted(set(ours) - set(names))
    if isinstance(ours, str) or unknown:
        wrong = ours if isinstance(ours, str) else ", ".join(unknown)
        raise ValueError(
            f"ours must be a collection of algorithms of the table ({', '.join(names)}), got "
            f"{wrong}"
        )
    taken = {KNOWN[name].colour for name in names if name in KNOWN}
    free = [colour for colour in SPARE if colour not in taken] or list(SPARE)
    out: dict[str, Look] = {}
    for name in names:
        if name in KNOWN:
            base = KNOWN[name]
        else:
            index = sum(other not in KNOWN for other in out)
            base = Look(free[index % len(free)], MARKERS[(4 + index) % len(MARKERS)])
        out[name] = Look(base.colour, base.marker, base.hollow, name in ours)
    return out


def _line(axes: Axes, lines: Table, name: str, look: Look, index: int) -> EndLabel:
    rows = lines["algorithm"] == name
    episode, mean, wide = (
        lines["episode"][rows],
        lines["mean"][rows],
        BAND * lines["std_error"][rows],
    )
    if np.isfinite(wide).all():
        if episode.size > 1:
            draw_band(axes, episode, mean, wide, look.colour)
        else:
            axes.errorbar(episode, mean, yerr=wide, color=look.colour, linewidth=1.2, capsize=2.5)
    step = max(1, episode.size // MARKS)
    axes.plot(
        episode,
        mean,
        color=look.colour,
        linestyle=OURS if look.ours else "-",
        marker=look.marker,
        markevery=(
            int(step * ((0.3 + index * GOLDEN) % 1.0)),
            step,
        ),  # at other episodes than the rest, to be seen where curves meet
        markersize=3.6,
        markerfacecolor="white" if look.hollow else look.colour,
        linewidth=1.5,
    )
    return EndLabel(
        float(episode[-1]), float(mean[-1]), _ending(name, look, float(mean[-1])), look.colour
    )


def _ending(name: str, look: Look, value: float) -> str:
    return f"{name}{look.star}  {value:.2f}"


def _frame(axes: Axes, last: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(
        MaxNLocator(nbins=6, integer=True, min_n_ticks=1, steps=[1, 2, 2.5, 5, 10])
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(0, last * 1.02)
    axes.set_ylim(*axes.get_ylim())  # final: names are placed by it


def _span(lengths: Sequence[int]) -> str:
    """Numbers in words, with dots for the middle of many."""
    texts = [f"{each:,}" for each in lengths]
    return ", ".join(texts) if len(texts) <= 4 else f"{texts[0]}, {texts[1]}, …, {texts[-1]}"


def _note(tables: Mapping[str, Table], shown: Mapping[str, Look], more: str) -> str:
    replicates = {np.unique(table["replicate"]).size for table in tables.values()}
    over = f" over {replicates.pop()} replicates" if len(replicates) == 1 else ""
    lengths = {
        name: sorted(
            {int(t0) for table in tables.values() for t0 in table["t0"][table["algorithm"] == name]}
        )
        for name in shown
    }
    tuned = [name for name, t0 in lengths.items() if len(t0) > 1]
    parts = [f"Bands: ±{BAND:g} standard errors{over}; numbers: values at the last episode."]
    if tuned:
        spans = {_span(lengths[name]) for name in tuned}
        of = f" of {spans.pop()}" if len(spans) == 1 else ""
        parts.append(
            f"{' and '.join(tuned)}: at each episode the best exploration length T₀{of} (upper "
            "envelope)."
        )
    if any(look.ours for look in shown.values()):
        parts.append("* Dashed: not in the paper.")
    return " ".join([*parts, more] if more else parts)
