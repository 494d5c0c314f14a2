"""Curves over pulls, of a comparison, and over episodes, of meta-simulations. They read results and
never simulate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from priorwise.core.trajectories import StepCurves
from priorwise.core.types import FloatArray
from priorwise.figures import style

LONG: Final = 50  # pulls

Means = tuple[FloatArray, FloatArray]
"""Means at 1, 2, ... and their standard errors."""


class Run(Protocol):
    """What curves need of a run."""

    @property
    def by_step(self) -> StepCurves:
        """Means at each pull."""
        ...

    @property
    def horizon(self) -> int:
        """Pulls of a task."""
        ...

    @property
    def std_error(self) -> float:
        """Of the mean total reward."""
        ...


@dataclass(frozen=True)
class Curve:
    """A run and how to show it: runs of one ``group`` share a colour; dashed ones believe
    another prior than the true one.
    """

    label: str
    run: Run
    group: str
    dashed: bool = False


def learning_curves(curves: Sequence[Curve], title: str, note: str = "") -> style.Picture:
    """Draw what each policy earns pull by pull, and beside it the cumulative regret (the cumulative
    reward where there is none).

    What a pull earns is the expected reward of the chosen arm, which has no reward noise; where
    arms have none, the reward itself.
    """
    margin = style.label_room(curve.label for curve in curves)
    panel, left, between = 3.7, 0.75, 0.75
    width, tall = left + 2 * (panel + margin) + between, max(3.1, 0.17 * len(curves))
    expected = all(curve.run.by_step.expected_reward is not None for curve in curves)
    regret = all(curve.run.by_step.cumulative_regret is not None for curve in curves)
    bands = "Bands" if regret else "Bands and end bars"
    text = f"{bands}: ±{style.BAND:g} standard errors. {note}"
    groups = list(dict.fromkeys(curve.group for curve in curves))
    second = "regret" if regret else "reward"
    each = "expected reward of the chosen arm" if expected else "mean reward"
    panels = (
        ("expected_reward" if expected else "reward", "Reward of each pull", each),
        (
            "cumulative_regret" if regret else "",
            f"Cumulative {second}",
            f"mean total {second} so far",
        ),
    )
    margins: Any = {"left": left, "top": 0.85, "bottom": 0.85 - style.NOTE_LINE}
    with style.sheet(width, tall, title, text, **margins) as page:
        for index, (name, head, unit) in enumerate(panels):
            axes = page.axes(left + index * (panel + margin + between), panel, tall)
            ends = []
            for curve in curves:
                numbers, look = _numbers(curve.run, name), style.look(groups.index(curve.group))
                ends.append(_line(axes, curve.label, numbers, look, dashed=curve.dashed))
            _number_places(axes, curves[0].run.horizon)
            style.label_ends(axes, ends)
            axes.set(title=head, xlabel="pull", ylabel=unit)
    return page.picture


def _numbers(run: Run, name: str) -> Means:
    """What a run has under this name at each step; without a name, the total reward so far.

    Pulls of a task are correlated, so the standard error of a partial sum is known for the whole
    sum alone.
    """
    if name:
        return getattr(run.by_step, name), getattr(run.by_step, f"{name}_std_error")
    only_at_the_end = np.concatenate([np.full(run.horizon - 1, np.nan), [run.std_error]])
    return np.cumsum(run.by_step.reward), only_at_the_end


def episode_curves(
    averages: Mapping[str, Means], short: Mapping[str, Means], reference: str, title: str
) -> style.Picture:
    """Draw averages over the episodes up to each one; where there is a reference also how far the
    others are ``short`` of it, in pairs.
    """
    margin = style.label_room(averages)
    panel, left, between, tall = 3.9, 0.75, 0.85, 3.1
    panels = {"Average reward so far": (averages, "reward per episode")}
    if short:
        head = f"Short of {style.short_label(reference)}"
        panels[head] = (short, "reward per episode, paired")
    width = left + len(panels) * (panel + margin) + (len(panels) - 1) * between
    bands = f"Bands: ±{style.BAND:g} standard errors over replicates."
    text = f"Averages over the episodes up to each one. {bands}"
    looks = {name: style.look(index) for index, name in enumerate(averages)}
    with style.sheet(width, tall, title, text, left=left, top=0.85, bottom=0.7) as page:
        for index, (head, (curves, unit)) in enumerate(panels.items()):
            axes = page.axes(left + index * (panel + margin + between), panel, tall)
            ends = [_line(axes, name, each, looks[name]) for name, each in curves.items()]
            if index:
                axes.axhline(0.0, **style.REFERENCE | {"color": style.FAINT})
            _number_places(axes, max(mean.size for mean, _ in curves.values()))
            style.label_ends(axes, ends)
            axes.set(title=head, xlabel="episode", ylabel=unit)
    return page.picture


def _line(
    axes: style.Axes, label: str, means: Means, look: tuple[str, str], *, dashed: bool = False
) -> style.EndLabel:
    """Draw means over 1, 2, ... with their band (or a bar where only the last has one)."""
    (mean, std_error), (colour, marker) = means, look
    places, wide = np.arange(1, mean.size + 1), style.BAND * std_error
    line: Any = {"color": colour, "linewidth": 1.6 if mean.size <= LONG else 1.0}
    line |= {"linestyle": (0, (4, 2)), "markerfacecolor": "white"} if dashed else {}
    marks: Any = {"marker": marker, "markevery": max(1, mean.size // 10)}
    axes.plot(places, mean, clip_on=False, **line, **marks)  # the first marker is whole
    if np.isfinite(std_error).sum() > 1:
        style.draw_band(axes, places, mean, wide, colour)
    elif np.isfinite(std_error[-1]):
        axes.errorbar(places[-1], mean[-1], yerr=wide[-1], color=colour, linewidth=1.2, capsize=2.5)
    return style.EndLabel(float(places[-1]), float(mean[-1]), label, colour)


def _number_places(axes: style.Axes, last: int) -> None:
    """Set the limits of an axis of pulls or episodes 1 to ``last``, and fix the heights that names
    are placed by.
    """
    style.whole_numbers(axes.xaxis, 10, [1, 2, 5, 10])
    space = 0.03 * (last - 1) or 0.5
    axes.set_xlim(1 - min(space, 0.9), last + space)  # there is no pull 0
    axes.set_ylim(*axes.get_ylim())
