"""What a backtest returns: rewards by task, shares of the gap, predictions, and both in words."""

from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray
from priorwise.figures.style import Picture
from priorwise.logs.fitting import LogFit

SURE: Final = 3.0
"""Standard errors from which on a difference is called one."""
FEW: Final = 5
"""Effective tasks below which weighted estimates are not to be trusted."""
MUCH: Final = 0.02
"""Share of pulls beyond the records from which on a backtest is doubted."""


@final
@dataclass(frozen=True)
class Weighted:
    """Estimates from the recorded pulls as they were made, weighted by how likely the policy would
    have made them: ``ips`` by inverse propensities, ``dr`` doubly robust. ``effective`` is the
    number of tasks that they are worth, of ``tasks`` with enough pulls.
    """

    ips: Estimate
    dr: Estimate
    effective: float
    tasks: int


@final
@dataclass(frozen=True, eq=False)
class Line:
    """What one policy earned in each replayed task, ``(task,)``; ``worth`` is the same by shrunken
    rates. ``ran_out`` is the share of its pulls that came after the records of an arm had run out.
    ``predicted`` is its reward on simulated tasks of the learned prior, with what the fit leaves
    open in its standard error, and ``predicted_share`` the share of the gap to their best arm.
    """

    rewards: FloatArray
    worth: FloatArray | None
    ran_out: float
    predicted: Estimate | None = None
    predicted_share: Estimate | None = None
    weighted: Weighted | None = None


@final
@dataclass(frozen=True, eq=False)
class Backtest(Tabular):
    """Policies replayed on the later tasks of a log, with a prior learned from the earlier ones.

    ``uniform`` and ``best`` are what any arm and the best arm in hindsight earn in each task,
    ``(task,)``. The best arm in hindsight is partly luck; the shrunken numbers put in place of each
    recorded mean what the learned prior and all records of the task together say of the arm.
    """

    lines: dict[str, Line]
    uniform: FloatArray
    best: FloatArray
    shrunken_uniform: FloatArray | None
    shrunken_best: FloatArray | None
    fit: LogFit = field(repr=False)
    horizon: int
    batch: int
    said: tuple[str, ...] = ()

    def reward(self, name: str) -> Estimate:
        """Mean reward of a task, with its standard error over tasks."""
        return mean_estimate(self._line(name).rewards)

    def difference(self, first: str, second: str) -> Estimate:
        """Mean over tasks of the reward of ``first`` minus that of ``second``: paired by task."""
        return mean_estimate(self._line(first).rewards - self._line(second).rewards)

    def share(self, name: str) -> Estimate:
        """Share of the gap between any arm and the best one in hindsight that a policy closes."""
        return _ratio(self._line(name).rewards - self.uniform, self.best - self.uniform)

    def shrunken_share(self, name: str) -> Estimate | None:
        """Return the same with shrunken rates, for the policy's pulls and for the gap; None where
        the family does not say what it expects.
        """
        worth, low, high = self._line(name).worth, self.shrunken_uniform, self.shrunken_best
        if worth is None or low is None or high is None:
            return None
        return _ratio(worth - low, high - low)

    def held(self, name: str) -> float | None:
        """Return the reward minus the predicted one, in standard errors of their difference; None
        where nothing was predicted.
        """
        predicted, found = self._line(name).predicted, self.reward(name)
        if predicted is None:
            return None
        error = float(np.hypot(predicted.std_error, found.std_error))
        return (found.mean - predicted.mean) / error if error > 0.0 else 0.0

    @property
    def ran_out(self) -> float:
        """Largest share of a policy's pulls that came after an arm's records had run out."""
        return max(line.ran_out for line in self.lines.values())

    @property
    def doubted(self) -> bool:
        """Whether the learned prior does not generate tasks like the earlier ones: shrunken numbers
        and predictions, which lean on it, are doubtful then.
        """
        return self.fit.check is not None and bool(self.fit.check.doubts)

    @property
    def winner(self) -> str:
        """Name of the policy that earned most."""
        return max(self.lines, key=lambda name: self.reward(name).mean)

    def table(self) -> Table:
        """Columns by name, one row for each policy and prior.

        ``share`` is of the gap between any arm and the best one in hindsight, ``minus_best`` the
        paired difference from the policy that earned most.
        """
        rows = []
        for name, line in self.lines.items():
            found: dict[str, Any] = {"policy": name}
            found |= _cells("reward", self.reward(name), plain=True)
            found |= _cells("share", self.share(name))
            found |= _cells("shrunken_share", self.shrunken_share(name))
            found |= _cells("predicted", line.predicted)
            found |= _cells("predicted_share", line.predicted_share)
            found |= _cells("minus_best", self.difference(name, self.winner))
            found["ran_out"] = line.ran_out
            if any(each.weighted for each in self.lines.values()):
                of = line.weighted
                found |= _cells("ips", None if of is None else of.ips)
                found |= _cells("doubly_robust", None if of is None else of.dr)
                found["effective_tasks"] = np.nan if of is None else of.effective
            rows.append(found)
        return {name: [row[name] for row in rows] for name in rows[0]}

    def figure(self, title: str = "") -> Picture:
        """Draw what each policy earned beside what was predicted."""
        from priorwise.figures.backtest import backtest_figure

        head = f"{len(self.uniform):,} later tasks of {self.horizon:,} pulls, replayed"
        ends = float(self.uniform.mean()), float(self.best.mean())
        return backtest_figure(self.table(), ends, validation.text("title", title) or head)

    @property
    def card(self) -> str:
        """What a manager needs, in a few sentences."""
        best, name = self.reward(self.winner), self.winner
        share = (None if self.doubted else self.shrunken_share(name)) or self.share(name)
        uniform = float(self.uniform.mean())
        more = f" ({best.mean / uniform - 1.0:+.1%})" if uniform > 0.0 else ""
        gain = mean_estimate(self.lines[name].rewards - self.uniform)
        tasks, pulls = len(self.uniform), self.horizon
        lines = []
        if self.ran_out > MUCH:
            lines.append(
                "Do not lean on this: too many records ran out, which flatters policies that keep "
                "to one arm. Replay fewer pulls per task."
            )
        lines += [
            (
                f"On {tasks:,} later tasks that it had not seen, {name} would have earned "
                f"{best.mean:.4g} per task of {pulls:,} pulls, where choosing at random earns "
                f"{uniform:.4g}{more}."
            ),
            (
                f"That is {share.mean:.0%} (give or take {2 * share.std_error:.0%}) of what "
                "knowing the best arm from the start would have added."
            ),
        ]
        if gain.mean < SURE * gain.std_error:
            lines.append("So few tasks do not tell that from luck: collect more before you switch.")
        rivals = [
            other
            for other in self.lines
            if other != name and not _clear(self.difference(name, other))
        ]
        if rivals:
            lines.append(f"As good, as far as these tasks tell: {', '.join(rivals)}.")
        if (off := self.held(name)) is not None:
            kept = abs(off) < SURE
            word = "held" if kept else f"did not hold: {'more' if off > 0 else 'less'} was earned"
            lines.append(f"What the simulation had promised {word}.")
        if self.doubted and self.fit.check is not None:
            lines.append(f"The prior does not fit the earlier tasks: {self.fit.check.verdict}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """A table for a statistician."""
        tasks = len(self.uniform)
        worst = max(self.lines, key=lambda name: self.lines[name].ran_out)
        out = "Recorded rewards sufficed for all pulls"
        if self.ran_out > 0.0:
            out = (
                f"Recorded rewards had run out for up to {self.ran_out:.2%} of the pulls ({worst}),"
                " which drew them again"
            )
            out += ": too many to trust" if self.ran_out > MUCH else ""
        seen = f", rewards seen every {self.batch:,}" if self.batch > 1 else ""
        learned = f"prior {self.fit.chosen} learned from {len(self.fit.log.tasks):,} earlier tasks"
        lines = [f"{out}.", f"{tasks:,} later tasks of {self.horizon:,} pulls{seen}; {learned}."]
        lines += [f"({each})" for each in self.said]
        width = max(map(len, (*self.lines, "best arm in hindsight")))
        head = f"{'':{width}}  {'reward':>19}  {'share of the gap':>16}  {'shrunken':>16}"
        lines += ["", f"{head}  {'predicted':>19}  {'minus ' + self.winner:>20}"]
        for name in sorted(self.lines, key=lambda name: -self.reward(name).mean):
            shares = [_percent(self.share(name)), _percent(self.shrunken_share(name))]
            predicted = self.lines[name].predicted
            gap = "" if name == self.winner else str(self.difference(name, self.winner))
            lines.append(
                f"{name:{width}}  {self.reward(name)!s:>19}  {shares[0]:>16}  {shares[1]:>16}  "
                f"{'' if predicted is None else str(predicted):>19}  {gap:>20}".rstrip()
            )
        for name, raw, shrunken in (
            ("any arm", self.uniform, self.shrunken_uniform),
            ("best arm in hindsight", self.best, self.shrunken_best),
        ):
            earned = f"{name:{width}}  {mean_estimate(raw)!s:>19}"
            by = "" if shrunken is None else f"  (by shrunken rates {mean_estimate(shrunken)})"
            lines.append(earned + by)
        if self.doubted:
            lines.append(
                "The prior does not fit the earlier tasks; shrunken shares and predictions lean on "
                "it."
            )
        return "\n".join([*lines, *self._weighted_lines(width)])

    def _weighted_lines(self, width: int) -> list[str]:
        known = {n: each.weighted for n, each in self.lines.items() if each.weighted is not None}
        if not known:
            return []
        lines = ["", "From the recorded pulls themselves, weighted by propensities:"]
        lines.append(f"{'':{width}}  {'inverse':>19}  {'doubly robust':>19}  {'effective':>20}")
        for name, each in known.items():
            size = f"{each.effective:,.1f} of {each.tasks:,} tasks"
            lines.append(f"{name:{width}}  {each.ips!s:>19}  {each.dr!s:>19}  {size:>20}")
        if few := [name for name, each in known.items() if each.effective < FEW]:
            lines.append(
                f"Less than {FEW} effective tasks ({', '.join(few)}): too few for estimates, and "
                "for their standard errors."
            )
        return lines

    def _line(self, name: str) -> Line:
        if not isinstance(name, str) or name not in self.lines:
            wrong, known = validation.shown(name), ", ".join(self.lines)
            raise KeyError(f"no policy {wrong} in this backtest; there are {known}")
        return self.lines[name]


def _ratio(parts: FloatArray, wholes: FloatArray) -> Estimate:
    """Sum over tasks of parts over that of wholes, with its standard error (delta method)."""
    whole = float(wholes.mean())
    if whole <= 0.0:
        return Estimate(float("nan"), float("nan"))
    share = float(parts.mean()) / whole
    return Estimate(share, mean_estimate((parts - share * wholes) / whole).std_error)


def _clear(difference: Estimate) -> bool:
    return abs(difference.mean) >= SURE * difference.std_error and difference.mean != 0.0


def _cells(name: str, value: Estimate | None, *, plain: bool = False) -> dict[str, float]:
    mean, error = (np.nan, np.nan) if value is None else (value.mean, value.std_error)
    return {name: mean, "std_error" if plain else f"{name}_std_error": error}


def _percent(share: Estimate | None) -> str:
    if share is None or share.mean != share.mean:
        return "–"
    return f"{share.mean:.1%} ± {share.std_error:.1%}"
