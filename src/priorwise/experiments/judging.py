"""From tables to claims: means over replicates with their standard errors, and statements that hold
or do not.
"""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.types import BoolArray, FloatArray
from priorwise.experiments.experiment import Claim
from priorwise.figures.tables import Table

SIGMAS: Final = 5.0
"""Standard errors of the replicate mean within which a known value must lie; chance alone misses
once in two million.
"""

NOISE: Final = 3.0
"""Standard errors that a limit allows for."""


def _sorted(table: Table, chosen: BoolArray, by: str) -> Table:
    """Chosen rows, sorted by a column."""
    order = np.flatnonzero(chosen)[np.argsort(table[by][chosen])]
    return {name: column[order] for name, column in table.items()}


def rewards(test: Table, algorithm: str) -> FloatArray:
    """Test reward of each replicate, in order."""
    return _sorted(test, test["algorithm"] == algorithm, "replicate")["reward"]


def last(curves: Table, algorithm: str) -> FloatArray:
    """Average reward over all episodes of each replicate, for an algorithm without exploration."""
    chosen = (curves["algorithm"] == algorithm) & (curves["episode"] == curves["episode"].max())
    return _sorted(curves, chosen, "replicate")["average"]


def after(curves: Table, algorithm: str, t0: int, begin: int) -> FloatArray:
    """Average reward of each replicate over the episodes after ``begin``, or after the first later
    one that the curves keep.
    """
    chosen = (curves["algorithm"] == algorithm) & (curves["t0"] == t0)
    episodes = np.unique(curves["episode"][chosen])
    order = np.lexsort((curves["episode"][chosen], curves["replicate"][chosen]))
    average = curves["average"][chosen][order].reshape(-1, len(episodes))
    if begin == 0:
        return np.asarray(average[:, -1])
    place = int(np.searchsorted(episodes, begin))
    start, end = episodes[place], episodes[-1]
    return np.asarray((end * average[:, -1] - start * average[:, place]) / (end - start))


def equals(what: str, values: FloatArray, known: float, rounding: float) -> Claim:
    """Claim that a mean is the value known from elsewhere, up to ``rounding``: half a unit of its
    last digit, or a few of its standard errors.
    """
    found = mean_estimate(values)
    near = abs(found.mean - known) <= SIGMAS * found.std_error + rounding
    statement = f"{what} {known:g} per episode"
    measured = f"{found.mean:.4g} ± {found.std_error:.2g}"
    needed = f"within {SIGMAS:g} standard errors"
    return _judged(statement, measured, near, values, needed, source="ours")


def within(what: str, first: FloatArray, second: FloatArray, most: float) -> Claim:
    """Claim that the second is short of the first by at most ``most``, paired, up to noise."""
    gap = mean_estimate(first - second)
    measured = f"short by {gap.mean:.2g} ± {gap.std_error:.2g}"
    needed = f"at most {most:.3g}, but for {NOISE:g} standard errors"
    return _judged(what, measured, gap.mean - NOISE * gap.std_error <= most, first, needed)


def above(
    what: str,
    larger: FloatArray,
    smaller: FloatArray,
    least: float = 0.0,
    source: str = "paper",
) -> Claim:
    """Claim that the first earns more, by ``least`` and beyond noise, replicate by replicate on the
    same tasks.
    """
    gap = mean_estimate(larger - smaller)
    measured = f"more by {gap.mean:.3g} ± {gap.std_error:.2g}"
    return _judged(what, measured, _clear(gap, least), larger, _more_than(least), source)


def above_all(
    what: str, gaps: Mapping[str, FloatArray], least: float = 0.0, source: str = "paper"
) -> Claim:
    """Claim that each of several paired gaps, by name, is more than ``least`` and noise."""
    if not gaps:
        return Claim(what, "nothing to compare with", False, source, _more_than(least))
    means = {name: mean_estimate(values) for name, values in gaps.items()}
    closest = min(means, key=lambda name: means[name].mean)
    gap, clear = means[closest], all(_clear(each, least) for each in means.values())
    measured = f"more by {gap.mean:.3g} ± {gap.std_error:.2g} than {closest}, the closest of "
    said = f"{measured}{len(means)}"
    return _judged(what, said, clear, gaps[closest], _more_than(least), source)


def _clear(gap: Estimate, least: float) -> bool:
    return gap.mean > max(least, NOISE * gap.std_error)


def _more_than(least: float) -> str:
    more = f"more than {least:g} and " if least > 0.0 else ""
    return f"{more}more than {NOISE:g} standard errors"


def _judged(
    what: str, measured: str, holds: bool, values: FloatArray, needed: str, source: str = "paper"
) -> Claim:
    """One replicate says nothing about the noise, so nothing is claimed from it."""
    known = len(values) > 1
    said = measured if known else "needs 2 replicates"
    return Claim(what, said, bool(holds) and known, source, needed)


def overtakes(
    what: str, envelope: Table, first: str, second: str, by: int, source: str = "paper"
) -> Claim:
    """Claim that one envelope is above the other from some episode on, at the latest ``by``."""
    algorithm = envelope["algorithm"]
    own, rival = (_sorted(envelope, algorithm == each, "episode") for each in (first, second))
    ahead, episodes = own["mean"] > rival["mean"], own["episode"]
    needed = f"from episode {by:,} at the latest"
    if not ahead[-1]:
        return Claim(what, f"{first} is not above {second} at the end", False, source, needed)
    start = int(episodes[np.flatnonzero(~ahead)[-1] + 1]) if not ahead.all() else int(episodes[0])
    return Claim(what, f"above from episode {start:,} on", start <= by, source, needed)


def share(
    what: str, measured: float, least: float = 0.0, most: float = 1.0, source: str = "paper"
) -> Claim:
    """Claim that a share lies between two limits."""
    limits = (least, f"at least {_percent(least)}"), (1.0 - most, f"at most {_percent(most)}")
    needed = ", ".join(text for room, text in limits if room > 0.0)
    holds = bool(least <= measured <= most)
    return Claim(what, f"{100.0 * measured:.2f} %", holds, source, needed)


def never(what: str, count: int, of: int) -> Claim:
    """Claim that none of ``of`` pulls was of some kind."""
    return Claim(what, f"{count:,} of {of:,} pulls", count == 0 and of > 0, "paper", "none")


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def even(what: str, shares: FloatArray, count: int, most: float) -> Claim:
    """Claim that shares of ``count`` events differ by no more than ``most`` beyond noise."""
    share, gap = float(shares.mean()), float(np.ptp(shares))
    limit = most + SIGMAS * math.sqrt(2.0 * share * (1.0 - share) / count)
    measured = f"largest minus smallest share {100.0 * gap:.2f} %"
    return Claim(what, measured, gap <= limit, "paper", f"at most {_percent(limit)}")


def first_pull_counts(first_pulls: Table, algorithm: str) -> int:
    """Number of an algorithm's first pulls."""
    return int(first_pulls["count"][first_pulls["algorithm"] == algorithm].sum())


def first_pull_shares(first_pulls: Table, algorithm: str) -> FloatArray:
    """Share of each arm among an algorithm's first pulls."""
    chosen = first_pulls["algorithm"] == algorithm
    counts = _sorted(first_pulls, chosen, "arm")["count"].astype(np.float64)
    return np.asarray(counts / counts.sum())
