"""What the truth may be, given a fit: priors from the law of the fit's parameters, and fits of
resampled tasks.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.protocols import for_arms
from priorwise.core.types import IntArray
from priorwise.families.registry import family_for, has_part
from priorwise.fitting.fits import PriorFit

LEAST: Final = 20
"""Truths of one kind below which there is no 95 % of them."""
MOST_SECONDS: Final = 20.0
"""Of one processor for refits that nobody asked for, about."""
SLOW_REFITS: Final = (
    "refits of resampled tasks take long for this prior, and are left out; pass bootstrap=20 for "
    "them"
)


def whole_fit(fit: Any, estimator: Any) -> tuple[PriorFit, Any]:
    """Return the fit itself, also of one that was made from a log, and who can make it again."""
    inner = getattr(fit, "fit", fit)
    if not isinstance(inner, PriorFit):
        raise ArgumentTypeError(
            "fit", "must be what fit_prior or an estimator returns", got=type(fit)
        )
    if estimator is not None:
        argument_checks.estimator("estimator", estimator)
        return inner, estimator
    return inner, getattr(fit, "estimator", None) if inner is not fit else None


def usual_arms(fit: Any) -> int | None:
    """Return how many arms the tasks of a log share, or the median task has, for a prior without a
    number of its own; None if the fit is not from a log.
    """
    log = getattr(fit, "log", None)
    if log is None or not hasattr(fit.fit.prior, "for_arms"):
        return None
    if not hasattr(fit.prior, "for_arms"):  # its tasks share their arms
        return int(fit.prior.arms)
    return int(np.median(np.bincount(log.task)))


def fixed(prior: Any, arms: int | None) -> Any:
    """Return the fitted prior, one without a fixed number of arms for ``arms`` of them."""
    if hasattr(prior, "for_arms"):
        if arms is None:
            raise ArgumentError("arms", "is missing", cure="say how many the tasks to come have")
        return for_arms(prior, validation.count("arms", arms))
    if arms is not None and validation.count("arms", arms) != prior.arms:
        raise ArgumentError(
            "arms", f"must be {prior.arms}, as in the fitted prior, or be left out", got=arms
        )
    return prior


def _refit(estimator: Any, data: Any, fit: PriorFit, tasks: IntArray) -> Any:
    return estimator.fit(data.take(tasks), start=fit).prior


def plausible(
    fit: PriorFit, estimator: Any, draws: int, bootstrap: int | None, rng: np.random.Generator
) -> dict[str, tuple[int, Iterable[Any]]]:
    """Priors that may be the truth and their number, by where they come from: ``"law"``, ``draws``
    of the law of the fit's parameters; ``"bootstrap"``, so many fits of as many tasks, drawn with
    replacement, each made when it is asked for.
    """
    found: dict[str, tuple[int, Iterable[Any]]] = {}
    if fit.uncertainty is not None:
        found["law"] = draws, fit.draw(rng, draws)
    data = fit.statistics
    tasks = data.tasks if estimator is not None and data is not None else 0  # to resample
    if bootstrap and not tasks:
        lacks = "statistics, which files do not keep" if data is None else "estimator=..."
        raise ArgumentError(
            "bootstrap",
            f"refits resampled tasks, but there is no {lacks}",
            cure="leave it out, or certify the fit of the log itself",
        )
    refits = max(draws // 2, LEAST) if bootstrap is None else bootstrap
    if bootstrap is None and found and tasks and _seconds(estimator, tasks) > MOST_SECONDS:
        refits = 0
    if tasks and refits:
        rows = rng.integers(tasks, size=(refits, tasks))
        refit = partial(_refit, estimator, data, fit)
        found["bootstrap"] = refits, map(refit, rows)
    if not found:
        raise ArgumentError(
            "fit",
            f"by {fit.estimator} has no law of plausible priors, and no bootstrap without "
            "its statistics and estimator=...",
            cure="take a likelihood fit, or pass who made it",
        )
    return found


def _seconds(estimator: Any, tasks: int) -> float:
    """About how long the fewest refits take; 0 for estimators that do not say."""
    return LEAST * tasks * 1e-6 * float(getattr(estimator, "microseconds", 0.0))


def towards(fitted: Any, truth: Any, share: float) -> Any:
    """Return the prior that lies ``share`` of the way from the fitted one to a truth, with the
    fitted law of rewards; None where the family does not name its parameters.
    """
    if not has_part(fitted, "parameters"):
        return None
    names = family_for(fitted, "certify").parameters
    moved = {}
    for name in names:
        here, there = getattr(fitted, name), getattr(truth, name)
        moved[name] = here + share * (there - here)
    return fitted.replaced(**moved)


def vague(fitted: Any) -> Any:
    """Return the family's vague prior for the same tasks; None where it has none."""
    return family_for(fitted, "certify").blank(fitted) if has_part(fitted, "blank") else None
