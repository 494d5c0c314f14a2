"""A mixture of priors, mu ~ sum_k probs_k P_k, with its exact belief: a mixture of beliefs,
weighted by how well each predicts.

A learned prior mixed with a little of a vague one forgives: where a task contradicts the learned
prior, a few pulls move the weight to the vague one. Costs the sum of the components' costs.

Components may have laws of contexts of their own: the law is a part of the unknown task then, and
the features that a task shows weigh the components too (:mod:`.contexts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
from attrs import field, frozen
from scipy.special import logsumexp

from priorwise.core import argument_checks, validation
from priorwise.core.drawn import DrawnComponents, drawn_environments
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import Checked, Probabilities, arrays, entries
from priorwise.core.protocols import Environment, PredictiveBelief
from priorwise.core.rewards import mixed
from priorwise.core.seen import Seen, Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import CompiledPrior, FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.mixture.contexts import OwnContexts, OwnContextsEnvironment, own_contexts
from priorwise.families.registry import family_for, statistics_of
from priorwise.theory.numerics import rescaled


def list_of_priors(name: str, value: Any) -> tuple[Any, ...]:
    """Return a tuple of at least one entry."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentTypeError(name, "must be a list of priors", got=value)
    if not value:
        raise ArgumentError(name, "must hold at least one prior")
    return tuple(value)


def check_components(name: str, components: Any) -> tuple[Any, ...]:
    """Return priors that can stand in for one another: with the same arms, reward law and number
    of features.
    """
    parts = list_of_priors(name, components)
    for place, part in enumerate(parts):
        if not isinstance(part, type) and hasattr(part, "for_arms"):
            raise ArgumentTypeError(
                f"{name}[{place}]", "has no fixed number of arms", cure="pass prior.for_arms(n)"
            )
        argument_checks.role(
            f"{name}[{place}]", part, "a prior", "arms", "reward_law", "sample", "belief"
        )
    for part in parts[1:]:
        for shared in ("arms", "reward_law", "dim"):
            ours, theirs = getattr(parts[0], shared, None), getattr(part, shared, None)
            if ours != theirs:
                raise ArgumentError(name, f"must share {shared}, but have {ours} and {theirs}")
    return parts


@final
@frozen(eq=False, slots=False)
class MixturePrior(Serializable):
    """One of several priors, drawn once per task.

    Parameters
    ----------
    components
        Priors with the same arms and reward law, and with the same contexts, or each with its own,
        whose densities can be compared.
    probs
        Their probabilities, ``(component,)``.

    Examples
    --------
    >>> from priorwise.families.beta.prior import BetaPrior
    >>> MixturePrior([BetaPrior([2, 8], [8, 2]), BetaPrior([1, 1], [1, 1])], [0.9, 0.1]).arms
    2

    """

    family: ClassVar[str] = "mixture"

    components: tuple[Any, ...] = field(
        converter=entries, validator=Checked(check_components, ("component",))
    )
    probs: FloatArray = field(converter=arrays, validator=Probabilities(("component",)))

    def __attrs_post_init__(self) -> None:
        self._own  # noqa: B018 - checks the contexts

    @cached_property
    def _own(self) -> OwnContexts | None:
        """Contexts that depend on the component."""
        return own_contexts(self.components)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.components[0].arms)

    @property
    def reward_law(self) -> Any:
        """How rewards scatter around their means."""
        return self.components[0].reward_law

    @property
    def microseconds(self) -> dict[str, float]:
        """About what a decision about one task takes: the sum over the components."""
        own = [getattr(part, "microseconds", {}) for part in self.components]
        return {name: sum(each.get(name, 0.0) for each in own) for name in own[0]}

    @property
    def contexts(self) -> Any:
        """Law of the features that a pull shows, :class:`OwnContexts` where that depends on the
        component; None where it shows none.
        """
        return self._own or getattr(self.components[0], "contexts", None)

    @property
    def dim(self) -> int:
        """Number of features; 0 where there are none."""
        return getattr(self.components[0], "dim", 0)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the arms."""
        return getattr(self.components[0], "names", None)

    @classmethod
    def with_vague(cls, learned: Any, share: float = 0.1) -> Self:
        """Mix a learned prior with the vague one of its family, of this probability: the vague one
        takes over in tasks that contradict what was learned.
        """
        share = validation.share("share", share)
        argument_checks.role(
            "learned", learned, "a prior", "arms", "reward_law", "sample", "belief"
        )
        vague = family_for(learned, "MixturePrior.with_vague", "learned").blank(learned)
        return cls([learned, vague], [1.0 - share, share])

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed; names are those of the components."""
        if "names" in changes:
            names, parts = changes.pop("names"), changes.get("components", self.components)
            changes["components"] = [part.replaced(names=names) for part in parts]
        return super().replaced(**changes)

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Draw the component of each task, then the task."""
        index = rng.choice(
            np.broadcast_to(self.probs, (argument_checks.batch(rng, tasks), self.probs.size))
        )
        drawn = mixed([part.sample(rng, tasks) for part in self.components], index)
        return drawn if self._own is None else OwnContextsEnvironment(drawn, self._own, index)

    def log_probs(self, tasks: int) -> FloatArray:
        """Logarithms of the probabilities, for each of some tasks, ``(task, component)``."""
        with np.errstate(divide="ignore"):
            return np.broadcast_to(np.log(self.probs), (tasks, self.probs.size))

    def belief(self, tasks: int) -> "MixtureBelief":
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        parts = tuple(part.belief(tasks) for part in self.components)
        for place, part in enumerate(parts):
            what = f"the belief of components[{place}], a {type(part).__name__},"
            members = argument_checks.members(PredictiveBelief)
            argument_checks.role(what, part, "a belief that knows how likely rewards are", *members)
        return self._belief(parts, self.log_probs(tasks))

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Tile functions for the compiled loop; None unless all components are plain bandits of one
        family that has them.
        """
        offered = [each for each in self.components if isinstance(each, CompiledPrior)]
        if len(offered) < len(self.components) or self.dim:
            return None
        parts = [each.tiles(horizon, uses) for each in offered]
        compiled = [each for each in parts if each is not None]
        if len(compiled) < len(parts):
            return None
        from priorwise.families.mixture.tiles import mixture_tiles

        return mixture_tiles(compiled, self.probs, horizon, uses)

    def _belief(self, parts: tuple[Any, ...], log_weights: FloatArray) -> "MixtureBelief":
        counted = np.zeros(len(log_weights), dtype=np.int64)
        since = parts if all(hasattr(each, "log_evidence") for each in parts) else None
        return MixtureBelief(parts, log_weights, self.arms, self._own, counted, since)

    def belief_given(self, statistics: Any) -> "MixtureBelief":
        """Return the belief about tasks of which all that was seen is in their statistics, one for
        each component; see those.
        """
        seen = statistics_of(self, statistics, "belief_given")
        start, gained = self.log_probs(seen.tasks), seen.log_marginals(self.components)
        parts = tuple(part.belief_given(own) for own, part in seen.beside(self.components))
        shown = rescaled(start + seen.log_contexts_under(self._own), start)[0]
        return self._belief(parts, rescaled(shown + gained, shown)[0])


@final
@dataclass(frozen=True, eq=False)
class MixtureBelief:
    """Beliefs of the components, and their posterior weights."""

    parts: tuple[Any, ...]
    log_weights: FloatArray  # (task, component), up to a constant per task
    arms: int
    contexts: OwnContexts | None  # where each component has a law of its own
    counted: IntArray  # (task,): last step whose contexts are in the weights
    # beliefs of the components that the weights are of, if what was seen since weighs by what all
    # of it is worth; None where each pull weighs by itself
    since: tuple[Any, ...] | None = None

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.log_weights.shape[0]

    @property
    def approximate(self) -> bool:
        """Whether the belief of some component approximates its posterior."""
        return any(getattr(part, "approximate", False) for part in self.parts)

    def probabilities(self, seen: Seen | None = None) -> FloatArray:
        """Posterior probabilities of the components, ``(task, component)``: given all pulls, and
        given what ``seen`` shows now.
        """
        logs = self._now if seen is None else self._given(seen)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def _now(self) -> FloatArray:
        """Log weights given all pulls."""
        if self.since is None:
            return self.log_weights
        pairs = zip(self.parts, self.since, strict=True)
        gained = [now.log_evidence - then.log_evidence for now, then in pairs]
        return rescaled(self.log_weights + np.stack(gained, axis=1), self.log_weights)[0]

    def _given(self, seen: Seen) -> FloatArray:
        """Log weights given also the contexts that ``seen`` shows, which count once: not if they
        are of a step that an update has counted.
        """
        own = self.contexts
        if own is None:
            return self._now
        shown = own.log_densities(argument_checks.features(seen, self.tasks, self.arms, own.dim))
        new = np.asarray(seen.step > self.counted)[:, None]
        return rescaled(self.log_weights + np.where(new, shown, 0.0), self.log_weights)[0]

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Draw the component of each draw, then the values, ``(task, draw, arm)``."""
        index = rng.choice(self.probabilities(seen), argument_checks.drawing(self, rng, draws))
        # (component, task, draw, arm)
        drawn = np.stack([part.sample(rng, draws, seen) for part in self.parts])
        return np.asarray(np.take_along_axis(drawn, index[None, :, :, None], axis=0)[0])

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnComponents:
        """Draw the component of each draw, then its environment."""
        index = rng.choice(self.probabilities(seen), argument_checks.drawing(self, rng, draws))
        parts = tuple(drawn_environments(part, rng, draws, seen) for part in self.parts)
        return DrawnComponents(index, parts)

    def mixed(self, seen: Seen) -> list[tuple[FloatArray, Any]]:
        """Beliefs of the components, each with its posterior probability, ``(task,)``."""
        return list(zip(self.probabilities(seen).T, self.parts, strict=True))

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means."""
        means = np.stack([part.mean(seen) for part in self.parts])
        return np.einsum("tk,kta->ta", self.probabilities(seen), means)

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``log sum_k p_k p(r given component k)``, ``(task,)``."""
        with np.errstate(divide="ignore"):
            log_probs = np.log(self.probabilities(seen))
        each = self._log_predictives(seen, actions, rewards)
        return np.asarray(logsumexp(log_probs + each, axis=1))

    def _log_predictives(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        each = [part.log_predictive(seen, actions, rewards) for part in self.parts]
        return np.stack(each, axis=1)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition every component, and weigh it by how likely it deemed the contexts and the
        reward.

        If no component allows it, the weights stay; a component that is out of question
        for good is no problem.
        """
        actions, rewards = argument_checks.played(self, seen, actions, rewards)
        # each raises an error for what it cannot have seen
        parts = tuple(part.update(seen, actions, rewards, after) for part in self.parts)
        if self.since is not None:
            return replace(self, parts=parts)
        before = replace(self, counted=np.zeros_like(self.counted))._given(seen)
        moved = before + self._log_predictives(seen, actions, rewards)
        return replace(
            self,
            parts=parts,
            log_weights=rescaled(moved, before)[0],
            counted=np.maximum(self.counted, seen.step),
        )
