"""Learning goes on: a prior is fitted again on closed tasks, proposed with a backtest, and accepted
by somebody or by a rule; an alarm says when recent tasks contradict the one in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import Estimate
from priorwise.core.protocols import for_arms
from priorwise.families.registry import family_for, has_part
from priorwise.serve import types
from priorwise.serve.choosing import dim_of
from priorwise.serve.errors import Refused

if TYPE_CHECKING:
    import pyarrow as pa

    from priorwise.advise import Backtest
    from priorwise.core.types import FloatArray
    from priorwise.logs import LogFit
    from priorwise.serve.choosing import LivePrior
    from priorwise.serve.decider import Decider
    from priorwise.serve.rows import Task

Columns = dict[str, Any]  # options of those who read a log
OnSchedule = Literal["ask", "better"]
Accept = Literal["ask", "better", "always"]

LEAST: Final = 20
"""Closed tasks that a fit needs."""


@final
@dataclass(frozen=True)
class Learning:
    """When to fit the prior again, and who accepts it.

    Parameters
    ----------
    every
        After so many closed tasks since the last fit.
    family
        As in :func:`~priorwise.logs.fitting.fit_prior`; ``"auto"`` compares.
    accept
        ``"ask"`` waits for somebody to call ``accept``; ``"better"`` accepts a prior whose backtest
        earned more than that of the one in use, by two standard errors.

    """

    every: int = 200
    family: str = "auto"
    accept: OnSchedule = "ask"

    def __post_init__(self) -> None:
        validation.count("every", self.every, least=LEAST)
        validation.text("family", self.family)
        validation.one_of("accept", self.accept, OnSchedule)


@final
@dataclass(frozen=True, eq=False)
class Proposal:
    """A prior that was fitted on closed tasks: its version, the fit, and what a backtest says."""

    version: int
    fit: LogFit
    backtest: Backtest | None  # None where it could not be made
    gain: Estimate | None  # reward of a task, of the proposed prior over that in use
    why_not: str  # why there is no backtest; "" where there is one
    accepted: bool

    @property
    def better(self) -> bool:
        """Whether its backtest earned more than the prior in use, by two standard errors."""
        return self.gain is not None and self.gain.mean > 2.0 * self.gain.std_error

    def answer(self) -> types.Refitted:
        """Return what a service answers."""
        return types.Refitted(self.version, self.accepted, self.better, str(self))

    def __str__(self) -> str:
        """Say what was learned and what it would have earned."""
        lines = [f"Proposed as version {self.version}:", str(self.fit)]
        if self.gain is not None:
            lines.append(
                f"Learned on the earlier half of the closed tasks and replayed on the later, it "
                f"earned {self.gain.mean:+.4g} ± {self.gain.std_error:.2g} per task against the "
                "prior in use."
            )
        else:
            lines.append(f"No backtest: {self.why_not}")
        lines.append("Accepted: new tasks start with it." if self.accepted else "Not accepted yet.")
        return "\n".join(lines)


def refit(decider: Decider, family: str = "auto", *, seed: int, accept: Accept = "ask") -> Proposal:
    """Fit the prior on the closed tasks of a decider's store, and propose it with its backtest."""
    import pyarrow as pa

    from priorwise.logs.fitting import fit_prior

    validation.one_of("accept", accept, Accept)
    log, contextual = closed_log(decider)
    tasks = len(pa.compute.unique(log["task"])) if log.num_rows else 0
    if tasks < LEAST:
        raise Refused(f"a fit needs {LEAST} closed tasks with rewards, and there are {tasks}")
    known = decider.operations.arms_of(decider.version)
    missing = set(known or ()) - set(pa.compute.unique(log["action"]).to_pylist())
    if missing:
        raise Refused(
            f"closed tasks have no reward of {validation.shown(min(missing))}, so that nothing can "
            "be learned of that arm; a floor lets every arm be played"
        )
    columns = _columns(log, contextual)
    # as those who ask for decisions name arms, or do not
    fit = fit_prior(log, family, seed=seed, arms="new" if known is None else "auto", **columns)
    prior = fit.prior
    if known is not None and hasattr(prior, "for_arms"):
        prior = for_arms(prior, len(known)).replaced(names=list(known))
    found, gain, why_not = _backtested(decider, log, fit, seed, columns)
    story = {
        "fitted_on": {"tasks": tasks, "rows": log.num_rows, **_dates(log)},
        "chosen": fit.chosen,
        "fit": str(fit),
        "backtest": None if found is None else str(found),
        "gain": None if gain is None else [gain.mean, gain.std_error],
        "no_backtest_because": why_not,
    }
    version = decider.propose(prior, story)
    made = Proposal(version, fit, found, gain, why_not, False)
    if accept == "always" or (accept == "better" and made.better):
        decider.accept(version)
        return Proposal(version, fit, found, gain, why_not, True)
    return made


def closed_log(decider: Decider) -> tuple[pa.Table, int]:
    """The log of closed tasks as one Arrow table, and how many features it has."""
    import pyarrow as pa
    import pyarrow.compute

    dim = dim_of(decider.prior())
    return pa.concat_tables(decider.tables(closed=True)), dim


def _columns(log: pa.Table, contextual: int) -> Columns:
    named: Columns = {"task": "task", "action": "action", "reward": "reward"}
    named["time"] = "none"  # all closed tasks count alike
    if contextual:
        return named | {"context": [f"x{k}" for k in range(contextual)]}
    return named | {"pulls": "pulls", "squares": "squares"}


def _dates(log: pa.Table) -> dict[str, str]:
    import pyarrow.compute as pc

    ends = pc.min_max(log["time"]).as_py()
    return {name: ends[name].isoformat() for name in ("min", "max")}


def _backtested(
    decider: Decider, log: pa.Table, fit: LogFit, seed: int, columns: Columns
) -> tuple[Backtest | None, Estimate | None, str]:
    """Replay the later half of the tasks with what the earlier half taught and with the prior in
    use.
    """
    from priorwise.advise import backtest

    operations = decider.operations
    log, now = _in_order(log, decider.prior(), operations.arms_of(decider.version))
    policies = {"proposed": operations.policy, "in use": (operations.policy, now)}
    horizon = _typical(log, operations.horizon)
    if max(log["pulls"].to_pylist()) == 1:  # a replay draws single rewards
        log = log.drop_columns(["pulls", "squares"])
        columns = {name: each for name, each in columns.items() if name not in ("pulls", "squares")}
    try:
        found = backtest(
            log, policies, horizon=horizon, family=fit.chosen, seed=seed, progress=False, **columns
        )
        return found, found.difference("proposed", "in use"), ""
    except ArgumentError as error:
        return None, None, str(error)


def _in_order(
    log: pa.Table, prior: LivePrior, arms: tuple[str, ...] | None
) -> tuple[pa.Table, LivePrior]:
    """Number the arms of a log and of the prior in use, so that sorting them by name, as a backtest
    does, leaves the order that the prior has them in.
    """
    if arms is None:
        return log, prior
    numbers = {arm: f"{place:04d}" for place, arm in enumerate(arms)}
    told = _array([numbers.get(arm, arm) for arm in log["action"].to_pylist()])
    log = log.set_column(log.column_names.index("action"), "action", told)
    named = getattr(prior, "names", None) is not None
    return log, prior.replaced(names=[*numbers.values()]) if named else prior


def _typical(log: pa.Table, horizon: int) -> int:
    """Pulls of a typical task, at most the horizon: recorded rewards have to last."""
    import pyarrow.compute as pc

    pulls = log.group_by("task").aggregate([("pulls", "sum")])["pulls_sum"]
    middle = pc.quantile(pulls, 0.5)[0].as_py()
    return max(1, min(horizon, int(middle)))


@final
@dataclass(frozen=True)
class LiveAlarm:
    """Whether recent tasks contradict the prior.

    Closed tasks are taken in the order in which they were closed. After 20, 40, 80, ... of them a
    prior is learned, and each later task is judged by the likelihood ratio of the last one learned
    before it against the prior in use. If tasks follow that prior, and which are closed does not
    depend on their rewards, the product of the ratios so far is a martingale with mean 1, so that
    it ever exceeds ``1 / level`` with probability at most ``level``, however often one looks.
    """

    tasks: int
    log_evidence: float  # largest so far, natural logarithm
    level: float
    said: str

    @property
    def raised(self) -> bool:
        """Whether the alarm is on."""
        return bool(self.log_evidence >= -np.log(self.level))

    @property
    def p_value(self) -> float:
        """A p-value that holds at any time."""
        return float(min(1.0, np.exp(-max(self.log_evidence, 0.0))))

    def answer(self) -> types.Alarm:
        """Return what a service answers."""
        return types.Alarm(self.raised, self.tasks, self.p_value, self.said)

    def __str__(self) -> str:
        """Say it."""
        return self.said


def alarm_of(decider: Decider, *, seed: int, level: float = 0.01) -> LiveAlarm:
    """Judge the closed tasks of the version in use."""
    from priorwise.logs.fitting import fit_prior

    validation.share("level", level)
    version = decider.version
    log, contextual = closed_log(decider)
    tasks = [
        task
        for task, _, _ in decider.store.rows()
        if task.closed is not None and task.version == version and task.events
    ]
    tasks.sort(key=lambda task: task.closed or 0.0)
    count = len(tasks)
    if contextual:
        return LiveAlarm(count, 0.0, level, "No alarm: tasks with contexts have none.")
    if count < 2 * LEAST:
        said = f"No alarm: {count} closed tasks so far; {2 * LEAST} are needed."
        return LiveAlarm(count, 0.0, level, said)
    import pyarrow.compute as pc

    prior, arms = decider.prior(version), decider.operations.arms_of(version)
    family = _same_family(prior)
    ours = _log_marginals(decider, version, prior, tasks)
    total = largest = 0.0
    for start, end in _parts(count):
        names = _array([task.name for task in tasks[:start]])
        before = log.filter(pc.is_in(log["task"], value_set=names))
        if arms is not None and set(arms) != set(pc.unique(before["action"]).to_pylist()):
            continue  # nothing is learned of an arm that nobody played
        fit = fit_prior(before, family, seed=seed, **_columns(log, 0))
        family = fit.chosen
        theirs = _log_marginals(decider, version, fit.fit.prior, tasks[start:end])
        sums = total + np.cumsum(theirs - ours[start:end])
        total, largest = float(sums[-1]), max(largest, float(sums.max()))
    raised = largest >= -np.log(level)
    said = (
        f"Alarm: what the {count} closed tasks teach predicts later ones better than the prior in "
        f"use, version {version}, by a factor of e^{largest:.1f}; a prior that is right gives a "
        f"false alarm with probability at most {level:g}. Refit it."
        if raised
        else f"No alarm: the {count} closed tasks do not contradict the prior, version {version}."
    )
    return LiveAlarm(count, largest, level, said)


def _parts(count: int) -> Iterator[tuple[int, int]]:
    """Where parts of the tasks begin and end: each is as long as all before it. The same whenever
    one looks, as evidence could be had by choosing otherwise.
    """
    start = LEAST
    while start < count:
        yield start, min(2 * start, count)
        start *= 2


def _same_family(prior: LivePrior) -> str:
    if not has_part(prior, "models"):
        raise Refused(f"there is no alarm for a {type(prior).__name__}: logs do not teach one")
    new = ":exchangeable" if hasattr(prior, "for_arms") else ""
    return f"{family_for(prior, 'alarm').name}{new}"


def _array(names: Sequence[str | None]) -> pa.Array:
    import pyarrow as pa

    return pa.array(names, pa.string())


def _log_marginals(
    decider: Decider, version: int, prior: LivePrior, tasks: list[Task]
) -> FloatArray:
    """Log likelihood of each task's rewards, ``(task,)``, under a prior, whose arms may stand in
    another order.
    """
    fold = decider.operations.fold(version)
    out = np.zeros(len(tasks))
    widths = np.array([len(task.arms) for task in tasks])
    for arms in np.unique(widths).tolist():
        places = np.flatnonzero(widths == arms)
        held = for_arms(prior, arms)
        mine, theirs = tasks[places[0]].arms, getattr(held, "names", None)
        order = [mine.index(name) for name in theirs or mine]
        states = [fold.ordered(tasks[place].state, order) for place in places]
        statistics = fold.statistics(states, theirs)
        out[places] = family_for(held, "alarm").log_marginal(held, statistics)
    return out
