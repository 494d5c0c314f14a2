"""The figure of a fitted prior: where it puts the mean reward of each arm. It reads priors and
never simulates a task.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from priorwise.core.protocols import MeanBelief, Prior, QuantileBelief, Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import FloatArray
from priorwise.figures.style import COLOURS, INK, Picture, name_rows, sheet, write

DRAWS: Final = 4000
LEVELS: Final = (0.05, 0.25, 0.75, 0.95)
PLAUSIBLE: Final = 20
"""Plausible priors that are drawn beside the fitted one."""
LABELLED: Final = 12
"""Rows up to which numbers are written."""


@runtime_checkable
class ManySizedPrior(Protocol):
    """A prior for tasks with any number of arms."""

    def for_arms(self, arms: int) -> Prior:
        """Return the prior of a task with this many arms."""


@runtime_checkable
class CoefficientPrior(Protocol):
    """A prior whose arms' means depend on contexts through coefficients."""

    @property
    def coefficients(self) -> Prior:
        """Law of the coefficients, as if they were arms."""


def fit_figure(prior: Any, plausible: Sequence[Any], title: str) -> Picture:
    """Draw a line for each arm: 90 % and 50 % of its law and its mean, with those of plausible
    priors behind.
    """
    names, axis = _names(prior)
    fitted = _summary(prior)
    others = np.array([_summary(each) for each in plausible])  # (prior, arm, number)
    rows, left = len(names), 0.35 + 0.075 * max(map(len, names))
    tall = rows * (0.78 if rows <= LABELLED else 0.34)
    text = "Line: the middle 90 % of tasks, thick 50 %. Dot: mean."
    if len(others):
        text += f" Orange: the same for {len(others)} priors that the data leave plausible."
    width = 7.2
    bold: Any = {"color": COLOURS[0], "zorder": 2, "solid_capstyle": "butt"}
    dot: Any = {"color": "white", "markeredgecolor": COLOURS[0], "markeredgewidth": 1.6}
    with sheet(width, tall, title, text, left=left, top=0.62, bottom=0.75, title_left=0.12) as page:
        axes = page.axes(left, width - left - 0.45, tall)
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
    return page.picture


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
    return [f"{word} {index}" for index in range(_bandit(prior).arms)], axis


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
