"""The four roles of a decision problem, and what a policy may see.

A bandit is a decision problem without a state, a contextual bandit one whose state is drawn afresh,
an MDP one that keeps it. What makes one loop serve them all: ``Belief.sample`` returns the value of
each action *now* in each drawn environment (a mean, ``x'w``, the ``Q`` of a planned model).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, Self, runtime_checkable

from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray


def offers(value: Any, role: Any) -> bool:
    """Whether a value has the methods of a role: ``isinstance``, but looked up once per class, for
    what runs at every step.
    """
    kind: type = type(value)
    return _offered(kind, role)


@cache
def _offered(kind: type, role: Any) -> bool:
    return issubclass(kind, role)


class Environment(Protocol):
    """A batch of environments, with their hidden state if there is one."""

    def start(self, rng: WorldStreams) -> Signal:
        """Signal before the first action."""
        ...

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Rewards ``(task,)`` of the actions ``(task,)``, and the next signal."""
        ...


class Belief(Protocol):
    """The posterior of a batch of tasks: a value, never changed in place."""

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Value of each action now in ``draws`` environments of the posterior: ``(task, draw,
        arm)``.
        """
        ...

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on what an action earned; ``seen`` is from before the action, ``after`` the
        next signal.
        """
        ...


class Prior(Protocol):
    """A law over environments, P_theta; frozen."""

    @property
    def arms(self) -> int:
        """Number of actions."""
        ...

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Environments drawn from the prior, one per task."""
        ...

    def belief(self, tasks: int) -> Belief:
        """Start the posterior of ``tasks`` tasks before any observation."""
        ...


class Policy(Protocol):
    """alg(theta): a rule that turns a belief into actions; frozen."""

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task: ``(task,)``."""
        ...

    def monte_carlo_n(self, arms: int) -> int | None:
        """Monte-Carlo constant with so many arms, or None where none is proved.

        Given any two posteriors, the laws of the action differ by at most n times the total
        variation between them. It is 0 for a policy that does not look at the posterior.
        """
        ...


@runtime_checkable
class MemoryPolicy(Protocol):
    """A policy that remembers from pull to pull what it decided: a plan, a kept draw, a count.

    What rewards teach belongs to the belief. The memory is a value that only the loop keeps, never
    the policy: ``decide`` returns the next one and leaves the old one as it was. Its arrays have
    the task axis first and a task's part depends on that task alone, so that results do not depend
    on blocks.
    """

    def begin(self, tasks: int) -> Any:
        """Memory of each task before its first pull."""
        ...

    def decide(self, belief: Any, seen: Seen, rng: Stream, memory: Any) -> tuple[IntArray, Any]:
        """Choose an action for each task, ``(task,)``, and say what to remember."""
        ...


def monte_carlo_n(policy: Any, arms: int) -> int | None:
    """Monte-Carlo constant of anyone's policy, checked; a policy without the method has none that
    is proved. Problems whose actions are real numbers have 0 arms.
    """
    constant, arms = getattr(policy, "monte_carlo_n", None), validation.count("arms", arms, least=0)
    n = None if constant is None else constant(max(arms, 1))
    if n is None:
        return None
    return validation.count(f"{type(policy).__name__}.monte_carlo_n(arms)", n, least=0)


@runtime_checkable
class ScoredPolicy(Protocol):
    """Plays the arm with the largest score, any of them where several tie: its law given the belief
    is known.
    """

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task: ``(task,)``."""
        ...

    def scores(self, belief: Any, seen: Seen) -> FloatArray:
        """Score of each action, ``(task, arm)``; -inf for those that are not available."""
        ...


@runtime_checkable
class StagedPolicy(Protocol):
    """Plays some rounds that do not look at the posterior, then another policy, or None."""

    @property
    def rounds(self) -> int:
        """How many rounds come before."""
        ...

    @property
    def then(self) -> Any:
        """Return the policy of the rounds after."""
        ...

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task: ``(task,)``."""
        ...


# What some environments and beliefs offer beyond their role. A policy that needs it says so in
# `needs`.


@runtime_checkable
class ValuedEnvironment(Protocol):
    """Offers the expected reward of every action now, so that there is a best one and a regret."""

    def values(self, signal: Signal) -> FloatArray:
        """Expected reward of each action, ``(task, arm)``."""
        ...


@runtime_checkable
class PlannedEnvironment(Protocol):
    """Offers what actions are worth with all that follows them, which ``Belief.sample`` draws."""

    def planned(self, seen: Seen) -> FloatArray:
        """Reward of each action and of the best ones after it, ``(task, arm)``."""
        ...


@runtime_checkable
class NoisyEnvironment(ValuedEnvironment, Protocol):
    """Knows how far rewards scatter, so that a prior can be counted in pulls."""

    def reward_variances(self) -> FloatArray | None:
        """Variance of a reward of each arm, ``(task, arm)``; None where it is not known."""
        ...


@runtime_checkable
class RealValuedEnvironment(Protocol):
    """The same where actions are real numbers."""

    def value_of(self, signal: Signal, actions: FloatArray) -> FloatArray:
        """Expected reward of these actions now, ``(task,)``."""
        ...

    def best_value(self, signal: Signal) -> FloatArray:
        """Expected reward of the best action now, ``(task,)``."""
        ...


@runtime_checkable
class MaskingEnvironment(Protocol):
    """Says which arms are there now: in this state, for this context."""

    def available(self, signal: Signal) -> BoolArray:
        """Which arms may be pulled, ``(task, arm)``; each task needs at least one."""
        ...


@runtime_checkable
class OutspokenEnvironment(Protocol):
    """Says whether what is played changes later signals, or later rewards through a state that is
    not shown.

    Regret and the bounds for bandits hold only where it does not. An environment that shows signals
    has to say; one that shows none (None) and says nothing is taken for a bandit.
    """

    actions_influence_signals: bool


@runtime_checkable
class LoggedEnvironment(Protocol):
    """Offers what a log of the step should hold besides the action and its reward."""

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Numbers to log, ``(task, entry)``: the features of the chosen action, a state."""
        ...


@runtime_checkable
class SeparableBelief(Belief, Protocol):
    """Its tasks do not depend on each other: some can be taken out, and others joined.

    :class:`~priorwise.core.separable.SeparableTasks` gives both to a dataclass. A belief that
    couples its tasks (one that learns from all of them, say) has neither.
    """

    def take(self, index: ArrayLike | slice) -> Self:
        """Return the tasks at some places, in that order: integers, or True for those wanted."""
        ...

    def join(self, *others: Self) -> Self:
        """Return these tasks, then those of the others; what all tasks share has to be equal."""
        ...


@runtime_checkable
class MeanBelief(Protocol):
    """Knows its exact posterior mean."""

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior mean of each action's value, ``(task, arm)``."""
        ...


@runtime_checkable
class SizedMeanBelief(MeanBelief, Protocol):
    """Says how large the numbers are that its means are sums of, by which
    :mod:`priorwise.core.choosing` judges ties.

    A belief needs this if its means can both tie and cancel.
    """

    def mean_size(self, seen: Seen) -> FloatArray:
        """Sum of the absolute numbers that each posterior mean is a sum of, ``(task, arm)``, or
        ``(1, arm)`` for all tasks.
        """
        ...


@runtime_checkable
class SizedDrawsBelief(Protocol):
    """The same for means of draws; draws of continuous values do not tie and need none."""

    def sample_mean_and_size(
        self, rng: Stream, draws: int, seen: Seen
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``sample_mean``, and the mean of the absolute values of the same draws, ``(task,
        arm)`` both.
        """
        ...


@runtime_checkable
class QuantileBelief(Protocol):
    """Knows exact posterior quantiles."""

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantile of each action's value, ``(task, arm)``, at one level or one for each
        task ``(task,)``.
        """
        ...


@runtime_checkable
class RangeBelief(MeanBelief, Protocol):
    """Knows how large its best and its worst action are on average; of others these are drawn."""

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray] | None:
        """Posterior means of the largest and of the smallest value of an available action,
        ``(task,)`` each, of the exact posterior; None if they have to be drawn.
        """
        ...


@runtime_checkable
class SizeBiasedPrior(Protocol):
    """Draws tasks in proportion to a size G that bounds their diameter: ``diam <= C G``.

    If the diameter has no variance, averages over its own tasks have no usable standard error. With
    size-biased tasks, each history weighted by ``E[G] / E[G given the history]``, they do:
    ``E[diam given the history]`` times that weight is at most ``C E[G]``.
    """

    def sample_size_biased(self, rng: Stream, tasks: int) -> Environment:
        """Environments with density proportional to ``G`` times that of the prior."""
        ...

    def size_ratio(self, belief: Any) -> FloatArray:
        """``E[G given the history] / E[G]`` for a belief of this prior, ``(task,)``."""
        ...


@runtime_checkable
class RewardRangeBelief(Belief, Protocol):
    """Knows, in a problem with a state, what a step earns now, at most and at least."""

    def reward_range(
        self, rng: Stream, draws: int, seen: Seen, actions: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior means of the largest and of the smallest expected reward of any state and
        action, and of that of ``actions`` now, ``(task,)`` each: exact, or over so many draws.
        """
        ...


@runtime_checkable
class ShownBelief(Belief, Protocol):
    """Counts what is shown now only when it acts or is updated."""

    def given(self, seen: Seen) -> Self:
        """Condition on what is shown now."""
        ...


@runtime_checkable
class PredictiveBelief(Protocol):
    """Knows the law of the next reward."""

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """Log density of ``rewards`` ``(task,)`` for ``actions`` ``(task,)``, with its constant,
        ``(task,)``.
        """
        ...


@dataclass(frozen=True)
class Imagined:
    """One imagined pull: a drawn value of the action, the belief conditioned on its drawn reward,
    and what would be seen next.
    """

    value: FloatArray  # (task,)
    belief: "ImaginingBelief"
    seen: Seen


@runtime_checkable
class ImaginingBelief(Belief, Protocol):
    """Can imagine a pull and go on from there, which look-ahead policies do."""

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw an environment, its reward for ``actions`` ``(task,)``, and condition on it."""
        ...

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean over ``draws`` posterior draws of each action's value, ``(task, arm)``; any way that
        has this law.
        """
        ...


class DrawnEnvironments(Protocol):
    """Environments drawn from a posterior, some for each task."""

    def values(self, seen: Seen) -> FloatArray:
        """Value of each action now in each of them, ``(task, draw, arm)``."""
        ...


@runtime_checkable
class EnvironmentBelief(Belief, Protocol):
    """Draws whole environments, which a rule may look at, or keep for several steps."""

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnEnvironments:
        """Return environments of the posterior; their values now are what ``sample`` returns."""
        ...


class WeighedPrior(Protocol):
    """A prior over weights that decide what arms are worth."""

    def values(self, weights: FloatArray, seen: Seen) -> FloatArray:
        """Value of each arm, ``(task, draw, arm)``, given weights ``(task, draw, dim)``."""
        ...


class ControlledEnvironments(Protocol):
    """Environments drawn from a posterior where actions are real numbers."""

    def best_actions(self, seen: Seen) -> FloatArray:
        """Best action now in each of them, ``(task, draw)`` or ``(task, draw, size)``."""
        ...


@runtime_checkable
class MeanEnvironmentBelief(Belief, Protocol):
    """Knows the environment of its posterior means, which is one that could be."""

    def mean_environment(self, seen: Seen) -> ControlledEnvironments:
        """Return it for each task, as if it were one draw."""
        ...


@runtime_checkable
class LookaheadBelief(MeanBelief, Protocol):
    """Knows exactly what one more pull is worth."""

    def best_after(self, seen: Seen) -> FloatArray:
        """E[max_a' E[value of a' given the reward of a]] for each action a, ``(task, arm)``."""
        ...


@runtime_checkable
class CollapsingBelief(MeanBelief, Protocol):
    """May become certain."""

    def certain(self) -> BoolArray:
        """Whether the posterior of each task is a single environment, ``(task,)``."""
        ...


@runtime_checkable
class ResettingBelief(Protocol):
    """Starts again from its prior when it observes what that prior deems impossible."""

    @property
    def resets(self) -> IntArray:
        """How often each task did so, ``(task,)``."""
        ...


def for_arms(prior: Any, arms: int) -> Any:
    """Return a prior without a fixed number of arms for this many of them, others as they are."""
    make: Callable[[int], Any] | None = getattr(prior, "for_arms", None)
    return prior if make is None else make(arms)
