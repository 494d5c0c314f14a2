"""``backtest``: learn from earlier tasks of a log, and replay policies on later ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from priorwise.advise.backtest_result import Backtest, Line
from priorwise.advise.off_policy import off_policy
from priorwise.advise.predicting import predicted
from priorwise.advise.replay import NUMPY_TASKS, Player, Recorded
from priorwise.core import doors, validation
from priorwise.core.family import ask, for_arms, offers
from priorwise.core.progress import progress_of
from priorwise.core.protocols import MeanBelief, Seen, monte_carlo_n
from priorwise.core.tiles import LANES
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.logs.fitting import LogFit, fit_read
from priorwise.logs.reducing import Arms, Log, read_log
from priorwise.logs.rows import single_rewards, task_starts
from priorwise.simulate.sizes import check_run

VAGUE: Final = "{} (vague prior)"


def backtest(
    log: Any,
    policies: Mapping[str, Any],
    *,
    horizon: int,
    seed: int,
    batch: int = 1,
    time: str | None = None,
    train: float = 0.5,
    family: str = "auto",
    task: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    pulls: str | None = None,
    squares: str | None = None,
    propensity: str | None = None,
    arms: Arms = "auto",
    noise_var: float | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
    progress: bool | None = None,
) -> Backtest:
    """Learn a prior from the earlier tasks of a log, and replay policies on the later ones.

    In a replayed task the k-th pull of an arm earns the k-th of its recorded rewards, in an order
    drawn once for all policies. While they last, what a policy earns is unbiased for what it would
    have earned; beyond them rewards are drawn again, which the first line of the result counts.
    Every policy plays with the learned prior and with a vague one.

    Parameters
    ----------
    log
        As in :func:`~priorwise.logs.fitting.fit_prior`. Rewards other than 0 and 1 need one row per
        pull.
    policies
        Names and policies, or pairs of a policy and the prior it believes.
    horizon, batch
        Pulls in a task, and after how many of them rewards are seen.
    seed
        The same seed gives the same numbers.
    time
        Column that says when a row was; tasks are split by their first time, or without it by the
        order in which the log first has them.
    train
        Share of the tasks, the earliest, that the prior is learned from.
    propensity
        Column of how likely the recorded action was when it was chosen, for logs with one row per
        pull: adds estimates by inverse propensities, and doubly robust ones.
    family, task, action, reward, pulls, squares, arms, noise_var, missing
        As in :func:`~priorwise.logs.fitting.fit_prior`.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long.

    Examples
    --------
    >>> import io, pandas, priorwise as pw
    >>> from priorwise.experiments.headlines import headline_log
    >>> past = pandas.read_csv(io.StringIO(headline_log(seed=0, tests=100)))
    >>> policies = {"greedy": pw.Greedy(), "again": pw.Greedy()}
    >>> found = pw.backtest(past, policies, horizon=20, family="beta", seed=0)
    >>> found.difference("greedy", "again")
    Estimate(mean=0.0, std_error=0.0)

    """
    seed, horizon = validation.seed(seed), validation.count("horizon", horizon)
    batch = validation.count("batch", batch)
    share = validation.number("train", train)
    if not 0.0 < share < 1.0:
        raise ValueError(f"train must lie between 0 and 1, got {validation.shown(train)}")
    _check(policies)
    validation.one_of("arms", arms, Arms)
    read = read_log(
        log, task=task, action=action, reward=reward, pulls=pulls, squares=squares,
        time=time, propensity=propensity, missing=missing,
    )  # fmt: skip
    if arms == "auto":
        arms = "new" if read.new_arms else "same"
    earlier = _earlier(read, share)
    fit = fit_read(read.part(earlier), family, seed=seed, arms=arms, noise_var=noise_var)
    later = read.part(~earlier)
    _check_arms(later, fit, arms)
    recorded = _recorded(later, arms)
    players, said = _players(policies, fit, recorded, horizon, batch)
    check_run(
        for_arms(fit.prior, recorded.pulls.shape[1]),
        [each.policy for each in players.values()],
        horizon=horizon,
        tasks=len(recorded.pulls),
    )
    rates = _shrunken(fit, later, arms)
    lines = _replay(players, recorded, rates, horizon, seed, progress)
    lines = predicted(lines, players, fit, recorded, horizon, batch, seed)
    weighted = {}
    if propensity is not None:
        how: Any = {"horizon": horizon, "batch": batch, "seed": seed}
        weighted = off_policy(later, players, recorded, arms, **how)
    return Backtest(
        {name: replace(line, weighted=weighted.get(name)) for name, line in lines.items()},
        horizon * _mean_of(recorded.means, recorded.available),
        horizon * np.where(recorded.available, recorded.means, -np.inf).max(axis=1),
        None if rates is None else horizon * _mean_of(rates, recorded.available),
        None
        if rates is None
        else horizon * np.where(recorded.available, rates, -np.inf).max(axis=1),
        fit, horizon, batch, (*read.said, *said),
    )  # fmt: skip


def _check(policies: Mapping[str, Any]) -> None:
    if not isinstance(policies, Mapping) or not policies:
        raise TypeError("policies must be a mapping with at least one name: policy")
    for name, each in policies.items():
        validation.text("a name in policies", name)
        if isinstance(each, tuple) and len(each) != 2:
            raise TypeError(
                "policies must map a name to a policy or to (policy, believed), got "
                f"{validation.shown({name: each})}"
            )
        doors.policy("policies", each[0] if isinstance(each, tuple) else each, memory=True)


def _earlier(log: Log, share: float) -> BoolArray:
    """Return which tasks are earlier: by their first time, where tasks that began at one time stay
    together, or by their first row.
    """
    if len(log.tasks) < 4:
        raise ValueError(
            f"task: the column {log.columns.task!r} has {len(log.tasks)} tasks; a backtest needs 4 "
            "or more"
        )
    starts = task_starts(log)
    order = np.argsort(starts, kind="stable")
    wanted = min(max(round(share * len(order)), 2), len(order) - 2)
    begins = np.flatnonzero(starts[order][1:] != starts[order][:-1]) + 1  # where a later time is
    begins = begins[(begins >= 2) & (begins <= len(order) - 2)]
    if not begins.size:
        raise ValueError(
            f"time: nearly all tasks have the same first time in {log.columns.time!r}; leave time "
            "out to split them by the order of the log"
        )
    cut = starts[order][begins[np.abs(begins - wanted).argmin()]]
    return np.asarray(starts < cut)


def _check_arms(later: Log, fit: LogFit, arms: Arms) -> None:
    """Refuse arms that only later tasks have, if the prior tells arms apart."""
    if arms == "new":
        return
    known = np.bincount(fit.log.arm, minlength=len(later.arms)) > 0
    fresh = np.unique(later.arm[~known[later.arm]])
    if fresh.size:
        more = f" (and {fresh.size - 1:,} more)" if fresh.size > 1 else ""
        raise ValueError(
            f"action: no earlier task has the arm {validation.shown(str(later.arms[fresh[0]]))}"
            f"{more}, so that nothing is learned of it; leave its rows out, or pass arms='new' for "
            "a prior that does not tell arms apart"
        )


def _recorded(log: Log, arms: Arms) -> Recorded:
    """Return what can be replayed."""
    counts, sums = log.grid(log.pulls, arms), log.grid(log.sums, arms)
    empty = counts.sum(axis=1) == 0.0
    if empty.any():
        name = validation.shown(str(log.tasks[np.argmax(empty)]))
        raise ValueError(f"pulls: the task {name} has no pull; leave its rows out")
    if log.not_binary is None:
        return Recorded(counts, sums)
    if log.columns.summed:
        raise ValueError(
            f"reward: a replay draws single rewards, and {log.columns.reward!r} has their sums, "
            f"which do not tell them unless all are 0 or 1 ({log.not_binary}); give one row per "
            "pull"
        )
    records = single_rewards(log)
    rows = log.grid(records.first.astype(np.float64), arms).astype(np.int64)
    return Recorded(counts, sums, records, rows)


def _players(
    policies: Mapping[str, Any], fit: LogFit, recorded: Recorded, horizon: int, batch: int
) -> tuple[dict[str, Player], list[str]]:
    """Pair every policy with the learned prior and a vague one."""
    width = recorded.pulls.shape[1]
    learned, said = for_arms(fit.prior, width), []
    vague = None
    if offers(learned, "blank"):
        vague = ask(learned, "blank", "backtest")(learned)
    else:
        said.append("the family has no vague prior to compare the learned one with")
    players: dict[str, Player] = {}
    for name, each in policies.items():
        policy, believed = each if isinstance(each, tuple) else (each, learned)
        doors.believed(learned, believed := for_arms(believed, width))
        doors.playing(policy, believed, memory=True)
        players[name] = Player(policy, believed, horizon, batch)
        looks = monte_carlo_n(policy, width) != 0
        if vague is not None and looks and not isinstance(each, tuple):
            other = VAGUE.format(name)
            if other in policies:
                raise ValueError(f"policies: the name {other!r} is taken; choose another")
            players[other] = Player(policy, vague, horizon, batch)
    return players, said


def _shrunken(fit: LogFit, later: Log, arms: Arms) -> FloatArray | None:
    """Return what the learned prior and all records of a task together say of its arms, ``(task,
    arm)``; None where the family does not say.
    """
    belief = fit.prior.belief_given(later.statistics(type(fit.fit.statistics), arms))
    if not isinstance(belief, MeanBelief):
        return None
    width = later.places(arms)[1]
    return np.asarray(belief.mean(Seen(1, 1, width)))


def _replay(
    players: dict[str, Player],
    recorded: Recorded,
    rates: FloatArray | None,
    horizon: int,
    seed: int,
    progress: bool | None,
) -> dict[str, Line]:
    """Play all tasks, block by block: what they earned, the same by shrunken rates, and how often
    rewards had run out.
    """
    tasks = len(recorded.pulls)
    rewards = {name: np.empty(tasks) for name in players}
    worth = {name: np.empty(tasks) for name in players}
    beyond = {name: np.empty(tasks) for name in players}
    probe = recorded.deal(seed, 0, 1, horizon)
    groups = {True: LANES, False: NUMPY_TASKS}
    with progress_of(tasks * len(players), "tasks", shown=progress) as bar:
        for compiled, size in groups.items():
            chosen = {n: each for n, each in players.items() if each.compiled(probe) == compiled}
            for first in range(0, tasks if chosen else 0, size):
                at = slice(first, min(first + size, tasks))
                dealt = recorded.deal(seed, first, at.stop - first, horizon)
                there = recorded.available[at]
                for name, player in chosen.items():
                    played = player.play(dealt, there, seed, first)
                    counts = _counts(played.actions, there.shape)
                    rewards[name][at] = dealt.expected(counts)
                    beyond[name][at] = np.maximum(counts - recorded.pulls[at], 0.0).sum(axis=1)
                    worth[name][at] = 0.0 if rates is None else (counts * rates[at]).sum(axis=1)
                bar.advance(len(there) * len(chosen))
    return {
        name: Line(
            rewards[name],
            None if rates is None else worth[name],
            float(beyond[name].sum() / (tasks * horizon)),
        )
        for name in players
    }


def _counts(actions: IntArray, shape: Sequence[int]) -> IntArray:
    """How often each task pulled each arm, ``(task, arm)``."""
    tasks, arms = shape
    places = np.arange(tasks) * arms + actions
    return np.bincount(places.ravel(), minlength=tasks * arms).reshape(tasks, arms)


def _mean_of(values: FloatArray, there: BoolArray) -> FloatArray:
    return np.asarray(np.where(there, values, 0.0).sum(axis=1) / there.sum(axis=1))
