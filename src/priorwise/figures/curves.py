"""The figure of a comparison: learning curves by step. It reads results and never simulates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.figures.style import (
    NOTE_LINE,
    EndLabel,
    Picture,
    label_ends,
    label_room,
    look,
    new_figure,
    note_lines,
    render,
    style,
    write_note,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from priorwise.core.runs import Run

BAND: Final = 2.0  # standard errors
LONG: Final = 50  # pulls


@dataclass(frozen=True)
class Curve:
    """A run and how to show it: runs of one ``group`` share a colour; dashed ones hold another
    prior than the true one.
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
    panel, left, between, top, bottom = 3.7, 0.75, 0.75, 0.85, 0.85
    width = left + 2 * (panel + margin) + between
    expected = all(curve.run.by_step.expected_reward is not None for curve in curves)
    regret = all(curve.run.by_step.cumulative_regret is not None for curve in curves)
    bars = (
        f"Bands: ±{BAND:g} standard errors."
        if regret
        else f"Bands and end bars: ±{BAND:g} standard errors."
    )
    lines = note_lines(f"{bars} {note}", width - left - 0.1)
    bottom += NOTE_LINE * (len(lines) - 1)
    height = top + bottom + max(3.1, 0.17 * len(curves))
    groups = list(dict.fromkeys(curve.group for curve in curves))
    with style():
        figure = new_figure(width, height)
        boxes = [(left + i * (panel + margin + between)) / width for i in range(2)]
        axes = [
            figure.add_axes((x, bottom / height, panel / width, 1 - (top + bottom) / height))
            for x in boxes
        ]
        draws = (_expected if expected else _rewards, _regrets if regret else _totals)
        for panel_axes, draw in zip(axes, draws, strict=True):
            ends = [
                _line(panel_axes, curve, look(groups.index(curve.group)), *draw(curve.run))
                for curve in curves
            ]
            number_places(panel_axes, curves[0].run.horizon)
            label_ends(panel_axes, [each for each in ends if each.text])
        first = "expected reward of the chosen arm" if expected else "mean reward"
        axes[0].set(title="Reward of each pull", xlabel="pull", ylabel=first)
        second = "regret" if regret else "reward"
        axes[1].set(
            title=f"Cumulative {second}", xlabel="pull", ylabel=f"mean total {second} so far"
        )
        write_title(figure, title, left)
        write_note(figure, lines, left)
        return render(figure)


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


def _line(
    axes: Axes, curve: Curve, shown: tuple[str, str], mean: FloatArray, std_error: FloatArray
) -> EndLabel:
    return draw_line(axes, curve.label, mean, std_error, shown, dashed=curve.dashed)


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
        axes.fill_between(places, mean - wide, mean + wide, color=colour, alpha=0.18, linewidth=0)
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
