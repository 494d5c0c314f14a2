"""What is known of the diameter of independent arms with Student means.

The tails are powers, ``P(|mu_a - mean_a| > t) ~ t^(-2 shape_a)``, so that no sub-Gaussian or
sub-Gamma condition holds; only the general bound, with the law of the diameter itself, is left.
With ``shape <= 1/2`` the diameter has no mean, and no bound on the reward is finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.normal_gamma import student
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.theory.conditions import level
from priorwise.theory.diameters import DiameterLaw, RangeLaw

LEFT: Final = 1e-13
"""Share of an arm's mean deviation that is left out beyond the last panel."""
LEAST: Final = 0.52
"""Shape below which the diameter's mean is made by values beyond the range of floats."""


def tail_conditions(prior: NormalGammaPrior) -> tuple[StudentTails, ...]:
    """One certified bound from the arms' own tails; none where the diameter has no mean."""
    if prior.arms > 1 and prior.shape.min() <= 0.5:
        return ()
    return (StudentTails(tuple(prior.mean), tuple(prior.scale), tuple(prior.freedom)),)


def diameter(prior: NormalGammaPrior) -> DiameterLaw:
    """Law of the diameter, by quadrature for any number of laws; an error where it has no mean."""
    least = float(prior.shape.min())
    if least < LEAST:
        why = "is infinite" if least <= 0.5 else "depends on values beyond the range of floats"
        raise ArgumentError(
            "shape",
            f"must be above {0.5 if least <= 0.5 else LEAST:g}, as the expected diameter {why}",
            got=least,
            cure="no bound on rewards is finite",
        )
    rows = np.stack([prior.mean, prior.scale, prior.freedom], axis=1)
    laws, counts = np.unique(rows, axis=0, return_counts=True)
    groups = zip(laws.tolist(), counts.tolist(), strict=True)
    marginals = tuple((StudentMarginal(*each), count) for each, count in groups)
    return RangeLaw(marginals, largest_diameter(prior), tail_conditions(prior))


def largest_diameter(prior: NormalGammaPrior) -> float:
    """Essential supremum of the diameter."""
    return math.inf if prior.arms > 1 else 0.0


@final
@dataclass(frozen=True)
class StudentTails:
    """Independent or not, the arms' means are Student's: ``mean_a + scale_a T_a``.

    ``diam(mu) <= diam(mean) + 2 max_a scale_a |T_a|``. A quantile of the maximum at level u is at
    most the largest of the arms' at level ``u / (2 A)`` on one side, and that at most their sum:
    ``Psi(p) <= diam(mean) + 2 sum_a scale_a E[T_a given T_a > z_a]``, ``P(T_a > z_a) = p / (2 A)``.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    freedom: tuple[float, ...]

    @property
    def name(self) -> str:
        """How the condition is asked for."""
        return "student"

    @property
    def assumption(self) -> str:
        """The condition in words."""
        return "means with Student laws"

    def tail(self, p: float) -> float:
        """Bound the tail expectation of the diameter; infinite at 0."""
        p = level(p)
        if len(self.mean) == 1:
            return 0.0
        if p == 0.0:
            return math.inf
        share, freedom = p / (2.0 * len(self.mean)), np.array(self.freedom)
        z = -student.quantile(freedom, share)
        beyond = z + student.expected_excess(freedom, z) / share
        found = np.ptp(self.mean) + 2.0 * float((np.array(self.scale) * beyond).sum())
        return found * (1.0 + 1e-9) if math.isfinite(found) else math.inf


@final
@dataclass(frozen=True)
class StudentMarginal:
    """``m + scale T`` of so many degrees of freedom."""

    m: float
    scale: float
    freedom: float

    def below(self, x: FloatArray) -> FloatArray:
        """Student's distribution function."""
        return student.below(np.array(self.freedom), (x - self.m) / self.scale)

    def above(self, x: FloatArray) -> FloatArray:
        """Its complement."""
        return student.below(np.array(self.freedom), -(x - self.m) / self.scale)

    def edges(self) -> list[float]:
        """Ever wider panels, to where what is left of the mean deviation does not count."""
        nu = self.freedom
        # beyond t: at most C t^(1 - nu) / (nu - 1), or less where the law is close to a normal one
        reach = min(8.0 + LEFT ** (-1.0 / (nu - 1.0)) * math.sqrt(nu), 1e290)
        steps = [0.0, 2.0]
        while steps[-1] < reach:
            steps.append(steps[-1] * 6.0)
        while len(steps) > 3 and float(student.below(np.array(nu), np.array(-steps[-2]))) == 0.0:
            steps.pop()
        return [self.m + side * self.scale * step for step in steps for side in (-1.0, 1.0)]
