"""(k, f)-posterior sampling where the rule sees the k drawn environments themselves.

The paper's general form: ``a ~ f(environment_1, ..., environment_k, seen)``. The rule sees the
posterior only through the k draws, so that these are k-Monte-Carlo algorithms, whatever it computes
from them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import doors, sizes, validation
from priorwise.core.allocation import Allocates
from priorwise.core.protocols import EnvironmentBelief, Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.posterior_sampling import check_law


@final
@dataclass(frozen=True)
class EnvironmentSampling(Allocates):
    """Any rule on k drawn environments.

    Parameters
    ----------
    k
        Number of draws.
    rule
        Function of the drawn environments, as ``belief.sample_environments`` returns them, and of
        ``seen``, that returns each action's probability, ``(task, arm)``. The draws of a tabular
        MDP have ``transitions`` ``(task, draw, state, action, next state)``, ``rewards`` ``(task,
        draw, state, action)`` and ``values(seen)`` ``(task, draw, arm)``.

    """

    needs: ClassVar[tuple[type, ...]] = (EnvironmentBelief,)

    k: int
    rule: Callable[[Any, Seen], FloatArray]

    def __post_init__(self) -> None:
        sizes.check_draws("k", validation.count("k", self.k))
        doors.function("rule", self.rule, "environments", "seen")

    def act(self, belief: EnvironmentBelief, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ f(environment_1, ..., environment_k)``."""
        doors.acting(self, belief, seen, rng)
        drawn = belief.sample_environments(rng, self.k, seen)
        law = np.asarray(self.rule(drawn, seen), dtype=np.float64)
        check_law(law, rng.tasks, seen)
        return rng.choice(law)

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
