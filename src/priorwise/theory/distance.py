"""What a family supplies to compare two of its priors, and what comes of it."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

from priorwise.core.protocols import Belief, ShownBelief
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray


@dataclass(frozen=True)
class Distance:
    """A total variation distance and how sure it is.

    ``kind`` is ``"exact"`` (up to rounding; quadrature to 1e-10), ``"estimate"`` (by sampling, with
    its standard error) or ``"upper"`` (an upper bound). ``upper`` always holds: it is ``value``
    when exact, and a bound from closed forms otherwise, or 1 where there are none.
    """

    value: float
    kind: Literal["exact", "upper", "estimate"]
    std_error: float
    upper: float

    def __str__(self) -> str:
        """Value, what it is, and the bound where that says more."""
        if self.kind == "estimate":
            return f"{self.value:.4f} ± {self.std_error:.4f} (estimate; at most {self.upper:.4f})"
        return f"{self.value:.4g} (exact)" if self.kind == "exact" else f"at most {self.value:.4g}"


class Pair(Protocol):
    """Two priors of one family: the least that a family has to supply, as its part ``pair``."""

    def total_variation(self) -> float | None:
        """Exact value; None only in a :class:`SampledPair`, which is sampled then."""
        ...


@runtime_checkable
class SampledPair(Pair, Protocol):
    """Two laws whose density ratio is known at draws of both, so that their total variation can be
    estimated; nothing certifies it.
    """

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Return log q/p at a draw from p and at a draw from q, ``(task,)`` each."""
        ...


@runtime_checkable
class CoupledPair(Pair, Protocol):
    """Two mixtures: a coupling of their components bounds their total variation."""

    def coupled(self) -> tuple[FloatArray, FloatArray, list[list[Pair | None]]]:
        """Probabilities of the components of p and of q, and the pairs of them; None for two that
        cannot be compared.
        """
        ...


@runtime_checkable
class DivergentPair(SampledPair, Protocol):
    """Two laws whose densities are known, written so that what they share drops out.

    It can be bounded and sampled, so its total variation may be unknown.
    """

    def parts(self) -> FloatArray:
        """Exact total variations of independent parts."""
        ...

    def log_affinity(self) -> float:
        """Logarithm of the integral of sqrt(p q)."""
        ...

    def kl(self) -> float:
        """KL(p || q)."""
        ...

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        ...


@dataclass(frozen=True, eq=False)
class BothBeliefs:
    """Two beliefs about the same tasks that see the same; a start for a :class:`PosteriorPair`."""

    p: Any
    q: Any

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition both."""
        p, q = (each.update(seen, actions, rewards, after) for each in (self.p, self.q))
        return replace(self, p=p, q=q)

    def given(self, seen: Seen) -> Self:
        """Condition both on what is shown now, if they count it only when they act."""
        if not isinstance(self.p, ShownBelief):
            return self
        return replace(self, p=self.p.given(seen), q=self.q.given(seen))


@dataclass(frozen=True)
class FirstDecides:
    """Let the first of two beliefs decide."""

    policy: Any  # a policy of single beliefs

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task; ``belief`` is a pair."""
        return self.policy.act(belief.p, seen, rng)

    def monte_carlo_n(self, arms: int) -> int | None:
        """Return that of the policy."""
        return self.policy.monte_carlo_n(arms)


class PosteriorPair(Protocol):
    """The beliefs of two priors about the same tasks after the same actions and rewards: what a
    family supplies as its part ``posteriors``.
    """

    @property
    def p(self) -> Belief:
        """Belief that started from the first prior."""
        ...

    @property
    def q(self) -> Belief:
        """Belief that started from the second prior."""
        ...

    @property
    def exact(self) -> bool:
        """Whether ``total_variation`` is exact for each history, or only unbiased."""
        ...

    def total_variation(self, rng: Stream) -> FloatArray:
        """Total variation between the posteriors of each task, ``(task,)``: exact, or an estimate
        without bias.
        """
        ...

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at each environment that ``p.sample(rng, draws, seen)`` draws, ``(task,
        draw)``.

        A maximal coupling of two draws, given the one from p, lets q keep it with this probability.
        """
        ...

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition both on what an action earned."""
        ...
