"""(k, f)-posterior sampling where the rule sees the k drawn environments themselves.

The paper's general form (appendix "General Bayesian Decision-Making"): ``a ~ f(environment_1, ...,
environment_k, seen)``. The rule sees the posterior only through the k draws, so that these are
k-Monte-Carlo algorithms, whatever it computes from them.
"""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.drawn import drawn_environments
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Checked
from priorwise.core.protocols import Belief, offers
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.policies.allocation import Allocates
from priorwise.policies.laws import check_law, environment_law, repeated
from priorwise.policies.shared import draws_of
from priorwise.theory import enumeration
from priorwise.theory.action_laws import ActionLaw, BestActionBelief, RealActionLaw


def check_rule(name: str, rule: Callable[[Any, Seen], Any]) -> None:
    """Check that a rule takes what is drawn."""
    argument_checks.function(name, rule, "environments", "seen")


@final
@frozen(slots=False)
class EnvironmentSampling(Allocates):
    """Any rule on k drawn environments.

    The rule is a function of the drawn environments and of ``seen`` that returns each action's
    probability, ``(task, arm)``. If actions are real numbers, it returns them, ``(task,)`` or
    ``(task, size)``. Drawn environments have ``values(seen)``, the value of each action now,
    ``(task, draw, arm)``, and more of what the family draws:

    * Gaussian, linear, logistic: ``weights`` ``(task, draw, dim)``, of arms or of features
    * normal-gamma: ``means`` and ``variances`` ``(task, draw, arm)``
    * finite: ``points``, the number of the possible task, ``(task, draw)``, and ``means``
    * tabular and finite MDPs: ``transitions``, ``rewards``; finite ones also ``points``
    * finite POMDPs: ``points``, ``transitions``, ``observations``, ``rewards``, and ``states``,
      the belief about the hidden state if it is that candidate
    * particles: ``parameters`` ``(task, draw, d)``
    * mixtures: ``components`` ``(task, draw)`` and ``parts``, the draws of each component
    * linear-quadratic systems: ``parameters`` and ``best_actions(seen)``, and no values

    Others, and custom beliefs without ``sample_environments``, have the values alone.

    Parameters
    ----------
    k
        Number of draws.
    rule
        Function of the drawn environments and of ``seen`` that returns each action's probability,
        ``(task, arm)``. If actions are real numbers, it returns the actions, ``(task,)`` or
        ``(task, size)``. Drawn environments have ``values(seen)``, the value of each action now,
        ``(task, draw, arm)``, and more of what the family draws: * Gaussian, linear, logistic:
        ``weights`` ``(task, draw, dim)``, of arms or of features * normal-gamma: ``means`` and
        ``variances`` ``(task, draw, arm)`` * finite: ``points``, the number of the possible task,
        ``(task, draw)``, and ``means`` * tabular and finite MDPs: ``transitions``, ``rewards``;
        finite ones also ``points`` * finite POMDPs: ``points``, ``transitions``, ``observations``,
        ``rewards``, and ``states``, the belief about the hidden state if it is that candidate *
        particles: ``parameters`` ``(task, draw, d)`` * mixtures: ``components`` ``(task, draw)``
        and ``parts``, the draws of each component * linear-quadratic systems: ``parameters`` and
        ``best_actions(seen)``, and no values Others, and custom beliefs without
        ``sample_environments``, have the values alone.

    Examples
    --------
    >>> import priorwise as pw
    >>> def surest(drawn, seen):  # the arm whose rewards vary least in the drawn environment
    ...     return np.eye(seen.arms)[drawn.variances[:, 0].argmin(axis=1)]
    >>> policy = EnvironmentSampling(1, surest)
    >>> prior = pw.NormalGammaPrior([0.0, 0.0], 1.0, 3.0, [1.0, 9.0])
    >>> policy.monte_carlo_n(2), pw.simulate(prior, policy, horizon=5, tasks=10, seed=0).tasks
    (1, 10)

    """

    k: int = field(validator=Checked(draws_of))
    rule: Callable[[Any, Seen], Any] = field(validator=Checked(check_rule))

    def act(self, belief: Belief, seen: Seen, rng: Stream) -> Any:
        """``a ~ f(environment_1, ..., environment_k)``."""
        argument_checks.acting(self, belief, seen, rng, real=True)
        drawn = drawn_environments(belief, rng, self.k, seen)
        if seen.actions is not None:
            return seen.actions.checked("rule's actions", self.rule(drawn, seen), rng.tasks)
        law = self._law(drawn, seen)
        check_law(law, rng.tasks, seen)
        return rng.choice(law)

    def _law(self, drawn: Any, seen: Seen) -> FloatArray:
        law = self.rule(drawn, seen)
        try:
            return np.asarray(law, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(
                "rule",
                "must return one probability for each task and arm, an array of numbers",
                got=law,
            ) from None

    @by_step
    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the rule's choice, which is asked about every sequence of k possible
        environments; None if these are too many or not finitely many.
        """
        if seen.actions is not None or not offers(belief, enumeration.EnumerableEnvironments):
            return None
        return environment_law(self._law, self.k, belief, seen)

    def real_action_law(self, belief: Any, seen: Seen) -> RealActionLaw | None:
        """Law of the rule's real-valued action; None if the possible environments are too many or
        not finitely many.
        """
        if not offers(belief, BestActionBelief) or not offers(belief, enumeration.PointsBelief):
            return None
        weights = belief.best_action_law(seen).probs
        tasks, points = weights.shape
        if (count := points**self.k) > enumeration.MOST_OUTCOMES:
            return None
        outcomes, log_orders = enumeration.sequences(points, self.k)
        several = belief.take(np.repeat(np.arange(tasks), count))
        asked = repeated(seen, tasks, count)
        drawn = several.environments(np.tile(outcomes, (tasks, 1)), asked)
        assert asked.actions is not None
        actions = asked.actions.checked("rule's actions", self.rule(drawn, asked), tasks * count)
        odds = enumeration.outcome_probabilities(weights, outcomes, log_orders)
        return RealActionLaw(actions.reshape(tasks, count, -1), odds)

    def monte_carlo_n(self, arms: int) -> int:
        """Return k: the rule sees k draws and nothing else of the posterior."""
        validation.count("arms", arms)
        return self.k

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull, for the estimate of work."""
        return self.k

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return self.k
