"""A prior for each task: of one family, with a mean that is linear in the task's features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray
from priorwise.families.featured.features import TaskFeatures
from priorwise.families.registry import family_for
from priorwise.fitting.fits import PriorFit, ReadablePrior

SURE: Final = 1.959964
"""Standard errors of a 95 % interval."""
NAMED: Final = 8
"""Arms whose effects are printed in words."""


@final
@dataclass(frozen=True, eq=False, init=False)
class FeaturedPrior(Serializable):
    """The prior of tasks with features x: that of the base, with mean ``mean + B (x - centre)``.

    Parameters
    ----------
    base
        Prior of a task whose numbers are the average of the log, and whose words are the most
        common: of a family with a mean.
    effects
        B: of each number that is read of the features, by its label or in their order, how much one
        more adds to the mean; one for all arms of an exchangeable prior, else ``(arm,)``.
    features
        Which features there are, and how they are read.

    Examples
    --------
    >>> from priorwise.families.gaussian.prior import GaussianPrior
    >>> base = GaussianPrior([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> prior = FeaturedPrior(base, [[0.1, -0.1]], TaskFeatures(["words"], [None], [9.0], [2.0]))
    >>> prior.for_features({"words": 14}).mean.tolist()
    [1.5, 1.5]

    """

    family: ClassVar[str] = "featured"

    base: Any
    effects: Mapping[str, FloatArray]
    features: TaskFeatures

    def __init__(self, base: Any, effects: Any, features: TaskFeatures) -> None:
        """Check and freeze."""
        argument_checks.prior("base", base)
        validation.instance("features", features, TaskFeatures, "TaskFeatures")
        family_for(base, "FeaturedPrior", "base").require("featured")
        labels = features.labels
        if isinstance(effects, Mapping):
            if set(effects) != set(labels):
                raise ArgumentError("effects", f"must be those of {', '.join(map(repr, labels))}")
            effects = [effects[label] for label in labels]
        if isinstance(effects, str) or not hasattr(effects, "__len__"):
            raise ArgumentTypeError("effects", "must be a list", got=effects)
        if len(effects) != len(labels):
            raise ArgumentError(
                "effects", f"must be {len(labels)}, as the features are, not {len(effects)}"
            )
        shape, made = np.shape(base.mean), {}
        for label, each in zip(labels, effects, strict=True):
            value = validation.numbers(f"effects[{label!r}]", each)
            if value.shape != shape or not np.isfinite(value).all():
                raise ArgumentError(
                    f"effects[{label!r}]",
                    f"must be finite, of the shape of the base's mean, {shape}",
                    got=each,
                )
            value.setflags(write=False)
            made[label] = value
        validation.freeze(self, base=base, effects=MappingProxyType(made), features=features)

    def _fields(self) -> dict[str, Any]:
        base, features = self.base._fields(), self.features._fields()
        values = [each.tolist() for each in self.effects.values()]
        return {"family": self.family, "base": base, "effects": values, "features": features}

    @property
    def slopes(self) -> FloatArray:
        """B, ``(arm, number)`` or ``(number,)``."""
        return np.stack([*self.effects.values()], axis=-1)

    def offsets(self, x: FloatArray) -> FloatArray:
        """What features ``(task, number)`` add to the mean, ``(task, arm)`` or ``(task,)``."""
        off = x - self.features.centre
        return np.einsum("tj,aj->ta" if self.slopes.ndim > 1 else "tj,j->t", off, self.slopes)

    def for_features(self, features: Any) -> Any:
        """Return the prior of a task with these features, given by name; a list of priors where
        they are columns of many tasks.
        """
        x, single = self.features.rows(features)
        priors = self.of_rows(x)
        return priors[0] if single else priors

    def of_rows(self, x: FloatArray) -> list[Any]:
        """Return the priors of tasks whose features were read, ``(task, number)``."""
        return [
            self.base.replaced(mean=self.base.mean + (float(each) if each.ndim == 0 else each))
            for each in self.offsets(x)
        ]

    def fit_for(self, fit: PriorFit, features: Any) -> PriorFit:
        """Return a fit of this prior as that of tasks with these features, None for the base."""
        from priorwise.families.featured.uncertainty import AtFeatures

        x, single = self.features.centre[None], True
        if features is not None:
            x, single = self.features.rows(features)
        if not single:
            raise ArgumentError(
                "features", "must be those of one task", cure="prior.for_features takes many"
            )
        errors = {
            name.removeprefix("base."): each
            for name, each in fit.std_errors.items()
            if name.startswith("base.")
        }
        law: Any = fit.uncertainty
        at = x[0] - self.features.centre
        if law is not None:
            errors |= law.mean_error(np.asarray(errors.get("mean", np.nan)), at)
        around = None if law is None else AtFeatures(self, law, x[0])
        return replace(
            fit, prior=self.of_rows(x)[0], std_errors=errors, uncertainty=around, statistics=None
        )

    def in_words(self, std_errors: Mapping[str, Any]) -> list[str]:
        """Say which tasks the base is of, and what each feature does."""
        lines = [f"base: the prior of a task with {self.features.at_base}"]
        if isinstance(self.base, ReadablePrior):
            own = {name.removeprefix("base."): each for name, each in std_errors.items()}
            lines += self.base.in_words(own)
        lines.append("effects of features on the mean, with 95 % intervals:")
        references = {}
        for name, words in zip(self.features.names, self.features.words, strict=True):
            first, *others = words or ("",)
            for word in others:
                references[f"{name}={word}"] = f"{name} = {word!r} instead of {first!r}"
        for label, each in self.effects.items():
            errors = np.atleast_1d(np.asarray(std_errors.get(f"effects.{label}", np.nan)))
            spans = [
                f"{value:+.3g} ({value - SURE * error:.3g} to {value + SURE * error:.3g})"
                for value, error in zip(np.atleast_1d(each), errors, strict=True)
            ]
            arms = getattr(self.base, "names", None) or range(len(spans))
            if each.ndim:
                pairs = zip(arms, spans, strict=True)
                spans = [f"{arm} {span}" for arm, span in pairs]
            more = [f"and {len(spans) - NAMED} more arms"] if len(spans) > NAMED else []
            what = references.get(label, f"{label} higher by 1")
            lines.append(f"  {what}: {', '.join(spans[:NAMED] + more)}")
        return lines

    def _refuse(self) -> NoReturn:
        raise MissingCapability(
            "prior",
            f"depends on task_features {', '.join(map(repr, self.features.names))}",
            cure="say which with for_features({...}), of the prior or of the fit",
        )

    @property
    def arms(self) -> int:
        """Raise an error: tasks without features have no prior."""
        self._refuse()

    def sample(self, rng: Any, tasks: int) -> Any:
        """Raise an error: tasks without features have no prior."""
        self._refuse()

    def belief(self, tasks: int) -> Any:
        """Raise an error: tasks without features have no prior."""
        self._refuse()
