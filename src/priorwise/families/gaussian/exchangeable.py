"""Normal arms that are new in every task: exchangeable, so that a prior learned on past arms speaks
about new ones.
"""

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
from priorwise.families.gaussian.prior import GaussianBelief, GaussianPrior
from priorwise.families.registry import belief_for_arms


@final
@frozen(eq=False, slots=False)
class ExchangeableGaussianPrior(Serializable):
    """Arms with one mean, one variance and one correlation: a level of the task plus a deviation of
    the arm.

    Parameters
    ----------
    mean
        Prior mean of every arm's mean.
    var
        Its prior variance.
    correlation
        Correlation of any two arms of a task, from -1/(arms - 1).
    noise_var
        Variance of a reward around its arm's mean.

    Examples
    --------
    >>> ExchangeableGaussianPrior(0.0, 1.0, 0.9, 1.0).for_arms(2).cov.tolist()
    [[1.0, 0.9], [0.9, 1.0]]

    """

    family: ClassVar[str] = "exchangeable-gaussian"

    mean: float = field(validator=Number())
    var: float = field(validator=Number(0.0))
    correlation: float = field(validator=Number(-1.0, 1.0))
    noise_var: float = field(default=1.0, validator=Number(1e-100))

    def for_arms(self, arms: int) -> GaussianPrior:
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
        return GaussianPrior(np.full(arms, self.mean), cov, self.noise_var)

    def in_words(self, std_errors: Mapping[str, Any]) -> list[str]:
        """Read the correlation back: whether arms of one task move together."""
        error = float(std_errors.get("correlation", np.nan))
        said = f"correlation {self.correlation:.2f}"
        if np.isfinite(error):
            said += f" ± {error:.2f}"
        if abs(self.correlation) <= 2.0 * error:
            return [f"no sign that arms of one task move together: {said}"]
        if self.correlation <= 0.0:
            how = "move apart" if self.correlation < 0.0 else "are taken as independent"
            return [f"arms of one task {how}: {said}"]
        share = "so that share of the variance belongs to the task"
        return [f"arms of one task move together: {said}, {share}"]

    def sample(self, rng: Stream, tasks: int, *, arms: int) -> BanditEnvironment:
        """Environments with this many arms."""
        return self.for_arms(arms).sample(rng, tasks)

    def belief(self, tasks: int, *, arms: int) -> GaussianBelief:
        """Belief about tasks with this many arms."""
        return self.for_arms(arms).belief(tasks)

    def belief_given(self, statistics: Any) -> GaussianBelief:
        """Return the belief about tasks with as many arms as their statistics have."""
        belief: GaussianBelief = belief_for_arms(self, statistics)
        return belief
