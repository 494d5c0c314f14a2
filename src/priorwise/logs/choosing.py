"""Which structures a log may be fitted with, and which it is: the simplest of those that predict as
well as the best; and when to try a mixture.
"""

from typing import Any, Final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, option
from priorwise.families.mixture.likelihood.estimator import MixtureMarginalLikelihood
from priorwise.families.registry import families, family_for, has_part
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.statistics import PerTask
from priorwise.logs.options import Arms
from priorwise.logs.reducing import Log
from priorwise.meta.selection.models import ModelComparison, compare_models

MOST: Final = 12
"""Coordinates of a law up to which a mixture of two is tried unasked."""
TASKS: Final = 10
"""Tasks for each coordinate of the mixture."""
NUMBERS: Final = {"two": 2, "three": 3, "four": 4, "five": 5}
"""How many laws a mixture may be asked for."""


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
        size = _size(prior, statistics.arms)
        if size is None:
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
        shared = each.ndim == 1 and np.ptp(each) <= 1e-9 * np.max(each)  # but for rounding
        count += 1 if shared else int(np.count_nonzero(each))
    return count


def candidates(
    log: Log, family: str, arms: Arms, contexts: Any, noise_var: float | None, seed: int
) -> tuple[dict[str, Any], Any]:
    """Estimators by name, and the statistics that all of them read."""
    number, of, one = validation.word("family", family).partition(" of ")
    if of and number in NUMBERS:
        if log.features:
            raise ArgumentError(
                "task_features", "mixtures have none", cure="name a family, or leave them out"
            )
        models, statistics = candidates(log, one, arms, contexts, noise_var, seed)
        return _mixed(number, models, statistics, seed), statistics
    asked, colon, structure = family.partition(":")
    known = {each.name: each for each in families() if each.has("models")}
    if (asked != "auto" and asked not in known) or (colon and not structure):
        raise ArgumentError(
            "family",
            f"must be 'auto' or one of {', '.join(sorted(known))} (or two of one of them)",
            got=family,
        )
    new = log.new_arms if arms == "auto" else arms == "new"
    facts: Any = {"new_arms": new, "arms": len(log.arms), "context": len(log.columns.context)}
    facts |= {"binary": log.odd is None, "contexts": contexts, "asked": asked != "auto"}
    facts |= {"squares": log.squares is not None, "noise_var": noise_var}
    found: dict[str, Any] = {}
    readers: dict[type[PerTask], str] = {}
    for name, each in known.items():
        if asked not in ("auto", name):
            continue
        if log.features and not each.has("featured"):
            if asked == name:
                each.read_by("fit_prior with task_features").require("featured")
            continue
        offered = each.models(**facts)
        if noise_var is not None:  # those that learn it, or have none
            offered = {
                w: m for w, m in offered.items() if getattr(m, "noise_var", None) is not None
            }
        found |= {f"{name}:{word}": made for word, made in offered.items()}
        if offered:
            readers[each.statistics] = name
    if structure:
        found = {name: made for name, made in found.items() if name == family}
    if not found:
        _nothing_fits(log, family, new, noise_var)
    if len(readers) > 1:
        raise ArgumentError(
            "family",
            f"must be one of {', '.join(readers.values())}, which read different statistics",
        )
    (kind,) = readers
    if noise_var is None:
        log.check_squares(kind)
    statistics = log.statistics(kind, arms)
    if noise_var is None and any(hasattr(each, "noise_var") for each in found.values()):
        log.check_repeats()
    return found, statistics


def _mixed(number: str, models: dict[str, Any], statistics: Any, seed: int) -> dict[str, Any]:
    """Mixtures of so many laws, of the structures that can be mixed."""
    found = {}
    for name, each in models.items():
        prior = each.fit(statistics).prior
        if _size(prior, statistics.arms) is not None:
            made = MixtureMarginalLikelihood(each, NUMBERS[number], seed=seed)
            found[f"{number} of {name}"] = made
    if not found:
        raise ArgumentError("family", f"has no mixture of {', '.join(models)} that can be learned")
    return found


def _size(prior: Any, arms: int) -> int | None:
    """Coordinates of a law; None for one that cannot be mixed."""
    if not has_part(prior, "coordinates"):
        return None
    try:
        return int(family_for(prior, "fit_prior").coordinates(prior, arms).x.size)
    except TypeError:  # a structure that cannot be mixed
        return None


def _nothing_fits(log: Log, family: str, new: bool, noise_var: float | None) -> None:
    reasons = []
    if noise_var is not None:
        reasons.append(f"{option('noise_var')} is for families of real rewards with a known noise")
    elif log.odd is not None:
        reasons.append(f"its rewards are not 0 or 1: {log.not_binary}")
    if new:
        reasons.append("its arms are new in every task, so that only exchangeable structures fit")
    name, _, structure = family.partition(":")
    if structure and not reasons:
        reasons.append(
            f"{name} has no structure {structure!r} for it; {option('family', name)} tries all"
        )
    why = "; ".join(reasons) or "see the families' structures in the documentation"
    raise ArgumentError("family", f"does not fit this log: {why}", got=family)
