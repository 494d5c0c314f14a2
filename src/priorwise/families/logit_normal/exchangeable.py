"""Bernoulli arms that are new in every task and move together: exchangeable, so that a prior
learned on past arms speaks about new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import sizes, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Number
from priorwise.core.rewards import BanditEnvironment
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.families.logit_normal.prior import LogitNormalBelief, LogitNormalPrior, check_sizes
from priorwise.families.registry import belief_for_arms


@final
@frozen(eq=False, slots=False)
class ExchangeableLogitNormalPrior(Serializable):
    """Arms whose log odds have one mean, one variance and one correlation: a level of the task plus
    a deviation of the arm.

    Parameters
    ----------
    mean
        Mean of every arm's log odds.
    var
        Their variance.
    correlation
        Correlation of any two arms of a task, from -1/(arms - 1).

    Examples
    --------
    >>> ExchangeableLogitNormalPrior(-4.0, 0.2, 0.9).for_arms(2).cov.round(2).tolist()
    [[0.2, 0.18], [0.18, 0.2]]

    """

    family: ClassVar[str] = "exchangeable-logit-normal"

    mean: float = field(validator=Number())
    var: float = field(validator=Number(0.0))
    correlation: float = field(validator=Number(-1.0, 1.0))

    def __attrs_post_init__(self) -> None:
        check_sizes(np.array([self.mean]), np.array([self.var]), "var")

    def for_arms(self, arms: int) -> LogitNormalPrior:
        """Return the prior of a task with this many arms."""
        arms = validation.count("arms", arms)
        if arms > 1 and self.correlation < -1.0 / (arms - 1) - 1e-12:
            raise ArgumentError(
                "correlation",
                f"must be at least {-1 / (arms - 1):g} for {arms} arms",
                got=self.correlation,
            )
        size = 32.0 * sizes.as_float(arms) ** 2  # the covariance, and what is made of it
        sizes.check_memory("arms", arms, size, "lower arms")
        cov = self.var * (self.correlation + (1.0 - self.correlation) * np.eye(arms))
        np.fill_diagonal(cov, self.var)
        return LogitNormalPrior(np.full(arms, self.mean), cov)

    def in_words(self, std_errors: Mapping[str, Any]) -> list[str]:
        """Read the mean as a rate, and the correlation back: whether arms of one task move
        together.
        """
        rate = 1.0 / (1.0 + np.exp(-self.mean))
        lines = [f"log odds of the median arm {self.mean:.2f}: a rate of {rate:.3g}"]
        error = float(std_errors.get("correlation", np.nan))
        said = f"correlation {self.correlation:.2f}"
        if np.isfinite(error):
            said += f" ± {error:.2f}"
        if abs(self.correlation) <= 2.0 * error:
            return [*lines, f"no sign that arms of one task move together: {said}"]
        if self.correlation <= 0.0:
            how = "move apart" if self.correlation < 0.0 else "are taken as independent"
            return [*lines, f"arms of one task {how}: {said}"]
        share = "so that share of the variance of log odds belongs to the task"
        return [*lines, f"arms of one task move together: {said}, {share}"]

    def sample(self, rng: Stream, tasks: int, *, arms: int) -> BanditEnvironment:
        """Environments with this many arms."""
        return self.for_arms(arms).sample(rng, tasks)

    def belief(self, tasks: int, *, arms: int) -> LogitNormalBelief:
        """Belief about tasks with this many arms."""
        return self.for_arms(arms).belief(tasks)

    def belief_given(self, statistics: Any) -> LogitNormalBelief:
        """Return the belief about tasks with as many arms as their statistics have."""
        belief: LogitNormalBelief = belief_for_arms(self, statistics)
        return belief
