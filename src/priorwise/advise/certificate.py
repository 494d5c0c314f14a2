"""What a certificate says: losses over plausible truths, beside the theorem's bound, a vague prior,
and the error of what is promised.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from priorwise.advise.certificate_words import in_words
from priorwise.advise.losses import Losses, upper, upper_error, without_noise
from priorwise.core import validation
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray
from priorwise.figures.certificate import certificate_figure
from priorwise.figures.style import Picture
from priorwise.sensitivity.bounds.bandits import Bound

COLUMNS: Final = (
    *("loss", "std_error", "vague_loss", "vague_std_error"),
    *("reward", "reward_std_error", "above_uniform"),
)
SUMMARY: Final = (
    *("policy", "horizon", "batch", "fitted_tasks", "source", "reward", "gain"),
    *("expected_loss", "expected_loss_std_error", "expected_loss_percent"),
    *("loss_95", "loss_95_std_error", "loss_95_percent", "noise", "compared", "differed"),
    *("vague_loss", "beats_vague_share", "break_even_tasks", "rate", "more_tasks"),
    *("promise_error_95", "interrupted"),
)


@final
@dataclass(frozen=True, eq=False)
class Certificate(Tabular):
    """What a policy may lose by believing a fitted prior, in reward of a task.

    ``measured`` has the losses under the plausible truths, by where these come from: ``"law"`` and
    ``"bootstrap"``. The numbers are those of the more cautious of the two, ``source``. ``promised``
    is what the policy earns if the fitted prior is the truth. ``refitted`` has losses where it is,
    and plausible fits decide, and of fits as near as those of twice as many tasks: two columns with
    their standard errors, ``(fit, 4)``; None where the family does not name its parameters.
    ``tasks`` were simulated under each truth. ``bound`` is the theorem's for the farthest of 20
    truths, so that it holds with 95 % confidence; None where no theorem holds, ``without_bound``
    says why.
    """

    policy: str
    prior: Any = field(repr=False)
    horizon: int
    batch: int
    tasks: int
    fitted_tasks: int
    measured: Mapping[str, Losses] = field(repr=False)
    promised: Estimate
    refitted: FloatArray | None = field(repr=False)
    bound: Bound | None = field(repr=False)
    without_bound: str = field(repr=False)
    warnings: Sequence[str] = ()
    interrupted: str = ""  # what the numbers rest on, if Ctrl-C ended the call

    @property
    def source(self) -> str:
        """Where the truths come from under which the 95 % loss is larger."""
        return max(self.measured, key=lambda name: upper(self.measured[name].clear))

    @property
    def losses(self) -> Losses:
        """What was measured under the truths of :attr:`source`."""
        return self.measured[self.source]

    @property
    def expected_loss(self) -> float:
        """Mean loss over plausible truths; negative if the fitted prior earns more."""
        return float(self.losses.losses.mean())

    @property
    def expected_loss_std_error(self) -> float:
        """Standard error of :attr:`expected_loss`."""
        return mean_estimate(self.losses.losses).std_error

    @property
    def loss_95(self) -> float:
        """The loss is not larger than this with 95 % confidence."""
        return upper(self.losses.clear)

    @property
    def loss_95_std_error(self) -> float:
        """Standard error of :attr:`loss_95`."""
        return upper_error(self.losses.clear)

    @property
    def reward(self) -> float:
        """What the policy earns with the truth for its prior, on average over truths."""
        return float((self.losses.rewards + self.losses.losses).mean())

    @property
    def gain(self) -> float:
        """How much more that is than by uniform play."""
        return float(self.losses.uniform.mean())

    @property
    def expected_loss_percent(self) -> float:
        """The expected loss in percent of the reward; NaN where that is not positive."""
        return _percent(self.expected_loss, self.reward)

    @property
    def loss_95_percent(self) -> float:
        """The 95 % loss in percent of the reward; NaN where that is not positive."""
        return _percent(self.loss_95, self.reward)

    @property
    def compared(self) -> int:
        """How many simulated tasks were decided with a truth and with the fitted prior."""
        return self.tasks * sum(len(each.losses) for each in self.measured.values())

    @property
    def differed(self) -> bool:
        """Whether any of these tasks earned another reward with the fitted prior."""
        return any(each.losses.any() or each.std_errors.any() for each in self.measured.values())

    @property
    def vague_loss(self) -> float:
        """Mean loss with a vague prior under the same truths; NaN where the family has none."""
        return float(self.losses.vague.mean())

    @property
    def beats_vague(self) -> Estimate:
        """How much more the fitted prior earns than a vague one."""
        return mean_estimate(self.losses.vague - self.losses.losses)

    @property
    def beats_vague_share(self) -> float:
        """Share of plausible truths under which the fitted prior earns more than a vague one."""
        return float(np.mean(self.losses.vague > self.losses.losses))

    @property
    def break_even_tasks(self) -> int | None:
        """Past tasks below which a vague prior would earn more, if the expected loss falls as one
        over their number; None where it is not known.
        """
        if not (self.vague_loss > 0.0 and self.expected_loss > 0.0):
            return None
        return math.ceil(self.fitted_tasks * self.expected_loss / self.vague_loss)

    @property
    def rate(self) -> float | None:
        """The 95 % loss falls as the number of past tasks to minus this power, from 1/2 (losses in
        proportion to the error of the prior) to 1 (to its square), as fits around the learned prior
        tell.
        """
        if self.refitted is None:
            return None
        now, then = (upper(without_noise(*each)) for each in np.split(self.refitted.T, 2))
        if not now > 0.0:
            return None
        return min(max(-math.log2(max(then / now, 0.25)), 0.5), 1.0)

    @property
    def more_tasks(self) -> int | None:
        """How many more past tasks would halve the 95 % loss; None where that is not known."""
        rate = self.rate
        return None if rate is None else math.ceil(self.fitted_tasks * (2.0 ** (1.0 / rate) - 1.0))

    @property
    def promise_errors(self) -> FloatArray:
        """What is earned with the fitted prior under each truth, less what it promises."""
        errors = self.losses.rewards - self.promised.mean
        return without_noise(errors, self.losses.reward_std_errors)

    @property
    def promise_error_95(self) -> float:
        """What is earned is not further from what was promised than this with 95 % confidence."""
        return upper(np.abs(self.promise_errors))

    @property
    def noise(self) -> float:
        """Share of the variance of the measured losses that is noise of the simulation."""
        spread = float(self.losses.losses.var(ddof=1))
        noise = float(np.mean(self.losses.std_errors**2))
        return min(noise / spread, 1.0) if spread > 0.0 else 0.0

    def table(self) -> Table:
        """Columns by name, one row for each plausible truth: see :class:`Losses`."""
        table: dict[str, list[Any]] = {name: [] for name in ("source", "truth", *COLUMNS)}
        for source, each in self.measured.items():
            table["source"] += [source] * len(each.losses)
            table["truth"] += range(len(each.losses))
            for name, column in zip(COLUMNS, each.columns, strict=True):
                table[name] += column.tolist()
        return {**table}

    def summary(self) -> dict[str, Any]:
        """All numbers by name, for JSON."""
        bound = self.bound
        return {name: getattr(self, name) for name in SUMMARY} | {
            "promised": self.promised.mean,
            "bound": None if bound is None else bound.value,
            "bound_kind": None if bound is None else bound.kind,
            "bound_vacuous": None if bound is None else bound.vacuous,
        }

    def figure(self, title: str = "") -> Picture:
        """Draw the losses with the learned and a vague prior, and the error of the promise."""
        head = f"What {self.policy} may lose by its learned prior in {self.horizon:,} pulls"
        rows = {"decisions, learned prior": self.losses.clear}
        if np.isfinite(self.vague_loss):
            noise = self.losses.vague_std_errors
            rows["decisions, vague prior"] = without_noise(self.losses.vague, noise)
        rows["reward promised − earned"] = -self.promise_errors
        bound = self.bound
        told = None if bound is None else (bound.value, bound.vacuous)
        named = validation.text("title", title) or head
        return certificate_figure(rows, self.expected_loss, self.loss_95, told, named)

    def __str__(self) -> str:
        """What may be lost, in plain words."""
        return "\n  ".join(in_words(self))


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole > 0.0 else math.nan
