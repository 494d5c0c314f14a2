"""Walk along histories of alg(theta) and see, at each step, how far alg(theta') would be from it.

For a history tau of alg(theta) in an environment of theta, with p and q the laws of the next action
under the two priors:

* ``sum_h TV(P_theta(. | tau_(h-1)), P_theta'(. | tau_(h-1)))`` is the distance of the posteriors
  along it,
* ``sum_h TV(p_h, q_h)`` that of the actions,
* ``prod_h min(1, q_h(a_h) / p_h(a_h))`` the probability that a maximal coupling has not parted the
  two trajectories.

Since ``1 - prod_h min(1, x_h) <= sum_h (1 - min(1, x_h))`` and ``E[1 - min(1, q(a) / p(a))] = TV(p,
q)``, the last is on average no further from 1 than the actions are apart. The likelihood ratio
itself, ``L_h = prod_(k <= h) q_k(a_k) / p_k(a_k)``, gives more: see
:mod:`~priorwise.sensitivity.ladder.parting`.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.hashing import mix
from priorwise.core.progress import Progress, progress_of
from priorwise.core.protocols import Belief, Environment, Policy, RewardRangeBelief, SizeBiasedPrior
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.registry import family_for, family_of, has_part
from priorwise.policies.laws import known_law
from priorwise.policies.posterior_sampling import SamplingPolicy
from priorwise.sensitivity.ladder.parting import Parting, law_errors, likelihood_ratio
from priorwise.simulate.steps import Step, environments, steps
from priorwise.theory.action_laws import ActionLaw, RealActionPolicy
from priorwise.theory.distance import BothBeliefs, FirstDecides, PosteriorPair
from priorwise.theory.influence import has_state

BLOCK: Final = 100
HISTORIES: Final = 1000
STEPS: Final = 60_000  # histories times pulls times arms
DECISIONS: Final = 128
"""How often each belief decides where the law of its action is not known."""


@final
@dataclass(frozen=True, eq=False)
class ActionDistance:
    """Total variation of two action laws, ``(task,)`` each: known, or from decisions repeated with
    common random numbers.

    The distance of two sampled frequencies is too large on average. ``value`` takes the jackknife's
    first correction; ``low <= TV <= high`` hold on average: ``high`` is the distance of the
    frequencies, ``low`` applies the signs that one half of the decisions shows to the frequencies
    of the other.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def zero(cls, tasks: int) -> ActionDistance:
        """Start of a sum."""
        return cls(np.zeros(tasks), np.zeros(tasks), np.zeros(tasks))

    @classmethod
    def known(cls, p: ActionLaw, q: ActionLaw) -> ActionDistance:
        """``sum |p - q| / 2`` of two known laws: nothing is left to bound."""
        apart = p.distance(q)
        return cls(apart, apart, apart)

    def plus(self, other: ActionDistance, weight: FloatArray) -> ActionDistance:
        """Add up over steps, each history with its weight."""
        return ActionDistance(
            self.value + weight * other.value,
            self.low + weight * other.low,
            self.high + weight * other.high,
        )


@final
@dataclass(frozen=True, eq=False)
class Steps:
    """What was seen along each history, ``(history,)`` each; None where it is not known for this
    family or policy.
    """

    posteriors: FloatArray | None  # sum over steps of the posteriors' distance
    posteriors_exact: bool
    actions: ActionDistance | None  # sum over steps of the action laws' distance
    actions_source: str  # "exact", "quadrature", "sampled" or "" where actions are None
    shared: FloatArray | None  # probability that coupled trajectories have not parted
    coupled: str  # what is coupled: "actions", "draws" or nothing
    parting: Parting | None  # what the likelihood ratio says of rewards
    law_error: float  # mean error of the action laws, in total variation


def walk(
    p: Any,
    q: Any,
    policy: Policy,
    horizon: int,
    *,
    histories: int | None,
    seed: int,
    progress: bool | None = False,
) -> Steps:
    """Walk along so many sampled histories: the first of those that ``simulate`` plays on this
    seed, or weighted ones of tasks drawn by their size if the prior is a
    :class:`~priorwise.core.protocols.SizeBiasedPrior`.

    By default at most :data:`HISTORIES`, fewer where tasks are long or have many arms, and only the
    first block of them where action laws have to be sampled.
    """
    parts: list[Steps] = []
    if histories is None:  # those whose walk takes seconds
        wanted = int(np.clip(STEPS // (horizon * max(p.arms, 6)), BLOCK // 2, HISTORIES))
    else:
        wanted = validation.count("histories", histories, least=2)
    with progress_of(wanted * horizon, "pulls walked along", shown=progress) as bar:
        for first in range(0, wanted, BLOCK):
            if histories is None and parts and parts[0].actions_source == "sampled":
                break
            tasks = np.arange(first, min(first + BLOCK, wanted), dtype=np.uint64)
            streams = Streams(seed, tasks), Streams(mix(seed + 1), tasks)
            parts.append(_walk(p, q, policy, horizon, *streams, bar))
    return _joined(parts)


def _walk(
    p: Any, q: Any, policy: Policy, horizon: int, streams: Streams, others: Streams, bar: Progress
) -> Steps:
    tasks = streams.tasks
    start = posterior_pair(p, q, tasks)
    posteriors = np.zeros(tasks)
    apart: ActionDistance | None = ActionDistance.zero(tasks)
    real = getattr(p, "actions", None)
    shared, coupled, source = np.ones(tasks), "actions", "exact"
    ranged = not has_state(p) or isinstance(p.belief(1), RewardRangeBelief)
    parting, off = Parting.start(tasks) if ranged else None, 0.0
    weight, biased = np.ones(tasks), isinstance(p, SizeBiasedPrior)
    for step in steps(
        size_biased(p, streams) if biased else environments(p, streams),
        BothBeliefs(p.belief(tasks), q.belief(tasks)) if start is None else start,
        FirstDecides(policy),
        streams,
        horizon=horizon,
        arms=p.arms,
        actions=real,
    ):
        pair, seen, now = step.belief, step.seen, step.seen.step
        bar.advance(tasks)
        if biased:
            weight = 1.0 / p.size_ratio(pair.p)
        shown: Any = pair.given(seen) if isinstance(pair, BothBeliefs) else pair
        if start is not None:
            posteriors += weight * shown.total_variation(others.at(Purpose.WORLD, now))
        first, second, taken = _laws(policy, pair, step)
        stream = others.at(Purpose.ENVIRONMENT, now)
        if first is not None and second is not None:
            assert apart is not None
            apart = apart.plus(ActionDistance.known(first, second), weight)
            if now < horizon:
                shared *= np.minimum(1.0, likelihood_ratio((first, second), taken))
            else:  # the mean over the last action
                shared *= 1.0 - first.distance(second)
            source = source if first.source == "exact" else first.source
            off += float(law_errors(first, second).mean()) / (3.0 * horizon)
            if parting is not None:
                parting = parting.after(step, stream, (first, second), weight)
        else:
            source = "sampled" if real is None else ""
            if real is None and apart is not None:
                twins = (others.at(Purpose.POLICY, now), others.at(Purpose.POLICY, now))
                sampled = sampled_distance(policy, pair.p, pair.q, seen, twins, DECISIONS)
                apart = apart.plus(sampled, weight)
            else:
                apart = None
            coupled, kept = "", np.ones(tasks)
            if start is not None and isinstance(policy, SamplingPolicy):
                # each of the k draws coupled maximally: if all are shared, so is the action
                coupled = "draws"
                kept = shown.shared(streams.at(Purpose.POLICY, now), policy.draws).prod(axis=1)
            shared *= kept
            if parting is not None:
                parting = parting.after_draws(step, stream, kept, weight)
    shared *= weight
    return Steps(
        None if start is None else posteriors,
        start is not None and start.exact,
        apart,
        source,
        shared if coupled else None,
        coupled,
        parting if coupled and source != "sampling" else None,
        off,
    )


def _laws(policy: Policy, pair: Any, step: Step) -> tuple[Any, Any, IntArray]:
    """Both laws of the action and which of its values was taken; None where they are not known."""
    seen, beliefs = step.seen, (pair.p, pair.q)
    if seen.actions is None:
        first, second = (known_law(policy, belief, seen) for belief in beliefs)
        return first, second, step.actions
    if not isinstance(policy, RealActionPolicy):
        return None, None, step.actions
    real, other = (policy.real_action_law(belief, seen) for belief in beliefs)
    if real is None or other is None:
        return None, None, step.actions
    return real.beside(other, step.actions)


def size_biased(prior: SizeBiasedPrior, streams: Streams) -> Environment:
    """Draw environments in proportion to their size."""
    return prior.sample_size_biased(streams.at(Purpose.ENVIRONMENT, 0), streams.tasks)


def sampled_distance(
    policy: Policy, p: Belief, q: Belief, seen: Seen, streams: tuple[Stream, Stream], draws: int
) -> ActionDistance:
    """Let both beliefs decide ``draws`` times; the two streams are equal, one for each belief."""
    tasks = streams[0].tasks
    halves = np.zeros((2, tasks, seen.arms))
    rows = np.arange(tasks)
    for index in range(draws):
        for belief, stream, sign in zip((p, q), streams, (1.0, -1.0), strict=True):
            halves[index % 2, rows, policy.act(belief, seen, stream)] += sign
    halves /= draws / 2
    whole = halves.mean(axis=0)
    high = np.abs(whole).sum(axis=1) / 2.0
    half = np.abs(halves).sum(axis=2).mean(axis=0) / 2.0
    crossed = (np.sign(halves[0]) * halves[1] + np.sign(halves[1]) * halves[0]).sum(axis=1) / 4.0
    return ActionDistance(2.0 * high - half, crossed, high)


def posterior_pair(p: Any, q: Any, tasks: int) -> PosteriorPair | None:
    """Start the pair of two priors; None where their family does not know its posteriors'
    densities.
    """
    if family_of(p) is not family_of(q) or not has_part(p, "posteriors"):
        return None
    pair: PosteriorPair = family_for(p, "sensitivity_ladder").posteriors(p, q, tasks)
    return pair


def _joined(parts: list[Steps]) -> Steps:
    def column(name: str) -> Any:
        found = [each for part in parts if (each := getattr(part, name)) is not None]
        return None if getattr(parts[0], name) is None else np.concatenate(found)

    first, actions = parts[0], None
    if all(part.actions is not None for part in parts):
        columns = zip(*(astuple(part.actions) for part in parts if part.actions), strict=True)
        actions = ActionDistance(*map(np.concatenate, columns))
    parting = None
    if first.parting is not None:
        others = [part.parting for part in parts[1:] if part.parting is not None]
        parting = first.parting.join(*others)
    return replace(
        first,
        posteriors=column("posteriors"),
        actions=actions,
        shared=column("shared"),
        parting=parting,
        law_error=float(np.mean([part.law_error for part in parts])),
    )
