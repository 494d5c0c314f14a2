"""What a sensitivity ladder has, and whether its rungs are in order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from priorwise.core import validation
from priorwise.core.errors import shown
from priorwise.core.estimates import Estimate
from priorwise.core.frames import Table, Tabular
from priorwise.figures.ladder import TELLING, Bar, ladder_figure
from priorwise.figures.style import Picture
from priorwise.sensitivity.bounds.approximation import Approximation
from priorwise.theory.distance import Distance

SIGMAS: Final = 4.0
"""Standard errors by which a rung may exceed the one above it; chance alone does it once in 30,000
comparisons.
"""
ROUNDING: Final = 1e-12
"""Share of a reward below which a difference is rounding."""
LONG: Final = 200
"""Pulls from which a ladder says first what may be lost."""
LOST, GAINED = "at worst", "at best"


@final
@dataclass(frozen=True)
class Rung:
    """One bound on how often trajectories diverge.

    ``delta`` is a probability (the upper rungs may exceed 1), ``reward`` is ``H delta'
    Psi(delta')`` with ``delta' = min(1, delta)``. ``low`` and ``high`` enclose ``delta`` apart from
    its standard error, where its estimator has a bias. ``above`` names the rungs that theory puts
    above this one. ``holds`` is False for what bounds nothing alone: a part of another rung, or a
    worst case without what approximate posteriors add.
    """

    name: str
    delta: float
    std_error: float
    reward: float
    reward_std_error: float
    how: str
    above: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    holds: bool = True

    @property
    def least(self) -> float:
        """Lower end of what the bias leaves open."""
        return self.delta if self.low is None else self.low

    @property
    def most(self) -> float:
        """Upper end of what the bias leaves open."""
        return self.delta if self.high is None else self.high


@final
@dataclass(frozen=True)
class Interval:
    """What the wrong prior may lose and gain: the gap lies between ``low`` and ``high``.

    ``off`` is what the errors of computed action laws may hide of either end.
    """

    low: Estimate
    high: Estimate
    off: float = 0.0

    @property
    def most_lost(self) -> float:
        """The lower end, with two standard errors and the error of the laws, as a loss."""
        return max(-self.low.mean, 0.0) + 2.0 * self.low.std_error + self.off

    def misses(self, gap: Estimate, rounding: float = 0.0) -> bool:
        """Whether a gap lies outside by more than noise and the error of the laws allow."""
        below, above = self.low.mean - gap.mean, gap.mean - self.high.mean
        noise = [SIGMAS * (end.std_error + gap.std_error) for end in (self.low, self.high)]
        slack = self.off + rounding
        return below > noise[0] + slack or above > noise[1] + slack

    def __str__(self) -> str:
        """Both ends with their standard errors."""
        low, high = (_number(end.mean, end.std_error) for end in (self.low, self.high))
        return f"{low} to {high}"


@final
@dataclass(frozen=True)
class Ladder(Tabular):
    """How much a policy that believes ``q`` may differ from one that believes the true prior ``p``,
    rung by rung.

    ``gap`` is ``R(p, alg(q)) - R(p, alg(p))``, signed: positive where the wrong prior earns more.
    ``trivial`` is ``H E[diam]``, which holds for any two policies (in a problem with a state what
    ``any_two`` says). ``left_out`` says which rungs
    are missing, and why. ``n`` is the policy's Monte-Carlo constant, None where none is proved.
    ``interval`` contains the gap, by likelihood ratios; None where they are not known.
    ``approximation`` is what approximate posteriors add to the worst case, exactly 0 for exact
    ones; None if it is not known.
    """

    rungs: tuple[Rung, ...]
    gap: Estimate
    reward: Estimate
    trivial: float
    tv: Distance
    policy: str
    horizon: int
    exact: bool
    left_out: tuple[str, ...] = ()
    n: int | None = None
    any_two: str = "H E[diam]"
    interval: Interval | None = None
    approximation: Approximation | None = None

    @property
    def certified(self) -> bool:
        """Whether the theorem covers the policy and its posteriors: there is a worst case, and they
        are exact.
        """
        found = self.approximation
        return self.n is not None and found is not None and found.total.kind == "exact"

    def __getitem__(self, name: str) -> Rung:
        """Rung of that name."""
        for rung in self.rungs:
            if rung.name == name:
                return rung
        raise KeyError(
            f"no rung {shown(name)} in this ladder; it has "
            f"{', '.join(rung.name for rung in self.rungs)}"
        )

    @property
    def disorders(self) -> tuple[str, ...]:
        """Pairs of rungs that are out of order by more than noise and bias allow; empty if all is
        right.
        """
        found = []
        names = {rung.name for rung in self.rungs}
        for rung in self.rungs:
            if not (math.isfinite(rung.delta) and math.isfinite(rung.reward)):
                found.append(f"{rung.name} is not a number")
            for name in rung.above:
                if name in names:
                    upper = self[name]
                    slack = SIGMAS * (rung.std_error + upper.std_error) + 1e-9
                    if rung.least > upper.most + slack:
                        found.append(
                            f"{rung.name} ({rung.delta:.4g}) exceeds {name} ({upper.delta:.4g})"
                        )
            slack = SIGMAS * (rung.reward_std_error + self.gap.std_error) + self._rounding
            if self.interval is not None:
                slack += self.interval.off
            if rung.holds and abs(self.gap.mean) > rung.reward + slack:
                found.append(
                    f"the gap ({self.gap.mean:.4g}) exceeds {rung.name} ({rung.reward:.4g})"
                )
        if self.interval is not None and self.interval.misses(self.gap, self._rounding):
            found.append(f"the gap ({self.gap.mean:.4g}) is outside of {self.interval}")
        return tuple(found)

    @property
    def _rounding(self) -> float:
        """How far rounding may move the gap: a difference of two rewards, which may be large where
        nothing is at stake.
        """
        return 1e-9 * self.trivial + ROUNDING * abs(self.reward.mean)

    @property
    def in_order(self) -> bool:
        """Whether every rung is below those that theory puts above it, and the gap below all, up to
        noise.
        """
        return not self.disorders

    @property
    def informative(self) -> tuple[str, ...]:
        """Rungs that say more than the trivial bound."""
        most = self.trivial * (1.0 - 1e-9)
        return tuple(rung.name for rung in self.rungs if rung.holds and rung.reward < most)

    @property
    def summary(self) -> str:
        """What the wrong prior costs, and what can be said for sure, in two sentences; in long
        tasks after one that says what may be lost.
        """
        return " ".join(self._sentences)

    @property
    def _may_lose(self) -> str:
        """What may be lost in a long task."""
        lost = self.trivial if self.interval is None else self.interval.most_lost
        known = " (what holds for any two policies)" if lost >= self.trivial else ""
        lost = min(lost, self.trivial)
        pulls = f"{self.horizon:,} pulls"
        return f"In {pulls} the wrong prior may lose at most {lost:.4g}{known}."

    @property
    def _sentences(self) -> tuple[str, ...]:
        earns = f"the same in {self.horizon:,} pull{'s' if self.horizon > 1 else ''}"
        if self._differs:
            size = _number(abs(self.gap.mean), self.gap.std_error)
            more = f"{size} {'more' if self.gap.mean > 0.0 else 'less'}"
            source = "exact" if self.exact else "measured"
            earns = f"{earns.replace('the same', more)} ({source})"
        elif not self.exact:
            earns += f", to within {2.0 * self.gap.std_error:.2g}"
        best = min((rung for rung in self.rungs if rung.holds), key=lambda rung: rung.reward)
        if best.reward < TELLING * self.trivial:
            said = f"The smallest bound on the difference is {best.reward:.4g} ({best.name})."
            if self.interval is not None:
                ends = (  # no wider than the bound, and no minus nought
                    max(self.interval.low.mean, -best.reward) + 0.0,
                    min(self.interval.high.mean, best.reward) + 0.0,
                )
                said = f"{said[:-1]}; it lies between {ends[0]:.4g} and {ends[1]:.4g}."
        else:
            said = (
                f"The bounds say {'hardly' if self.informative else 'no'} more than that of any "
                f"two policies, {self.trivial:.4g}: only the measured gap speaks here."
            )
        sentences = f"Believing the wrong prior, {self.policy} earns {earns}.", said
        return sentences if self.horizon < LONG else (self._may_lose, *sentences)

    @property
    def _differs(self) -> bool:
        return self.gap.mean != 0.0 and (
            self.exact or abs(self.gap.mean) > 2.0 * self.gap.std_error
        )

    def table(self) -> Table:
        """Columns by name, one row for each rung, then the trivial bound, the ends of the interval
        and the measured gap, whose ``reward`` is signed.
        """
        known = self.informative
        rows: list[tuple[object, ...]] = [
            (*(r.name, r.delta, r.std_error, r.reward, r.reward_std_error), r.name in known, r.how)
            for r in self.rungs
        ]
        rows.append(("any two policies", 1.0, 0.0, self.trivial, 0.0, False, self.any_two))
        for name, end, said in self.ends:
            rows.append((name, math.nan, math.nan, end.mean, end.std_error, True, said))
        gap, said = self.gap, _said(self.gap, self.exact)
        rows.append(("measured gap", math.nan, math.nan, gap.mean, gap.std_error, True, said))
        titles = ("rung", "delta", "delta_std_error", "reward", "std_error", "informative", "how")
        return {title: [row[k] for row in rows] for k, title in enumerate(titles)}

    @property
    def ends(self) -> list[tuple[str, Estimate, str]]:
        """Names of the interval's ends, and what they say."""
        if self.interval is None:
            return []
        low, high = self.interval.low, self.interval.high
        return [
            (LOST, low, f"at most {max(-low.mean, 0.0):.3g} less"),
            (GAINED, high, f"at most {max(high.mean, 0.0) + 0.0:.3g} more"),
        ]

    def figure(self, title: str = "") -> Picture:
        """Draw the ladder."""
        bars = [
            Bar(rung.name, rung.delta, rung.std_error, rung.reward, rung.reward_std_error, rung.how)
            for rung in self.rungs
        ]
        return ladder_figure(
            bars,
            self.gap.mean,
            self.gap.std_error,
            self.trivial,
            validation.text("title", title)
            or f"How far a wrong prior can move {self.policy} in {self.horizon} pulls",
            _said(self.gap, self.exact),
            self._sentences,
            [
                Bar(name, math.nan, 0.0, end.mean, end.std_error, said)
                for name, end, said in self.ends
            ],
        )

    def __str__(self) -> str:
        """What the wrong prior costs, and a table of the rungs."""
        width = max(len("measured gap"), *(len(rung.name) for rung in self.rungs))

        def row(name: str, delta: str, reward: str, how: str) -> str:
            return f"{name:{width}}  {delta:>20}  {reward:>18}  {how}"

        lines = [row("", "diverge with prob.", "reward at most", "how")]
        for rung in self.rungs:
            reward = _number(rung.reward, rung.reward_std_error)
            lines.append(row(rung.name, _number(rung.delta, rung.std_error), reward, rung.how))
        lines.append(row("any two policies", "", f"{self.trivial:.4g}", self.any_two))
        for name, end, said in (
            *self.ends,
            ("measured gap", self.gap, _said(self.gap, self.exact)),
        ):
            lines.append(row(name, "", _number(end.mean, end.std_error), said))
        lines += [f"left out: {reason}" for reason in self.left_out]
        lines += [f"out of order: {each}" for each in self.disorders]
        return "\n".join([*self._sentences, *lines])


def _number(value: float, std_error: float) -> str:
    value += 0.0  # no minus nought
    return f"{value:.4g} ± {std_error:.1g}" if std_error > 0.0 else f"{value:.4g}"


def _said(gap: Estimate, exact: bool) -> str:
    if not exact and abs(gap.mean) <= 2.0 * gap.std_error:
        return "no difference seen"
    if gap.mean == 0.0:
        return "no difference"
    return f"the wrong prior earns {abs(gap.mean):.3g} {'more' if gap.mean > 0.0 else 'less'}"
