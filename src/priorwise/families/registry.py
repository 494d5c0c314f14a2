"""A family of priors as a value: tools read its parts and never test for the family.

All that a family knows about itself is in one folder. One call of :func:`register` publishes it to
``simulate``, ``sensitivity``, ``meta``, ``logs``, ``serve`` and the command line. A tool reads a
part, ``family_for(prior, "total_variation").pair(p, q)``. If the family lacks that part, the error
names the part, the family and the tool.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, final, overload

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.protocols import Environment, Prior, for_arms
from priorwise.core.serial import Serializable, discover
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.fitting.runs import Run
from priorwise.fitting.statistics import PerTask

if TYPE_CHECKING:
    from priorwise.core.live import LiveDraws
    from priorwise.fitting.coordinates import Coordinates, Regression
    from priorwise.fitting.design import Design, Rate
    from priorwise.fitting.fits import Estimator, PriorFit
    from priorwise.theory.conditions import TailCondition
    from priorwise.theory.diameters import DiameterLaw
    from priorwise.theory.distance import Pair, PosteriorPair

P = TypeVar("P")  # a class of priors
T = TypeVar("T")


@final
@dataclass(frozen=True)
class LazyImport:
    """A part of a family that is imported at its first use, written ``"module:name"`` or
    ``"module:Class.method"``.
    """

    place: str

    def load(self) -> Any:
        """Import it."""
        module, _, name = self.place.partition(":")
        return attrgetter(name)(import_module(module))


class Part(Generic[T]):
    """An optional part of a family. Reading one that the family lacks raises
    :class:`~priorwise.core.errors.MissingCapability`.

    Parameters
    ----------
    description
        What the part is, as an error names it.

    """

    def __init__(self, description: str) -> None:
        self.description = description

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, family: None, owner: type) -> Self: ...
    @overload
    def __get__(self, family: Family[Any], owner: type) -> T: ...
    def __get__(self, family: Family[Any] | None, owner: type) -> Self | T:
        if family is None:
            return self  # the default of the field: no part
        value = vars(family)[self.name]
        if value is None:
            raise family.lacks(self.name, self.description)
        return value.load() if isinstance(value, LazyImport) else value

    def __set__(self, family: Family[Any], value: T | LazyImport | Self | None) -> None:
        if self.name in vars(family):
            raise AttributeError(f"{self.name} of a family cannot change")
        vars(family)[self.name] = None if value is self else value


@final
@dataclass(eq=False, kw_only=True)
class Family(Generic[P]):
    """The name of a family, its classes of priors, and its parts. All parts are optional.

    A part is a value, or a :class:`LazyImport` of one.

    Parameters
    ----------
    name
        Name of the family in errors.
    priors
        Its classes of priors: those with a fixed number of arms, and those with ``for_arms``.
    homes
        Module of each further value that JSON may name, by the name in the JSON.

    Other parameters are the parts. A comment above each one gives its signature.

    """

    name: str
    priors: tuple[type, ...]
    homes: Mapping[str, str] = field(default_factory=dict)

    # -- tasks and what is kept of them
    statistics: Part[type[PerTask]] = Part("statistics of a task")
    # (prior) -> the vague prior of the same tasks: all is known of them but their distribution
    blank: Part[Callable[[P], Prior]] = Part("a vague prior to start from")

    # -- evidence
    # (prior, statistics) -> log density of each task's rewards given its actions, (task,)
    log_marginal: Part[Callable[..., FloatArray]] = Part("a marginal likelihood")
    # (prior, statistics) -> name of the base measure; densities of two measures do not compare
    measure: Part[Callable[[P, Any], str]] = Part("the measure of its marginal likelihood")

    # -- learning
    # (*, binary, squares, new_arms, arms, context, contexts, asked) -> estimators by the name of
    # their structure, for a log with such rewards and arms; none if the family does not fit
    models: Part[Callable[..., Mapping[str, Estimator]]] = Part("estimators for a log")
    # (prior) -> the estimator of such priors that explores uniformly
    moments: Part[Callable[[P], Estimator]] = Part("a moment estimator")
    # (fit, rule, generator) -> the fitted prior, wider by its uncertainty
    widened: Part[Callable[[PriorFit, Any, np.random.Generator], Prior]] = Part(
        "a wider prior for an uncertain fit"
    )
    # whether a policy that does not explore by itself believes the wider prior by default
    cautious: bool = False
    # (prior, statistics) -> (P, b): a task's likelihood of its normal parameter w is proportional
    # to exp(b'w - w'P w / 2)
    information: Part[Callable[[P, Any], tuple[FloatArray, FloatArray]]] = Part(
        "a likelihood that is normal in the parameters of a task"
    )
    # (prior, arms) -> Coordinates: any numbers make a prior of this form, for tasks with such arms
    coordinates: Part[Callable[[P, int], Coordinates]] = Part("coordinates of its priors")
    # (estimator, statistics, z, start, effects) -> Regression on tasks' features z,
    # (task, feature), from a prior and effects; log_marginal then takes what is added to the mean
    # as a third argument, (task, arm), or (task,) if one number serves all arms
    featured: Part[Callable[..., Regression]] = Part("a mean that follows features of tasks")
    # (prior, eps, delta, known) -> rate of the theory; known: what need not be learned
    rate: Part[Callable[..., Rate]] = Part("a rate of learning")
    # (prior, estimator, design) -> what the theorem assumes to be known; None if it does not apply
    covered: Part[Callable[[P, Estimator, Design], dict[str, bool] | None]] = Part(
        "a theorem on learning"
    )

    # -- how far two priors are apart
    # (p, q) -> Pair; raises an error if the two cannot be compared
    pair: Part[Callable[[P, P], Pair]] = Part("a distance between two priors")
    # (prior) -> (environment) -> log density of each task, (task,), of what prior.sample returns;
    # None if this prior has no density. Environments of one class have densities of one measure
    density: Part[Callable[[P], Callable[[Environment], FloatArray] | None]] = Part(
        "a density of its tasks"
    )
    # (p, q, tasks) -> PosteriorPair
    posteriors: Part[Callable[[P, P, int], PosteriorPair]] = Part(
        "the distance between two posteriors"
    )
    # names of the parameters that a straight path between two priors moves
    parameters: Part[tuple[str, ...]] = Part("parameters with names")

    # -- what a task can cost
    # (prior) -> conditions on the tail of the diameter
    tail_conditions: Part[Callable[[P], tuple[TailCondition, ...]]] = Part(
        "conditions on the tails"
    )
    # (prior) -> distribution of the diameter, or None if this prior's is unknown
    diameter: Part[Callable[[P], DiameterLaw | None]] = Part("the distribution of the diameter")
    # (prior) -> essential supremum of the diameter, or None if this prior's is unknown
    largest_diameter: Part[Callable[[P], float | None]] = Part("the largest diameter")

    # -- decisions while tasks run
    # (prior with a fixed number of arms) -> LiveDraws; for statistics that are sums for each arm
    live: Part[Callable[[P], LiveDraws]] = Part("compiled decisions about single tasks")

    # who reads the parts, and the argument that the prior came by: for errors
    tool: str = field(default="this tool", init=False)
    argument: str = field(default="prior", init=False)

    def has(self, part: str) -> bool:
        """Return whether the family has a part."""
        if part not in PARTS:
            raise ArgumentError("part", f"must be one of {', '.join(PARTS)}", got=part)
        return vars(self)[part] is not None

    def read_by(self, tool: str, argument: str = "prior") -> Self:
        """Return this family with errors that name a tool and one of its arguments."""
        family = copy.copy(self)
        family.tool, family.argument = tool, argument
        return family

    def require(self, *parts: str) -> None:
        """Raise an error if the family lacks a part that its tool needs later."""
        for part in parts:
            getattr(self, part)

    def lacks(self, part: str, description: str) -> ArgumentTypeError:
        """Return the error about a part that the family lacks."""
        if self.priors:
            return MissingCapability(
                self.argument,
                f"has no {part}, {description}, which {self.tool} needs",
                cure=f"register its family {self.name!r} with Family({part}=...)",
            )
        return ArgumentTypeError(
            self.argument,
            f"must be a prior of a registered family ({priors_with(part)}) for {self.tool}",
            got=self.name,
            cure="register its family with priorwise.register(Family(...))",
        )


PARTS: Final = tuple(name for name, part in vars(Family).items() if isinstance(part, Part))

_FAMILIES: dict[type, Family[Any]] = {}


def register(family: Family[P]) -> Family[P]:
    """Publish a family to every tool, and to JSON.

    Returns
    -------
    Family
        The same family.

    """
    validation.instance("family", family, Family)
    priors = family.priors
    if not isinstance(priors, tuple) or not all(isinstance(prior, type) for prior in priors):
        raise ArgumentTypeError(
            "priors", f"of the family {family.name!r} must be a tuple of classes", got=priors
        )
    for prior in priors:
        earlier = _FAMILIES.get(prior)
        if earlier is not None and earlier.name != family.name:
            raise ArgumentError(
                "priors", f"must be new, but {prior.__name__} is of the family {earlier.name!r}"
            )
    _FAMILIES.update(dict.fromkeys(priors, family))
    Serializable._homes.update(family.homes)
    return family


def families() -> list[Family[Any]]:
    """Return every registered family once, sorted by name."""
    discover()
    return sorted(
        {id(family): family for family in _FAMILIES.values()}.values(), key=lambda f: f.name
    )


def family_of(prior: P) -> Family[P] | None:
    """Return the family of a prior, or None if its class is not registered."""
    return next((_FAMILIES[cls] for cls in type(prior).__mro__ if cls in _FAMILIES), None)


def family_for(prior: P, tool: str, argument: str = "prior") -> Family[P]:
    """Return the family of a prior for a tool to read.

    Parameters
    ----------
    prior
        Any prior. A prior of no registered family gives a family without parts.
    tool
        The tool that reads a part, for errors.
    argument
        The argument of the tool that the prior came by, for errors.

    Returns
    -------
    Family
        The family. Reading a part that it lacks raises an error that names the tool.

    """
    family = family_of(prior) or Family(name=type(prior).__name__, priors=())
    return family.read_by(tool, argument)


def priors_with(part: str) -> str:
    """Return the names of the priors whose families have a part, for errors."""
    discover()
    having = {cls.__name__ for cls, family in _FAMILIES.items() if family.has(part)}
    return ", ".join(sorted(having))


def has_part(prior: object, part: str) -> bool:
    """Return whether the family of a prior is registered and has a part."""
    family = family_of(prior)
    return family is not None and family.has(part)


def statistics_of(prior: Any, data: Any, tool: str) -> Any:
    """Return the statistics that the family of a prior reads.

    Parameters
    ----------
    prior
        A prior of a registered family.
    data
        A kept run, played tasks, or statistics. Statistics of the family come back unchanged.
    tool
        The tool that needs them, for errors.

    Returns
    -------
    PerTask
        Statistics of the family's class.

    """
    cls = family_for(prior, tool).statistics
    played = data.kept if isinstance(data, Run) else data
    if isinstance(played, Trajectory):
        return cls.read(played, **cls.known(prior))
    if not isinstance(played, cls) and isinstance(played, PerTask):
        played = cls.adopted(played, **cls.known(prior))
    if not isinstance(played, cls):
        raise ArgumentTypeError(
            "statistics",
            f"must be a kept Run or {cls.__name__} for {tool} of a {type(prior).__name__}",
            got=type(played),
        )
    return played


def unseen(prior: Any, tasks: int, tool: str) -> Any:
    """Return the statistics of tasks before their first pull."""
    cls = family_for(prior, tool).statistics
    return cls.empty(tasks, **cls.known(prior))


def seen_by(prior: Any, data: Any) -> Any:
    """Return the statistics to condition a prior on. They must have its number of arms and its
    names.
    """
    statistics = statistics_of(prior, data, "belief_given")
    for name in ("arms", "names", "dim", "support"):
        mine, theirs = getattr(prior, name, None), getattr(statistics, name, None)
        if mine is not None and theirs is not None and mine != theirs:
            raise ArgumentError("statistics", f"must have {name}={mine}, as the prior", got=theirs)
    return statistics


def belief_for_arms(prior: Any, data: Any) -> Any:
    """Return the belief of a prior without a fixed number of arms, with as many arms as the
    statistics of its tasks. Played tasks do not show their number of arms.
    """
    if isinstance(data, (Run, Trajectory)):
        raise ArgumentTypeError(
            "data",
            "must say how many arms its tasks have",
            got=type(data),
            cure="condition prior.for_arms(n), or pass statistics",
        )
    statistics = statistics_of(prior, data, "belief_given")
    return for_arms(prior, statistics.arms).belief_given(statistics)
