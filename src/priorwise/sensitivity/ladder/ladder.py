"""The sensitivity ladder: from the worst case over all problems down to what a wrong prior does on
this one.

Each rung bounds the one below. As probabilities that the trajectories of ``alg(theta)`` and
``alg(theta')`` diverge,

    2 n H eps  >=  n sum_h E TV(posteriors)  >=  sum_h E TV(actions)  >=  disagreement of coupled
    trajectories,

and in reward units ``H delta' Psi(delta')`` with ``delta' = min(1, delta)``. From there the
likelihood ratio of the two policies leads to a signed interval and to the measured gap in it. In a
problem with a state, Psi is the sum of the tails of the average reward under
both priors, as in the theorem on Bayesian POMDPs. The upper rungs are the proof of the sensitivity
theorem, link by link; the lower ones look at the problem at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.progress import check_progress
from priorwise.core.protocols import Policy, monte_carlo_n
from priorwise.core.types import FloatArray
from priorwise.sensitivity.bounds.approximation import Approximation, approximation_error
from priorwise.sensitivity.bounds.bandits import distance_of, no_bound
from priorwise.sensitivity.exact.chain import ExactChain, exact_chain
from priorwise.sensitivity.exact.histories import NoActionLaw, TooManyHistories, can_be_enumerated
from priorwise.sensitivity.ladder.parting import Parting
from priorwise.sensitivity.ladder.rungs import ROUNDING, Interval, Ladder, Rung
from priorwise.sensitivity.ladder.stakes import stakes_of
from priorwise.sensitivity.ladder.walk import ActionDistance, Steps, walk
from priorwise.simulate.run import compare
from priorwise.simulate.sizes import check_run
from priorwise.theory.action_laws import WORDS
from priorwise.theory.distance import Distance
from priorwise.theory.influence import has_state

WORST, POSTERIORS, ACTIONS = "worst case", "posteriors", "actions"
COUPLED, TRAJECTORIES, COMMON = "coupled trajectories", "trajectories", "common random numbers"
LIKELIHOOD, APPROXIMATE = "likelihood ratio", "approximate posteriors"

MOST_EXACT: Final = 20_000
"""Histories of one length up to which a finite problem is enumerated rather than sampled."""
KEPT: Final = 1 << 22
"""Pulls that are kept to compare actions one by one."""


def sensitivity_ladder(
    p: Any,
    q: Any,
    policy: Policy,
    horizon: int,
    *,
    seed: int,
    tasks: int = 200_000,
    histories: int | None = None,
    tv: float | Distance | None = None,
    progress: bool | None = None,
) -> Ladder:
    """Compare a policy that believes ``q`` with one that believes the true prior ``p``, from the
    worst case down to the measured gap.

    The rungs, each a probability that trajectories diverge (see the page on sensitivity for when to
    trust which):

    * ``worst case``: ``2 n H TV(p, q)``, with n the policy's Monte-Carlo constant;
    * ``approximate posteriors``: what they add to the worst case, see
      :func:`~priorwise.sensitivity.approximation_error`; left out for exact ones;
    * ``posteriors``: n times the expected total variation between the two posteriors, summed over
      steps;
    * ``actions``: expected total variation between the laws of the two actions, summed over steps;
    * ``coupled trajectories``: how often the trajectories diverge if at each step their actions, or
      their posterior draws, are coupled as closely as they can be;
    * ``trajectories``: total variation between the laws of whole trajectories, where it can be
      enumerated;
    * ``likelihood ratio``: the same distance from the ratio of the two policies' probabilities
      along histories, and in reward units the width of the signed interval ``ladder.interval``;
      in a problem with a state where the family knows the range of its rewards;
    * ``common random numbers``: how often two simulations with the same random numbers diverge; a
      coupling too, but not one of the chain.

    Expectations are over histories of the policy that believes p, on tasks of p.

    Parameters
    ----------
    p, q
        The true prior and the one that is believed instead, with the same reward law and contexts,
        or states and rounds.
    policy
        Any policy. Without a Monte-Carlo constant the first two rungs are left out.
    horizon
        Pulls in a task.
    seed
        The same seed gives the same ladder.
    tasks
        Tasks simulated for the gap and for the common random numbers.
    histories
        Histories walked along for the rungs between; by default up to 1,000, fewer in long tasks or
        with many arms, and 100 where each action law has to be sampled.
    tv
        Total variation between the priors, for families of your own, whose distance is not known
        here.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long.

    Returns
    -------
    Ladder
        Print it, or draw it with ``ladder.figure()``. For small finite problems all of it is exact.

    Examples
    --------
    >>> import priorwise as pw
    >>> p = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], noise="bernoulli")
    >>> q = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.6, 0.4], noise="bernoulli")
    >>> ladder = sensitivity_ladder(p, q, pw.ThompsonSampling(), 3, seed=0)
    >>> ladder.exact, ladder.in_order, round(ladder["actions"].delta, 3)
    (True, True, 0.1)

    """
    horizon, tasks, seed = (
        validation.count("horizon", horizon),
        validation.count("tasks", tasks, least=2),
        validation.seed(seed),
    )
    if histories is not None:
        histories = validation.count("histories", histories, least=2)
    check_progress(progress)
    argument_checks.fixed_prior("p", p)
    argument_checks.fixed_prior("q", q)
    argument_checks.playing(policy, p)
    check_run(p, [policy, policy], horizon=horizon, tasks=tasks)
    # raises an error for priors that differ in more than their law over tasks
    distance = distance_of(p, q, tv=tv, estimate=True, seed=seed)
    chain = _enumerated(p, q, policy, horizon)
    most = None if chain is None else MOST_EXACT
    stakes = stakes_of(p, q, policy, horizon, seed=seed, tasks=tasks, most=most)
    law = stakes.law

    def rung(
        name: str,
        delta: float,
        std_error: float,
        how: str,
        above: tuple[str, ...] = (),
        limits: tuple[float, float] | None = None,
    ) -> Rung:
        """In reward units ``H delta' Psi(delta')``; of two limits the upper one counts there."""
        largest = delta if limits is None else limits[1]
        level, moves = min(1.0, largest), std_error if largest < 1.0 else 0.0
        reward, error = 0.0, 0.0
        if max(level, moves) > 0.0:
            # d(delta Psi) / d(delta) is a quantile, at most Psi
            tail = law.tail(max(level, min(moves, 1.0)))
            reward = horizon * level * law.tail(level).value if level > 0.0 else 0.0
            error = horizon * math.hypot(level * tail.std_error, moves * tail.value)
        low, high = limits or (None, None)
        return Rung(name, delta, std_error, reward, error, how, above, low, high)

    n = monte_carlo_n(policy, p.arms)
    left_out: tuple[str, ...] = (
        () if n is not None else (f"{WORST}, {POSTERIORS}: {no_bound(policy)}",)
    )
    term = None if n is None else approximation_error(p, q, policy, horizon, seed=seed)
    worst = [] if n is None else _worst(distance, n, horizon, term, rung)
    if n is not None and term is None:
        left_out += (f"{APPROXIMATE}: {_UNKNOWN}",)
    trivial = horizon * law.tail(1.0).value
    if chain is None:
        steps = walk(p, q, policy, horizon, histories=histories, seed=seed, progress=progress)
        gap, reward, apart = _simulated(p, q, policy, horizon, tasks, seed, progress)
        interval = _ends(steps.parting) if math.isfinite(trivial) else None
        ratios = () if interval is None else (_ratios(steps, interval, trivial),)
        walked = _walked(steps, n, rung, term)
        rungs = (*worst, *walked, *ratios, _common(apart, rung))
        left_out += _missing(steps, trivial, has_state(p))
    else:
        rungs = (*worst, *_summed(chain, n, rung))
        known = abs(chain.gap) > ROUNDING * abs(chain.reward)
        gap, reward = Estimate(-chain.gap if known else 0.0, 0.0), Estimate(chain.reward, 0.0)
        low, high = chain.interval  # of a gap of the other sign
        interval = Interval(Estimate(-high, 0.0), Estimate(-low, 0.0))
    name, exact = type(policy).__name__, chain is not None
    return Ladder(
        rungs,
        gap,
        reward,
        trivial,
        distance,
        name,
        horizon,
        exact,
        left_out,
        n,
        any_two=stakes.any_two,
        interval=interval,
        approximation=term,
    )


_UNKNOWN: Final = (
    "this family or policy does not know its exact action laws, so the worst case is for exact "
    "posteriors only"
)


def _worst(
    distance: Distance,
    n: int,
    horizon: int,
    term: Approximation | None,
    rung: Callable[..., Rung],
) -> list[Rung]:
    """The worst case, and what approximate posteriors add to it."""
    scale = 2.0 * n * horizon
    how = f"2 n H eps with n = {n}, eps = {distance.value:.3g} ({distance.kind})"
    if term is None:
        made = rung(
            WORST,
            scale * distance.value,
            scale * distance.std_error,
            f"{how}, posteriors taken as exact",
        )
        return [replace(made, holds=False)]
    total = term.total
    error = math.hypot(scale * distance.std_error, total.std_error)
    if total.kind == "exact":
        return [rung(WORST, scale * distance.value, error, how)]
    more = rung(APPROXIMATE, total.value, total.std_error, f"part of the worst case; {term.parts}")
    how += f", plus {total.value:.3g} for approximate posteriors"
    reliable = rung(WORST, scale * distance.value + total.value, error, how)
    return [replace(reliable, holds=term.reliable), replace(more, holds=False)]


def _enumerated(p: Any, q: Any, policy: Policy, horizon: int) -> ExactChain | None:
    """All links exactly, where the problem is finite and small."""
    if not (can_be_enumerated(p) and can_be_enumerated(q)):
        return None
    try:
        return exact_chain(p, q, policy, horizon, most=MOST_EXACT)
    except (NoActionLaw, TooManyHistories):
        return None


def _summed(chain: ExactChain, n: int | None, rung: Callable[..., Rung]) -> list[Rung]:
    every, coupled = "all histories", "actions coupled maximally, all histories"
    rungs = [] if n is None else [(POSTERIORS, n * chain.posterior_tv.sum(), every, WORST)]
    rungs += [
        (ACTIONS, chain.action_tv.sum(), every, POSTERIORS),
        (COUPLED, chain.disagreement, coupled, ACTIONS),
        (TRAJECTORIES, chain.trajectory_tv, "total variation of their laws", COUPLED),
    ]
    made = [rung(name, float(delta), 0.0, how, (above,)) for name, delta, how, above in rungs]
    delta, reward, how = chain.trajectory_tv, chain.likelihood_ratio, f"of actions, {every}"
    return [*made, Rung(LIKELIHOOD, delta, 0.0, reward, 0.0, how, (TRAJECTORIES,))]


def _walked(
    steps: Steps, n: int | None, rung: Callable[..., Rung], term: Approximation | None
) -> list[Rung]:
    """Rungs from histories. The worst case does not bound the distance of approximate posteriors,
    and n need not hold for a look-ahead with them.
    """
    rungs, ceiling = [], math.inf
    if n is not None and steps.posteriors is not None:
        unbiased = "without bias, from draws of both posteriors"
        how = "exact for each history" if steps.posteriors_exact else unbiased
        mean = mean_estimate(n * steps.posteriors)
        exact = term is not None and term.total.kind == "exact"
        made = rung(POSTERIORS, mean.mean, mean.std_error, how, (WORST,) if exact else ())
        rungs.append(replace(made, holds=term is not None))
        ceiling = mean.mean if term is not None else math.inf
    if steps.actions is not None:
        made = _actions(steps, steps.actions, ceiling, rung)
        above = (POSTERIORS, WORST) if math.isfinite(ceiling) else ()
        rungs.append(replace(made, above=above))
    if steps.shared is not None:
        mean, whole = mean_estimate(1.0 - steps.shared), steps.coupled == "actions"
        how = f"{'actions' if whole else 'posterior draws'} coupled maximally"
        below = (ACTIONS if whole else POSTERIORS,)
        rungs.append(rung(COUPLED, mean.mean, mean.std_error, how, below))
    return rungs


def _actions(
    steps: Steps, distance: ActionDistance, ceiling: float, rung: Callable[..., Rung]
) -> Rung:
    """The rung of the actions; ``ceiling`` is what the posteriors allow."""
    low, high = (min(float(each.mean()), ceiling) for each in (distance.low, distance.high))
    mean = mean_estimate(distance.value)
    delta, limits = min(max(mean.mean, low), high), None
    if steps.actions_source == "sampled":
        how = f"sampled laws, {max(low, 0.0):.3g} to {high:.3g}; reward from the latter"
        limits = low, high
    else:
        how = f"action laws {WORDS[steps.actions_source]}"
    return rung(ACTIONS, delta, mean.std_error, how, limits=limits)


def _ends(parting: Parting | None) -> Interval | None:
    """What the wrong prior may lose and gain, from the sums along histories."""
    if parting is None:
        return None
    lost, gained = mean_estimate(parting.lost), mean_estimate(parting.gained)
    low = Estimate(-lost.mean, lost.std_error)
    return Interval(low, gained, float(parting.off.mean()))


def _ratios(steps: Steps, interval: Interval, trivial: float) -> Rung:
    """Width of the interval, or what holds for any two policies where that is less."""
    parting = steps.parting
    assert parting is not None
    mean, width = mean_estimate(parting.parted), mean_estimate(parting.lost + parting.gained)
    how = "of actions, sampled histories"
    if steps.coupled != "actions":
        how = "of posterior draws, no more than coupled"
    elif steps.law_error > 0.0:
        how = f"action laws to {steps.law_error:.1g}, which may hide {interval.off:.1g}"
    return Rung(
        LIKELIHOOD,
        mean.mean,
        mean.std_error,
        min(width.mean, trivial),
        width.std_error,
        how,
        (COUPLED,),
    )


def _missing(steps: Steps, trivial: float, state: bool) -> tuple[str, ...]:
    out = []
    if steps.actions is None:
        out.append(f"{ACTIONS}: the law of this policy's real-valued action is not known here")
    if steps.posteriors is None:
        out.append(f"{POSTERIORS}: the densities of this family's posteriors are not known")
    if steps.parting is not None and not math.isfinite(trivial):
        out.append(f"{LIKELIHOOD}: the mean diameter is infinite")
    if steps.shared is not None and steps.parting is None:
        why = "the policy's action laws are sampled"
        if state:
            why = "this family does not know the range of its rewards"
        out.append(f"{LIKELIHOOD}: {why}")
    if steps.shared is None:
        out.append(
            f"{COUPLED}, {LIKELIHOOD}: neither the policy's action laws nor a few posterior draws "
            "decide its actions"
        )
    return tuple(out)


def _simulated(
    p: Any, q: Any, policy: Policy, horizon: int, tasks: int, seed: int, progress: bool | None
) -> tuple[Estimate, Estimate, FloatArray]:
    """Gap and reward over all tasks, and which of the kept tasks parted, ``(task,)``."""
    options: dict[str, Any] = {"horizon": horizon, "seed": seed, "progress": progress}
    policies = {"p": (policy, p), "q": (policy, q)}
    kept = compare(p, policies, tasks=min(tasks, max(KEPT // horizon, 2)), keep=True, **options)
    whole = kept if kept.runs["p"].tasks == tasks else compare(p, policies, tasks=tasks, **options)
    differ = kept.runs["p"].actions != kept.runs["q"].actions
    apart = differ.reshape(len(differ), -1).any(axis=1)
    run = whole.runs["p"]
    return (
        whole.difference("q", "p"),
        Estimate(run.mean_reward, run.std_error),
        apart.astype(np.float64),
    )


def _common(apart: FloatArray, rung: Callable[..., Rung]) -> Rung:
    mean = mean_estimate(apart)
    # events that were never, or always, seen may still happen, or not
    error = max(mean.std_error, 1.0 / len(apart))
    return rung(COMMON, mean.mean, error, "one more coupling, outside the chain")
