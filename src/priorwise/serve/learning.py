"""Learning goes on: a prior is fitted again on closed tasks, proposed with a backtest, and accepted
by somebody or by a rule; an alarm says when recent tasks contradict the one in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, final

import numpy as np

from priorwise.core import validation
from priorwise.core.estimates import Estimate
from priorwise.core.family import ask, for_arms
from priorwise.serve.choosing import has_features
from priorwise.serve.errors import Refused

OnSchedule = Literal["ask", "better"]
Accept = Literal["ask", "better", "always"]

LEAST: Final = 20
"""Closed tasks that a fit needs."""
BLOCKS: Final = 8
"""Parts of the closed tasks, each judged by what was learned from those before it."""


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
    fit: Any  # LogFit
    backtest: Any  # Backtest, None where it could not be made
    gain: Estimate | None  # reward of a task, of the proposed prior over that in use
    why_not: str  # why there is no backtest; "" where there is one
    accepted: bool

    @property
    def better(self) -> bool:
        """Whether its backtest earned more than the prior in use, by two standard errors."""
        return self.gain is not None and self.gain.mean > 2.0 * self.gain.std_error

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


def refit(decider: Any, family: str = "auto", *, seed: int, accept: Accept = "ask") -> Proposal:
    """Fit the prior on the closed tasks of a decider's store, and propose it with its backtest."""
    import pyarrow as pa

    from priorwise.logs.fitting import fit_prior

    validation.one_of("accept", accept, Accept)
    log, contextual = closed_log(decider)
    tasks = len(pa.compute.unique(log["task"])) if log.num_rows else 0
    if tasks < LEAST:
        raise Refused(f"a fit needs {LEAST} closed tasks with rewards, and there are {tasks}")
    columns = _columns(log, contextual)
    fit = fit_prior(log, family, seed=seed, **columns)
    found, gain, why_not = _backtested(decider, log, fit, seed, columns)
    story = {
        "fitted_on": {"tasks": tasks, "rows": log.num_rows, **_dates(log)},
        "chosen": fit.chosen,
        "fit": str(fit),
        "backtest": None if found is None else str(found),
        "gain": None if gain is None else [gain.mean, gain.std_error],
        "no_backtest_because": why_not,
    }
    version = decider.propose(fit.prior, story)
    made = Proposal(version, fit, found, gain, why_not, False)
    if accept == "always" or (accept == "better" and made.better):
        decider.accept(version)
        return Proposal(version, fit, found, gain, why_not, True)
    return made


def closed_log(decider: Any) -> tuple[Any, int]:
    """The log of closed tasks as one Arrow table, and how many features it has."""
    import pyarrow as pa
    import pyarrow.compute

    dim = int(decider.prior().dim) if has_features(decider.prior()) else 0
    return pa.concat_tables(decider.tables(closed=True)), dim


def _columns(log: Any, contextual: int) -> dict[str, Any]:
    named: dict[str, Any] = {"task": "task", "action": "action", "reward": "reward"}
    if contextual:
        return named | {"context": [f"x{k}" for k in range(contextual)]}
    return named | {"pulls": "pulls", "squares": "squares"}


def _dates(log: Any) -> dict[str, str]:
    import pyarrow.compute as pc

    ends = pc.min_max(log["time"]).as_py()
    return {name: ends[name].isoformat() for name in ("min", "max")}


def _backtested(
    decider: Any, log: Any, fit: Any, seed: int, columns: dict[str, Any]
) -> tuple[Any, Estimate | None, str]:
    """Replay the later half of the tasks with what the earlier half taught and with the prior in
    use.
    """
    from priorwise.advise import backtest
    from priorwise.core.refusals import refused

    operations, now = decider.operations, decider.prior()
    policies = {"proposed": operations.policy, "in use": (operations.policy, now)}
    horizon = _typical(log, operations.horizon)
    try:
        found = backtest(
            log, policies, horizon=horizon, family=fit.chosen, seed=seed, progress=False, **columns
        )
        return found, found.difference("proposed", "in use"), ""
    except (ArithmeticError, TypeError, ValueError) as error:
        if not refused(error):
            raise
        return None, None, str(error)


def _typical(log: Any, horizon: int) -> int:
    """Pulls of a typical task, at most the horizon: recorded rewards have to last."""
    import pyarrow.compute as pc

    pulls = log.group_by("task").aggregate([("pulls", "sum")])["pulls_sum"]
    middle = pc.quantile(pulls, 0.5)[0].as_py()
    return max(1, min(horizon, int(middle)))


@final
@dataclass(frozen=True)
class LiveAlarm:
    """Whether recent tasks contradict the prior.

    Closed tasks are cut into parts in the order of their opening. Each part is judged by the
    likelihood ratio of what was learned from the parts before it, against the prior in use. If
    tasks follow that prior, the ratio of all parts so far is a martingale with mean 1, so that it
    ever exceeds ``1 / level`` with probability at most ``level``, however often one looks.
    """

    tasks: int
    log_evidence: float  # largest so far, natural logarithm
    level: float
    said: str

    @property
    def raised(self) -> bool:
        """Whether the alarm is on."""
        return self.log_evidence >= -np.log(self.level)

    @property
    def p_value(self) -> float:
        """A p-value that holds at any time."""
        return float(min(1.0, np.exp(-max(self.log_evidence, 0.0))))

    def __str__(self) -> str:
        """Say it."""
        return self.said


def alarm_of(decider: Any, *, seed: int, level: float = 0.01) -> LiveAlarm:
    """Judge the closed tasks of the version in use."""
    from priorwise.logs.fitting import fit_prior

    validation.share("level", level)
    log, contextual = closed_log(decider)
    version = decider.version
    rows = [
        (task, decisions, events)
        for task, decisions, events in decider.store.rows()
        if task.closed is not None and task.version == version and task.events
    ]
    count = len(rows)
    if contextual or count < 2 * LEAST:
        need = "tasks with contexts have no alarm" if contextual else f"{count} closed tasks so far"
        return LiveAlarm(count, 0.0, level, f"No alarm: {need}; {2 * LEAST} are needed.")
    import pyarrow.compute as pc

    cuts = np.unique(np.linspace(LEAST, count, min(BLOCKS, count // LEAST)).astype(int))
    ours = _log_marginals(decider, version, decider.prior(version), [row[0] for row in rows])
    names = [row[0].name for row in rows]
    total = largest = 0.0
    family = None
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        before = log.filter(pc.is_in(log["task"], value_set=_array(names[:start])))
        columns = _columns(log, 0)
        fit = fit_prior(before, family or _same_family(decider), seed=seed, **columns)
        family = fit.chosen
        part = [row[0] for row in rows[start:end]]
        theirs = _log_marginals(decider, version, _unnamed(fit), part)
        total += float(np.sum(theirs - ours[start:end]))
        largest = max(largest, total)
    raised = largest >= -np.log(level)
    said = (
        f"Alarm: what the {count} closed tasks teach predicts later ones better than the prior in "
        f"use, version {version}, by a factor of e^{largest:.1f}; a prior that is right gives a "
        f"false alarm with probability at most {level:g}. Refit it."
        if raised
        else f"No alarm: the {count} closed tasks do not contradict the prior, version {version}."
    )
    return LiveAlarm(count, largest, level, said)


def _same_family(decider: Any) -> str:
    from priorwise.core.family import family_of

    family = family_of(decider.prior())
    if family is None:
        raise Refused("the prior's family is not registered")
    new = ":exchangeable" if hasattr(decider.prior(), "for_arms") else ""
    return f"{family.name}{new}"


def _unnamed(fit: Any) -> Callable[[int], Any]:
    return lambda arms: for_arms(fit.fit.prior, arms)


def _array(names: list[str]) -> Any:
    import pyarrow as pa

    return pa.array(names, pa.string())


def _log_marginals(decider: Any, version: int, prior: Any, tasks: list[Any]) -> Any:
    """Log likelihood of each task's rewards, ``(task,)``, under a prior or what makes one."""
    fold = decider.operations.fold(version)
    out = np.zeros(len(tasks))
    widths = np.array([len(task.arms) for task in tasks])
    for arms in np.unique(widths).tolist():
        places = np.flatnonzero(widths == arms)
        held = prior(arms) if callable(prior) else for_arms(prior, arms)
        names = getattr(held, "names", None)
        statistics = fold.statistics([tasks[place].state for place in places], names)
        out[places] = ask(held, "log_marginal", "alarm")(held, statistics)
    return out


def stamp(time: float) -> str:
    """Write a time for people."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
