"""Features of the tasks of a log: reduced with its sums, fitted, and whether they help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError, ArgumentTypeError, option, shown
from priorwise.core.estimates import Estimate
from priorwise.core.frames import Table
from priorwise.core.types import IntArray
from priorwise.families.featured.estimator import FeaturedMarginalLikelihood
from priorwise.families.featured.features import TaskFeatures
from priorwise.families.featured.prior import SURE
from priorwise.families.featured.statistics import FeaturedStatistics
from priorwise.meta.selection.models import ModelComparison, compare_models

if TYPE_CHECKING:
    from priorwise.logs.reducing import Log

WITHOUT: Final = "{} without task features"


def ends_of(table: Any, features: int) -> dict[str, Any]:
    """Expressions of the least and the largest value of each feature."""
    found = {}
    for i in range(features):
        found[f"f{i}_low"], found[f"f{i}_high"] = table[f"f{i}"].min(), table[f"f{i}"].max()
    return found


def constant_in_tasks(
    found: Any, names: Sequence[str], tasks: NDArray[Any], task_of: IntArray
) -> dict[str, NDArray[Any]]:
    """Return the features of each task, ``(task,)`` each, from the ends of its rows; refuse those
    that change within a task.
    """
    features = {}
    for i, name in enumerate(names):
        ends = [found[f"f{i}_{end}"].to_numpy() for end in ("low", "high")]
        values = np.empty(len(tasks), dtype=ends[0].dtype)
        values[task_of] = ends[0]  # of any of its rows
        for end in ends:
            (wrong,) = np.nonzero(end != values[task_of])
            if wrong.size:
                task = task_of[wrong[0]]
                raise ArgumentError(
                    "task_features",
                    f"must not differ in a task, as {name!r} does in {shown(str(tasks[task]))}",
                    got=[*values[[task]].tolist(), *end[wrong[:1]].tolist()],
                    cure="context= is for features of arms",
                )
        features[name] = values
    return features


def with_features(
    models: dict[str, Any], statistics: Any, log: Log
) -> tuple[dict[str, Any], FeaturedStatistics]:
    """Return estimators of priors with features, and the statistics that they read."""
    features = TaskFeatures.of(log.features, log.tasks)
    seen = FeaturedStatistics(statistics, features.rows(log.features)[0], features)
    return {name: FeaturedMarginalLikelihood(each) for name, each in models.items()}, seen


def against_none(
    models: dict[str, Any],
    comparison: ModelComparison | None,
    chosen: str,
    statistics: FeaturedStatistics,
    folds: int,
    seed: int,
) -> tuple[ModelComparison, Estimate]:
    """Compare the chosen model with itself without features, on the same folds."""
    how: Any = {"folds": min(folds, statistics.tasks), "seed": seed}
    if comparison is None:
        comparison = compare_models({chosen: models[chosen]}, statistics, **how)
    plain = {WITHOUT.format(chosen): models[chosen].estimator}
    found = compare_models(plain, statistics.seen, **how)
    both = ModelComparison(comparison.scores | found.scores, comparison.fits | found.fits)
    return both, both.difference(chosen, WITHOUT.format(chosen))


def gain_in_words(gain: Estimate) -> str:
    """Say whether features help."""
    told = f"log likelihood of a held-out task {gain.mean:+.3g} ± {gain.std_error:.2g}"
    if gain.mean > SURE * gain.std_error:
        return f"Task features help: {told} against none."
    if gain.mean < -SURE * gain.std_error:
        return f"Task features hurt: {told} against none; leave them out."
    return f"Task features do not help, as far as the log tells: {told} against none."


def many_for(prior: Any, features: Any) -> Any:
    """Return the prior of a task, or a list of them."""
    make = getattr(prior, "for_features", None)
    if make is None:
        raise ArgumentTypeError(
            "features",
            f"must be left out, as the fitted {type(prior).__name__} does not depend on any",
            cure=f"pass {option('task_features')} to fit_prior",
        )
    return make(features)


def with_intervals(table: Table) -> Table:
    """Add the ends of 95 % intervals of means and effects, whose errors are about normal."""
    of = [name == "base.mean" or name.startswith("effects.") for name in table["parameter"]]
    pairs = zip(table["value"], table["std_error"], of, strict=True)
    ends = [(a - SURE * b, a + SURE * b) if c else (np.nan, np.nan) for a, b, c in pairs]
    return table | {"low": [low for low, _ in ends], "high": [high for _, high in ends]}
