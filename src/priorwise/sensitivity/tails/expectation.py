"""The upper tail expectation of the diameter, Psi, that the sensitivity of a policy's reward to its
prior depends on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, shown
from priorwise.sensitivity.tails import diameter
from priorwise.theory.conditions import TailCondition, level, smallest, variants
from priorwise.theory.diameters import DiameterLaw
from priorwise.theory.influence import refuse_influence

EXACT: Final = "law of the diameter"


@dataclass(frozen=True)
class TailExpectation:
    """A tail expectation of the diameter and how sure it is.

    ``kind`` is ``"exact"`` (up to rounding; quadrature to 1e-10), ``"estimate"`` (by sampling, with
    its standard error) or ``"upper"`` (a certified upper bound). ``upper`` always holds: it is
    ``value`` when exact, otherwise the smallest certified bound, infinite where nothing is known of
    the tails. ``assumption`` says what ``value`` rests on.
    """

    value: float
    kind: Literal["exact", "upper", "estimate"]
    std_error: float
    upper: float
    assumption: str

    def __str__(self) -> str:
        """Value, what it is, and the bound where that says more."""
        if self.kind == "estimate":
            return f"{self.value:.4g} ± {self.std_error:.2g} (estimate; at most {self.upper:.4g})"
        if self.kind == "exact":
            return f"{self.value:.4g} (exact)"
        return f"at most {self.value:.4g} ({self.assumption})"


def tail_expectation(
    prior: Any,
    p: float,
    *,
    horizon: int = 1,
    condition: str | TailCondition = "auto",
    seed: int | None = None,
    draws: int = diameter.DRAWS,
) -> TailExpectation:
    """Upper tail expectation ``Psi(p)`` of the diameter ``X = max_a mu_a - min_a mu_a`` under a
    prior.

    It is the mean of X over its largest share p: ``Psi(p) = (1/p) sup E[X Y]`` over Y in [0, 1]
    with mean at most p, or with q the quantile, ``P[X > q] <= p``,

        Psi(p) = (1/p) E[X (1{X > q} + 1{X = q} (p - P[X > q]) / P[X = q])],

    known as expected shortfall. It falls from the essential supremum at ``p = 0`` to the mean at
    ``p = 1`` and beyond, and ``p Psi(p)`` rises. In a contextual problem X is the average over
    steps of the diameter at each step's contexts.

    Exact for finite priors, one arm, two jointly normal arms, and independent arms (Beta, or normal
    with one covariance between all) of at most 8 distinct laws.

    Parameters
    ----------
    prior
        Any prior whose environments have ``values(signal)``, or that states ``tail_conditions()``.
    p
        Level, from 0.
    horizon
        Steps over which contexts are averaged; does not matter without contexts.
    condition
        ``"auto"``: exact if possible, otherwise an estimate if ``seed`` is given, otherwise the
        smallest certified bound. The name of a condition that the family has (``"bounded"``,
        ``"normal"``, ``"subgaussian"``, ``"subgamma"``; the last two also with ``-tight`` or
        ``-printed``), or a condition: its certified bound.
    seed, draws
        Environments that an estimate draws.

    Examples
    --------
    >>> from priorwise.families.finite.prior import FinitePrior
    >>> print(tail_expectation(FinitePrior([[1.0, 0.0], [0.0, 0.2]], [0.1, 0.9]), 0.2))
    0.6 (exact)

    """
    diameter.check_prior(prior)
    refuse_influence(prior, "tail_expectation", "reward_tails and pomdp_reward_bound")
    sampled: Any = {"seed": seed, "draws": draws}
    return tail_expectations(prior, [p], horizon=horizon, condition=condition, **sampled)[0]


def tail_expectations(
    prior: Any,
    levels: Sequence[float],
    *,
    horizon: int = 1,
    condition: str | TailCondition = "auto",
    also: tuple[TailCondition, ...] = (),
    seed: int | None = None,
    draws: int = diameter.DRAWS,
) -> list[TailExpectation]:
    """Tail expectations at several levels, from the same draws where they are estimated; ``also``:
    conditions that hold besides.
    """
    diameter.check_prior(prior)
    levels = [level(p) for p in levels]
    horizon = validation.count("horizon", horizon)
    draws = validation.count("draws", draws)
    if seed is not None:
        seed = validation.seed(seed)
    if not (isinstance(condition, str) and condition == "auto"):
        chosen = find_condition(prior, condition)
        return [_upper(chosen.tail(p), chosen.assumption) for p in levels]
    known, law = (*diameter.conditions_of(prior), *also), diameter.exact_law(prior)
    if law is None and seed is not None:
        law = diameter.sample_law(prior, horizon, seed=seed, draws=draws)
    return [_at(prior, p, smallest(known, p), law, draws) for p in levels]


def _at(
    prior: Any, p: float, bound: tuple[float, str], law: DiameterLaw | None, draws: int
) -> TailExpectation:
    (upper, assumption), largest = bound, diameter.largest_diameter(prior)
    if p == 0.0 and law is None and largest is not None:
        return TailExpectation(largest, "exact", 0.0, largest, EXACT)
    if law is None:
        if upper == math.inf:
            raise ArgumentError(
                "seed",
                f"is missing: nothing is known of the tails of this {type(prior).__name__}",
                cure=(
                    "pass it to estimate them (with estimate=True for a bound), or a condition, "
                    "such as SubGaussian(mean, variance)"
                ),
            )
        return _upper(upper, assumption)
    found = law.tail(p)
    if found.kind == "exact":
        return TailExpectation(found.value, "exact", 0.0, found.value, EXACT)
    if found.kind == "upper":
        return _upper(found.value, f"{assumption}; the level is too small to do better")
    value, how = min(found.value, upper), f"{draws:,} draws of the diameter"
    return TailExpectation(value, "estimate", found.std_error, upper, how)


def _upper(value: float, assumption: str) -> TailExpectation:
    return TailExpectation(value, "upper", 0.0, value, assumption)


def find_condition(
    prior: Any, condition: str | TailCondition, named: str = "condition"
) -> TailCondition:
    """Return the condition of that name that holds for a prior, or the condition itself; ``named``
    as the caller calls it.
    """
    if not isinstance(condition, str):
        if isinstance(condition, type) or not isinstance(condition, TailCondition):
            raise ArgumentTypeError(
                named, "must be 'auto', a name or a condition such as Bounded(1.0)", got=condition
            )
        return condition
    known = {form.name: form for each in diameter.conditions_of(prior) for form in variants(each)}
    if condition not in known:
        names = ", ".join(known) or "none"
        raise ArgumentError(
            named,
            f"the condition {shown(condition)} is not known to hold for this "
            f"{type(prior).__name__} (known: {names})",
            cure="pass a condition such as SubGaussian(mean, variance) if it does",
        )
    return known[condition]
