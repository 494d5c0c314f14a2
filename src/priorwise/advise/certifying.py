"""``certify``: what deciding with a fitted prior may lose, because it is not the truth.

Truths theta that the data leave plausible are drawn around the fit theta^. Under each, the same
policy plays the same tasks with the truth and with the fit for its prior:

    loss(theta) = R(theta, alg(theta)) - R(theta, alg(theta^)).

Its mean and its 95 % quantile over truths are certified: how far theta lies from theta^ is how far
the truth does, up to the skew of both laws. Losses are signed, as a wrong prior may earn more.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from priorwise.advise.certificate import Certificate
from priorwise.advise.durations import LEAST as FEWEST
from priorwise.advise.durations import seconds_of_task, tasks_within
from priorwise.advise.losses import Losses
from priorwise.advise.plausible import (
    LEAST,
    SLOW_REFITS,
    fixed,
    plausible,
    towards,
    usual_arms,
    vague,
    whole_fit,
)
from priorwise.core import argument_checks, validation
from priorwise.core.estimates import Estimate
from priorwise.core.hashing import mix
from priorwise.core.progress import Interrupted, progress_of
from priorwise.core.protocols import Policy, monte_carlo_n
from priorwise.core.types import FloatArray
from priorwise.families.registry import has_part
from priorwise.fitting.fits import PriorFit
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.bounds.bandits import Bound, reward_bound, trajectory_bound
from priorwise.simulate.blocks import in_order
from priorwise.simulate.engine import threads_for
from priorwise.simulate.results import Comparison
from priorwise.simulate.run import compare, simulate
from priorwise.simulate.sizes import check_run
from priorwise.theory.influence import has_state

BOUNDED: Final = 20
"""Truths among which the theorem's bound is for the farthest: the truth is farther with 5 %."""
PROMISE: Final = 20
"""How many times as many tasks tell what the fitted prior promises."""
TWICE: Final = math.sqrt(0.5)
"""How far fits to twice as many tasks lie from the truth, in units of how far they do now."""
SECONDS: Final = 40.0
"""Of one processor that simulations may take by default, about."""
FEW, MANY = 30, 100
"""Plausible truths by default, at least and at most."""
RUNS: Final = 6.5
"""Simulations for each of them: three, two of refits, and three under half as many refits."""
TOGETHER: Final = 10
"""Fits that decide on the same tasks."""


def certify(
    fit: Any,
    policy: Policy,
    *,
    horizon: int,
    seed: int,
    draws: int | None = None,
    tasks: int | None = None,
    bootstrap: int | None = None,
    estimator: Any = None,
    arms: int | None = None,
    batch: int = 1,
    progress: bool | None = None,
) -> Certificate:
    """Say what a policy may lose by believing a fitted prior instead of the true one.

    Parameters
    ----------
    fit
        What :func:`priorwise.fit_prior` or an estimator returns, or a fit that was saved.
    policy
        The policy that will decide.
    horizon
        Pulls in a task to come.
    seed
        The same seed gives the same numbers.
    draws
        Plausible truths from the law of the fit's parameters, at least 20. By default 100, or down
        to 30 if the policy is slow.
    tasks
        Tasks simulated under each truth, by default 64 to 4,096: as many as take one processor
        about a minute. The noise of the simulation is taken out of the spread of the losses; more
        tasks make them more exact.
    bootstrap
        Plausible truths by refitting resampled tasks, at least 20, or 0 for none. By default half
        as many as ``draws`` where the fit has its statistics and whoever made it is known, unless
        they take longer than the simulations: then the certificate says that they are left out.
    estimator
        Who made the fit, for the bootstrap; a fit from a log knows it.
    arms
        Number of arms of the tasks to come, for a prior of exchangeable arms; by default, where the
        fit was made from a log, as many as a middling task of it has.
    batch
        Rewards are seen after every so many pulls: see :func:`priorwise.simulate`.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long. Ctrl-C
        after 20 plausible truths raises :class:`Interrupted`, a KeyboardInterrupt whose ``partial``
        is the certificate from those done by then.

    Examples
    --------
    >>> import priorwise as pw
    >>> truth = pw.GaussianPrior([0.5, 0.0], [[0.3, 0.1], [0.1, 0.3]])
    >>> past = pw.simulate(truth, pw.Uniform(), horizon=10, tasks=200, seed=0, keep=True)
    >>> fit = pw.GaussianMarginalLikelihood("full").fit(past)
    >>> found = pw.certify(fit, pw.ThompsonSampling(), horizon=10, tasks=500, draws=20, seed=0)
    >>> found.expected_loss < found.loss_95
    True

    """
    arms = usual_arms(fit) if arms is None else arms
    fitted, estimator = whole_fit(fit, estimator)
    argument_checks.policy("policy", policy, memory=True)
    horizon = validation.count("horizon", horizon)
    batch = validation.batch(batch, horizon)
    tasks = None if tasks is None else validation.count("tasks", tasks, least=2)
    if draws is not None:
        draws = validation.count("draws", draws, least=LEAST)
    if bootstrap is not None and validation.count("bootstrap", bootstrap, least=0):
        bootstrap = validation.count("bootstrap", bootstrap, least=LEAST)
    seed = validation.seed(seed)
    believed = fixed(fitted.prior, arms)
    argument_checks.fixed_prior("the fitted prior", believed)
    each = seconds_of_task(believed, believed, policy, horizon, batch, masked=False)
    if draws is None:
        draws = min(max(int(SECONDS / (RUNS * each * FEWEST)), FEW), MANY)
    rng = np.random.Generator(np.random.Philox(key=seed))
    sources = plausible(fitted, estimator, draws, bootstrap, rng)
    asked = bootstrap is None and estimator is not None and fitted.statistics is not None
    left_out = [SLOW_REFITS] if asked and "bootstrap" not in sources else []
    counts = [count for count, _ in sources.values()]
    if tasks is None:
        # under each truth the truth, the fit and a vague prior; two fits for each of the first ones
        runs = 3 * sum(counts) + 2 * counts[0] + PROMISE
        tasks = tasks_within(SECONDS, runs * each)
    size: Any = {"horizon": horizon, "tasks": tasks}
    check_run(believed, [policy] * 6, **size, times=max(counts), times_named="draws")
    instead = vague(believed)
    rivals: Any = {"truth": policy, "fitted": (policy, believed), "uniform": Uniform()}
    rivals |= {} if instead is None else {"vague": (policy, instead)}
    size |= {"batch": batch, "progress": False}
    pairs = [each if isinstance(each, tuple) else (each, believed) for each in rivals.values()]
    threads = threads_for(believed, pairs, horizon, masked=False)
    inner = None if threads == 1 else 1  # truths run side by side, or blocks of tasks do
    rows: dict[str, list[tuple[Any, list[float]]]] = {source: [] for source in sources}
    refitted, bound, without = None, None, "it is for rewards that are seen at once"
    interrupted = ""
    try:
        with progress_of(sum(counts) + counts[0] / 2, "plausible truths", shown=progress) as bar:
            own_size = {**size, "tasks": PROMISE * tasks}
            promised = simulate(believed, policy, **own_size, seed=_seed(seed, len(sources), 0))
            for kind, (source, (_, priors)) in enumerate(sources.items()):

                def measure(numbered: tuple[int, Any], kind: int = kind) -> tuple[Any, list[float]]:
                    number, prior = numbered
                    truth = fixed(prior, arms)
                    own = _seed(seed, kind, number)
                    return truth, _row(compare(truth, rivals, **size, seed=own, threads=inner))

                for truth_and_row in in_order(measure, enumerate(priors), threads):
                    rows[source].append(truth_and_row)
                    bar.advance(1)
            first = [truth for truth, _ in next(iter(rows.values()))]
            refitted = _refitted(believed, first, policy, size, seed, bar, threads)
        if batch == 1:
            bound, without = _bound(believed, first[:BOUNDED], policy, horizon)
    except KeyboardInterrupt:
        rows = {source: some for source, some in rows.items() if len(some) >= LEAST}
        if not rows:
            raise
        without = "it was not computed before Ctrl-C"
        interrupted = (
            f"These numbers use {sum(map(len, rows.values()))} of {sum(counts)} plausible truths, "
            "drawn at random."
        )
    measured = {
        source: Losses([truth for truth, _ in some], *np.array([row for _, row in some]).T)
        for source, some in rows.items()
    }
    found = Certificate(
        policy=type(policy).__name__,
        prior=believed,
        horizon=horizon,
        batch=batch,
        tasks=tasks,
        fitted_tasks=fitted.tasks,
        measured=measured,
        promised=Estimate(promised.mean_reward, promised.std_error),
        refitted=refitted,
        bound=bound,
        without_bound=without,
        warnings=(*_warnings(fitted), *left_out),
        interrupted=interrupted,
    )
    if interrupted:
        raise Interrupted(interrupted, found)
    return found


def _seed(seed: int, kind: int, number: int) -> int:
    """Fresh tasks for each truth, so that their errors are independent."""
    return mix(mix(mix(seed) ^ kind) ^ number)


def _refitted(
    believed: Any,
    plausible: Sequence[Any],
    policy: Any,
    size: Any,
    seed: int,
    bar: Any,
    threads: int,
) -> FloatArray | None:
    """Take the fitted prior for the truth, and let fits decide that lie as far from it as plausible
    truths do, and as those of twice as many tasks would: their losses with standard errors, ``(fit,
    4)``; None where the family does not name its parameters.

    What more tasks change is how fits scatter around a truth. Truths around a fit are no mirror of
    that where a policy does not play best for its prior, as Thompson sampling: it gains or loses in
    proportion to the error, which averages out over fits, but not over truths.
    """
    if plausible and towards(believed, plausible[0], 1.0) is None:
        return None

    def measure(start: int) -> list[list[float]]:
        some = plausible[start : start + TOGETHER]
        players: Any = {"truth": policy}
        for number, other in enumerate(some):
            for name, share in (("now", 1.0), ("then", TWICE)):
                players[f"{name} {number}"] = (policy, towards(believed, other, share))
        own: Any = {"seed": _seed(seed, 3, start), "threads": None if threads == 1 else 1}
        result = compare(believed, players, **size, **own)
        rows = []
        for number in range(len(some)):
            names = (f"{name} {number}" for name in ("now", "then"))
            gaps = [result.expected_difference("truth", name) for name in names]
            rows.append([each for gap in gaps for each in (gap.mean, gap.std_error)])
        return rows

    rows = []
    for some in in_order(measure, range(0, len(plausible), TOGETHER), threads):
        rows += some
        bar.advance(0.5 * len(some))
    return np.array(rows)


def _row(result: Comparison) -> list[float]:
    """What was measured under one truth, in the order of :class:`Losses`."""
    loss, run = result.expected_difference("truth", "fitted"), result.runs["fitted"]
    other = Estimate(np.nan, np.nan)
    if "vague" in result.runs:
        other = result.expected_difference("truth", "vague")
    gain = result.expected_difference("truth", "uniform").mean
    numbers = (loss.mean, loss.std_error, other.mean, other.std_error)
    return [*numbers, run.mean_reward, run.std_error, gain]


def _bound(
    fitted: Any, truths: Sequence[Any], policy: Any, horizon: int
) -> tuple[Bound | None, str]:
    """The theorem's bound for the farthest of some truths, or why there is none."""
    if has_state(fitted):
        return None, "it is for problems without a state"
    if not has_part(fitted, "pair") or not has_part(fitted, "parameters"):
        return None, f"no distance between two {type(fitted).__name__}s is known"
    if hasattr(policy, "decide") or monte_carlo_n(policy, fitted.arms) is None:
        return None, f"{type(policy).__name__} has no Monte-Carlo constant"
    farthest, most = fitted, -1.0
    for truth in truths:
        # with the fitted law of rewards, which the theorem takes as known
        shared = towards(fitted, truth, 1.0)
        near = trajectory_bound(shared, fitted, policy, horizon)
        if near.delta > most:
            farthest, most = shared, near.delta
        if near.vacuous:
            break  # farther ones are so too
    return reward_bound(farthest, fitted, policy, horizon), ""


def _warnings(fit: PriorFit) -> tuple[str, ...]:
    """What of the fit makes its plausible truths doubtful."""
    said = [*fit.warnings]
    if fit.at_boundary:
        said.append("the fit lies at the boundary of the model, where its law is a guess")
    if not fit.converged:
        said.append("the fit has not converged")
    return tuple(said)
