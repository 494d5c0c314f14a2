"""The figure of a comparison: learning curves by step. It reads results and never simulates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.figures.style import (
    BAND,
    NOTE_LINE,
    EndLabel,
    Picture,
    draw_band,
    label_ends,
    label_room,
    look,
    sheet,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from priorwise.core.runs import Run

LONG: Final = 50  # pulls


@dataclass(frozen=True)
class Curve:
    """A run and how to show it: runs of one ``group`` share a colour; dashed ones believe
    another prior than the true one.
    """

    label: str
    run: Run
    group: str
    dashed: bool = False


def learning_curves(curves: Sequence[Curve], title: str, note: str = "") -> Picture:
    """Draw what each policy earns pull by pull, and beside it the cumulative regret (the cumulative
    reward where there is none).

    What a pull earns is the expected reward of the chosen arm, which has no reward noise; where
    arms have none, the reward itself.
    """
    margin = label_room(curve.label for curve in curves)
    panel, left, between = 3.7, 0.75, 0.75
    width, tall = left + 2 * (panel + margin) + between, max(3.1, 0.17 * len(curves))
    expected = all(curve.run.by_step.expected_reward is not None for curve in curves)
    regret = all(curve.run.by_step.cumulative_regret is not None for curve in curves)
    bands = "Bands" if regret else "Bands and end bars"
    text = f"{bands}: ±{BAND:g} standard errors. {note}"
    groups = list(dict.fromkeys(curve.group for curve in curves))
    second = "regret" if regret else "reward"
    panels = (
        (
            _expected if expected else _rewards,
            "Reward of each pull",
            "expected reward of the chosen arm" if expected else "mean reward",
        ),
        (_regrets if regret else _totals, f"Cumulative {second}", f"mean total {second} so far"),
    )
    with sheet(width, tall, title, text, left=left, top=0.85, bottom=0.85 - NOTE_LINE) as page:
        for index, (numbers, head, unit) in enumerate(panels):
            axes = page.axes(left + index * (panel + margin + between), panel, tall)
            ends = [
                draw_line(
                    axes,
                    curve.label,
                    *numbers(curve.run),
                    look(groups.index(curve.group)),
                    dashed=curve.dashed,
                )
                for curve in curves
            ]
            number_places(axes, curves[0].run.horizon)
            label_ends(axes, ends)
            axes.set(title=head, xlabel="pull", ylabel=unit)
    return page.picture


def _rewards(run: Run) -> tuple[FloatArray, FloatArray]:
    return run.by_step.reward, run.by_step.reward_std_error


def _expected(run: Run) -> tuple[FloatArray, FloatArray]:
    assert run.by_step.expected_reward is not None
    assert run.by_step.expected_reward_std_error is not None
    return run.by_step.expected_reward, run.by_step.expected_reward_std_error


def _regrets(run: Run) -> tuple[FloatArray, FloatArray]:
    assert run.by_step.cumulative_regret is not None
    assert run.by_step.cumulative_regret_std_error is not None
    return run.by_step.cumulative_regret, run.by_step.cumulative_regret_std_error


def _totals(run: Run) -> tuple[FloatArray, FloatArray]:
    return np.cumsum(run.by_step.reward), _only_at_the_end(run.horizon, run.std_error)


def _only_at_the_end(horizon: int, std_error: float) -> FloatArray:
    """Pulls of a task are correlated, so the standard error of a partial sum is known for the whole
    sum alone.
    """
    return np.concatenate([np.full(horizon - 1, np.nan), [std_error]])


def draw_line(
    axes: Axes,
    label: str,
    mean: FloatArray,
    std_error: FloatArray,
    shown: tuple[str, str],
    *,
    dashed: bool = False,
) -> EndLabel:
    """Draw means over 1, 2, ... in a colour with a marker, with their band (or a bar where only the
    last has one).
    """
    colour, marker = shown
    places = np.arange(1, mean.size + 1)
    axes.plot(
        places,
        mean,
        color=colour,
        linestyle=(0, (4, 2)) if dashed else "-",
        marker=marker,
        markevery=max(1, mean.size // 10),
        linewidth=1.6 if mean.size <= LONG else 1.0,
        markerfacecolor="white" if dashed else colour,
        clip_on=False,  # of the first marker
    )
    wide = BAND * std_error
    if np.isfinite(std_error).sum() > 1:
        draw_band(axes, places, mean, wide, colour)
    elif np.isfinite(std_error[-1]):
        axes.errorbar(places[-1], mean[-1], yerr=wide[-1], color=colour, linewidth=1.2, capsize=2.5)
    return EndLabel(float(places[-1]), float(mean[-1]), label, colour)


def number_places(axes: Axes, last: int) -> None:
    """Set the limits of an axis of pulls or episodes 1 to ``last``, and fix the heights that names
    are placed by.
    """
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(
        MaxNLocator(nbins=10, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])
    )
    space = 0.03 * (last - 1) or 0.5
    axes.set_xlim(1 - min(space, 0.9), last + space)  # there is no pull 0
    axes.set_ylim(*axes.get_ylim())
