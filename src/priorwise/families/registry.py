"""A family of priors as a value that tools ask.

Everything a family knows about itself stands in one folder, and one call of :func:`register` makes
it known. ``simulate``, ``sensitivity``, ``meta`` and the command line never test for a family: they
ask for a part, and where it is missing the error names the part, the family and the tool.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, final

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.protocols import for_arms
from priorwise.core.serial import Serializable, discover
from priorwise.core.trajectories import Trajectory
from priorwise.fitting.runs import Run
from priorwise.fitting.statistics import PerTask


@final
@dataclass(frozen=True)
class Later:
    """A part that is imported when it is first asked for, written ``"module:name"`` or
    ``"module:Class.method"``.
    """

    place: str

    def load(self) -> Any:
        """Import it."""
        module, _, name = self.place.partition(":")
        return attrgetter(name)(import_module(module))


_WORDS: Final = {
    "statistics": "statistics of a task",
    "blank": "a vague prior to start from",
    "log_marginal": "a marginal likelihood",
    "measure": "the measure of its marginal likelihood",
    "moments": "a moment estimator",
    "models": "estimators for a log",
    "information": "a likelihood that is normal in the parameters of a task",
    "rate": "a rate of learning",
    "covered": "a theorem on learning",
    "widened": "a wider prior for an uncertain fit",
    "pair": "a distance between two priors",
    "density": "a density of its tasks",
    "posteriors": "the distance between two posteriors",
    "parameters": "parameters with names",
    "coordinates": "coordinates of its priors",
    "featured": "a mean that follows features of tasks",
    "tail_conditions": "conditions on the tails",
    "diameter": "the law of the diameter",
    "largest_diameter": "the largest diameter",
    "live": "compiled decisions about single tasks",
}
"""How errors call the parts."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Family:
    """What a family offers. Every part but its name and its priors is optional, and may be
    :class:`Later`.

    Parameters
    ----------
    name
        How errors call it.
    priors
        Its classes of priors: those of a fixed number of arms, and those with ``for_arms``.
    homes
        Modules of further values that JSON may name, by the name in the JSON.

    Other parameters are the parts; see the comment at each.

    """

    name: str
    priors: tuple[type, ...]
    homes: Mapping[str, str] = field(default_factory=dict)

    # -- tasks and what is kept of them
    # class of the statistics, a core.statistics.PerTask
    statistics: Any = None
    # (prior) -> the vague prior of the same tasks, with all that is known of them but their law
    blank: Any = None

    # -- evidence
    # (prior, statistics) -> log density of each task's rewards given its actions, (task,)
    log_marginal: Any = None
    # what the density is one of: densities are compared only where they have one measure
    measure: Any = None

    # -- learning
    # (*, binary, squares, new_arms, arms, context, contexts, asked) -> estimators by the name of
    # their structure, for a log with such rewards and arms; none where the family does not fit
    models: Any = None
    # (prior) -> the estimator of such priors that explores uniformly
    moments: Any = None
    # (fit, how, generator) -> the fitted prior, wider by what is not known of it
    widened: Any = None
    # whether a policy that does not explore by itself holds the wider prior unless told otherwise
    cautious: bool = False
    # (prior, statistics) -> (P, b): a task's likelihood of its normal parameter w is proportional
    # to exp(b'w - w'P w / 2)
    information: Any = None
    # (prior, arms) -> Coordinates: any numbers make a prior of this form, for tasks with such arms
    coordinates: Any = None
    # (estimator, statistics, z, start, effects) -> core.regression.Regression on tasks' features z,
    # (task, feature), from a prior and effects; log_marginal then takes what is added to the mean
    # as a third argument, (task, arm), or (task,) where one number serves all arms
    featured: Any = None
    # (prior, eps, delta, known) -> rate of the theory; known: what need not be learned
    rate: Any = None
    # (prior, estimator, design) -> what the theorem takes for known, None where none covers this
    covered: Any = None

    # -- how far two priors are apart
    # (p, q) -> Pair; refuses what cannot be compared
    pair: Any = None
    # (prior) -> (environment) -> log density of each task, (task,), of what prior.sample returns;
    # None if this prior has no density. Families whose environments are of one class have densities
    # of one measure
    density: Any = None
    # (p, q, tasks) -> PosteriorPair
    posteriors: Any = None
    # names of the parameters that a straight path between two priors moves
    parameters: Any = None

    # -- what a task can cost
    # (prior) -> conditions on the tail of the diameter
    tail_conditions: Any = None
    # (prior) -> law of the diameter, or None where this prior's is not known
    diameter: Any = None
    # (prior) -> essential supremum of the diameter, or None where this prior's is not known
    largest_diameter: Any = None

    # -- decisions while tasks run
    # (prior of a fixed number of arms) -> core.live.LiveDraws; for those whose statistics are sums
    # for each arm
    live: Any = None

    def ask(self, part: str, tool: str) -> Any:
        """Return a part; refuse in the name of the tool that needs it."""
        if part not in _WORDS and part != "cautious":
            raise ArgumentError("part", f"must be one of {', '.join(_WORDS)}", got=part)
        value = getattr(self, part)
        if value is None:
            raise MissingCapability(
                "prior",
                f"has no {part}, {_WORDS[part]}, which {tool} needs",
                cure=f"register its family {self.name!r} with Family({part}=...)",
            )
        return value.load() if isinstance(value, Later) else value


_FAMILIES: dict[type, Family] = {}


def register(family: Family) -> Family:
    """Make a family known to every tool, and to JSON."""
    validation.instance("family", family, Family)
    priors = family.priors
    if not isinstance(priors, tuple) or not all(isinstance(each, type) for each in priors):
        raise ArgumentTypeError(
            "priors", f"of the family {family.name!r} must be a tuple of classes", got=priors
        )
    for prior in family.priors:
        known = _FAMILIES.get(prior)
        if known is not None and known.name != family.name:
            raise ArgumentError(
                "priors", f"must be new, but {prior.__name__} is of the family {known.name!r}"
            )
    _FAMILIES.update(dict.fromkeys(family.priors, family))
    Serializable._homes.update(family.homes)
    return family


def families() -> list[Family]:
    """Every known family once, by name."""
    discover()
    return sorted({id(each): each for each in _FAMILIES.values()}.values(), key=lambda f: f.name)


def family_of(prior: Any) -> Family | None:
    """Return the family of a prior; None for a stranger whose family nobody registered."""
    return next((_FAMILIES[each] for each in type(prior).__mro__ if each in _FAMILIES), None)


def ask(prior: Any, part: str, tool: str, name: str = "prior") -> Any:
    """Ask the family of a prior for a part; ``name`` is the argument that the prior came by."""
    family = family_of(prior)
    if family is None:
        raise ArgumentTypeError(
            name,
            f"must be a prior of a registered family ({known(part)}) for {tool}",
            got=type(prior),
            cure="register its family with priorwise.register(Family(...))",
        )
    return family.ask(part, tool)


def known(part: str) -> str:
    """Name the priors whose families have a part, for errors."""
    discover()
    having = {each.__name__ for each, family in _FAMILIES.items() if getattr(family, part)}
    return ", ".join(sorted(having))


def offers(prior: Any, part: str) -> bool:
    """Whether the family of a prior is known and has a part."""
    family = family_of(prior)
    return family is not None and getattr(family, part) is not None


def statistics_of(prior: Any, data: Any, tool: str) -> Any:
    """Return the statistics that the family of a prior reads: of a kept run or of played tasks, or
    given ones as they are.
    """
    kind = ask(prior, "statistics", tool)
    played = data.kept if isinstance(data, Run) else data
    if isinstance(played, Trajectory):
        return kind.read(played, **kind.known(prior))
    if not isinstance(played, kind) and isinstance(played, PerTask):
        played = kind.adopted(played, **kind.known(prior))
    if not isinstance(played, kind):
        raise ArgumentTypeError(
            "statistics",
            f"must be a kept Run or {kind.__name__} for {tool} of a {type(prior).__name__}",
            got=type(played),
        )
    return played


def unseen(prior: Any, tasks: int, tool: str) -> Any:
    """Return the statistics of tasks before their first pull."""
    kind = ask(prior, "statistics", tool)
    return kind.empty(tasks, **kind.known(prior))


def seen_by(prior: Any, data: Any) -> Any:
    """Return the statistics that a prior is to be conditioned on: of as many arms, with the same
    names.
    """
    statistics = statistics_of(prior, data, "belief_given")
    for name in ("arms", "names", "dim", "support"):
        mine, seen = getattr(prior, name, None), getattr(statistics, name, None)
        if mine is not None and seen is not None and mine != seen:
            raise ArgumentError("statistics", f"must have {name}={mine}, as the prior", got=seen)
    return statistics


def belief_for_arms(prior: Any, data: Any) -> Any:
    """Return the belief of a prior without a fixed number of arms about tasks with as many as their
    statistics have; what was played does not tell.
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
