"""The figure of a backtest: what each policy earned, and what was predicted. It reads numbers and
never replays.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from priorwise.figures.style import BAND, COLOURS, REFERENCE, Picture, sheet

ROW = 0.34


def backtest_figure(table: Mapping[str, Any], ends: tuple[float, float], title: str) -> Picture:
    """Draw a line for each policy, the one that earned most on top; ``ends`` are the rewards of any
    arm and of the best one in hindsight.
    """
    order = np.argsort(table["reward"])
    names = [str(table["policy"][i]) for i in order]
    left = 0.35 + 0.075 * max(map(len, names))
    tall = ROW * (len(names) + 1)
    note = (
        f"Bars: ±{BAND:g} standard errors. Dashed: any arm, and the best arm in hindsight, which "
        "is partly luck."
    )
    rows = np.arange(len(names))
    with sheet(left + 5.0, tall, title, note, left=left, top=0.78, bottom=0.75) as page:
        axes = page.axes(left, 4.75, tall)
        for name, label, shift, colour, marker in (
            ("reward", "replayed", 0.1, COLOURS[0], "o"),
            ("predicted", "predicted", -0.1, COLOURS[1], "s"),
        ):
            error = "std_error" if name == "reward" else f"{name}_std_error"
            values, errors = (np.asarray(table[each], float)[order] for each in (name, error))
            axes.errorbar(
                values, rows + shift, xerr=BAND * errors, fmt=marker, color=colour, label=label,
                markersize=4.5, linewidth=1.4,
            )  # fmt: skip
        for end in ends:
            axes.axvline(end, **REFERENCE)
        axes.set_yticks(rows, names)
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set(xlabel="reward of a task")
        # above the panel, where it hides nothing
        place: Any = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "ncols": 2}
        axes.legend(frameon=False, fontsize=8, borderaxespad=0.2, handletextpad=0.4, **place)
    return page.picture
