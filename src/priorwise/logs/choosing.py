"""Which of several structures a log is fitted with: the simplest of those that predict as well as
the best; and when to try a mixture.
"""

from typing import Any, Final

import numpy as np

from priorwise.core.family import ask, offers
from priorwise.core.fits import PriorFit
from priorwise.families.mixture.likelihood.estimator import MixtureMarginalLikelihood
from priorwise.meta.selection.models import ModelComparison, compare_models

MOST: Final = 12
"""Coordinates of a law up to which a mixture of two is tried unasked."""
TASKS: Final = 10
"""Tasks for each coordinate of the mixture."""


def mixtures_of(
    models: dict[str, Any],
    comparison: ModelComparison | None,
    chosen: str,
    fit: PriorFit,
    *,
    doubts: bool,
    seed: int,
) -> dict[str, Any]:
    """Mixtures of two laws of the chosen structure, and of the one with the fewest parameters; none
    where nothing is in doubt and a cheap look at the chosen one promises nothing.
    """
    fits = {chosen: fit} if comparison is None else comparison.fits
    plain = min(fits, key=lambda name: _free(fits[name]))
    made = {}
    for name in dict.fromkeys((chosen, plain)):
        prior, statistics = fits[name].prior, fits[name].statistics
        if not offers(prior, "coordinates"):
            continue
        try:
            size = ask(prior, "coordinates", "fit_prior")(prior, statistics.arms).x.size
        except TypeError:  # a structure that cannot be mixed
            continue
        if size <= MOST and statistics.tasks >= TASKS * (2 * size + 1):
            two = MixtureMarginalLikelihood(models[name], seed=seed)
            if name == chosen and not (doubts or two.may_pay(fits[name])):
                return {}
            made[f"two of {name}"] = two
    return made


def compared_with(
    more: dict[str, Any],
    comparison: ModelComparison | None,
    models: dict[str, Any],
    chosen: str,
    statistics: Any,
    folds: int,
    seed: int,
) -> ModelComparison:
    """The comparison with further models, on the same folds."""
    if comparison is None:
        more = {chosen: models[chosen]} | more
    found = compare_models(more, statistics, folds=folds, seed=seed)
    if comparison is None:
        return found
    return ModelComparison(comparison.scores | found.scores, comparison.fits | found.fits)


def simplest(models: ModelComparison) -> str:
    """Return the model with the fewest parameters among those as good as the best."""
    best = models.best
    near = [best]
    for name in models.scores:
        gap = models.difference(best, name)
        if name != best and gap.mean <= gap.std_error:
            near.append(name)
    return min(near, key=lambda name: _free(models.fits[name]))


def _free(fit: PriorFit) -> int:
    """How many numbers a fit chose: entries of the prior's own parameters, not those that a
    structure holds at zero, and once what is one number for all arms, or stands in a covariance
    twice.
    """
    known = getattr(fit.prior, "__dict__", {})
    own = {name: each for name, each in fit.std_errors.items() if name.split(".", 1)[0] in known}
    count = 0
    for error in (own or fit.std_errors).values():
        each = np.asarray(error)
        each = np.triu(each) if each.ndim == 2 else each
        shared = each.ndim == 1 and np.ptp(each) == 0.0
        count += 1 if shared else int(np.count_nonzero(each))
    return count
