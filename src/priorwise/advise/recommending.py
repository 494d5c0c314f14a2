"""``recommend``: from a log to one prior and one policy, with reasons.

Families and structures are chosen by held-out likelihood (:func:`fit_prior`). Policies then play
tasks of priors theta that the log leaves plausible, while they believe the fitted one, theta^. The
policy that earns most under some truths is chosen, and scored under others, so that its score does
not profit from having been chosen. What it loses by believing the fitted prior is

    R(theta, alg(theta)) - R(theta, alg(theta^)),

on the same tasks. Rewards are told without the noise of single rewards: ``R = E[best] - regret``,
where the best is the same for all policies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Unpack, final

import numpy as np

from priorwise.advise.backtest_result import Backtest
from priorwise.advise.backtesting import LEARNING
from priorwise.advise.candidates import THOMPSON, UNIFORM, Candidate, candidates, is_ab_test
from priorwise.advise.durations import LEAST, tasks_within
from priorwise.advise.later import on_later_tasks, trusted
from priorwise.advise.recommendation import Recommendation
from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.hashing import mix
from priorwise.core.progress import Interrupted, check_progress, progress_of
from priorwise.core.protocols import for_arms
from priorwise.core.types import BoolArray, FloatArray
from priorwise.fitting.runs import Run
from priorwise.logs.fitting import LogFit, fit_prior
from priorwise.logs.options import Arms, ReadingFeatures, complete, takes
from priorwise.meta.selection.policies import PolicyComparison, runs_under
from priorwise.simulate.sizes import check_run

TRUTHS: Final = 20
"""Plausible truths under which policies are chosen, and as many others to score them."""
SECONDS: Final = 40.0
"""Of one processor that simulations take by default, about."""
MOST: Final = 2_048
"""Tasks simulated under each truth, at most."""
SLOW: Final = 0.01
"""Of one processor for a task: a slower policy has to lead in a short trial to be compared."""
TRIAL: Final = 5
"""Plausible truths of that trial, with one tile of tasks each."""
FEWEST: Final = 2
"""Truths under which policies are scored before Ctrl-C leaves a recommendation."""
SCORED: Final = "Policies are scored under {done} of {of} plausible priors, drawn at random."
BEST: Final = 3
"""Candidates that are replayed on later tasks if the prior fails its check."""
INFORMED: Final = "\0"  # before the name of a policy that believes the truth


@takes(ReadingFeatures)
def recommend(
    log: Any,
    *,
    horizon: int,
    seed: int,
    batch: int = 1,
    family: str = "auto",
    seconds: float = SECONDS,
    progress: bool | None = None,
    **reading: Unpack[ReadingFeatures],
) -> Recommendation:
    """Learn a prior from a log and choose the policy that earns most on tasks to come.

    Policies play simulated tasks of priors that the log leaves plausible, while they believe the
    fitted one. Tasks with new arms have as many of them as the tasks of the log. If the fitted
    prior fails its check, the best candidates and an A/B test are replayed on the later half of
    the log. Where the two disagree beyond noise, the replay decides.

    Parameters
    ----------
    log
        As in :func:`~priorwise.logs.fitting.fit_prior`.
    horizon, batch
        Pulls in a task to come, and after how many of them rewards are seen, at most ``horizon``.
    seed
        The same seed gives the same numbers.
    seconds
        Time that the simulations may take on one processor, about, by the known cost of each
        policy. A smaller number gives larger standard errors.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long. Ctrl-C
        raises :class:`Interrupted`, a KeyboardInterrupt whose ``partial`` is the recommendation
        from the truths under which policies were scored by then, and ``fit`` the learned prior.
    family, **reading
        As in :func:`~priorwise.logs.fitting.fit_prior`: ``task``, ``action``, ``reward``,
        ``pulls``, ``squares``, ``context``, ``contexts``, ``arms``, ``noise_var``, ``time``,
        ``since``, ``until``, ``window``, ``half_life``, ``reward_as`` and ``missing``.

    Examples
    --------
    >>> import io, pandas, priorwise as pw
    >>> from priorwise.experiments.headlines import headline_log
    >>> past = pandas.read_csv(io.StringIO(headline_log(seed=0, tests=60)))
    >>> advice = pw.recommend(past, horizon=20, family="beta", seed=0)
    >>> type(advice.prior).__name__
    'ExchangeableBetaPrior'

    """
    seed, horizon = validation.seed(seed), validation.count("horizon", horizon)
    batch = validation.batch(batch, horizon)
    seconds = float(validation.positive("seconds", np.array(validation.number("seconds", seconds))))
    check_progress(progress)
    how = complete(reading, ReadingFeatures, "recommend")
    if how["task_features"]:
        raise ArgumentError(
            "task_features",
            "must be left out, as one prior is for all tasks",
            cure="leave them out, or see in a backtest what they add",
        )
    fit, interrupted = None, ""
    try:
        with progress_of(3 * TRUTHS + 1, LEARNING, shown=progress, parallel=None) as bar:
            fit = fit_prior(log, family, seed=seed, **how)
            bar.advance(1)
            trial = _trial(fit, how["arms"], horizon, batch, seed, seconds)
            bar.say("choosing a policy")
            chosen = _choose(trial, seed, bar)
            bar.say("scoring it on other tasks")
            learned = {name: each for name, each in trial.tried.items() if each.learned}
            twins = {INFORMED + name: (each.policy, None) for name, each in learned.items()}
            fresh, both = trial.truths[TRUTHS:], {**trial.players, **twins}
            try:
                other = _scores(fresh, both, trial.how, mix(mix(seed)), bar, 2.0)
            except Interrupted as stop:
                other, done = stop.partial, len(stop.partial[chosen])
                if done < FEWEST:
                    raise
                interrupted = SCORED.format(done=done, of=len(fresh))
                fresh = fresh[:done]
    except KeyboardInterrupt:
        raise Interrupted(fit=fit) from None
    scores = {name: each for name, each in other.items() if not name.startswith(INFORMED)}
    losses = {
        name: other[INFORMED + name] - scores[name]
        if INFORMED + name in other
        else np.zeros(len(scores[name]))
        for name in scores
    }
    scored = PolicyComparison(scores, fresh)
    simulated = chosen
    replayed: Backtest | str | None = None
    if fit.check is not None and fit.check.doubts:
        best = sorted(scores, key=lambda name: -scored.estimate(name).mean)
        names = [chosen, *best[:BEST], *list(filter(is_ab_test, best))[:1], THOMPSON]
        some = {name: trial.tried[name] for name in names if name != UNIFORM}
        replayed = "Ctrl-C came before"
        try:
            if not interrupted:
                replayed = on_later_tasks(
                    log, some, chosen, family=family, horizon=horizon, batch=batch, seed=seed,
                    reading=how, progress=progress,
                )  # fmt: skip
        except Interrupted as stop:
            replayed = stop.partial
            interrupted = f"The replay on later tasks ended early. {stop}"
        except KeyboardInterrupt:
            interrupted = "No later task was replayed."
        if isinstance(replayed, Backtest):
            chosen = trusted(replayed, simulated)
            replayed = replace(replayed, picked=chosen)
    found = Recommendation(
        fit=fit,
        chosen=chosen,
        simulated=simulated,
        replayed=replayed,
        candidates=trial.tried,
        scored=scored,
        losses=losses,
        horizon=horizon,
        batch=batch,
        seed=seed,
        tasks=trial.how["tasks"],
        left_out=trial.left_out,
        said=trial.said,
        interrupted=interrupted,
    )
    if interrupted:
        raise Interrupted(interrupted, found, fit)
    return found


@final
@dataclass(frozen=True)
class _Trial:
    """Policies to try, and the truths and the sizes to try them with."""

    tried: dict[str, Candidate]
    left_out: dict[str, str]
    truths: list[Any]
    how: dict[str, Any]
    said: tuple[str, ...]

    @property
    def players(self) -> dict[str, Any]:
        """Policies with what they believe."""
        return {name: (each.policy, each.believed) for name, each in self.tried.items()}


def chosen_for(
    fit: LogFit, *, horizon: int, batch: int, seed: int, arms: Arms
) -> tuple[str, Candidate]:
    """Return the policy that would be recommended to whoever has this fit, with its name."""
    trial = _trial(fit, arms, horizon, batch, seed)
    with progress_of(TRUTHS, "choosing a policy", shown=False) as bar:
        name = _choose(trial, seed, bar)
    return name, trial.tried[name]


def _trial(
    fit: LogFit, arms: Arms, horizon: int, batch: int, seed: int, seconds: float = SECONDS
) -> _Trial:
    patterns = _arms_of_tasks(fit, arms)
    width = None if patterns is None else patterns.shape[1]
    believed = fit.prior if width is None else for_arms(fit.prior, width)
    tried, left_out = candidates(believed, horizon, batch, patterns is not None)
    truths, said = _truths(fit, 2 * TRUTHS, width, seed)
    how: dict[str, Any] = {"horizon": horizon, "progress": False, "batch": batch}
    trial = _Trial(tried, left_out, truths, _sized(how, LEAST, patterns, seed), said)
    trial = _without_slow(trial, seed)
    tasks = _tasks(trial.tried, seconds)
    policies = [each.policy for each in trial.tried.values()]
    check_run(believed, policies, horizon=horizon, tasks=tasks)
    return replace(trial, how=_sized(how, tasks, patterns, seed))


def _sized(
    how: dict[str, Any], tasks: int, patterns: BoolArray | None, seed: int
) -> dict[str, Any]:
    """Return how to simulate so many tasks, with arms as the tasks of the log have them."""
    return {**how, "tasks": tasks, "available": _available(patterns, tasks, seed)}


def _without_slow(trial: _Trial, seed: int) -> _Trial:
    """Leave out slow policies that do not lead in a short trial."""
    slow = [name for name, each in trial.tried.items() if each.seconds > SLOW]
    if not slow:
        return trial
    with progress_of(TRIAL, "trying slow policies", shown=False) as bar:
        scores = _scores(trial.truths[:TRIAL], trial.players, trial.how, mix(seed), bar, 1.0)
    compared = PolicyComparison(scores, trial.truths[:TRIAL])
    leader = max(
        (name for name in scores if name not in slow), key=lambda name: compared.estimate(name).mean
    )
    tried, left_out = dict(trial.tried), dict(trial.left_out)
    for name in slow:
        gap = compared.difference(leader, name)
        if gap.mean >= -gap.std_error:
            del tried[name]
            left_out[name] = (
                f"in a trial of {TRIAL * trial.how['tasks']:,} simulated tasks it did not earn "
                f"measurably more than {leader}, and it is the slowest"
            )
    return replace(trial, tried=tried, left_out=left_out)


def _choose(trial: _Trial, seed: int, bar: Any) -> str:
    """Return the policy that earns most under the first truths."""
    first = _scores(trial.truths[:TRUTHS], trial.players, trial.how, mix(seed), bar, 1.0)
    return max(first, key=lambda name: float(first[name].mean()))


def _arms_of_tasks(fit: LogFit, arms: Arms) -> BoolArray | None:
    """Which arms the tasks of the log have, ``(task, arm)``; None where the prior has its own."""
    if not hasattr(fit.prior, "for_arms"):
        return None
    return np.asarray(fit.log.grid(np.ones(len(fit.log.task)), arms) > 0.0)


def _available(patterns: BoolArray | None, tasks: int, seed: int) -> BoolArray | None:
    """Arms of simulated tasks: those of tasks of the log, drawn at random."""
    if patterns is None or patterns.all():
        return None
    rng = np.random.Generator(np.random.Philox(key=mix(seed)))
    return np.asarray(patterns[rng.integers(len(patterns), size=tasks)])


def _tasks(tried: Mapping[str, Candidate], seconds: float) -> int:
    """Tasks of each truth, by how long policies take."""
    one = sum(each.seconds * (3.0 if each.learned else 2.0) for each in tried.values())
    return tasks_within(seconds, TRUTHS * one, MOST)


def _truths(
    fit: LogFit, count: int, width: int | None, seed: int
) -> tuple[list[Any], tuple[str, ...]]:
    """Priors that the log leaves plausible, and what is to be said of them."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    said: tuple[str, ...] = ()
    if fit.fit.uncertainty is not None:
        priors = fit.draw(rng, count)
    elif fit.estimator is not None and fit.fit.statistics is not None:
        data = fit.fit.statistics
        rows = rng.integers(data.tasks, size=(count, data.tasks))
        priors = [fit.estimator.fit(data.take(each)).prior for each in rows]
        said = ("plausible priors are fits to resampled tasks",)
    else:
        priors = [fit.prior] * count
        said = ("the fit has no law of plausible priors: it is taken for the truth",)
    return [prior if width is None else for_arms(prior, width) for prior in priors], said


def _scores(
    truths: Sequence[Any],
    players: Mapping[str, Any],
    how: Mapping[str, Any],
    seed: int,
    bar: Any,
    weight: float,
) -> dict[str, FloatArray]:
    """Mean reward of each player under each truth, ``(truth,)``; if interrupted, so far."""
    rows: list[dict[str, float]] = []

    def columns() -> dict[str, FloatArray]:
        return {name: np.array([row[name] for row in rows]) for name in players}

    try:
        for runs in runs_under(truths, players, **how, seed=seed):
            rows.append(_values(runs))
            bar.advance(weight)
    except KeyboardInterrupt:
        raise Interrupted(partial=columns()) from None
    return columns()


def _values(runs: Mapping[str, Run]) -> dict[str, float]:
    """``E[best] - regret``, where the best arm earns what all players together say; their rewards
    where there is no regret.
    """
    if any(run.mean_regret is None for run in runs.values()):
        return {name: run.mean_reward for name, run in runs.items()}
    regrets = {name: float(run.mean_regret or 0.0) for name, run in runs.items()}
    best = np.mean([run.mean_reward + regrets[name] for name, run in runs.items()])
    return {name: float(best) - each for name, each in regrets.items()}
