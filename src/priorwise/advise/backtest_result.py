"""What a backtest returns: rewards by task, shares of the gap, predictions, and both in words."""

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from priorwise.advise.backtest_words import card, in_words
from priorwise.advise.gains import is_as_good, is_measurable, share_kept
from priorwise.core import validation
from priorwise.core.errors import shown
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray
from priorwise.figures.style import Picture
from priorwise.logs.fitting import LogFit


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
    baseline: bool = False  # played only to compare, with a prior that the log did not teach


@final
@dataclass(frozen=True, eq=False)
class Backtest(Tabular):
    """Policies replayed on the later tasks of a log, with a prior learned from the earlier ones.

    ``uniform`` and ``best`` are what any arm and the best arm in hindsight earn in each task,
    ``(task,)``. The best arm in hindsight is partly luck; the shrunken numbers put in place of each
    recorded mean what the learned prior and all records of the task together say of the arm.
    ``horizon`` pulls were replayed where ``asked`` had been asked for: with more, a policy would
    have had more than the share ``limit`` of its pulls beyond the records.
    """

    lines: dict[str, Line]
    uniform: FloatArray
    best: FloatArray
    shrunken_uniform: FloatArray | None
    shrunken_best: FloatArray | None
    fit: LogFit = field(repr=False)
    horizon: int
    batch: int
    asked: int
    limit: float | None = None
    said: tuple[str, ...] = ()
    picked: str | None = None
    interrupted: str = ""  # what the numbers rest on, if Ctrl-C ended the call

    def reward(self, name: str) -> Estimate:
        """Mean reward of a task, with its standard error over tasks."""
        return mean_estimate(self._line(name).rewards)

    def difference(self, first: str, second: str) -> Estimate:
        """Mean over tasks of the reward of ``first`` minus that of ``second``: paired by task."""
        return mean_estimate(self._line(first).rewards - self._line(second).rewards)

    def gains(self, name: str) -> FloatArray:
        """Return how much more than random choice a policy earned in each task, ``(task,)``."""
        return self._line(name).rewards - self.uniform

    @property
    def gains_measurably(self) -> bool:
        """Whether the chosen policy's gain is more than two standard errors above 0."""
        return is_measurable(self.gains(self.chosen))

    def kept(self, name: str) -> Estimate | None:
        """Return which share of the chosen policy's gain another one keeps; None if that gain is
        not measurable.
        """
        return share_kept(self.gains(name), self.gains(self.chosen))

    def as_good(self, name: str) -> bool:
        """Whether a policy keeps at least 95% of that gain, with a probability of 95%."""
        return is_as_good(self.gains(name), self.gains(self.chosen))

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
    def chosen(self) -> str:
        """Name of the policy that the earlier tasks speak for: the one that was ``picked`` from
        them, or else the one that earns most by simulation under the learned prior. Later tasks
        have no say in it, so that what it earned on them does not profit from having been chosen.
        """
        if self.picked is not None:
            return self.picked
        predicted = {
            name: line.predicted.mean
            for name, line in self.lines.items()
            if line.predicted and not line.baseline
        }
        return max(predicted, key=lambda name: predicted[name], default=next(iter(self.lines)))

    @property
    def selected(self) -> bool:
        """Whether the earlier tasks speak for a policy; if not, ``chosen`` was named first."""
        return self.picked is not None or any(line.predicted for line in self.lines.values())

    @property
    def winner(self) -> str:
        """Name of the policy that earned most, which is partly luck."""
        return max(self.lines, key=lambda name: self.reward(name).mean)

    def table(self) -> Table:
        """Columns by name, one row for each policy and prior.

        ``chosen`` marks the policy that the earlier tasks speak for. ``share`` is of the gap
        between any arm and the best one in hindsight, ``minus_best`` the paired difference from the
        policy that earned most.
        """
        rows = []
        for name, line in self.lines.items():
            found: dict[str, Any] = {"policy": name, "chosen": name == self.chosen}
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
        return "\n".join(card(self))

    def __str__(self) -> str:
        """A table for a statistician."""
        return "\n".join(in_words(self))

    def _line(self, name: str) -> Line:
        if not isinstance(name, str) or name not in self.lines:
            wrong, known = shown(name), ", ".join(self.lines)
            raise KeyError(f"no policy {wrong} in this backtest; there are {known}")
        return self.lines[name]


def _ratio(parts: FloatArray, wholes: FloatArray) -> Estimate:
    """Sum over tasks of parts over that of wholes, with its standard error (delta method)."""
    whole = float(wholes.mean())
    if whole <= 0.0:
        return Estimate(float("nan"), float("nan"))
    share = float(parts.mean()) / whole
    return Estimate(share, mean_estimate((parts - share * wholes) / whole).std_error)


def _cells(name: str, value: Estimate | None, *, plain: bool = False) -> dict[str, float]:
    mean, error = (np.nan, np.nan) if value is None else (value.mean, value.std_error)
    return {name: mean, "std_error" if plain else f"{name}_std_error": error}
