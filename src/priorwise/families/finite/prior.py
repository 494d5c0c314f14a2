"""A prior on finitely many mean vectors: mu = means[s] with probability probs[s].

Rewards are noiseless, Bernoulli or normal. A noiseless trajectory may be impossible under the held
prior (it holds the wrong support or a probability of zero); the belief then starts again from that
prior, and counts that it did.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, final, get_args

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Array,
    Choice,
    Names,
    Probabilities,
    arrays,
    optional_arrays,
    words,
)
from priorwise.core.rewards import (
    BanditEnvironment,
    BernoulliRewards,
    NoiselessRewards,
    NormalRewards,
    RewardLaw,
)
from priorwise.core.seen import Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.finite.belief import FiniteBelief, log_probs
from priorwise.families.registry import seen_by
from priorwise.theory.enumeration import Outcome, Outcomes
from priorwise.theory.numerics import rescaled

Noise = Literal["none", "bernoulli", "gaussian"]

SAME_REWARD: Final = 1e-9
"""Noiseless rewards this close, relative to the largest mean, are the same."""


def check_bernoulli(name: str, means: FloatArray, noise: str) -> None:
    """Check that rewards of 0 or 1 can have these means."""
    if noise == "bernoulli" and (means.min() < 0.0 or means.max() > 1.0):
        wrong = means.min() if means.min() < 0.0 else means.max()
        raise ArgumentError(name, "must lie in [0, 1] with Bernoulli noise", got=wrong)


@final
@frozen(eq=False, slots=False)
class FinitePrior(Serializable):
    """Finitely many possible tasks.

    Parameters
    ----------
    means
        Mean of each arm in each possible task, ``(support, arm)``.
    probs
        Probabilities of the tasks, ``(support,)``.
    noise
        ``'none'``: the reward is the mean; ``'bernoulli'``: 0 or 1 with that mean; ``'gaussian'``:
        normal with ``noise_var``.
    noise_var
        Variance of normal rewards, ``(arm,)``, or one for all arms.
    names
        Names of the arms.

    Examples
    --------
    >>> FinitePrior(means=[[1.0, 0.0], [0.0, 1.0]], probs=[0.5, 0.5]).arms
    2

    """

    family: ClassVar[str] = "finite"

    means: FloatArray = field(converter=arrays, validator=Array(("support", "arm")))
    probs: FloatArray = field(converter=arrays, validator=Probabilities(("support",)))
    noise: Noise = field(default="none", validator=Choice(Noise))
    noise_var: FloatArray | None = field(
        default=None, converter=optional_arrays, validator=Array(("arm",), 1e-100, spread=1)
    )
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names()
    )

    def __attrs_post_init__(self) -> None:
        check_bernoulli("means", self.means, self.noise)
        if (self.noise == "gaussian") != (self.noise_var is not None):
            raise ArgumentError(
                "noise_var",
                "is the variance of a reward",
                cure="noise='gaussian' needs it, other noise takes none",
            )

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.means.shape[1]

    @property
    def support(self) -> int:
        """Number of possible tasks."""
        return self.means.shape[0]

    @property
    def _signed(self) -> bool:
        """Whether means may cancel."""
        return bool(self.means.min() < 0.0)

    @property
    def tolerance(self) -> float:
        """How close two noiseless rewards must be to count as the same."""
        return SAME_REWARD * float(np.abs(self.means).max())

    @property
    def reward_law(self) -> RewardLaw:
        """How rewards scatter around their means."""
        if self.noise == "none":
            return NoiselessRewards()
        if self.noise_var is None:
            return BernoulliRewards()
        return NormalRewards(tuple(self.noise_var.tolist()))

    @property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest reward."""
        support: tuple[float, float] | None = self.reward_law.support
        return (float(self.means.min()), float(self.means.max())) if support is None else support

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1."""
        law: bool | None = self.reward_law.binary
        return bool(np.isin(self.means, (0.0, 1.0)).all()) if law is None else law

    def log_density(self, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """Log density of rewards under each possible task, with its constant, ``(task,
        support)``.
        """
        likelihood = self.log_likelihood(actions, rewards)
        if self.noise_var is None:
            return likelihood
        return likelihood - 0.5 * np.log(2.0 * np.pi * self.noise_var[actions])[:, None]

    def log_likelihood(self, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """Log likelihood of each possible task, ``(task, support)``, up to a constant of the
        reward.
        """
        means = self.means.T[actions]
        r = rewards[:, None]
        if self.noise_var is not None:
            return np.asarray(-0.5 * (r - means) ** 2 / self.noise_var[actions][:, None])
        with np.errstate(divide="ignore"):
            if self.noise == "bernoulli":
                return np.asarray(np.log(np.where(r > 0.5, means, 1.0 - means)))
            return np.where(np.abs(r - means) <= self.tolerance, 0.0, -np.inf)

    def likelihoods(self, arm: int) -> list[tuple[float, FloatArray]] | None:
        """Rewards that an arm may show, with their probabilities in each possible task,
        ``(support,)``; None for normal rewards.
        """
        column = self.means[:, arm]
        if self.noise == "bernoulli":
            return [(1.0, column), (0.0, 1.0 - column)]
        if self.noise == "gaussian":
            return None
        starts: list[float] = []
        for value in np.sort(column).tolist():
            if not starts or value - starts[-1] > self.tolerance:
                starts.append(value)
        group = np.searchsorted(starts, column, side="right") - 1
        return [(start, (group == i).astype(np.float64)) for i, start in enumerate(starts)]

    @property
    def candidates(self) -> FloatArray:
        """The tasks' mean vectors."""
        return self.means

    def pooled(self, others: "Sequence[FinitePrior]", kept: BoolArray) -> "FinitePrior":
        """Return a prior on the tasks of this one and of others, of which those that are kept."""
        means = np.concatenate([each.means for each in (self, *others)])[kept]
        return self.replaced(means=means, probs=np.full(len(means), 1.0 / len(means)))

    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Largest and smallest mean of each task."""
        return self.means.max(axis=1), self.means.min(axis=1)

    def first_signals(self) -> tuple[None, FloatArray]:
        """Nothing is shown."""
        return None, np.ones(1)

    def outcomes(self, signal: Signal, step: int) -> Outcomes | None:
        """For each arm the rewards that it may show; None for normal rewards."""
        if self.noise == "gaussian":
            return None
        return [
            [Outcome(reward, None, chance) for reward, chance in self.likelihoods(arm) or ()]
            for arm in range(self.arms)
        ]

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        """Draw which task it is."""
        index = rng.choice(
            np.broadcast_to(self.probs, (argument_checks.batch(rng, tasks), self.support))
        )
        return BanditEnvironment(self.means[index], self.reward_law)

    def belief(self, tasks: int) -> FiniteBelief:
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        start = np.broadcast_to(log_probs(self.probs), (tasks, self.support))
        return FiniteBelief(self, start, np.zeros(tasks, dtype=np.int64))

    def belief_given(self, statistics: Any) -> FiniteBelief:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding; tasks may have had different
        numbers of pulls. A task that the prior rules out starts again from the prior, and forgets
        all its pulls.
        """
        start, seen = log_probs(self.probs), seen_by(self, statistics)
        seen.check_about(self)
        weights, impossible = rescaled(start + seen.log_likelihood, start)
        return FiniteBelief(self, weights, impossible.astype(np.int64))

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles:
        """Tile functions for the compiled loop."""
        from priorwise.families.finite import tiles as kernels
        from priorwise.families.finite import tiles_cells as cells
        from priorwise.families.finite import tiles_exact as exact
        from priorwise.families.finite import tiles_look as pulls
        from priorwise.families.finite.tiles_tables import NO_TABLES, look_tables
        from priorwise.kernels.bandit import bandit_tiles

        arms, support = self.arms, self.support
        variances = np.zeros(arms) if self.noise_var is None else self.noise_var
        deviations, noiseless = np.sqrt(variances), self.noise == "none"
        tables = NO_TABLES
        if "look" in uses:
            tables = look_tables(self.means, deviations, noiseless=noiseless)
        order = np.empty(0, np.int64)
        if not uses.isdisjoint({"quantile", "best_after"}):
            order = np.argsort(self.means.T, axis=1, kind="stable")
        p, n = kernels.At.pack(
            arms=arms,
            support=support,
            noise=get_args(Noise).index(self.noise),
            means=self.means,
            log_weights=log_probs(self.probs),
            noise_var=variances,
            noise_std=deviations,
            tolerance=self.tolerance,
            order=order,
            **tables,
        )
        return bandit_tiles(
            p,
            n,
            kernels,
            pulls,
            exact,
            belief_rows=2 * support + 1,
            scratch_rows=support if "best_after" in uses else 1,
            resets_row=2 * support,
            look_many=cells.look if tables["cells"] else None,
            many_pulls=tables["cells"],
            draws_cancel=self._signed,
            look_keeps_keys=True,
            mean_size=kernels.mean_size if self._signed else None,
        )
