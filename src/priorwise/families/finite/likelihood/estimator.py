"""Probabilities of finitely many known tasks by maximum marginal likelihood: the weights of a
mixture with known components.

The likelihood ``sum_t log sum_s p_s L_ts`` is concave, so there is one maximum. With M tasks,
maximising it over the simplex is the same as maximising it minus ``M sum_s p_s`` over positive p,
which Newton's method does without a constraint.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen
from scipy.special import gammaincinv, logsumexp, ndtr

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Array,
    Covariance,
    Instance,
    Number,
    arrays,
)
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import CANDIDATES, FiniteStatistics, check_candidates
from priorwise.fitting.fits import PLAIN, PriorFit, Uncertainty
from priorwise.fitting.newton import Spot, climb
from priorwise.fitting.task_facts import KnownTasks

REGULARISER: Final = 0.5
UNKNOWN: Final = 0.25
"""What the data are taken to say, in tasks, where they say nothing: a relative standard error of
2.
"""


@final
@frozen(slots=False)
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
        task distinguishes the candidates, equal probabilities with a warning.

    Examples
    --------
    >>> candidates = FinitePrior(means=[[1.0, 0.0], [0.0, 1.0]], probs=[0.5, 0.5])
    >>> estimator = FiniteMarginalLikelihood(candidates, regulariser=0.0)
    >>> seen = FiniteStatistics([[0.0, -np.inf], [0.0, -np.inf], [-np.inf, 0.0], [0.0, 0.0]])
    >>> estimator.fit(seen).prior.probs.round(3).tolist()
    [0.667, 0.333]

    """

    reads: ClassVar[type] = FiniteStatistics

    candidates: FinitePrior = field(validator=Instance(FinitePrior, CANDIDATES))
    regulariser: float = field(default=REGULARISER, validator=Number(0.0, cure=PLAIN))

    def for_tasks(self, known: KnownTasks) -> "FiniteMarginalLikelihood":
        """Raise an error for tasks with other arms, another noise, or candidates other than
        these.
        """
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
        pseudo = REGULARISER if silent and self.regulariser == 0 else self.regulariser
        objective = MixtureObjective.of(table[telling], pseudo)
        probs, converged, iterations = objective.maximise(_start(start, self.candidates))
        c = self.candidates
        prior = FinitePrior(c.means, probs, c.noise, c.noise_var)
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
                "no task distinguishes the candidates: all probabilities are as likely, and the "
                "fitted ones are equal"
            )
        elif boundary.any():
            which = ", ".join(str(s) for s in np.flatnonzero(boundary)[:8])
            which += ", ..." * int(boundary.sum() > 8)
            notes.append(f"the tasks are at least as likely without candidate {which}")
        if not determined:
            note = "the tasks do not distinguish some candidates: other probabilities are as likely"
            notes.append(note)
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
@frozen(eq=False, slots=False)
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

    probs: FloatArray = field(converter=arrays, validator=Array(("candidate",), 1e-100))
    shapes: FloatArray = field(converter=arrays, validator=Array(("candidate",), 1e-100))
    correlation: FloatArray = field(
        converter=arrays, validator=Covariance(("candidate", "candidate"))
    )

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``p_s = g_s / sum g`` with ``g_s ~ probs_s Gamma(shapes_s) / shapes_s``."""
        z = rng.standard_normal((n, self.probs.size)) @ validation.square_root(self.correlation).T
        gammas = gammaincinv(self.shapes, ndtr(z)) / self.shapes * self.probs + 1e-300
        probs = gammas / gammas.sum(axis=1, keepdims=True)
        return [FinitePrior(prior.means, each, prior.noise, prior.noise_var) for each in probs]


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
    validation.instance("start", prior, FinitePrior, "a fit or prior on finitely many tasks")
    if prior.support != candidates.support:
        raise ArgumentError(
            "start", f"has {prior.support} candidates, but this estimator has {candidates.support}"
        )
    return 0.99 * prior.probs + 0.01 / candidates.support


@final
@dataclass(frozen=True, eq=False)
class MixtureObjective:
    """``sum_s counts_s log p_s + sum_t log sum_s p_s L_ts``: identified tasks and pseudo-counts
    first, then the others.
    """

    counts: FloatArray  # (support,), identified tasks plus the pseudo-count
    pseudo: float
    likelihoods: FloatArray  # (task, support), each row up to a factor

    @classmethod
    def of(cls, table: FloatArray, pseudo: float) -> "MixtureObjective":
        """Count the tasks with one candidate left."""
        identified = np.isfinite(table).sum(axis=1) == 1
        counts = np.isfinite(table[identified]).sum(axis=0) + pseudo
        others = table[~identified]
        best = others.max(axis=1, initial=-np.inf, keepdims=True)
        return cls(counts, pseudo, np.exp(others - best))

    @property
    def total(self) -> float:
        """Number of tasks and pseudo-tasks, M."""
        return float(self.counts.sum()) + len(self.likelihoods)

    def value(self, p: FloatArray, extra: float = 0.0) -> float:
        """The objective, minus ``M sum p``, plus ``extra sum log p``."""
        if (p <= 0.0).any():
            return -np.inf
        weights = self.counts + extra
        used = weights > 0
        inside = float(weights[used] @ np.log(p[used]) + np.log(self.likelihoods @ p).sum())
        return inside - (weights.sum() + len(self.likelihoods)) * float(p.sum())

    def slopes(self, p: FloatArray, extra: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Gradient and information of :meth:`value`."""
        weights = self.counts + extra
        ratio = self.likelihoods / (self.likelihoods @ p)[:, None]
        gradient = weights / p + ratio.sum(axis=0) - (weights.sum() + len(self.likelihoods))
        return gradient, np.diag(weights / p**2) + ratio.T @ ratio

    def maximise(self, start: FloatArray, limit: int = 500) -> tuple[FloatArray, bool, int]:
        """Newton's method with backtracking; where probabilities may be 0, through ever smaller
        pseudo-counts.
        """
        if not len(self.likelihoods):
            return self.counts / self.total, True, 0
        vanishing = bool((self.counts == 0).any())
        p, iterations, converged = start, 0, True
        for extra in self.total * 10.0 ** -np.arange(2, 13, 2.0) if vanishing else [0.0]:
            found = climb(partial(self._at, extra=float(extra)), p, limit=limit)
            p = found.place.x
            converged, iterations = converged and found.converged, iterations + found.iterations
        # p_s times its slack is now the last pseudo-count: the smaller of the two is 0
        if vanishing:
            slack = -self.slopes(p)[0] / self.total
            p = np.where((self.counts == 0) & (p < slack), 0.0, p)
        return p / p.sum(), converged, iterations

    def _at(self, p: FloatArray, extra: float) -> Spot:
        return Spot(p, self.value(p, extra), partial(self.slopes, extra=extra))

    def spreads(self, p: FloatArray) -> tuple[FloatArray, bool]:
        """Covariance of relative errors of unscaled probabilities, ``(support, support)``, and
        whether all of it is known.

        It is the inverse of the information in units of p, ``diag(counts) + sum_t q_t q_t'`` with
        q_t the posterior of a task: over positive p that need not sum to 1, so that identified
        tasks give independent gammas. Eigenvalues count as at least a quarter of a task. Entries of
        probabilities that are 0 are 0.
        """
        kept: BoolArray = p > 0
        posteriors = self.likelihoods[:, kept] * p[kept]
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        values, axes = np.linalg.eigh(np.diag(self.counts[kept]) + posteriors.T @ posteriors)
        out = np.zeros((len(p), len(p)))
        out[np.ix_(kept, kept)] = axes / np.maximum(values, UNKNOWN) @ axes.T
        return out, bool(values[0] > 1e-9 * values[-1])

    def without_each(self, p: FloatArray) -> FloatArray:
        """How much the log likelihood, pseudo-counts aside, gains when a candidate is left out,
        ``(support,)``; 0 if p is 0.
        """
        identified = self.counts - self.pseudo
        rest = 1.0 - p
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = -(identified.sum() + len(self.likelihoods)) * np.log(rest)
            share = self.likelihoods * p / (self.likelihoods @ p)[:, None]
            gain += np.log1p(-np.minimum(share, 1.0)).sum(axis=0)
        return np.where((identified > 0) | (rest <= 0), -np.inf, gain)


def log_marginal_likelihood(prior: FinitePrior, statistics: FiniteStatistics) -> FloatArray:
    """``log sum_s p_s L_ts``, ``(task,)``: exact, whatever chose the arms; minus infinity where no
    candidate fits.
    """
    if prior.support != statistics.support:
        raise ArgumentError(
            "statistics",
            f"must have the {prior.support} candidates of the prior",
            got=statistics.support,
        )
    statistics.check_about(prior)
    weights = np.broadcast_to(prior.probs, statistics.log_likelihood.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(statistics.log_likelihood, axis=1, b=weights))
