"""What a meta-learner is: it meets one task after the other and decides which prior and which
policy to hold in the next ones.

A learner is frozen and its state is a value. ``plan`` says what to play, ``step`` takes in what was
played. Between two changes of mind a learner holds one prior, so that the tasks in between run in
one call of the compiled loop.
"""

from typing import Any, Final, Protocol, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.parameters import Checked, Count, Role, Seed
from priorwise.core.protocols import Policy, Prior
from priorwise.core.streams import Stream
from priorwise.core.trajectories import Trajectory
from priorwise.families.registry import family_for

FOREVER: Final = 1 << 62
"""More episodes than any run has."""


@final
@frozen(eq=False, slots=False)
class Setting:
    """What is known about the tasks before the first one: all but the law they are drawn from."""

    truth: Prior = field(repr=False, validator=Role("a prior"))
    horizon: int = field(validator=Count())
    seed: int = field(default=0, validator=Seed())

    @property
    def arms(self) -> int:
        """Number of actions."""
        return self.truth.arms

    @property
    def blank(self) -> Any:
        """A prior that knows the reward law (contexts, possible tasks) and nothing of the law of
        tasks.

        Normal families: mean 0 and the covariance of the noise, so that it weighs as much as one
        pull of each arm. Bernoulli arms: Beta(1, 1). Finite: uniform on the possible tasks.
        """
        tool = "a learner without a prior to start from (pass one to the learner)"
        return family_for(self.truth, tool).blank(self.truth)


@final
@frozen(eq=False, slots=False)
class Play:
    """Hold this policy and this prior for at most so many episodes.

    The run may cut a play short: at its end, or where a block of tasks would grow too large. The
    learner is then shown what was played and asked again.
    """

    policy: Policy = field(validator=Checked(argument_checks.player))
    believed: Prior = field(validator=Checked(argument_checks.prior))
    episodes: int = field(default=1, validator=Count())


class MetaLearner(Protocol):
    """A rule that turns past tasks into the prior held in the next ones; frozen."""

    def init(self, setting: Setting) -> Any:
        """State before the first task: a value."""
        ...

    def plan(self, state: Any, rng: Stream) -> Play:
        """What to hold in the next episodes; ``rng`` serves one task, the learner, and is fresh for
        each episode.
        """
        ...

    def step(self, state: Any, play: Play, played: Trajectory) -> Any:
        """State after the episodes ``played`` (episode axis first), of which there are at most
        ``play.episodes``.
        """
        ...


@final
@frozen(slots=False)
class FixedPrior:
    """Learn nothing: hold one prior throughout.

    Parameters
    ----------
    policy
        The algorithm that pulls.
    believed
        The prior it holds; None: the true one, which makes it the oracle.

    """

    policy: Policy = field(validator=Checked(argument_checks.player))
    believed: Prior | None = field(default=None, validator=Checked(argument_checks.prior))

    def init(self, setting: Setting) -> Prior:
        """Look up the prior."""
        return setting.truth if self.believed is None else self.believed

    def plan(self, state: Prior, rng: Stream) -> Play:
        """Hold it for ever."""
        return Play(self.policy, state, FOREVER)

    def step(self, state: Prior, play: Play, played: Trajectory) -> Prior:
        """Nothing changes."""
        return state


def generator(rng: Stream) -> np.random.Generator:
    """NumPy generator for the next request of the learner's stream."""
    return np.random.default_rng(int(rng.bits()[0]))
