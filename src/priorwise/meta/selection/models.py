"""Choosing between models of the prior, by held-out likelihood."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import IntArray
from priorwise.families.registry import family_for, statistics_of
from priorwise.fitting.fits import Estimator, PriorFit
from priorwise.fitting.statistics import PerTask
from priorwise.meta.evidence.likelihood import log_marginal_likelihood
from priorwise.meta.selection.paired import Paired


@final
@dataclass(frozen=True, eq=False)
class ModelComparison(Paired):
    """Held-out log marginal likelihood of each task under each model, ``scores[name]`` ``(task,)``,
    and each model's fit to all.

    Standard errors are those of independent tasks; that tasks share the data which their priors
    were fitted to is not counted.
    """

    candidate: ClassVar[str] = "model"
    score: ClassVar[str] = "log likelihood"

    fits: dict[str, PriorFit] = field(repr=False)


def compare_models(
    models: Mapping[str, Estimator], data: Any, *, folds: int = 5, seed: int
) -> ModelComparison:
    """Score estimators by how well priors fitted to some tasks predict others: K-fold
    cross-validation over tasks.

    Each task's score is ``log p(its rewards given its actions)`` under the prior that was fitted
    without its fold: all rewards of the task, also for estimators that read only some of them. So
    models with more parameters pay for what they overfit, and families, structures and regularisers
    can be compared on equal terms. Fits without a fold begin from the fit to all tasks.

    Parameters
    ----------
    models
        Names and estimators.
    data
        A kept run, or per-task statistics that all the estimators read.
    folds
        Number of folds, from 2 to the number of tasks.
    seed
        Decides which tasks are in which fold.

    Examples
    --------
    >>> import priorwise as pw
    >>> from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood
    >>> truth = pw.BetaPrior(alpha=[1, 8, 4], beta=[8, 1, 4])
    >>> run = pw.simulate(truth, pw.ThompsonSampling(), horizon=10, tasks=200, seed=0, keep=True)
    >>> models = {
    ...     "own": BetaMarginalLikelihood(),
    ...     "one for all": BetaMarginalLikelihood("exchangeable"),
    ... }
    >>> compare_models(models, run, seed=0).best
    'own'

    """
    if not isinstance(models, Mapping) or not models:
        raise ArgumentTypeError("models", "must be a mapping with at least one {name: estimator}")
    for name, estimator in models.items():
        if not isinstance(name, str):
            raise ArgumentTypeError("models", "must have names that are strings", got=name)
        argument_checks.estimator(f"models[{name!r}]", estimator)
    fits = {name: estimator.fit(data) for name, estimator in models.items()}
    for name, fit in fits.items():
        if not isinstance(fit.statistics, PerTask):
            raise ArgumentTypeError(
                "models",
                f"must read tasks, but {name!r} reads {type(fit.statistics).__name__}",
                cure="pass a kept run or per-task statistics, not groups",
            )
    # all pulls, whatever part of them an estimator reads: only so are scores those of the same data
    whole = {name: statistics_of(fit.prior, data, "compare_models") for name, fit in fits.items()}
    first = next(iter(models))
    measures: dict[str, str] = {}
    for name, fit in fits.items():
        measures[name] = family_for(fit.prior, "compare_models").measure(fit.prior, whole[name])
        if measures[name] != measures[first]:
            raise ArgumentError(
                "models",
                f"must be of one kind: {first!r} gives {measures[first]}, {name!r} "
                f"{measures[name]}",
            )
    tasks = whole[first].tasks
    folds = validation.count("folds", folds, least=2)
    if folds > tasks:
        raise ArgumentError("folds", f"must not exceed the number of tasks, {tasks}", got=folds)
    fold = _folds(tasks, folds, validation.seed(seed))
    scores = {name: np.empty(tasks) for name in models}
    for k in range(folds):
        held = fold == k
        for name, estimator in models.items():
            others = fits[name].statistics.take(~held)
            prior = estimator.fit(others, start=fits[name]).prior
            scores[name][held] = log_marginal_likelihood(prior, whole[name].take(held))
    return ModelComparison(scores, fits)


def _folds(tasks: int, folds: int, seed: int) -> IntArray:
    """Fold of each task: as many in one as in another, up to one, in an order drawn at random."""
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    order = np.argsort(streams.at(Purpose.POLICY, 0).uniform(), kind="stable")
    fold = np.empty(tasks, dtype=np.int64)
    fold[order] = np.arange(tasks) % folds
    return fold
