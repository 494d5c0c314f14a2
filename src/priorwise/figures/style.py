"""One look for all figures: colours that colour-blind readers distinguish, names at the ends of
lines, whole files as bytes.

Matplotlib is imported when a figure is made, never before.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError
from priorwise.core.files import file_path, write_whole
from priorwise.core.types import FloatArray

if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    Axes = matplotlib.axes.Axes

# Okabe and Ito (2008), without yellow, which is too pale on white
SEVEN: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
COLOURS: Final = (*SEVEN, "#882255", "#999933", "#777777")  # wine, olive and grey, for more
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
INK: Final = "#333333"
FAINT: Final = "#8a8a8a"
TITLE_SIZE: Final = 11.0
NOTE: Final = "#666666"
NOTE_SIZE: Final = 8.0
NOTE_LINE: Final = 0.155  # inches
BAND: Final = 2.0  # standard errors on each side
DASHES: Final = (0, (3, 2))
REFERENCE: Final[Any] = {"color": INK, "linewidth": 0.9, "linestyle": DASHES}  # to compare with
WHISKERS: Final[Any] = {"ecolor": INK, "elinewidth": 1.0, "capsize": 2.5}
LABEL_SIZE: Final = 8.5
LINE_SPACING: Final = 1.3
LONGEST_LABEL: Final = 80
"""Characters of a name in a figure; the middle of a longer one is left out."""

LABEL_SHADE: Final = 0.8
"""Names are written darker than their lines, to be read."""

SETTINGS: Final[Any] = {
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with Matplotlib: the same figure on every machine
    "font.size": 9.0,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "savefig.dpi": 200,
    "svg.hashsalt": "priorwise",  # with no date either: the same numbers give the same bytes
    "text.color": INK,
    "text.parse_math": False,  # a name may have dollars
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw and render inside this."""
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of so many inches, apart from any interactive session."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


@final
class Picture(dict[str, bytes]):
    """A finished figure: content of its files by suffix, ``png`` and ``svg``. Notebooks show it."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file that the suffix of ``path`` asks for, and return where; it appears only
        when whole.
        """
        place = file_path(path)
        suffix = place.suffix.removeprefix(".").lower()
        if suffix not in self:
            raise ArgumentError(
                "path", f"must end in {' or '.join(f'.{each}' for each in self)}", got=str(path)
            )
        write_whole(place, self[suffix])
        return place

    def __repr__(self) -> str:
        """Say what it holds, not all its bytes."""
        sizes = (f"{suffix}: {len(content):,} bytes" for suffix, content in self.items())
        return f"Picture({', '.join(sizes)})"

    def _repr_png_(self) -> bytes:
        return self["png"]


def render(figure: Figure, suffixes: Sequence[str] = ("png", "svg")) -> Picture:
    """Return the figure as the content of files, by suffix."""
    out = Picture()
    for suffix in suffixes:
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, metadata={"Date": None} if suffix == "svg" else None)
        out[suffix] = buffer.getvalue()
    return out


@final
class Sheet:
    """A figure laid out in inches: panels between a title at the head and a note at the foot."""

    def __init__(self, figure: Figure, foot: float) -> None:
        """Panels stand ``foot`` inches above the lower edge."""
        self.figure, self.foot, self.picture = figure, foot, Picture()

    def axes(self, left: float, width: float, height: float, up: float = 0.0) -> Axes:
        """Add a panel ``left`` inches from the edge, and ``up`` inches above the lowest place."""
        across, down = self.figure.get_size_inches()
        box = (left / across, (self.foot + up) / down, width / across, height / down)
        return self.figure.add_axes(box)


@contextmanager
def sheet(
    width: float,
    tall: float,
    title: str,
    note: str,
    *,
    left: float,
    top: float,
    bottom: float,
    title_left: float | None = None,
    suffixes: Sequence[str] = ("png", "svg"),
) -> Iterator[Sheet]:
    """Draw panels ``tall`` inches high inside this; afterwards ``picture`` is the finished figure.

    ``top`` and ``bottom`` are the inches above and below them; the lines of the note are added to
    the latter. Title and note begin ``left`` inches from the edge.
    """
    lines = note_lines(note, width - left - 0.1)
    bottom += NOTE_LINE * len(lines)
    height = top + tall + bottom
    with style():
        page = Sheet(new_figure(width, height), bottom)
        yield page
        start = left if title_left is None else title_left
        # as large as it fits
        size = min(TITLE_SIZE, 72 * (width - start - 0.1) / (0.58 * max(len(title), 1)))
        text = page.figure.text
        text(start / width, 1 - 0.28 / height, title, fontsize=size, va="center")
        look: Any = {"fontsize": NOTE_SIZE, "color": NOTE, "va": "center"}
        for index, line in enumerate(reversed(lines)):
            text(left / width, (0.16 + NOTE_LINE * index) / height, line, **look)
        page.picture = render(page.figure, suffixes)


def note_lines(text: str, inches: float) -> list[str]:
    """Break a note into lines that fit so many inches."""
    return textwrap.wrap(text, max(20, int(inches / 0.058)), break_on_hyphens=False)


def write(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **look: Any
) -> None:
    """Write a text some points away from a place."""
    shown: Any = {"textcoords": "offset points", "annotation_clip": False, **look}
    axes.annotate(text, at, offset, **shown)


def name_rows(axes: Axes, names: Sequence[str], places: Sequence[float]) -> None:
    """Let each row of a panel have a name, and only values a grid."""
    axes.set_yticks(places, names)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def number_plainly(axis: Axis) -> None:
    """Write the numbers of a logarithmic axis as they are, down to a millionth: powers would need
    mathematical text, which is off because a name may have dollars.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def written(value: float, _: object) -> str:
        return f"{value:.6f}".rstrip("0") if 9e-7 < value < 1e-4 else f"{value:,g}"

    axis.set_major_formatter(FuncFormatter(written))
    axis.set_minor_formatter(NullFormatter())


def draw_band(axes: Axes, x: NDArray[Any], mean: FloatArray, wide: FloatArray, colour: str) -> None:
    """Shade what lies within ``wide`` of a curve."""
    axes.fill_between(x, mean - wide, mean + wide, color=colour, alpha=0.18, linewidth=0)


def whole_numbers(axis: Axis, most: int, steps: Sequence[float]) -> None:
    """Number an axis at no more than so many places, at multiples of these steps."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1, steps=steps))


def look(index: int) -> tuple[str, str]:
    """Colour and marker of the index-th series; no two of the first 70 share both."""
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


def label_room(names: Iterable[str]) -> float:
    """Inches for names beside a panel."""
    return 0.35 + 0.067 * min(max(map(len, names)), LONGEST_LABEL)


def short_label(name: str) -> str:
    """Return a name, without its middle where it is too long for a figure."""
    half = LONGEST_LABEL // 2 - 1
    return name if len(name) <= LONGEST_LABEL else f"{name[:half]}…{name[-half:]}"


class EndLabel(NamedTuple):
    """A name to write at the end of a line."""

    x: float
    y: float
    text: str
    colour: str


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write each name to the right of the axes, at the height of its line or as near as the others
    let it.

    Call it when limits and position of the axes are final.
    """
    from matplotlib.colors import to_rgb

    forth, back = (np.log, np.exp) if axes.get_yscale() == "log" else (np.asarray, np.asarray)
    low, high = map(float, forth(axes.get_ylim()))
    figure = axes.get_figure()
    assert figure is not None
    inches = axes.get_position().height * figure.get_figheight()  # type: ignore[union-attr]
    gap = LABEL_SIZE * LINE_SPACING / 72 / inches * (high - low)
    ordered = sorted((each for each in labels if each.text), key=lambda label: label.y)
    heights = spread([float(forth(each.y)) for each in ordered], gap, low, high)
    for label, height in zip(ordered, heights, strict=True):
        line = {"arrowstyle": "-", "linewidth": 0.7, "color": label.colour}
        line |= {"relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4}
        dark = tuple(LABEL_SHADE * part for part in to_rgb(label.colour))
        look: Any = {"va": "center", "fontsize": LABEL_SIZE, "color": dark, "arrowprops": line}
        place: Any = {"xytext": (1.05, float(back(height))), "annotation_clip": False}
        place["textcoords"] = axes.get_yaxis_transform()
        axes.annotate(short_label(label.text), (label.x, label.y), **place, **look)


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least ``gap`` apart and nearest to ascending ``heights``, between ``low`` and
    ``high`` if there is room.

    Less ``gap`` times the index, the positions must ascend: isotonic regression, by pooling
    neighbours that do not.
    """
    pools: list[tuple[float, int]] = []
    for index, height in enumerate(heights):
        total, count = height - index * gap, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, size = pools.pop()
            total, count = total + before, count + size
        pools.append((total, count))
    free = [total / count for total, count in pools for _ in range(count)]
    room = max(high - low - gap * (len(heights) - 1), 0.0)
    return list(np.clip(free, low, low + room) + gap * np.arange(len(heights)))
