"""(k, f)-posterior sampling: k draws of the environment, and any rule on their values.

The rule sees the posterior only through the k draws, so the law of the action moves by at most k
times the total variation of the posterior: these are k-Monte-Carlo algorithms (Lemma "samples to
n-Monte-Carlo"; k-shot Thompson sampling is Algorithm 1).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.choosing import level, pick
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Checked
from priorwise.core.protocols import Belief, offers
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.allocation import Allocates
from priorwise.policies.laws import check_law, sampling_law
from priorwise.policies.shared import draws_of
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.enumeration import EnumerableBelief

NamedRule = Literal["max", "sum", "softmax"]
Rule = Callable[[FloatArray, Seen], FloatArray]


class SamplingPolicy(Allocates, ABC):
    """A policy that declares how many posterior draws it needs and chooses from their values
    alone.
    """

    uses: ClassVar[frozenset[str]] = frozenset({"draw"})

    draws: int
    acts_on_reals: ClassVar[bool] = False
    """Whether the policy plays the best action of its one draw where actions are real numbers."""

    @final
    def act(self, belief: Belief, seen: Seen, rng: Stream) -> Any:
        """Draw, put -inf on arms that are not available, select."""
        argument_checks.acting(self, belief, seen, rng, real=self.acts_on_reals)
        if seen.actions is not None:
            argument_checks.role(
                "belief", belief, "a belief that draws systems", "sample_environments"
            )
            drawn = belief.sample_environments(rng, 1, seen)  # type: ignore[attr-defined]
            return drawn.best_actions(seen)[:, 0]
        draws = self.drawn_at_once
        values = belief.sample(rng, draws, seen)
        if np.shape(values) != (shape := (rng.tasks, draws, seen.arms)):
            raise ArgumentError(
                f"{type(belief).__name__}.sample",
                f"must return a value for each task, draw and arm, shape {shape}",
                got=np.shape(values),
            )
        return self.select(seen.masked(values), seen, rng)

    @abstractmethod
    def select(self, values: FloatArray, seen: Seen, rng: Stream) -> IntArray:
        """Choose an arm for each task from the drawn values ``(task, draw, arm)``."""

    def monte_carlo_n(self, arms: int) -> int:
        """Return n: the law of the action moves by at most n times the total variation of the
        posterior.
        """
        validation.count("arms", arms)
        return self.draws

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull, for the estimate of work."""
        return self.drawn_at_once

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return validation.count(f"{type(self).__name__}.draws", getattr(self, "draws", None))


def sampling_tiles(
    policy: Any, family: FamilyTiles, horizon: int, masked: bool
) -> PolicyTiles | None:
    """Tile function for the compiled loop, the method of policies with a named rule on their draws;
    None for a rule of the user's.
    """
    from priorwise.kernels import policies as kernels

    if callable(policy.rule):
        return None
    kind = {"max": kernels.MAX, "sum": kernels.SUM, "softmax": kernels.SOFTMAX}[policy.rule]
    sizes = np.array([family.arms, policy.draws, kind, masked, family.draw_calls])
    once = policy.draws == 1
    return PolicyTiles(np.zeros(1), sizes, kernels.posterior_sampling, policy.uses, once)


def check_rule(name: str, rule: NamedRule | Rule) -> None:
    """Check that a rule has a known name, or takes the values."""
    if callable(rule):
        argument_checks.function(name, rule, "values", "seen")
    else:
        validation.one_of(name, rule, NamedRule, " or a function")


@final
@frozen(slots=False)
class PosteriorSampling(SamplingPolicy):
    """Any rule on k posterior draws.

    Parameters
    ----------
    k
        Number of draws.
    rule
        ``'max'``: the arm with the largest value in any draw. ``'sum'``: the arm with the largest
        sum over the draws; the larger k, the closer to the largest posterior mean. ``'softmax'``:
        an arm with probability proportional to the exponential of its sum. Or a function of the
        values ``(task, draw, arm)`` and of ``seen`` (which shows the step) that returns each arm's
        probability, ``(task, arm)``; values of arms that are not available are -inf.

    """

    k: int = field(validator=Checked(draws_of))
    rule: NamedRule | Rule = field(default="max", validator=Checked(check_rule))

    @property
    def draws(self) -> int:  # type: ignore[override]
        """Number of posterior draws."""
        return self.k

    def select(self, values: FloatArray, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ f_h(mu^(1), ..., mu^(k))``."""
        if self.rule == "max":
            return pick(values.max(axis=1), rng.uniform())
        if self.rule == "sum":
            return pick(level(values.sum(axis=1), np.abs(values).sum(axis=1)), rng.uniform())
        if self.rule == "softmax":
            total = values.sum(axis=1)
            return rng.choice(np.exp(total - total.max(axis=1, keepdims=True)))
        law = np.asarray(self.rule(values, seen), dtype=np.float64)
        check_law(law, len(values), seen)
        return rng.choice(law)

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the rule's choice."""
        if callable(self.rule) and offers(belief, EnumerableBelief):
            return self._enumerated(belief, seen)
        return sampling_law(self.k, self.rule, belief, seen)

    @by_step
    def _enumerated(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of a rule of the user's, which is asked about outcomes and not about tasks: one step
        at a time.
        """
        return sampling_law(self.k, self.rule, belief, seen)

    tiles = sampling_tiles
