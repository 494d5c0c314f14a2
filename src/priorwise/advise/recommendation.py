"""What ``recommend`` returns: one prior, one policy, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from priorwise.advise.backtest_result import Backtest
from priorwise.advise.candidates import THOMPSON, UNIFORM, Candidate, is_ab_test
from priorwise.advise.gains import is_as_good, is_measurable, share_in_words, share_kept
from priorwise.advise.recommendation_words import in_words
from priorwise.core import validation
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray
from priorwise.figures.frontier import Place, frontier_figure
from priorwise.figures.style import Picture
from priorwise.logs.fitting import LogFit
from priorwise.meta.selection.policies import PolicyComparison


@final
@dataclass(frozen=True, eq=False)
class Recommendation(Tabular):
    """A prior learned from a log and the policy that earns most with it.

    ``scored`` has the mean reward of a task under each of some plausible truths, others than those
    under which the policy was ``chosen``. ``losses`` has, under the same truths, what a policy
    would earn more if it believed the truth, ``(truth,)``; zero for one that believes nothing that
    was learned. ``tasks`` were simulated under each truth.

    ``simulated`` is the policy that simulation chose. If the prior fails its check, ``replayed`` is
    the backtest of the best candidates on the later tasks of the log, or the reason why there is
    none; ``chosen`` and its gain then rest on it.
    """

    fit: LogFit
    chosen: str
    candidates: Mapping[str, Candidate] = field(repr=False)
    scored: PolicyComparison = field(repr=False)
    losses: Mapping[str, FloatArray] = field(repr=False)
    horizon: int
    batch: int
    seed: int
    tasks: int
    simulated: str
    replayed: Backtest | str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    interrupted: str = ""  # what the numbers rest on, if Ctrl-C ended the call

    @property
    def prior(self) -> Any:
        """The prior to believe."""
        return self.fit.prior

    @property
    def policy(self) -> Any:
        """The policy to play; an A/B test knows nothing of the prior."""
        return self.candidates[self.chosen].policy

    @property
    def reward(self) -> Estimate:
        """What it earns in a task; the standard error counts what is not known of the prior."""
        return self.promise(self.chosen)

    def promise(self, name: str) -> Estimate:
        """Return what a policy earns in a task that begins when the log ends. The standard error
        counts what is not known of the prior, and where the prior changes over time, how far it
        may have moved since the tasks that it was learned from.
        """
        own, recent = self.scored.estimate(name), self.fit.recent
        moves = 0.0 if recent is None else self.horizon * recent.error()
        return Estimate(own.mean, float(np.hypot(own.std_error, moves))) if moves else own

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, in plain words."""
        return tuple(in_words(self))

    def loss(self, name: str) -> Estimate:
        """What a policy loses, on average over plausible truths, by believing the learned prior
        instead of the truth; negative where it earns more.
        """
        return mean_estimate(self.losses[name])

    def gain_over(self, name: str) -> Estimate:
        """How much more the chosen policy earns than another."""
        return self.scored.difference(self.chosen, name)

    @property
    def gain(self) -> Estimate:
        """How much more the chosen policy earns than random choice: on later tasks, if these were
        replayed, or in simulation.
        """
        return mean_estimate(self._gains(self.chosen)[1])

    @property
    def gains_measurably(self) -> bool:
        """Whether that is more than two standard errors above 0."""
        return is_measurable(self._gains(self.chosen)[1])

    def kept(self, name: str) -> Estimate | None:
        """Return which share of the gain another policy keeps; None if the gain is not measurable,
        or rests on a replay of other policies.
        """
        rival, gains = self._gains(name)
        return None if rival is None else share_kept(rival, gains)

    def as_good(self, name: str) -> bool:
        """Whether another policy keeps at least 95% of the gain, with a probability of 95%."""
        rival, gains = self._gains(name)
        return rival is not None and is_as_good(rival, gains)

    @property
    def later(self) -> Backtest | None:
        """The backtest that the advice rests on, if it does."""
        return self.replayed if isinstance(self.replayed, Backtest) else None

    def _gains(self, name: str) -> tuple[FloatArray | None, FloatArray]:
        """Gains of a policy and of the chosen one over random choice, in pairs: on later tasks, if
        these were replayed, or under simulated truths.
        """
        if self.later is not None:
            own = self.later.gains(self.chosen)
            if name == UNIFORM:
                return np.zeros_like(own), own
            return (self.later.gains(name) if name in self.later.lines else None), own
        scores = self.scored.scores
        return scores[name] - scores[UNIFORM], scores[self.chosen] - scores[UNIFORM]

    @property
    def ab_test(self) -> str | None:
        """The A/B test that earns most."""
        tests = [name for name in self.scored.scores if is_ab_test(name)]
        return max(tests, key=lambda name: self.scored.estimate(name).mean, default=None)

    @property
    def ab_test_serves(self) -> bool:
        """Whether a plain A/B test is as good."""
        return self.ab_test is not None and self.as_good(self.ab_test)

    @property
    def uniform_serves(self) -> bool:
        """Whether random choice is as good."""
        return self.as_good(UNIFORM)

    def above(self, name: str) -> float:
        """How much more it earns than another policy, as a share of what that earns; NaN where that
        is not positive.
        """
        other = self.scored.estimate(name).mean
        return self.gain_over(name).mean / other if other > 0.0 else np.nan

    def table(self) -> Table:
        """Columns by name, one row for each policy, best first. ``less`` is how much less it earns
        than the recommended one, ``kept`` the share of that one's gain over random choice that it
        keeps, and ``loss`` what believing the learned prior costs it.
        """
        names = sorted(self.scored.scores, key=lambda name: -self.scored.estimate(name).mean)
        own = [self.promise(name) for name in names]
        gaps = [self.gain_over(name) for name in names]
        losses = [self.loss(name) for name in names]
        kept = [self.kept(name) or Estimate(np.nan, np.nan) for name in names]
        return {
            "policy": names,
            "recommended": [name == self.chosen for name in names],
            "reward": [each.mean for each in own],
            "std_error": [each.std_error for each in own],
            "less": [each.mean for each in gaps],
            "less_std_error": [each.std_error for each in gaps],
            "kept": [each.mean for each in kept],
            "kept_std_error": [each.std_error for each in kept],
            "as_good": [self.as_good(name) for name in names],
            "loss": [each.mean for each in losses],
            "loss_std_error": [each.std_error for each in losses],
            "meaning": [self.candidates[name].meaning for name in names],
        }

    def summary(self) -> dict[str, Any]:
        """All numbers by name, for JSON."""
        table = self.table()
        rows = [{name: cells[i] for name, cells in table.items()} for i in range(len(self.losses))]
        worth = self.fit.worth
        return {
            "prior": self.fit.chosen,
            "policy": self.chosen,
            "simulated_policy": self.simulated,
            "horizon": self.horizon,
            "batch": self.batch,
            "seed": self.seed,
            "reward": self.reward.mean,
            "reward_std_error": self.reward.std_error,
            "above_thompson": self.above(THOMPSON) if THOMPSON in self.losses else np.nan,
            "above_uniform": self.above(UNIFORM),
            "gain": self.gain.mean,
            "gain_std_error": self.gain.std_error,
            "loss": self.loss(self.chosen).mean,
            "loss_std_error": self.loss(self.chosen).std_error,
            "ab_test": self.ab_test,
            "ab_test_serves": self.ab_test_serves,
            "uniform_serves": self.uniform_serves,
            "worth_in_pulls": None if worth is None else worth.tolist(),
            "reasons": list(self.reasons),
            "left_out": dict(self.left_out),
            "interrupted": self.interrupted,
            "policies": rows,
        }

    def figure(self, title: str = "") -> Picture:
        """Draw what each policy earns against what a wrong prior costs it."""
        places = [
            Place(
                name,
                self.loss(name),
                self.promise(name),
                self.gain_over(name).std_error,
                name == self.chosen,
            )
            for name in self.losses
        ]
        head = f"What policies earn in {self.horizon:,} pulls, and what hangs on the prior"
        return frontier_figure(places, validation.text("title", title) or head)

    def __str__(self) -> str:
        """The advice, its reasons, and a table of all policies."""
        seen = f", rewards seen every {self.batch:,}" if self.batch > 1 else ""
        lines = [f"Interrupted. {self.interrupted}"] if self.interrupted else []
        lines += [
            f"Recommended for tasks of {self.horizon:,} pulls{seen}:",
            f"  prior   {self.fit.chosen}",
            f"  policy  {self.chosen}: {self.candidates[self.chosen].meaning}",
            "",
            *(f"- {each}" for each in self.reasons),
            "",
        ]
        table = self.table()
        names = [str(each) for each in table["policy"]]
        width = max(map(len, names))
        head = f"{'':{width}}  {'reward':>19}  {'less than ' + self.chosen:>26}"
        later = "" if self.later is None else f"  {'gain on later tasks':>20}"
        lines.append(f"{head}  {'gain kept':>15}  {'lost by the prior':>19}{later}")
        for name in names:
            gap = "" if name == self.chosen else str(self.gain_over(name))
            seen = str(self.loss(name)) if self.losses[name].any() else "none seen"
            loss = seen if self.candidates[name].learned else "–"
            own, kept = self.promise(name), self.kept(name)
            share = ""
            if kept is not None and name not in (self.chosen, UNIFORM):
                share = share_in_words(kept)
            line = f"{name:{width}}  {own!s:>19}  {gap:>26}  {share:>15}  {loss:>19}"
            if self.later is not None and name in self.later.lines:
                line += f"  {mean_estimate(self.later.gains(name))!s:>20}"
            lines.append(line)
        return "\n".join(lines)
