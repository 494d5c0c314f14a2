"""Walk along histories of alg(theta) and see, at each step, how far alg(theta') would be from it.

For a history tau of alg(theta) in an environment of theta, with p and q the laws of the next action
under the two priors:

* ``sum_h TV(P_theta(. | tau_(h-1)), P_theta'(. | tau_(h-1)))`` is the distance of the posteriors
  along it,
* ``sum_h TV(p_h, q_h)`` that of the actions,
* ``prod_h min(1, q_h(a_h) / p_h(a_h))`` the probability that a maximal coupling has not parted the
  two trajectories.

Since ``1 - prod_h min(1, x_h) <= sum_h (1 - min(1, x_h))`` and ``E[1 - min(1, q(a) / p(a))] = TV(p,
q)``, the last is on average no further from 1 than the actions are apart.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.distance import PosteriorPair
from priorwise.core.family import ask, family_of, offers
from priorwise.core.progress import Progress, progress_of
from priorwise.core.protocols import Environment, Policy, Seen
from priorwise.core.streams import Purpose, Stream, Streams, mix
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.posterior_sampling import SamplingPolicy
from priorwise.sensitivity.ladder.action_laws import (
    ActionLaw,
    SampledDistance,
    action_law,
    sampled_distance,
)

BLOCK: Final = 100
HISTORIES: Final = 1000
STEPS: Final = 60_000  # histories times pulls times arms
DECISIONS: Final = 128
"""How often each belief decides where the law of its action is not known."""


@final
@dataclass(frozen=True, eq=False)
class Steps:
    """What was seen along each history, ``(history,)`` each; None where it is not known for this
    family or policy.
    """

    posteriors: FloatArray | None  # sum over steps of the posteriors' distance
    posteriors_exact: bool
    actions: SampledDistance  # sum over steps of the action laws' distance
    actions_source: str  # "exact", "quadrature" or "sampled"
    shared: FloatArray | None  # probability that coupled trajectories have not parted
    coupled: str  # what is coupled: "actions", "draws" or nothing


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
    seed.

    By default at most :data:`HISTORIES`, fewer where tasks are long or have many arms, and only the
    first block of them where action laws have to be sampled.
    """
    parts: list[Steps] = []
    wanted = (
        _affordable(p.arms, horizon)
        if histories is None
        else validation.count("histories", histories, least=2)
    )
    with progress_of(wanted * horizon, "pulls walked along", shown=progress) as bar:
        for first in range(0, wanted, BLOCK):
            if histories is None and parts and parts[0].actions_source == "sampled":
                break
            tasks = np.arange(first, min(first + BLOCK, wanted), dtype=np.uint64)
            parts.append(
                _walk(
                    p,
                    q,
                    policy,
                    horizon,
                    Streams(seed, tasks),
                    Streams(mix(seed + 1), tasks),
                    len(tasks),
                    bar,
                )
            )
    return _joined(parts)


def _affordable(arms: int, horizon: int) -> int:
    """Histories whose walk takes seconds: fewer where tasks are long or have many arms."""
    return int(np.clip(STEPS // (horizon * max(arms, 6)), BLOCK // 2, HISTORIES))


def _walk(
    p: Any,
    q: Any,
    policy: Policy,
    horizon: int,
    streams: Streams,
    others: Streams,
    tasks: int,
    bar: Progress,
) -> Steps:
    environment: Environment = p.sample(streams.at(Purpose.ENVIRONMENT, 0), tasks)
    pair = posterior_pair(p, q, tasks)
    beliefs = (p.belief(tasks), q.belief(tasks)) if pair is None else (pair.p, pair.q)
    posteriors = np.zeros(tasks)
    apart = SampledDistance.nought(tasks)
    shared, coupled, source = np.ones(tasks), "actions", "exact"
    signal = environment.start(streams.world(0))
    for step in range(1, horizon + 1):
        seen = Seen(step, horizon, p.arms, signal)
        bar.advance(tasks)
        if pair is not None:
            posteriors += pair.total_variation(others.at(Purpose.WORLD, step))
        chosen = policy.act(beliefs[0], seen, streams.at(Purpose.POLICY, step))
        laws = [action_law(policy, belief, seen) for belief in beliefs]
        if laws[0] is not None and laws[1] is not None:
            apart += SampledDistance.known(laws[0], laws[1])
            shared *= _kept(laws[0], laws[1], chosen)
            source = source if laws[0].source == "exact" else laws[0].source
        else:
            source = "sampled"
            twins = (others.at(Purpose.POLICY, step), others.at(Purpose.POLICY, step))
            apart += sampled_distance(policy, beliefs[0], beliefs[1], seen, twins, DECISIONS)
            coupled, kept = _couple_draws(pair, policy, streams.at(Purpose.POLICY, step))
            shared *= kept
        if step < horizon:
            rewards, after = environment.step(seen, chosen, streams.world(step))
            if pair is None:
                beliefs = (
                    beliefs[0].update(seen, chosen, rewards, after),
                    beliefs[1].update(seen, chosen, rewards, after),
                )
            else:
                pair = pair.update(seen, chosen, rewards, after)
                beliefs = (pair.p, pair.q)
            signal = after
    return Steps(
        None if pair is None else posteriors,
        pair is not None and pair.exact,
        apart,
        source,
        shared if coupled else None,
        coupled,
    )


def posterior_pair(p: Any, q: Any, tasks: int) -> PosteriorPair | None:
    """Start the pair of two priors; None where their family does not know its posteriors'
    densities.
    """
    if family_of(p) is not family_of(q) or not offers(p, "posteriors"):
        return None
    pair: PosteriorPair = ask(p, "posteriors", "sensitivity_ladder")(p, q, tasks)
    return pair


def _kept(p: ActionLaw, q: ActionLaw, actions: IntArray) -> FloatArray:
    """``min(1, q(a) / p(a))`` at the actions taken."""
    rows = np.arange(len(actions))
    return np.minimum(1.0, q.probs[rows, actions] / np.maximum(p.probs[rows, actions], 1e-300))


def _couple_draws(
    pair: PosteriorPair | None, policy: Policy, rng: Stream
) -> tuple[str, FloatArray]:
    """Couple each of the k posterior draws maximally; if all are shared, so is the action."""
    if pair is None or not isinstance(policy, SamplingPolicy):
        return "", np.ones(rng.tasks)
    return "draws", pair.shared(rng, policy.draws).prod(axis=1)


def _joined(parts: list[Steps]) -> Steps:
    first = parts[0]
    return Steps(
        None
        if first.posteriors is None
        else np.concatenate([part.posteriors for part in parts if part.posteriors is not None]),
        first.posteriors_exact,
        SampledDistance(
            *(
                np.concatenate(each)
                for each in zip(*(astuple(part.actions) for part in parts), strict=True)
            )
        ),
        first.actions_source,
        None
        if first.shared is None
        else np.concatenate([part.shared for part in parts if part.shared is not None]),
        first.coupled,
    )
