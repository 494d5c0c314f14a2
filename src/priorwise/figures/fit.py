"""The figure of a fitted prior: where it puts the mean reward of each arm, and which arms move
together. It reads priors and never simulates a task.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from priorwise.core.frames import Table
from priorwise.core.protocols import MeanBelief, Prior, QuantileBelief
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import FloatArray
from priorwise.figures.heat_maps import heat
from priorwise.figures.style import (
    COLOURS,
    INK,
    Picture,
    name_rows,
    sheet,
    short_label,
    write,
)

DRAWS: Final = 4000
LEVELS: Final = (0.05, 0.25, 0.75, 0.95)
PLAUSIBLE: Final = 20
"""Plausible priors that are drawn beside the fitted one."""
LABELLED: Final = 12
"""Rows up to which numbers are written."""
CELL: Final = 0.46
"""Inches of a column of correlations."""
MOST_CELLS: Final = 40
"""Arms up to which correlations are drawn."""


@runtime_checkable
class ManySizedPrior(Protocol):
    """A prior for tasks with any number of arms."""

    def for_arms(self, arms: int) -> Prior:
        """Return the prior of a task with this many arms."""
        ...


@runtime_checkable
class CoefficientPrior(Protocol):
    """A prior whose arms' means depend on contexts through coefficients."""

    @property
    def coefficients(self) -> Prior:
        """Law of the coefficients, as if they were arms."""
        ...


def fit_figure(prior: Any, plausible: Sequence[Any], title: str, lines: float = 7.2) -> Picture:
    """Draw a line for each arm: 90 % and 50 % of its law and its mean, with those of plausible
    priors behind, and beside them the correlations of the arms of one task where these move
    together. The lines take ``lines`` inches.
    """
    names, axis = _names(prior)
    fitted = _summary(prior)
    others = np.array([_summary(each) for each in plausible])  # (prior, arm, number)
    rows, left = len(names), 0.35 + 0.075 * max(map(len, names))
    tall = rows * (0.78 if rows <= LABELLED else 0.34)
    text = "Line: the middle 90 % of tasks, thick 50 %. Dot: mean."
    if len(others):
        text += f" Orange: the same for {len(others)} priors that the data leave plausible."
    together, note = _correlations(prior)
    text += note
    cell = CELL if rows <= LABELLED else 0.2
    beside = 0.0 if together is None else cell * rows + 0.25
    top = 0.62 if together is None else 0.72 + 0.058 * max(len(short_label(each)) for each in names)
    width = lines + beside
    bold: Any = {"color": COLOURS[0], "zorder": 2, "solid_capstyle": "butt"}
    dot: Any = {"color": "white", "markeredgecolor": COLOURS[0], "markeredgewidth": 1.6}
    with sheet(width, tall, title, text, left=left, top=top, bottom=0.75, title_left=0.12) as page:
        axes = page.axes(left, lines - left - 0.45, tall)
        for row in range(rows):
            low, quarter, three, high, mean = fitted[row]
            axes.plot([low, high], [row, row], linewidth=1.4, **bold)
            axes.plot([quarter, three], [row, row], linewidth=5.0, **bold)
            axes.plot([mean], [row], "o", markersize=6.5, zorder=4, **dot)
            if len(others):
                below = row + np.linspace(0.13, 0.53, len(others))
                shown = others[np.argsort(others[:, row, 4], kind="stable"), row]  # by their mean
                thin: Any = {"color": COLOURS[1], "zorder": 1}
                axes.hlines(below, shown[:, 0], shown[:, 3], linewidth=0.7, alpha=0.45, **thin)
                axes.plot(shown[:, 4], below, ".", markersize=2.5, **thin)
            for value in (low, mean, high) if rows <= LABELLED else ():
                look: Any = {"ha": "center", "va": "center", "fontsize": 7.5, "color": INK}
                write(axes, f"{value:.3g}", (value, row), (0, 11), zorder=5, **look)
        name_rows(axes, names, range(rows))
        axes.set_ylim(rows - 0.3, -0.5)
        axes.set(xlabel=axis)
        if together is not None:  # rows beside the lines of their arms, which leave 0.2 rows below
            row_tall = tall / (rows + 0.2)
            cells = page.axes(lines - 0.2, cell * rows, rows * row_tall, up=0.2 * row_tall)
            _draw_correlations(cells, together, names)
    return page.picture


def prior_table(prior: Any) -> Table:
    """Columns of what the figure shows of a prior: one row for each arm."""
    names, axis = _names(prior)
    numbers = _summary(prior)
    columns = {f"quantile_{level:g}": numbers[:, at] for at, level in enumerate(LEVELS)}
    return {"name": names, "what": [axis] * len(names), "mean": numbers[:, 4], **columns}


def _correlations(prior: Any) -> tuple[FloatArray | None, str]:
    """Correlations between the arms of one task, None where there is nothing to draw, and what to
    say of them.
    """
    if isinstance(prior, ManySizedPrior):
        one = getattr(prior, "correlation", None)
        return None, "" if one is None else f" Correlation of the arms of one task: {one:.2f}."
    cov = getattr(_bandit(prior), "cov", None)
    if cov is None or len(cov) < 2 or len(cov) > MOST_CELLS:
        return None, ""
    std = np.sqrt(np.diag(cov))
    scale = np.outer(std, std)
    found = np.divide(cov, scale, out=np.zeros_like(cov), where=scale > 0.0)
    np.fill_diagonal(found, 1.0)
    if not np.any(np.triu(np.abs(found) > 5e-3, 1)):
        return None, " They do not correlate."
    return found, " Right: correlations of one task, from -1 (blue) to 1 (red)."


def _draw_correlations(axes: Any, values: FloatArray, names: Sequence[str]) -> None:
    from matplotlib.colors import Normalize

    few = len(names) <= LABELLED
    texts = [[f"{each:.2f}" if few else "" for each in row] for row in values]
    for place in range(len(names)):
        texts[place][place] = ""
    heat(axes, values, Normalize(-1.0, 1.0), texts, palette="RdBu_r")
    axes.xaxis.tick_top()
    places = np.arange(len(names)) + 0.5
    axes.set_xticks(places, [short_label(each) for each in names], rotation=90, fontsize=7.5)
    axes.set_yticks([])


def _bandit(prior: Any) -> Prior:
    """What is drawn: an arm of any task, the coefficients, or the arms."""
    if isinstance(prior, ManySizedPrior):
        return prior.for_arms(1)
    return prior.coefficients if isinstance(prior, CoefficientPrior) else prior


def _names(prior: Any) -> tuple[list[str], str]:
    """Names of the rows, and of what is drawn of each."""
    reward = "mean reward of the arm"
    if isinstance(prior, ManySizedPrior):
        return ["any arm"], reward
    features = isinstance(prior, CoefficientPrior)
    if hasattr(prior, "coefficient_names"):
        return [*prior.coefficient_names], "probability of the move"
    word, axis = ("feature", "coefficient") if features else ("arm", reward)
    known = None if features else getattr(prior, "names", None)
    return [*(known or (f"{word} {index}" for index in range(_bandit(prior).arms)))], axis


def _summary(prior: Any) -> FloatArray:
    """Quantiles and mean of each arm under the prior, ``(arm, number)``: exact, or from draws where
    its belief does not say.
    """
    shown = _bandit(prior)
    belief, seen = shown.belief(1), Seen(1, 1, shown.arms)
    if isinstance(belief, QuantileBelief) and isinstance(belief, MeanBelief):
        quantiles = [belief.quantile(level, seen)[0] for level in LEVELS]
        return np.stack([*quantiles, belief.mean(seen)[0]], axis=1)
    # the same random numbers whatever the prior
    stream = Streams(0, np.zeros(1, dtype=np.uint64)).at(Purpose.POLICY, 1)
    values = belief.sample(stream, DRAWS, seen)[0]  # (draw, arm)
    return np.vstack([np.quantile(values, LEVELS, axis=0), values.mean(axis=0)]).T
