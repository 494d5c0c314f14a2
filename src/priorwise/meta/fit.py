"""What an estimator returns: a prior, how it was found, and how sure it is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray


class Uncertainty(Serializable, ABC):
    """The law of the prior's parameters given the data; each family of estimators has its own, with a ``family`` name."""

    @abstractmethod
    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Return ``n`` plausible priors around the fitted one."""


@final
@dataclass(frozen=True, eq=False, init=False)
class PriorFit(Serializable):
    """A fitted prior with its certainty; round-trips through JSON, except for ``statistics``.

    Parameters
    ----------
    prior
        The fitted prior, always usable.
    estimator
        Name of the estimator.
    tasks
        Number of tasks that the fit used.
    left_out
        Number of tasks given that say nothing about the prior, such as those without a pull.
    at_boundary
        Whether the data by themselves, without any regulariser, would rather have parameters on the edge of the model than the
        fitted ones: a variance of zero, a singular covariance, a Beta law without spread, a candidate of probability zero. Without
        a regulariser the fitted parameters then lie on that edge; with one it is the regulariser that keeps them off it, and how
        far off is its choice more than the data's.
    converged
        Whether the iterations came to rest; True for closed forms.
    std_errors
        Standard errors by parameter, in the parameter's own shape; NaN where there is none, as for a variance fitted at zero or an
        arm never pulled. In JSON, NaN is written as null and an infinity as "inf".
    log_likelihood
        Log marginal likelihood of the data at the fit, without any regulariser; None for estimators without one.
    iterations
        Number of iterations; 0 for closed forms.
    warnings
        What the user should know, in sentences.
    uncertainty
        How to draw plausible priors; None where the estimator has no law for them.
    statistics
        What was fitted, for refits and checks; None after loading.

    """

    family: ClassVar[str] = "prior-fit"

    prior: Any
    estimator: str
    tasks: int
    left_out: int
    at_boundary: bool
    converged: bool
    std_errors: Mapping[str, FloatArray]
    log_likelihood: float | None
    iterations: int
    warnings: tuple[str, ...]
    uncertainty: Uncertainty | None
    statistics: Any = field(repr=False)

    def __init__(
        self,
        prior: Any,
        estimator: str,
        tasks: int,
        left_out: int = 0,
        at_boundary: bool = False,
        converged: bool = True,
        std_errors: Mapping[str, ArrayLike] | None = None,
        log_likelihood: float | None = None,
        iterations: int = 0,
        warnings: Sequence[str] = (),
        uncertainty: Uncertainty | None = None,
        statistics: Any = None,
    ) -> None:
        """Check and freeze the results."""
        if not callable(getattr(prior, "belief", None)):
            raise TypeError(f"prior must be a prior, got {type(prior).__name__}")
        if not (uncertainty is None or isinstance(uncertainty, Uncertainty)):
            raise TypeError(f"uncertainty must be None or an Uncertainty, got {type(uncertainty).__name__}")
        values = {
            "prior": prior,
            "estimator": validation.word("estimator", estimator),
            "tasks": validation.count("tasks", tasks, least=0),
            "left_out": validation.count("left_out", left_out, least=0),
            "at_boundary": validation.flag("at_boundary", at_boundary),
            "converged": validation.flag("converged", converged),
            "std_errors": _errors({} if std_errors is None else std_errors),
            "log_likelihood": None if log_likelihood is None else _extended("log_likelihood", log_likelihood),
            "iterations": validation.count("iterations", iterations, least=0),
            "warnings": _sentences(warnings),
            "uncertainty": uncertainty,
            "statistics": statistics,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def draw(self, rng: np.random.Generator, n: int) -> list[Any]:
        """Return ``n`` priors that the data leave plausible."""
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, such as np.random.default_rng(seed), got {type(rng).__name__}")
        if self.uncertainty is None:
            raise ValueError(f"a fit by {self.estimator} has no law of plausible priors; fit by marginal likelihood to get one")
        return self.uncertainty.draw(self.prior, rng, validation.count("n", n))

    def _fields(self) -> dict[str, Any]:
        if self.statistics is not None:
            kept = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "statistics"}
            return PriorFit(**kept)._fields()
        content = super()._fields()
        content["std_errors"] = {name: _standard(array.tolist(), None) for name, array in self.std_errors.items()}
        content["log_likelihood"] = _standard(self.log_likelihood, "nan")
        return content

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        if fields.get("statistics") is not None:
            raise ValueError("statistics are not kept in files; leave the field out or null")
        return super()._from_fields(fields)

    def __str__(self) -> str:
        """The prior's family, the number of tasks, and whatever is out of the ordinary."""
        notes = [f"{self.left_out:,} left out"] * (self.left_out > 0)
        notes += ["at the boundary"] * self.at_boundary + ["not converged"] * (not self.converged) + list(self.warnings)
        text = f"{type(self.prior).__name__} by {self.estimator} from {self.tasks:,} tasks"
        return text + (f" ({'; '.join(notes)})" if notes else "")


def _errors(value: Any) -> dict[str, FloatArray]:
    """Arrays by parameter, of numbers that are not negative; in JSON, None stands for NaN and "inf" for an infinity."""
    if not isinstance(value, Mapping):
        raise TypeError(f"std_errors must be arrays by name, such as {{'mean': [0.1, 0.2]}}, got {validation.shown(value)}")
    out = {}
    for name, each in value.items():
        label = f"std_errors[{validation.shown(name)}]"
        validation.word("a name in std_errors", name)
        array = validation.numbers(label, _unwritten(label, each))
        if (array < 0.0).any():
            raise ValueError(f"{label} must not be negative, got {np.nanmin(array):g}")
        array.setflags(write=False)
        out[name] = array
    return out


def _unwritten(name: str, value: Any) -> Any:
    """Undo ``_standard``."""
    if isinstance(value, (list, tuple)):
        return [_unwritten(name, each) for each in value]
    return math.nan if value is None else _extended(name, value) if isinstance(value, (str, bool)) else value


def _extended(name: str, value: Any) -> float:
    """Return a number, infinite or NaN ones included, which JSON has as words."""
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {validation.shown(value)}")
    return float(value)


def _sentences(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"warnings must be a list of sentences, got {validation.shown(value)}")
    return tuple(value)


def _standard(value: Any, nan: str | None) -> Any:
    """Replace what standard JSON has no number for: infinities become "inf" and "-inf", NaN what is given for it."""
    if isinstance(value, list):
        return [_standard(each, nan) for each in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return nan if math.isnan(value) else str(value)


class Estimator(Protocol):
    """A frozen value of hyper-parameters that turns data into a :class:`PriorFit`."""

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is a fit or prior to begin from, which closed forms ignore."""
        ...
