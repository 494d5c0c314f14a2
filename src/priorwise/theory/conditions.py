"""Conditions on the tails of a prior, each with a certified upper bound on the tail expectation of
the diameter.

With ``L = log(2 A / p)``, ``D = diam(E mu)`` and ``mu`` in ``R^A`` (Definition "tail conditions"
and the lemma that follows it):

* bounded, ``diam(mu) <= B``: ``Psi(p) <= B``;
* sub-Gaussian, ``P(|mu_a - E mu_a| >= t) <= 2 exp(-t^2 / (2 s^2))`` for each arm: ``Psi(p) <= D + s
  (8 + 5 sqrt(L))``;
* sub-Gamma, the same with ``2 max(exp(-t^2 / (2 s^2)), exp(-t / (2 c)))``: that plus ``c (11 + 7
  L)``.

The last two come in three forms. ``"lemma"`` is the line above. ``"printed"`` has ``log(A^2 / p)``
for L, as the theorem states it. ``"tight"`` integrates the quantiles that the lemma sums by blocks:
``diam(mu) - D <= 2 max_a |mu_a - E mu_a|``, whose quantile at u is at most ``2 s sqrt(2 log(2 A /
u))``, and ``p Psi(p)`` is the integral of quantiles from 0 to p.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, Protocol, final, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray

Form = Literal["lemma", "tight", "printed"]
ROUNDING: Final = 1e-12
"""Relative room that bounds with a special function in them leave for rounding."""


def level(p: Any) -> float:
    """Return a level of a tail expectation: a number from 0; 1 stands for all above it."""
    checked = validation.number("p", p)
    if checked < 0.0:
        raise ArgumentError(
            "p",
            "must be a probability, the level of the tail (0",
            got=checked,
            cure="the largest possible value)",
        )
    return min(checked, 1.0)


@runtime_checkable
class TailCondition(Protocol):
    """What is known of a prior's tails; a prior of the user's own may state some (see
    :class:`ConditionedPrior`).
    """

    @property
    def name(self) -> str:
        """How the condition is asked for."""
        ...

    @property
    def assumption(self) -> str:
        """The condition in words."""
        ...

    def tail(self, p: float) -> float:
        """Bound the tail expectation of the diameter at every level p from 0 to 1; infinite where
        nothing is known.
        """
        ...


@runtime_checkable
class ConditionedPrior(Protocol):
    """A prior that states conditions on its tails; in a contextual problem they hold given any
    contexts.
    """

    def tail_conditions(self) -> Sequence[TailCondition]:
        """Return the conditions that hold."""
        ...


@final
@dataclass(frozen=True)
class Bounded:
    """``diam(mu) <= diameter`` always."""

    diameter: float

    def __post_init__(self) -> None:
        validation.not_negative("diameter", self.diameter)

    @property
    def name(self) -> str:
        """How the condition is asked for."""
        return "bounded"

    @property
    def assumption(self) -> str:
        """The condition in words."""
        return f"diameter at most {self.diameter:g}"

    def tail(self, p: float) -> float:
        """``B``."""
        level(p)
        return self.diameter


@dataclass(frozen=True, eq=False, init=False)
class _Spread:
    """The parameters that the sub-Gaussian and the sub-Gamma condition share."""

    kind: ClassVar[str]
    mean: FloatArray
    variance: float
    form: Form

    def _set(self, mean: ArrayLike, variance: float, form: Form) -> None:
        validation.one_of("form", form, Form)
        variance = validation.not_negative("variance", variance)
        validation.freeze(self, mean=validation.vector("mean", mean), variance=variance, form=form)

    @property
    def name(self) -> str:
        """How the condition is asked for."""
        return self.kind if self.form == "lemma" else f"{self.kind}-{self.form}"

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    @property
    def spread(self) -> float:
        """``diam(E mu)``."""
        return float(np.ptp(self.mean))

    @property
    def std(self) -> float:
        """``s``."""
        return math.sqrt(self.variance)

    def _tail(self, p: float, scale: float) -> float:
        p = level(p)
        if (self.variance == 0.0 and scale == 0.0) or self.arms == 1:
            return self.spread
        if p == 0.0:
            return math.inf
        count = 2.0 * math.log(self.arms) if self.form == "printed" else math.log(2.0 * self.arms)
        log = count - math.log(p)  # L, or what is printed for it
        if self.form == "tight":
            return self.spread + self._tight(log, scale) * (1.0 + ROUNDING)
        gaussian = self.std * (8.0 + 5.0 * math.sqrt(log))
        return self.spread + gaussian + scale * (11.0 + 7.0 * log)

    def _tight(self, log: float, scale: float) -> float:
        """Quantiles are ``4 c L`` where L is beyond ``s^2 / (2 c^2)``, and ``sqrt(8) s sqrt(L)``
        before.
        """
        change = math.inf if scale <= 1e-100 * self.std else 0.5 * (self.std / scale) ** 2
        if log >= change:
            return 4.0 * scale * (log + 1.0)
        rest = math.exp(log - change)  # share of the level beyond the change
        near, far = _mean_root(math.sqrt(log)), 0.0
        if rest > 0.0:
            near -= rest * _mean_root(math.sqrt(change))
            far = 4.0 * scale * rest * (change + 1.0)
        return math.sqrt(8.0) * self.std * near + far


@final
@dataclass(frozen=True, eq=False, init=False)
class SubGaussian(_Spread):
    """Each arm's mean is ``variance``-sub-Gaussian around ``mean`` ``(arm,)``.

    Examples
    --------
    >>> round(SubGaussian(mean=[0.0, 1.0], variance=0.25).tail(0.04), 4)
    10.3649

    """

    kind: ClassVar[str] = "subgaussian"

    def __init__(self, mean: ArrayLike, variance: float, form: Form = "lemma") -> None:
        self._set(mean, variance, form)

    @property
    def assumption(self) -> str:
        """The condition in words."""
        return f"each arm's mean is {self.variance:g}-sub-Gaussian ({self.form} form)"

    def tail(self, p: float) -> float:
        """``D + s (8 + 5 sqrt(L))``, or tight ``D + sqrt(8) s (sqrt(L) + sqrt(pi) / 2
        erfcx(sqrt(L)))``.
        """
        return self._tail(p, 0.0)


@final
@dataclass(frozen=True, eq=False, init=False)
class SubGamma(_Spread):
    """Each arm's mean is ``(variance, scale)``-sub-Gamma around ``mean`` ``(arm,)``."""

    kind: ClassVar[str] = "subgamma"
    scale: float

    def __init__(
        self, mean: ArrayLike, variance: float, scale: float, form: Form = "lemma"
    ) -> None:
        self._set(mean, variance, form)
        object.__setattr__(self, "scale", validation.not_negative("scale", scale))

    @classmethod
    def bernstein(cls, mean: ArrayLike, variance: float, scale: float) -> "SubGamma":
        """Condition of arms with ``log E exp(l (mu_a - E mu_a)) <= l^2 variance / (2 (1 - scale
        |l|))`` for both signs of l.

        Then ``P(|mu_a - E mu_a| >= sqrt(2 v x) + c x) <= 2 exp(-x)``, and the sum is at most twice
        its larger term. An arm with mean ``Gamma(shape, rate)`` has ``v = shape / rate^2`` and ``c
        = 1 / rate``.
        """
        return cls(mean, 4.0 * validation.not_negative("variance", variance), scale)

    @property
    def assumption(self) -> str:
        """The condition in words."""
        parameters = f"({self.variance:g}, {self.scale:g})"
        return f"each arm's mean is {parameters}-sub-Gamma ({self.form} form)"

    def tail(self, p: float) -> float:
        """``D + s (8 + 5 sqrt(L)) + c (11 + 7 L)``; tight: the integral of ``max(2 s sqrt(2 L), 4 c
        L)``.
        """
        return self._tail(p, self.scale)


def variants(condition: TailCondition) -> tuple[TailCondition, ...]:
    """Return the forms of a condition that are compared when the smallest is wanted, then the
    printed one.
    """
    if isinstance(condition, (SubGaussian, SubGamma)):
        return tuple(replace(condition, form=form) for form in get_args(Form))
    return (condition,)


def is_printed(condition: TailCondition) -> bool:
    """Tell whether a condition is in the form the theorem prints, which is never the sharpest."""
    return isinstance(condition, (SubGaussian, SubGamma)) and condition.form == "printed"


def smallest(conditions: tuple[TailCondition, ...], p: float) -> tuple[float, str]:
    """Return the smallest certified bound at a level, and its assumption; infinite where there is
    none.
    """
    forms = [form for each in conditions for form in variants(each) if not is_printed(form)]
    bounds = [(form.tail(p), form.assumption) for form in forms]
    return min(bounds, default=(math.inf, "nothing known of the tails"))


def _mean_root(root: float) -> float:
    """``(1 / p) integral_0^p sqrt(log(K / u)) du`` with ``root = sqrt(log(K / p))``."""
    from scipy.special import erfcx

    return root + math.sqrt(math.pi) / 2.0 * float(erfcx(root))
