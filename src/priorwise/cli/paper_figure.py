"""Figure of ``priorwise reproduce``: what the receding horizon earns, against the number of posterior draws it looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from priorwise.cli.paper import Result
from priorwise.core.style import COLOURS, EndLabel, label_ends, new_figure, render, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES: Final = {
    "greedy": (COLOURS[2], (0, (5, 2))),
    "exact online KG": (COLOURS[1], "-"),
    "Thompson sampling": (COLOURS[3], (0, (1, 1))),
}
BAND: Final = 2.0


def reward_by_samples(results: Sequence[Result]) -> dict[str, bytes]:
    """Draw the figure from the table of the Gaussian problem; returns the content of the files, by suffix."""
    gaussian = [each for each in results if each.row.problem == "gaussian"]
    with style():
        figure = new_figure(10.4, 4.3)
        panels = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.52})
        figure.subplots_adjust(left=0.07, right=0.855, top=0.84, bottom=0.21)
        low = min(each.run.mean_reward for each in gaussian) - 0.4
        high = max(each.run.mean_reward for each in gaussian) + 0.4
        for axes, true_prior, title in zip(
            panels, (True, False), ("Holding the true prior", "Holding the misspecified prior N(0, I)"), strict=True
        ):
            axes.set_ylim(low, high)
            _panel(axes, [each for each in gaussian if each.row.true_prior == true_prior])
            axes.set(title=title, xlabel="posterior draws k1 = k2 (log scale)")
            axes.tick_params(labelleft=True)
        panels[0].set_ylabel("mean total reward of 10 pulls")
        title = "Two-step receding horizon, the paper's Gaussian problem: few draws earn far less than the exact rule"
        figure.text(0.07, 0.95, title, fontsize=10, va="center")
        figure.text(0.07, 0.045, f"Bars and bands: ±{BAND:g} standard errors.", fontsize=8, color="#666666", va="center")
        return render(figure)


def _panel(axes: Axes, results: Sequence[Result]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    curve = sorted((each.row.samples, each.run) for each in results if each.row.samples is not None)
    samples = [k for k, _ in curve]
    means = [run.mean_reward for _, run in curve]
    axes.set_xscale("log")
    axes.set_xlim(samples[0] / 1.25, samples[-1] * 1.25)
    axes.xaxis.set_major_locator(FixedLocator(samples))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.errorbar(
        samples, means, yerr=[BAND * run.std_error for _, run in curve], color=COLOURS[0], marker="o", capsize=2.5, zorder=3
    )
    ends = [EndLabel(samples[-1], means[-1], "receding horizon", COLOURS[0])]
    for each in results:
        if each.row.algorithm in LINES:
            colour, dashes = LINES[each.row.algorithm]
            mean, wide = each.run.mean_reward, BAND * each.run.std_error
            axes.axhline(mean, color=colour, linestyle=dashes, linewidth=1.3)
            axes.axhspan(mean - wide, mean + wide, color=colour, alpha=0.15, linewidth=0)
            ends.append(EndLabel(samples[-1] * 1.25, mean, each.row.algorithm, colour))
    label_ends(axes, ends)
