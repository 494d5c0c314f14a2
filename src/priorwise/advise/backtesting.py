"""``backtest``: learn from earlier tasks of a log, and replay policies on later ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Unpack, final

import numpy as np

from priorwise.advise.backtest_result import Backtest, Line
from priorwise.advise.off_policy import off_policy
from priorwise.advise.predicting import predicted
from priorwise.advise.replay import Player
from priorwise.advise.replaying import recorded_in, replayed
from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, option, shown
from priorwise.core.progress import Interrupted, progress_of
from priorwise.core.protocols import MeanBelief, for_arms, monte_carlo_n
from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.registry import family_for, has_part
from priorwise.logs.features import WITHOUT
from priorwise.logs.fitting import LogFit, fit_read
from priorwise.logs.options import Arms, Reading, Rows, complete, part_of, takes
from priorwise.logs.reducing import Log, read_log
from priorwise.logs.rows import task_clock
from priorwise.logs.splitting import split
from priorwise.logs.times import lengths
from priorwise.simulate.sizes import check_run

VAGUE: Final = "{} (vague prior)"
PLAIN: Final = "{} (no task features)"
LEARNING: Final = "learning the prior"


@takes(Reading)
def backtest(
    log: Any,
    policies: Mapping[str, Any],
    *,
    horizon: int,
    seed: int,
    batch: int = 1,
    train: float = 0.5,
    most_run_out: float | None = None,
    family: str = "auto",
    propensity: str | None = None,
    progress: bool | None = None,
    **reading: Unpack[Reading],
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
        Pulls in a task, and after how many of them rewards are seen, at most ``horizon``.
    seed
        The same seed gives the same numbers.
    train
        Share of the tasks, the earliest, that the prior is learned from.
    most_run_out
        Replay fewer pulls than ``horizon`` where records do not last: as many, in whole batches,
        as leave each policy at most this share of its pulls beyond the records of an arm. By
        default ``horizon`` is replayed, and the result warns.
    propensity
        Column of how likely the recorded action was when it was chosen, for logs with one row per
        pull: adds estimates by inverse propensities, and doubly robust ones.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long. Ctrl-C
        raises :class:`Interrupted`, a KeyboardInterrupt whose ``partial`` is the backtest on the
        tasks that were replayed by then.
    family, **reading
        As in :func:`~priorwise.logs.fitting.fit_prior`: ``task``, ``action``, ``reward``,
        ``pulls``, ``squares``, ``arms``, ``noise_var``, ``time``, ``since``, ``until``, ``window``,
        ``half_life``, ``reward_as``, ``missing`` and ``task_features``. With the last each later
        task is played with the prior of its features, and, to compare, with one that was learned
        without any. Tasks are split by their first ``time``, or
        without it by the order in which the log first has them. With ``time`` the prior is learned
        from what had been recorded when the first later task began.

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
    batch = validation.batch(batch, horizon)
    share = validation.share("train", train)
    limit = None if most_run_out is None else validation.share("most_run_out", most_run_out)
    _check(policies)
    options = complete(reading, Reading, "backtest")
    with progress_of(1, LEARNING, shown=progress, parallel=None):
        halves = learned_from(log, share, family, propensity, seed, options)
    how: Any = {"horizon": horizon, "batch": batch, "seed": seed, "progress": progress}
    return replay_on(halves, policies, limit=limit, propensity=propensity is not None, **how)


@final
@dataclass(frozen=True)
class Halves:
    """What was learned from earlier tasks, and the later ones; ``arms`` are the "same" or "new".
    ``moves`` is how far the level may have moved since, where the prior changes over time.
    """

    fit: LogFit
    later: Log
    arms: Arms
    moves: float = 0.0


def learned_from(
    log: Any,
    share: float,
    family: str,
    propensity: str | None,
    seed: int,
    reading: Mapping[str, Any],
) -> Halves:
    """Read a log, and learn from the earlier tasks."""
    how = complete(reading, Reading, "backtest")
    arms = how["arms"]
    read = read_log(log, propensity=propensity, **part_of(how, Rows))
    if read.features and propensity is not None:
        raise ArgumentError(
            "propensity",
            "must be left out with task_features",
            cure="estimates by propensities do not know them",
        )
    if arms == "auto":
        arms = "new" if read.new_arms else "same"
    earlier, later = split(read, share, how["window"])
    clock, moves = task_clock(read), 0.0
    starts = None if clock is None else clock[np.isin(read.tasks, earlier.tasks)]
    fit = fit_read(
        earlier, family, seed=seed, arms=arms, noise_var=how["noise_var"], starts=starts,
        half_life=how["half_life"],
    )  # fmt: skip
    _check_arms(later, fit, arms)
    if clock is not None and starts is not None and (recent := fit.recent) is not None:
        ahead = lengths(clock[np.isin(read.tasks, later.tasks)] - starts.max())
        moves = recent.error(float(ahead.mean()))
    return Halves(fit, later, arms, moves)


def replay_on(
    halves: Halves,
    policies: Mapping[str, Any],
    *,
    horizon: int,
    batch: int,
    limit: float | None,
    seed: int,
    propensity: bool = False,
    progress: bool | None = None,
    picked: str | None = None,
) -> Backtest:
    """Replay policies on the later tasks; ``picked`` is the one that the earlier tasks speak for,
    if that is known already.
    """
    fit, later, arms = halves.fit, halves.later, halves.arms
    recorded = recorded_in(later, arms)
    width = recorded.pulls.shape[1]
    own = _own_priors(fit, later)
    players, said = _players(policies, fit, width, own)
    asked = [each.policy for each in players.values()]
    learned = for_arms(_learned(fit), width)
    check_run(learned, asked, horizon=horizon, tasks=len(recorded.pulls))
    rates = _shrunken(fit, later, arms, own)
    played = replayed(
        players, recorded, rates, horizon=horizon, batch=batch, limit=limit, seed=seed,
        progress=progress,
    )  # fmt: skip
    lines, pulls, done = played.lines, played.horizon, played.done
    lines = {name: replace(line, baseline=name not in policies) for name, line in lines.items()}
    interrupted = played.interrupted
    try:
        if not own and not interrupted:
            how: Any = {"moves": halves.moves, "progress": progress}
            lines = predicted(lines, players, fit, recorded, pulls, batch, seed, **how)
        if propensity and not interrupted:
            how = {"horizon": pulls, "batch": batch, "seed": seed}
            weighted = off_policy(later, players, recorded, arms, **how)
            lines = {n: replace(line, weighted=weighted.get(n)) for n, line in lines.items()}
    except KeyboardInterrupt:
        interrupted = True
    there = recorded.available
    uniform, best = (each[done] for each in _ends(pulls * recorded.means, there))
    low = high = None
    if rates is not None:
        low, high = (each[done] for each in _ends(pulls * rates, there))
    found = Backtest(
        lines, uniform, best, low, high, fit, pulls, batch, horizon, limit,
        (*later.said, *fit.log.left, *said), picked,
        _interrupted(done, lines) if interrupted else "",
    )  # fmt: skip
    if interrupted:
        raise Interrupted(found.interrupted, found)
    return found


def _interrupted(done: BoolArray, lines: Mapping[str, Line]) -> str:
    """Say what the numbers of an interrupted backtest rest on."""
    used = "all later tasks"
    if not done.all():
        used = f"only {done.sum():,} of {len(done):,} later tasks, drawn at random in blocks"
    unknown = all(each.predicted is None for each in lines.values())
    return f"These numbers use {used}.{' No reward was predicted.' if unknown else ''}"


def _check(policies: Mapping[str, Any]) -> None:
    if not isinstance(policies, Mapping) or not policies:
        raise ArgumentTypeError("policies", "must be a mapping with at least one {name: policy}")
    for name, each in policies.items():
        validation.text("a name in policies", name)
        if isinstance(each, tuple) and len(each) != 2:
            raise ArgumentTypeError(
                "policies", "must map a name to a policy or to (policy, believed)", got={name: each}
            )
        argument_checks.policy(
            "policies", each[0] if isinstance(each, tuple) else each, memory=True
        )


def _check_arms(later: Log, fit: LogFit, arms: Arms) -> None:
    """Refuse arms that only later tasks have, if the prior tells arms apart."""
    if arms == "new":
        return
    known = np.bincount(fit.log.arm, minlength=len(later.arms)) > 0
    fresh = np.unique(later.arm[~known[later.arm]])
    if fresh.size:
        more = f" (and {fresh.size - 1:,} more)" if fresh.size > 1 else ""
        raise ArgumentError(
            "action",
            f"no earlier task has the arm {shown(str(later.arms[fresh[0]]))}{more}, so that "
            "nothing is learned of it",
            cure=(
                f"leave its rows out, or pass {option('arms', 'new')} for a prior that does not "
                "tell arms apart"
            ),
        )


def _learned(fit: LogFit) -> Any:
    """Return the learned prior; of average tasks, where it depends on their features."""
    return getattr(fit.prior, "base", fit.prior)


def _own_priors(fit: LogFit, later: Log) -> list[Any]:
    """Return the prior of each later task, where it depends on its features; else nothing."""
    if not later.features:
        return []
    try:
        found: list[Any] = fit.prior_for(later.features)
    except ValueError as error:
        raise ArgumentError(
            "task_features", f"of later tasks are unlike those of earlier ones: {error}"
        ) from None
    return found


def _players(
    policies: Mapping[str, Any], fit: LogFit, width: int, own: list[Any]
) -> tuple[dict[str, Player], list[str]]:
    """Pair every policy with the learned prior, with a vague one and, where tasks have features,
    with one that was learned without, for tasks of ``width`` arms.
    """
    learned, said = for_arms(_learned(fit), width), []
    others: dict[str, Any] = {}
    if own and fit.models is not None:
        others[PLAIN] = for_arms(fit.models.fits[WITHOUT.format(fit.chosen)].prior, width)
        said.append("nothing is predicted for priors that depend on task features")
    if has_part(learned, "blank"):
        others[VAGUE] = family_for(learned, "backtest").blank(learned)
    else:
        said.append("the family has no vague prior to compare the learned one with")
    wide = [for_arms(each, width) for each in own]
    players: dict[str, Player] = {}
    for name, each in policies.items():
        policy, believed = each if isinstance(each, tuple) else (each, learned)
        argument_checks.believed(learned, believed := for_arms(believed, width))
        argument_checks.playing(policy, believed, memory=True)
        looks = monte_carlo_n(policy, width) != 0 and not isinstance(each, tuple)
        players[name] = Player(policy, believed, wide if looks else ())
        for how, prior in others.items() if looks else ():
            other = how.format(name)
            if other in policies:
                raise ArgumentError(
                    "policies",
                    f"must not have the name {other!r}, which is taken",
                    cure="choose another",
                )
            players[other] = Player(policy, prior)
    return players, said


def _shrunken(fit: LogFit, later: Log, arms: Arms, own: list[Any]) -> FloatArray | None:
    """Return what the learned prior and all records of a task together say of its arms, ``(task,
    arm)``; None where the family does not say.
    """
    data = fit.fit.statistics
    seen = later.statistics(type(data.seen if own else data), arms)
    parts = [seen.take([task]) for task in range(seen.tasks)] if own else [seen]
    pairs = zip(own or [fit.prior], parts, strict=True)
    beliefs = [prior.belief_given(part) for prior, part in pairs]
    if not all(isinstance(each, MeanBelief) for each in beliefs):
        return None
    width = later.places(arms)[1]
    return np.concatenate([each.mean(Seen(1, 1, width)) for each in beliefs])


def _ends(values: FloatArray, there: BoolArray) -> tuple[FloatArray, FloatArray]:
    """What any arm and the best one earn in each task, ``(task,)``, of those that are there."""
    mean = np.where(there, values, 0.0).sum(axis=1) / there.sum(axis=1)
    return mean, np.where(there, values, -np.inf).max(axis=1)
