"""An alarm when tasks contradict a prior, with a false-alarm rate that holds at any time."""

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import shown
from priorwise.core.protocols import Prior
from priorwise.core.trajectories import Trajectory
from priorwise.families.registry import ask
from priorwise.meta.evidence.likelihood import log_marginal_likelihood


@final
@dataclass(frozen=True, eq=False)
class Alarm:
    """Watches whether tasks follow a prior: a test that may be looked at after every task.

    The evidence against the prior is the likelihood ratio ``E_t = prod_{i <= t} p_other(task i) /
    p_prior(task i)``. If tasks are drawn from ``prior`` then E is a non-negative martingale with
    mean 1, whatever policy plays, so it ever reaches ``1 / level`` with probability at most
    ``level`` (Ville's inequality): that is the false-alarm rate over all tasks together, however
    many. It is stated for tasks that follow ``prior`` exactly; with a fitted one, choose an
    ``other`` wider than the error of the fit.

    Parameters
    ----------
    prior
        The prior that is held.
    other
        What the tasks may follow instead: a wider prior, an older one, or a mixture of several.
    level
        False-alarm rate.

    """

    prior: Prior
    other: Prior
    level: float = 0.01
    log_evidence: float = 0.0
    largest: float = 0.0

    def __post_init__(self) -> None:
        for name, prior in (("prior", self.prior), ("other", self.other)):
            argument_checks.fixed_prior(name, prior)
            ask(prior, "log_marginal", "Alarm", name)
        if self.prior.arms != self.other.arms:
            arms = f"{self.prior.arms} and {self.other.arms}"
            raise ValueError(f"prior and other must have the same arms, but have {arms}")
        pair: tuple[Any, Any] = self.prior, self.other
        ours, theirs = (type(each.reward_law).__name__ for each in pair)
        if ours != theirs:
            raise ValueError(
                f"prior and other must have the same kind of rewards, but have {ours} and {theirs}"
            )
        validation.share("level", self.level)
        # may be infinite
        for name, value in (("log_evidence", self.log_evidence), ("largest", self.largest)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or np.isnan(value):
                wrong = shown(value)
                raise TypeError(f"{name} must be a number, as observe() leaves it, got {wrong}")

    def observe(self, played: Trajectory) -> Self:
        """Add tasks, in their order.

        A task that ``other`` rules out ends the evidence for good. One that ``prior`` rules out
        raises the alarm for certain, whatever came before and whatever ``other`` says: under
        ``prior`` that never happens.
        """
        if not isinstance(played, Trajectory):
            wrong = type(played).__name__
            raise TypeError(
                f"played must be a Trajectory, such as run.trajectory of a kept run, got {wrong}"
            )
        ours, theirs = (log_marginal_likelihood(each, played) for each in (self.prior, self.other))
        sure, gone = np.isneginf(ours), np.isneginf(theirs)
        gained = np.subtract(theirs, ours, out=np.zeros(len(ours)), where=~(sure | gone))
        path = np.cumsum(gained) + (self.log_evidence if np.isfinite(self.log_evidence) else 0.0)
        path[np.logical_or.accumulate(gone) | (self.log_evidence == -np.inf)] = -np.inf
        path[np.logical_or.accumulate(sure) | (self.log_evidence == np.inf)] = np.inf
        largest = float(max(self.largest, path.max()))
        return replace(self, log_evidence=float(path[-1]), largest=largest)

    @property
    def raised(self) -> bool:
        """Whether the evidence has ever reached ``1 / level``."""
        return bool(self.largest >= -np.log(self.level))

    @property
    def p_value(self) -> float:
        """A p-value that holds at any time: ``1 / max_t E_t``."""
        return float(min(1.0, np.exp(-self.largest)))
