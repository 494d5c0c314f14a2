"""An alarm when tasks contradict a prior, with a false-alarm rate that holds at any time."""

from typing import Self, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import Checked, Number
from priorwise.core.protocols import Prior
from priorwise.core.trajectories import Trajectory
from priorwise.families.registry import family_for
from priorwise.meta.evidence.likelihood import log_marginal_likelihood


def check_watched(name: str, prior: Prior) -> None:
    """Check that a prior has a likelihood of tasks."""
    argument_checks.fixed_prior(name, prior)
    family_for(prior, "Alarm", name).require("log_marginal")


def check_evidence(name: str, value: float) -> None:
    """Check for a number, which may be infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or np.isnan(value):
        raise ArgumentTypeError(name, "must be a number, as observe() leaves it", got=value)


@final
@frozen(eq=False, slots=False)
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
    log_evidence
    largest

    """

    prior: Prior = field(validator=Checked(check_watched))
    other: Prior = field(validator=Checked(check_watched))
    level: float = field(default=0.01, validator=Number(0.0, 1.0, ends="()"))
    log_evidence: float = field(default=0.0, validator=Checked(check_evidence))
    largest: float = field(default=0.0, validator=Checked(check_evidence))

    def __attrs_post_init__(self) -> None:
        if self.prior.arms != self.other.arms:
            arms = f"{self.prior.arms} and {self.other.arms}"
            raise ArgumentError("prior and other", "must have the same arms", got=arms)
        ours, theirs = (
            type(getattr(each, "reward_law", None)).__name__ for each in (self.prior, self.other)
        )
        if ours != theirs:
            raise ArgumentError(
                "prior and other", "must have the same kind of rewards", got=f"{ours} and {theirs}"
            )

    def observe(self, played: Trajectory) -> Self:
        """Add tasks, in their order.

        A task that ``other`` rules out ends the evidence for good. One that ``prior`` rules out
        raises the alarm for certain, whatever came before and whatever ``other`` says: under
        ``prior`` that never happens.
        """
        validation.instance(
            "played", played, Trajectory, "a Trajectory, such as run.trajectory of a kept run"
        )
        ours, theirs = (log_marginal_likelihood(each, played) for each in (self.prior, self.other))
        sure, gone = np.isneginf(ours), np.isneginf(theirs)
        gained = np.subtract(theirs, ours, out=np.zeros(len(ours)), where=~(sure | gone))
        path = np.cumsum(gained) + (self.log_evidence if np.isfinite(self.log_evidence) else 0.0)
        path[np.logical_or.accumulate(gone) | (self.log_evidence == -np.inf)] = -np.inf
        path[np.logical_or.accumulate(sure) | (self.log_evidence == np.inf)] = np.inf
        largest = float(max(self.largest, path.max()))
        return evolve(self, log_evidence=float(path[-1]), largest=largest)

    @property
    def raised(self) -> bool:
        """Whether the evidence has ever reached ``1 / level``."""
        return bool(self.largest >= -np.log(self.level))

    @property
    def p_value(self) -> float:
        """A p-value that holds at any time: ``1 / max_t E_t``."""
        return float(min(1.0, np.exp(-self.largest)))
