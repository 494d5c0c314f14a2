"""Posterior sampling with draws that are kept for a round: PSRL, after Osband, Russo and Van Roy
(2013), and its optimistic form over k draws.

At the first step of every ``steps`` steps, k environments are drawn from the posterior; until the
next time the rule chooses from their values, whatever is learned in between. With one draw the plan
of one MDP is followed to the end of a round, where drawing anew at every step may dither.

Earlier actions of a round reveal which environments were drawn, so no Monte-Carlo constant holds
per step given the history. Counting the draw as an action, trajectories differ by at most ``2 k R
eps`` with R redraws: :func:`~priorwise.sensitivity.pomdp_trajectory_bound` with ``redraws=R``.
"""

from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Checked, Count
from priorwise.core.protocols import EnvironmentBelief
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.policies.posterior_sampling import NamedRule, PosteriorSampling, Rule, check_rule
from priorwise.policies.shared import draws_of


@final
@frozen(slots=False)
class RoundSampling:
    """Choose by a rule from the values of k environments that are drawn once a round.

    Parameters
    ----------
    k
        Number of environments; with more than one and the rule ``'max'`` the policy is optimistic.
    rule
        As for :class:`~priorwise.policies.PosteriorSampling`.
    steps
        Steps for which draws are kept, as a rule those of a round.

    Examples
    --------
    >>> policy = RoundSampling(steps=20)
    >>> policy.redraws(100), policy.monte_carlo_n(2)
    (5, None)

    """

    needs: ClassVar[tuple[type, ...]] = (EnvironmentBelief,)

    k: int = field(default=1, validator=Checked(draws_of))
    rule: NamedRule | Rule = field(default="max", validator=Checked(check_rule))
    steps: int = field(kw_only=True, validator=Count())

    def _chooser(self) -> PosteriorSampling:
        return PosteriorSampling(self.k, self.rule)

    def begin(self, tasks: int) -> None:
        """Nothing is drawn before the first step."""

    def decide(self, belief: Any, seen: Seen, rng: Stream, memory: Any) -> tuple[Any, Any]:
        """Draw anew if it is time, and choose from the values of what was drawn."""
        argument_checks.acting(self, belief, seen, rng, real=self.k == 1 and self.rule == "max")
        step = np.unique(seen.step)
        if step.size > 1:
            raise ArgumentError(
                "seen", "must show tasks at one step, whose draws RoundSampling keeps"
            )
        if memory is None or (int(step[0]) - 1) % self.steps == 0:
            memory = belief.sample_environments(rng, self.k, seen)
        if seen.actions is not None:
            return memory.best_actions(seen)[:, 0], memory
        values = seen.masked(memory.values(seen))
        return self._chooser().select(values, seen, rng), memory

    def redraws(self, horizon: int) -> int:
        """How often environments are drawn in a task of so many steps, R."""
        return -(-validation.count("horizon", horizon) // self.steps)

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: given the history, actions reveal earlier draws."""
        validation.count("arms", arms)

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return self.k
