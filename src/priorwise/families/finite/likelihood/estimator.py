"""Probabilities of finitely many known tasks by maximum marginal likelihood: the weights of a
mixture with known components.

The likelihood and its maximisation stand in ``weights``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtr

from priorwise.core import validation
from priorwise.core.fits import PriorFit
from priorwise.core.known import KnownTasks
from priorwise.core.types import FloatArray
from priorwise.core.uncertainty import Uncertainty
from priorwise.families.finite.likelihood.weights import MixtureObjective, log_marginal_likelihood
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import FiniteStatistics, check_candidates

REGULARISER: Final = 0.5


@final
@dataclass(frozen=True)
class FiniteMarginalLikelihood:
    """Probabilities of known candidate tasks by maximum marginal likelihood (type II, empirical
    Bayes).

    Tasks whose rewards leave one candidate are counted; others are shared between the candidates
    they leave, in the proportions that make the whole most likely.

    Parameters
    ----------
    candidates
        A finite prior with the possible tasks and the noise; its probabilities are not used.
    regulariser
        Pseudo-count of each candidate: c in ``c sum_s log p_s``, added to the log likelihood. The
        default 1/2 is the rule of Jeffreys, and of Krichevsky and Trofimov, for which no true law
        costs much more than another; it keeps candidates that were not seen yet possible. 0 is
        plain maximum likelihood: where every task is identified, relative frequencies; where no
        task tells the candidates apart, equal probabilities with a warning.

    Examples
    --------
    >>> candidates = FinitePrior(means=[[1.0, 0.0], [0.0, 1.0]], probs=[0.5, 0.5])
    >>> estimator = FiniteMarginalLikelihood(candidates, regulariser=0.0)
    >>> seen = FiniteStatistics([[0.0, -np.inf], [0.0, -np.inf], [-np.inf, 0.0], [0.0, 0.0]])
    >>> estimator.fit(seen).prior.probs.round(3).tolist()
    [0.667, 0.333]

    """

    reads: ClassVar[type] = FiniteStatistics

    candidates: FinitePrior
    regulariser: float = REGULARISER

    def __post_init__(self) -> None:
        """Check the candidates and the pseudo-count."""
        if not isinstance(self.candidates, FinitePrior):
            raise TypeError(
                "candidates must be a FinitePrior, whose support is used, got "
                f"{type(self.candidates).__name__}"
            )
        if validation.number("regulariser", self.regulariser) < 0:
            raise ValueError(
                f"regulariser must not be negative, got {self.regulariser:g}; 0 is plain maximum "
                "likelihood"
            )

    def for_tasks(self, known: KnownTasks) -> FiniteMarginalLikelihood:
        """Refuse tasks with other arms, another noise, or candidates other than these."""
        check_candidates(self, self.candidates, known)
        return self

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or :class:`FiniteStatistics` of these candidates; ``start`` is a fit or
        prior to begin from.
        """
        statistics = self.statistics(data)
        table = statistics.log_likelihood
        possible = np.isfinite(table).any(axis=1)
        telling = possible & (table != table[:, :1]).any(axis=1)
        silent = not telling.any()
        objective = MixtureObjective.of(
            table[telling], REGULARISER if silent and self.regulariser == 0 else self.regulariser
        )
        probs, converged, iterations = objective.maximise(_start(start, self.candidates))
        prior = FinitePrior(
            self.candidates.means, probs, self.candidates.noise, self.candidates.noise_var
        )
        spreads, determined = objective.spreads(probs)
        # given that they sum to 1
        variances = np.maximum(probs**2 * (np.diag(spreads) - (probs > 0) / objective.total), 0.0)
        if silent and self.regulariser == 0 and len(probs) > 1:
            variances = np.full(len(probs), np.nan)
        boundary = objective.without_each(probs) >= 0
        notes = []
        if not possible.all():
            notes.append(
                f"{(~possible).sum():,} tasks are impossible under every candidate: the support or "
                "the noise may be wrong"
            )
        if silent and len(probs) > 1:
            notes.append(
                "no task tells the candidates apart: all probabilities are as likely, and the "
                "fitted ones are equal"
            )
        elif boundary.any():
            which = ", ".join(str(s) for s in np.flatnonzero(boundary)[:8]) + ", ..." * int(
                boundary.sum() > 8
            )
            notes.append(f"the tasks are at least as likely without candidate {which}")
        if not determined:
            notes.append(
                "the tasks do not tell some candidates apart: other probabilities are as likely"
            )
        return PriorFit(
            prior,
            type(self).__name__,
            int(telling.sum()),
            int((~telling).sum()),
            at_boundary=bool(boundary.any()),
            converged=converged,
            std_errors={"probs": np.sqrt(variances)},
            log_likelihood=float(log_marginal_likelihood(prior, statistics)[possible].sum()),
            iterations=iterations,
            warnings=notes,
            uncertainty=_uncertainty(probs, spreads, objective.total),
            statistics=statistics,
        )

    def statistics(self, data: Any) -> FiniteStatistics:
        """Return the log likelihood of each candidate in each task of a kept run; statistics stay
        as they are.
        """
        return FiniteStatistics.of(data, candidates=self.candidates)


@final
@dataclass(frozen=True, eq=False, init=False)
class SimplexUncertainty(Uncertainty):
    """Law of probabilities: gammas divided by their sum.

    Where all tasks are identified the gammas are independent, which is the Dirichlet law of counts
    plus pseudo-counts. Where they are not, shapes are the smaller the less is known, and a normal
    copula gives the correlations. To first order the covariance is the inverse of the observed
    information within the simplex.

    Parameters
    ----------
    probs, shapes
        Means and shapes of the gammas, ``(support,)``.
    correlation
        Of the normals in the copula, ``(support, support)``.

    """

    family: ClassVar[str] = "simplex-uncertainty"

    probs: FloatArray
    shapes: FloatArray
    correlation: FloatArray

    def __init__(self, probs: ArrayLike, shapes: ArrayLike, correlation: ArrayLike) -> None:
        """Check and freeze the law."""
        checked = validation.positive("probs", validation.vector("probs", probs))
        object.__setattr__(self, "probs", checked)
        object.__setattr__(
            self,
            "shapes",
            validation.positive("shapes", validation.vector("shapes", shapes, checked.size)),
        )
        object.__setattr__(
            self, "correlation", validation.covariance("correlation", correlation, checked.size)
        )

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``p_s = g_s / sum g`` with ``g_s ~ probs_s Gamma(shapes_s) / shapes_s``."""
        z = rng.standard_normal((n, self.probs.size)) @ validation.square_root(self.correlation).T
        gammas = gammaincinv(self.shapes, ndtr(z)) / self.shapes * self.probs + 1e-300
        return [
            FinitePrior(prior.means, each / each.sum(), prior.noise, prior.noise_var)
            for each in gammas
        ]


def _uncertainty(probs: FloatArray, spreads: FloatArray, total: float) -> SimplexUncertainty:
    """Gammas with these relative variances; a probability of 0 counts as half a task."""
    kept = probs > 0
    variances = np.where(kept, np.diag(spreads), 2.0)
    correlation = spreads / np.sqrt(np.outer(variances, variances))
    np.fill_diagonal(correlation, 1.0)
    return SimplexUncertainty(np.where(kept, probs, 0.5 / total), 1.0 / variances, correlation)


def _start(start: Any, candidates: FinitePrior) -> FloatArray:
    if start is None:
        return np.full(candidates.support, 1.0 / candidates.support)
    prior = start.prior if isinstance(start, PriorFit) else start
    if not isinstance(prior, FinitePrior):
        raise TypeError(
            f"start must be a fit or prior on finitely many tasks, got {type(prior).__name__}"
        )
    if prior.support != candidates.support:
        raise ValueError(
            f"start has {prior.support} candidates, but this estimator has {candidates.support}"
        )
    return 0.99 * prior.probs + 0.01 / candidates.support
