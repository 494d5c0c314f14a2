"""The figure of learning curves: cumulative average reward by episode. It reads tables and never
simulates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.figures import style
from priorwise.figures.envelope import CURVES, envelope
from priorwise.figures.tables import Table, checked, codes, panels

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
    "OracleTS": Look(style.COLOURS[6], "o"),
    "MisTS": Look(style.COLOURS[1], "s"),
    "MetaTS": Look(style.COLOURS[0], "^"),
    "MetaTS:full": Look(style.COLOURS[0], "^"),
    "MetaTS:no-cov": Look(style.COLOURS[2], "D"),
    "OracleKG": Look(style.COLOURS[9], "o", hollow=True),
    "MisKG": Look(style.COLOURS[4], "s", hollow=True),
    "MetaKG": Look(style.COLOURS[5], "^", hollow=True),
}
SPARE: Final = tuple(style.COLOURS[index] for index in (3, 7, 8, 5, 4, 2, 9))


def learning_curves(
    curves: Table | Mapping[str, Table], title: str, *, ours: Collection[str] = (), note: str = ""
) -> style.Picture:
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
    margin = 0.55 + 0.067 * max(len(_ending(name, look, -9.99)) for name, look in shown.items())
    wide, tall, left, between, top = 3.7, 3.2, 0.72, 0.62, 0.95 if any(tables) else 0.62
    width = left + len(tables) * (wide + margin) + (len(tables) - 1) * between
    said = _note(tables, shown, note)
    with style.sheet(width, tall, title, said, left=left, top=top, bottom=0.72) as page:
        for place, panel in enumerate(tables):
            axes = page.axes(left + place * (wide + margin + between), wide, tall)
            rows = enumerate(names[panel])
            ends = [_line(axes, lines[panel], name, shown[name], row) for row, name in rows]
            style.whole_numbers(axes.xaxis, 6, [1, 2, 2.5, 5, 10])
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axes.set_xlim(0, int(lines[panel]["episode"].max()) * 1.02)
            axes.set_ylim(*axes.get_ylim())  # final: names are placed by it
            axes.set(title=panel, xlabel="episode", ylabel="cumulative average reward per episode")
            style.label_ends(axes, ends)
    return page.picture


def looks(algorithms: Sequence[str], ours: Collection[str] = ()) -> dict[str, Look]:
    """How to draw each algorithm: the paper's always alike, others in the colours left."""
    names = list(dict.fromkeys(algorithms))
    unknown = sorted(set(ours) - set(names))
    if isinstance(ours, str) or unknown:
        wrong = ours if isinstance(ours, str) else ", ".join(unknown)
        raise ArgumentError(
            "ours",
            f"must be a collection of algorithms of the table ({', '.join(names)})",
            got=wrong,
        )
    taken = {KNOWN[name].colour for name in names if name in KNOWN}
    free = [colour for colour in SPARE if colour not in taken] or list(SPARE)
    out: dict[str, Look] = {}
    for name in names:
        if name in KNOWN:
            base = KNOWN[name]
        else:
            index = sum(other not in KNOWN for other in out)
            base = Look(free[index % len(free)], style.MARKERS[(4 + index) % len(style.MARKERS)])
        out[name] = Look(base.colour, base.marker, base.hollow, name in ours)
    return out


def _line(axes: style.Axes, lines: Table, name: str, look: Look, index: int) -> style.EndLabel:
    rows = lines["algorithm"] == name
    episode = lines["episode"][rows]
    mean = lines["mean"][rows]
    wide = style.BAND * lines["std_error"][rows]
    if np.isfinite(wide).all():
        if episode.size > 1:
            style.draw_band(axes, episode, mean, wide, look.colour)
        else:
            axes.errorbar(episode, mean, yerr=wide, color=look.colour, linewidth=1.2, capsize=2.5)
    step = max(1, episode.size // MARKS)
    # markers at other episodes than the rest, to be seen where curves meet
    first = int(step * ((0.3 + index * GOLDEN) % 1.0))
    marks: Any = {"marker": look.marker, "markersize": 3.6, "markevery": (first, step)}
    marks["markerfacecolor"] = "white" if look.hollow else look.colour
    dashes = OURS if look.ours else "-"
    axes.plot(episode, mean, color=look.colour, linestyle=dashes, linewidth=1.5, **marks)
    end = float(mean[-1])
    return style.EndLabel(float(episode[-1]), end, _ending(name, look, end), look.colour)


def _ending(name: str, look: Look, value: float) -> str:
    return f"{name}{look.star}  {value:.2f}"


def _span(lengths: Sequence[int]) -> str:
    """Numbers in words, with dots for the middle of many."""
    texts = [f"{each:,}" for each in lengths]
    return ", ".join(texts) if len(texts) <= 4 else f"{texts[0]}, {texts[1]}, …, {texts[-1]}"


def _note(tables: Mapping[str, Table], shown: Mapping[str, Look], more: str) -> str:
    replicates = {np.unique(table["replicate"]).size for table in tables.values()}
    over = f" over {replicates.pop()} replicates" if len(replicates) == 1 else ""
    algorithm, t0 = (
        np.concatenate([table[column] for table in tables.values()])
        for column in ("algorithm", "t0")
    )
    lengths = {name: np.unique(t0[algorithm == name]).tolist() for name in shown}
    tuned = [name for name in shown if len(lengths[name]) > 1]
    parts = [f"Bands: ±{style.BAND:g} standard errors{over}; numbers: values at the last episode."]
    if tuned:
        spans = {_span(lengths[name]) for name in tuned}
        of = f" of {spans.pop()}" if len(spans) == 1 else ""
        best = f"at each episode the best exploration length T₀{of} (upper envelope)."
        parts.append(f"{' and '.join(tuned)}: {best}")
    return " ".join(parts) + ending(shown, more)


def ending(shown: Mapping[str, Look], more: str) -> str:
    """What notes end with: what a star means, and what else there is to say."""
    dashed = " * Dashed: not in the paper." if any(look.ours for look in shown.values()) else ""
    return f"{dashed} {more}".rstrip()
