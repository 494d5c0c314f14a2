"""What an estimator returns: a prior, how it was found, and how sure it is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import serial, sizes, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.estimates import written
from priorwise.core.frames import Table, Tabular
from priorwise.core.protocols import for_arms
from priorwise.core.serial import SENSELESS, Serializable
from priorwise.core.types import FloatArray
from priorwise.figures.fit import PLAUSIBLE, fit_figure
from priorwise.figures.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

BYTES_OF_A_PRIOR: Final = 1_000.0  # what a drawn prior takes at least
PLAIN: Final = "0 is plain maximum likelihood"  # ends the error about a regulariser
PLAUSIBLE_AVERAGED: Final = 64  # plausible priors that an average is taken over


@runtime_checkable
class ReadablePrior(Protocol):
    """A prior that says in words what its fitted parameters mean."""

    def in_words(self, std_errors: Mapping[str, float | FloatArray]) -> list[str]:
        """Sentences, given the standard errors by parameter."""
        ...


class Uncertainty(Serializable, ABC):
    """The law of the prior's parameters given the data; each family of estimators has its own, with
    a ``family`` name.
    """

    @abstractmethod
    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Return ``n`` plausible priors around the fitted one."""
        ...


@final
@dataclass(frozen=True, eq=False)
class PriorFit(Serializable, Tabular):
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
        Whether the data by themselves, without any regulariser, would rather have parameters on the
        edge of the model than the fitted ones: a variance of zero, a singular covariance, a Beta
        law without spread, a candidate of probability zero. Without a regulariser the fitted
        parameters then lie on that edge; with one it is the regulariser that keeps them off it, and
        how far off is its choice more than the data's.
    converged
        Whether the iterations came to rest; True for closed forms.
    std_errors
        Standard errors by parameter, in the parameter's own shape, a float for a number; NaN where
        there is none, as for a variance fitted at zero or an arm never pulled. In JSON, NaN is
        written as null and an infinity as "inf".
    log_likelihood
        Log marginal likelihood of the data at the fit, without any regulariser; None for estimators
        without one.
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
    left_out: int = 0
    at_boundary: bool = False
    converged: bool = True
    std_errors: Mapping[str, float | FloatArray] = field(default_factory=dict)
    log_likelihood: float | None = None
    iterations: int = 0
    warnings: Sequence[str] = ()
    uncertainty: Uncertainty | None = None
    statistics: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(getattr(self.prior, "belief", None)):
            raise ArgumentTypeError("prior", "must be a prior", got=type(self.prior))
        if not (self.uncertainty is None or isinstance(self.uncertainty, Uncertainty)):
            raise ArgumentTypeError(
                "uncertainty", "must be None or an Uncertainty", got=type(self.uncertainty)
            )
        validation.word("estimator", self.estimator)
        checked: dict[str, Any] = {"warnings": validation.sentences("warnings", self.warnings)}
        errors = {} if self.std_errors is None else self.std_errors
        checked["std_errors"] = serial.errors("std_errors", errors)
        if (names := getattr(self.statistics, "names", None)) is not None:
            checked["prior"] = named(self.prior, names)
        for name in ("tasks", "left_out", "iterations"):
            checked[name] = validation.count(name, getattr(self, name), least=0)
        for name in ("at_boundary", "converged"):
            checked[name] = validation.flag(name, getattr(self, name))
        if self.log_likelihood is not None:
            checked["log_likelihood"] = serial.number("log_likelihood", self.log_likelihood)
        validation.freeze(self, **checked)

    def with_arms(self) -> Any:
        """Return the prior; one without a fixed number of arms, for as many as the data have."""
        arms = getattr(self.statistics, "arms", None)
        return self.prior if arms is None else for_arms(self.prior, arms)

    def for_features(self, features: ArrayLike) -> "PriorFit":
        """Return the fit of tasks with these features, given by name, of a prior that depends on
        some: see ``fit_prior(..., task_features=...)``.
        """
        make = getattr(self.prior, "fit_for", None)
        if make is None:
            raise ArgumentTypeError(
                "features",
                f"must be left out, as a {type(self.prior).__name__} does not depend on any",
                cure="fit_prior(..., task_features=[...]) learns one that does",
            )
        fit: PriorFit = make(self, features)
        return fit

    def draw(self, rng: np.random.Generator, n: int) -> list[Any]:
        """Return ``n`` priors that the data leave plausible."""
        validation.instance(
            "rng",
            rng,
            np.random.Generator,
            "a numpy.random.Generator, such as np.random.default_rng(seed)",
        )
        if self.uncertainty is None:
            raise MissingCapability(
                "fit",
                "has no law of plausible priors",
                got=self.estimator,
                cure="take a likelihood fit",
            )
        n = validation.count("n", n)
        sizes.check_memory("n", n, BYTES_OF_A_PRIOR * sizes.as_float(n), "lower n")
        names = getattr(self.prior, "names", None)
        drawn = self.uncertainty.draw(self.prior, rng, n)
        return drawn if names is None else [named(each, names) for each in drawn]

    def _fields(self) -> dict[str, Any]:
        if self.statistics is not None:
            return replace(self, statistics=None)._fields()
        content = super()._fields()
        content["std_errors"] = {
            name: serial.written(np.asarray(error).tolist(), None)
            for name, error in self.std_errors.items()
        }
        content["log_likelihood"] = serial.written(self.log_likelihood, "nan")
        return content

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        if fields.get("statistics") is not None:
            raise ArgumentError(
                "statistics", "are not kept in files", cure="leave the field out or null"
            )
        fit = super()._from_fields(fields)
        if fit.uncertainty is None:
            return fit
        # one draw tells of which kind and size plausible priors are: those of another fit or not
        law, prior = type(fit.uncertainty).__name__, type(fit.prior).__name__
        try:
            drawn = fit.draw(np.random.default_rng(0), 1)[0]
        except SENSELESS as error:
            raise ArgumentError(
                "uncertainty", f"must draw priors like this {prior}: {error}", got=law
            ) from error
        if _form(drawn) != _form(fit.prior):
            raise ArgumentError(
                "uncertainty",
                f"must draw priors like this {prior}",
                got=law,
                cure="take both from one fit",
            )
        return fit

    def table(self) -> Table:
        """Columns by name, one row for each number of each parameter that was estimated.

        ``row`` and ``column`` say where it stands in a vector (an arm, a feature, a candidate) or
        matrix, and are None otherwise.
        """
        table: Any = {"parameter": [], "row": [], "column": [], "value": [], "std_error": []}
        for name, (value, error) in self._parameters().items():
            for place in np.ndindex(value.shape):
                row, column = (*place[-2:], None, None)[:2]
                of = "".join(f"[{each}]" for each in place[:-2])  # of a table with more axes
                cells = f"{name}{of}", row, column, float(value[place]), float(error[place])
                for title, cell in zip(table, cells, strict=True):
                    table[title].append(cell)
        return table

    def to_frame(self) -> "DataFrame":
        """Return the table as a pandas DataFrame."""
        # integers also where some are missing
        return super().to_frame().astype({"row": "Int64", "column": "Int64"})

    def figure(self, title: str = "") -> Picture:
        """Draw where the fitted prior puts the mean reward of each arm, and how sure the data are
        of it.
        """
        if hasattr(self.prior, "fit_for"):  # it depends on features: of average tasks
            picture: Picture = self.prior.fit_for(self, None).figure(title)
            return picture
        rng = np.random.default_rng(0)
        plausible = [] if self.uncertainty is None else self.draw(rng, PLAUSIBLE)
        head = f"{type(self.prior).__name__} learned from {self.tasks:,} tasks"
        return fit_figure(self.prior, plausible, validation.text("title", title) or head)

    def __str__(self) -> str:
        """The parameters with their standard errors, what they mean in words, and whatever is out
        of the ordinary.
        """
        fitted = f"{type(self.prior).__name__} by {self.estimator} from {self.tasks:,} tasks"
        lines = [fitted + (f", {self.left_out:,} left out" if self.left_out else "")]
        parameters = self._parameters()
        width = max(map(len, parameters), default=0)
        for name, (value, error) in parameters.items():
            first, *more = written(value, error)
            lines += [f"  {name:{width}}  {first}", *(f"  {'':{width}}  {line}" for line in more)]
        if isinstance(self.prior, ReadablePrior):
            lines += [f"  {sentence}" for sentence in self.prior.in_words(self.std_errors)]
        if self.at_boundary:
            lines.append(
                "  at the boundary: the data by themselves would rather have parameters on the "
                "edge of the model"
            )
        if not self.converged:
            lines.append("  not converged")
        return "\n".join([*lines, *(f"  warning: {each}" for each in self.warnings)])

    def _parameters(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Each parameter with a standard error, or all numbers of the prior where there is none:
        value and error, of one shape.
        """
        out = {}
        for name in list(self.std_errors) or _numbers(self.prior):
            value = np.asarray(_value(self.prior, name), dtype=np.float64)
            error = np.asarray(self.std_errors.get(name, np.nan))
            if error.ndim < value.ndim and np.all(value == value.flat[0]):
                value = np.asarray(value.flat[0])  # one number for all arms
            value, error = np.broadcast_arrays(value, error)
            out[name] = value, error
        return out


def named(prior: Any, names: tuple[str, ...]) -> Any:
    """Return a prior with the names of the arms, if it has so many arms and no names yet."""
    open_ = getattr(prior, "names", names) is None and prior.arms == len(names)
    return prior.replaced(names=names) if open_ else prior


def _form(prior: Any) -> tuple[type, dict[str, tuple[int, ...]]]:
    """Family of a prior, and the shapes of its numbers."""
    return type(prior), {name: np.shape(getattr(prior, name)) for name in _numbers(prior)}


def _value(prior: Any, name: str) -> Any:
    """Value of a parameter, NaN where there is none; ``components.0.mean`` is one of a part, and
    what follows a mapping is a name in it.
    """
    value, words = prior, name.split(".")
    for place, word in enumerate(words):
        if isinstance(value, Mapping):
            return value.get(".".join(words[place:]), np.nan)
        if word.isdecimal() and isinstance(value, tuple):
            value = value[int(word)] if int(word) < len(value) else np.nan
        else:
            value = getattr(value, word, np.nan)
    return value


def _numbers(prior: Any) -> list[str]:
    """Names of a prior's numbers and arrays."""
    shown = {name: each for name, each in vars(prior).items() if name[0] != "_"}
    return [name for name, each in shown.items() if isinstance(each, (float, np.ndarray))]


def limits_in_words(reasons: list[str | None], *, separate: bool) -> list[str]:
    """One sentence for each reason why a likelihood has no maximum, naming the arms."""
    lines = []
    for reason in dict.fromkeys(each for each in reasons if each is not None):
        arms = [str(arm) for arm, each in enumerate(reasons) if each == reason]
        who = f"arm {arms[0]}" if separate else "the pooled arm"
        if separate and len(arms) > 1:
            more = f" and {len(arms) - 8} more" if len(arms) > 8 else ""
            who = f"each of the arms {', '.join(arms[:8])}{more}"
        lines.append(f"{who} {reason}: the likelihood has no maximum in the interior")
    return lines


class Estimator(Protocol):
    """A frozen value of hyper-parameters that turns data into a :class:`PriorFit`."""

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is a fit or prior to begin from, which closed
        forms ignore.
        """
        ...
