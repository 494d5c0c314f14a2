"""From what was played to the statistics of a prior's family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from priorwise.core.runs import Trajectory
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import FiniteStatistics
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics


def gaussian_statistics(played: Trajectory, arms: int) -> GaussianStatistics:
    """Pulls, sums and squares; a trajectory does not say how many arms there were."""
    return GaussianStatistics.from_trajectory(played.actions, played.rewards, arms=arms)


def beta_statistics(played: Trajectory, arms: int) -> BetaStatistics:
    """Successes and pulls."""
    return BetaStatistics.from_trajectory(played.actions, played.rewards, arms=arms)


def _linear(played: Trajectory) -> LinearStatistics:
    if played.log is None:
        raise ValueError(
            "these tasks have no features: they do not come from a linear contextual bandit"
        )
    return LinearStatistics.from_trajectory(played.log, played.rewards)


_READERS: Final[dict[type, tuple[type, Callable[[Any, Trajectory], Any]]]] = {
    GaussianPrior: (
        GaussianStatistics, lambda prior, played: gaussian_statistics(played, prior.arms)
    ),
    BetaPrior: (BetaStatistics, lambda prior, played: beta_statistics(played, prior.arms)),
    LinearGaussianPrior: (LinearStatistics, lambda prior, played: _linear(played)),
    FinitePrior: (
        FiniteStatistics,
        lambda prior, seen: FiniteStatistics.from_trajectory(seen.actions, seen.rewards, prior),
    ),
}  # fmt: skip


def statistics_kind(name: str, prior: Any) -> type:
    """Class of the statistics of a prior's family; refuse a prior whose family has none."""
    if type(prior) not in _READERS:
        known = ", ".join(each.__name__ for each in _READERS)
        raise TypeError(
            f"{name} must be a prior whose statistics are known ({known}), got a "
            f"{type(prior).__name__}"
        )
    return _READERS[type(prior)][0]


def has_statistics(prior: Any, kind: type | None) -> bool:
    """Whether the statistics of a prior's family are known, and of this class."""
    return type(prior) in _READERS and _READERS[type(prior)][0] is kind


def statistics(prior: Any, played: Trajectory) -> Any:
    """Sufficient statistics of tasks for the family of a prior, with its number of arms (or
    features, or candidates).
    """
    statistics_kind("prior", prior)
    return _READERS[type(prior)][1](prior, played)
