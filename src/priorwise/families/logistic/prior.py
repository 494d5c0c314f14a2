"""Bernoulli rewards in a context: w ~ N(mean, cov), r ~ Bernoulli(1 / (1 + e^-(x_a'w))), with the
features x_a drawn afresh at each pull.

The posterior has no closed form, and no sum of fixed size is enough: a belief keeps every pull,
and Laplace's approximation of the law of the weights (``laplace``), which each update finds
anew from the mode before it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.parameters import Array, Covariance, Names, arrays, words
from priorwise.core.rewards import BernoulliRewards
from priorwise.core.seen import Seen
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.linear.contexts import (
    Contexts,
    GivenContexts,
    check_weights,
    law_of_contexts,
)
from priorwise.families.linear.environment import FeatureEnvironment
from priorwise.families.logistic.belief import LogisticBelief, PoolLogisticBelief
from priorwise.families.logistic.statistics import check_features
from priorwise.families.logit_normal.prior import check_sizes
from priorwise.families.logit_normal.tilted import rates
from priorwise.families.registry import seen_by

VAGUE_VAR: Final = 3.0
"""Of a weight of which nothing is known: with a feature of 1 the success probability is all but
uniform.
"""


@final
@frozen(eq=False, slots=False)
class LogisticPrior(Serializable):
    """Normal prior over the weights of a logistic contextual bandit, with rewards 0 or 1.

    Parameters
    ----------
    mean
        Prior mean of each weight, in log odds per unit of a feature, ``(dim,)``.
    cov
        Their prior covariance; it may be singular, ``(dim, dim)``.
    contexts
        Where features come from: `SphereContexts`, `NormalContexts`, `GivenContexts`, an array
        ``(pool, arm, dim)`` or ``(arm, dim)``, or any object with ``arms`` and ``draw(rng, dim)``.
    names
        Names of the arms.

    Examples
    --------
    >>> from priorwise.families.linear.contexts import SphereContexts
    >>> LogisticPrior(np.ones(3), np.eye(3), contexts=SphereContexts(arms=6)).arms
    6

    """

    family: ClassVar[str] = "logistic"
    microseconds: ClassVar = {"draw": 10.0, "mean": 12.0, "look": 400.0}
    """About what a pull of one task takes, by what its policy asks of the belief."""

    mean: FloatArray = field(converter=arrays, validator=Array(("dim",)))
    cov: FloatArray = field(converter=arrays, validator=Covariance(("dim", "dim")))
    contexts: Contexts = field(default=None, converter=law_of_contexts)
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names()
    )

    def __attrs_post_init__(self) -> None:
        if isinstance(self.contexts, GivenContexts):
            check_features("contexts", self.contexts.features)
        check_weights(self.contexts, self.mean.size)
        check_sizes(self.mean, np.diag(self.cov))

    @cached_property
    def _root(self) -> FloatArray:
        """L with ``L L' = cov``."""
        return validation.square_root(self.cov)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.contexts.arms

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.mean.size

    @property
    def reward_law(self) -> BernoulliRewards:
        """How rewards scatter around their means."""
        return BernoulliRewards()

    def values(self, weights: FloatArray, seen: Seen) -> FloatArray:
        """Success probabilities of the arms given weights ``(task, draw, dim)``."""
        features = argument_checks.features(seen, len(weights), self.arms, self.dim)
        return rates(weights @ features.transpose(0, 2, 1))

    def sample(self, rng: Stream, tasks: int) -> "LogisticEnvironment":
        """``w ~ N(mean, cov)``."""
        argument_checks.batch(rng, tasks)
        weights = self.mean + np.einsum("tj,ij->ti", rng.normal(self.dim), self._root)
        return LogisticEnvironment(weights, self.contexts, self.reward_law)

    @property
    def _belief(self) -> type[LogisticBelief]:
        pool = isinstance(self.contexts, GivenContexts)
        return PoolLogisticBelief if pool else LogisticBelief

    def belief(self, tasks: int) -> LogisticBelief:
        """Start at the prior."""
        tasks, dim = argument_checks.tasks_of(tasks), self.dim
        return self._belief(
            self,
            np.broadcast_to(self.mean, (tasks, dim)),
            np.broadcast_to(self._root, (tasks, dim, dim)),
            np.zeros((tasks, dim)),
            np.zeros((tasks, 0, dim)),
            np.zeros((tasks, 0)),
            np.zeros(tasks, dtype=np.int64),
        )

    def belief_given(self, statistics: Any) -> LogisticBelief:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding; tasks may have had different
        numbers of pulls.
        """
        seen = seen_by(self, statistics)
        start = np.zeros((seen.tasks, self.dim))
        pulls = seen.pulls.astype(np.int64)
        return self._belief.of(self, start, seen.features, seen.rewards, pulls)


@final
@dataclass(frozen=True, eq=False)
class LogisticEnvironment(FeatureEnvironment):
    """Scores are log odds."""

    def expected(self, scores: FloatArray) -> FloatArray:
        """``1 / (1 + e^-(x_a'w))``."""
        return rates(scores)
