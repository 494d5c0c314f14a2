"""Where a task stands: what is believed of each arm, what stopping now would cost, and whether to.

The leader is the arm with the largest posterior mean. Probabilities of being best and the loss of
the leader come from one set of posterior draws, the losses of others from theirs and the means, so
that these numbers cannot contradict each other: probabilities sum to 1, and losses differ as means
do.

With posterior draws ``theta`` of the arms' means ``m``, and the leader l,

    loss_l = E[max_b theta_b - theta_l],   loss_a = loss_l + m_l - m_a,
    stop if loss_l <= tolerance.

A posterior does not care how often it is looked at, so the rule may be checked after every pull.
How often it stops at an arm that is not the best is another question, and depends on the tasks that
there are: :func:`stopping` plays tasks of the learned prior and counts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.estimates import Estimate, mean_estimate, percent
from priorwise.core.frames import Table, Tabular
from priorwise.core.protocols import (
    Belief,
    Environment,
    MeanBelief,
    QuantileBelief,
    ValuedEnvironment,
)
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.figures.style import Picture
from priorwise.serve import types
from priorwise.serve.choosing import Chooser, LivePrior
from priorwise.serve.rows import Task

DRAWS: Final = 8192
TASKS: Final = 256
"""Tasks of the prior from which the rate of false stops is counted."""
LOOKS: Final = 100
"""Looks at each of them: after every pull, or evenly spread over a longer task."""
SCREENS: Final = (64, 256, 1024)
"""Posterior draws that rule out a stop at most looks; the others get all ``DRAWS``."""
SCREEN_ERRORS: Final = 4.0
"""Standard errors by which a loss must exceed the tolerance to be ruled out by few draws."""
MOST_VALUES: Final = 2**23
"""Posterior draws of arms that are held in memory at once."""
SHARE: Final = 0.05
"""Of the spread between arms that the prior expects: the loss at which advice says to stop, unless
told.
"""


@final
@dataclass(frozen=True, eq=False)
class Standing:
    """Loss of each arm, how likely it is the best, and what is left to find, from draws."""

    loss: FloatArray  # (arm,)
    best: FloatArray  # (arm,)
    leader: int
    remaining: float  # 95 % quantile of what the best arm has beyond the leader

    @classmethod
    def of(cls, draws: FloatArray, mean: FloatArray) -> Standing:
        """Take posterior draws ``(draw, arm)`` of the arms' means, and what they are on average."""
        top = draws.max(axis=1)
        tied = draws >= top[:, None]
        best = (tied / tied.sum(axis=1, keepdims=True)).mean(axis=0)
        leader = int(np.argmax(mean))
        ahead = top - draws[:, leader]
        loss = ahead.mean() + (mean[leader] - mean)
        return cls(loss, best, leader, float(np.quantile(ahead, 0.95)))


@final
@dataclass(frozen=True)
class Stopping:
    """How the rule "stop once the expected loss is at most ``tolerance``" does on tasks of the
    prior, looked at after every pull.
    """

    tolerance: float
    stopped: float  # share of tasks that it stops before the horizon
    false_stops: Estimate  # share of all tasks that it stops at an arm that is not the best
    lost: Estimate  # mean of what the best arm has beyond the one it stops at, over stopped tasks
    pulls: float  # mean number of pulls when it stops
    every_pull: bool  # whether it looked after every pull, and not only after a hundred of them

    def to_json(self) -> str:
        """Return the numbers as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Stopping:
        """Read them."""
        content = json.loads(text)
        told = {name: Estimate(**content[name]) for name in ("false_stops", "lost")}
        return cls(**content | told)


@final
@dataclass(frozen=True, eq=False)
class Summary(Tabular):
    """Where a task stands.

    ``mean``, ``low`` and ``high`` are the posterior means of the arms' rewards and 95 % intervals,
    ``prob_best`` how likely each is the best, ``expected_loss`` what is lost per pull on average by
    playing that arm from now on; ``value_remaining`` is what the best arm has beyond the leader
    with 95 % certainty at most. ``advice`` says whether to stop.
    """

    task: str
    arms: tuple[str, ...]
    pulls: FloatArray  # rewards known
    decided: int
    horizon: int
    closed: bool
    version: int
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    prob_best: FloatArray
    losses: FloatArray
    leader: str
    expected_loss: float
    value_remaining: float
    stop: bool
    advice: str
    stopping: Stopping | None  # None where values depend on a context

    @property
    def false_stop_rate(self) -> Estimate | None:
        """How often the advice stops at an arm that is not the best, on tasks of the prior."""
        return None if self.stopping is None else self.stopping.false_stops

    def answer(self) -> types.Summary:
        """Return what a service answers."""
        rule, arms = self.stopping, zip(*self.table().values(), strict=True)
        stopping = rule and types.Stopping(
            rule.tolerance, rule.stopped, rule.false_stops.mean, rule.false_stops.std_error,
            rule.lost.mean, rule.lost.std_error, rule.pulls, rule.every_pull,
        )  # fmt: skip
        return types.Summary(
            self.task, [types.Arm(*row) for row in arms], self.decided, self.horizon, self.closed,
            self.version, self.leader, self.expected_loss, self.value_remaining, self.stop,
            self.advice, stopping,
        )  # fmt: skip

    def table(self) -> Table:
        """One row per arm: ``arm, pulls, mean, low, high, prob_best, expected_loss``."""
        return {
            "arm": list(self.arms),
            "pulls": self.pulls.tolist(),
            "mean": self.mean.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "prob_best": self.prob_best.tolist(),
            "expected_loss": self.losses.tolist(),
        }

    def figure(self, title: str = "") -> Picture:
        """Draw means with their intervals, and how likely each arm is the best."""
        from priorwise.figures.standing import standing_figure

        named = title or f"Task {validation.printable(self.task)}: {self.decided:,} pulls"
        return standing_figure(
            self.arms, self.mean, self.low, self.high, self.prob_best, self.leader, named,
            self.advice,
        )  # fmt: skip

    def __str__(self) -> str:
        """Say it in lines of text."""
        lines = [
            f"task {validation.printable(self.task)}: {self.decided:,} of {self.horizon:,} pulls"
        ]
        width = max(len(arm) for arm in self.arms)
        for place, arm in enumerate(self.arms):
            lines.append(
                f"  {arm:{width}}  {self.mean[place]:.4g} ({self.low[place]:.4g} to "
                f"{self.high[place]:.4g}), best with {percent(self.prob_best[place])}, "
                f"{self.pulls[place]:g} rewards"
            )
        return "\n".join([*lines, self.advice])


def summarised(
    chooser: Chooser,
    task: Task,
    seed: int,
    stopping: Stopping | None,
    context: list[list[float]] | None = None,
) -> Summary:
    """Sum up a task from its statistics."""
    state = task.state
    arms, belief = len(task.arms), chooser.belief(state)
    step = min(task.steps + 1, chooser.horizon)
    signal = None if context is None else np.asarray(context, dtype=np.float64)[None]
    seen = Seen(step, chooser.horizon, arms, signal)
    # as at the next decision, but from a stream that none is made from
    rng = Streams(seed, np.array([task.key], dtype=np.uint64)).at(Purpose.WORLD, task.steps + 1)
    draws = belief.sample(rng, DRAWS, seen)[0]
    mean = belief.mean(seen)[0] if isinstance(belief, MeanBelief) else draws.mean(axis=0)
    stand = Standing.of(draws, mean)
    if isinstance(belief, QuantileBelief):
        low, high = (belief.quantile(level, seen)[0] for level in (0.025, 0.975))
    else:
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    known = chooser.fold.pulls(state)
    pulls = np.full(arms, np.nan) if known is None else np.array(known)
    loss = float(stand.loss[stand.leader])
    stop = stopping is not None and loss <= stopping.tolerance
    made = Summary(
        task.name, task.arms, pulls, task.steps, chooser.horizon, task.closed is not None,
        task.version, mean, low, high, stand.best, stand.loss, task.arms[stand.leader], loss,
        stand.remaining, stop, "", stopping,
    )  # fmt: skip
    return replace(made, advice=_advice(made))


def _advice(summary: Summary) -> str:
    place = summary.arms.index(summary.leader)
    leader = validation.printable(summary.leader)
    known = (
        f"{leader} leads: best with {percent(summary.prob_best[place])}, and playing it from now "
        f"on loses {summary.expected_loss:.3g} per pull on average"
    )
    stopping = summary.stopping
    if summary.closed:
        return f"Closed: {known}."
    if stopping is None:
        return f"{known}, in this context."
    rate = stopping.false_stops
    how = "after every pull" if stopping.every_pull else f"{LOOKS} times"
    often = (
        f"looked at {how}, this rule stops {percent(stopping.stopped, 0)} of the tasks that the "
        f"prior expects, and {percent(rate.mean)} ± {percent(rate.std_error)} at an arm that is "
        f"not the best; stopped tasks lose {stopping.lost.mean:.2g} per pull on average"
    )
    if summary.stop:
        return f"Stop: {known}, at most the tolerance of {stopping.tolerance:.3g}; {often}."
    left = max(summary.horizon - summary.decided, 0)
    return (
        f"Go on: {known}, more than the tolerance of {stopping.tolerance:.3g}, and there may be "
        f"{summary.value_remaining:.3g} per pull left to find, with {left:,} pulls to go; {often}."
    )


def tolerance_of(prior: LivePrior, seed: int) -> float:
    """Return a twentieth of what the best arm has beyond an average one, by the prior."""
    rng = Streams(seed, np.arange(TASKS, dtype=np.uint64)).at(Purpose.ENVIRONMENT, 0)
    values = _values(prior.sample(rng, TASKS))
    return float(SHARE * (values.max(axis=1) - values.mean(axis=1)).mean())


def stopping_of(chooser: Chooser, seed: int, tolerance: float) -> Stopping:
    """Play tasks of the prior with the policy, and count how often the rule stops them.

    The rule is that of a summary: the same leader, and a loss from as many posterior draws. A look
    whose loss exceeds the tolerance by many standard errors with few draws needs no more of them.
    """
    from priorwise.simulate.run import simulate

    prior, horizon = chooser.prior, chooser.horizon
    run = simulate(
        prior, chooser.policy, horizon=horizon, tasks=TASKS, seed=seed, keep=True, progress=False
    )
    kind, streams = chooser.fold.kind, Streams(seed, np.arange(TASKS, dtype=np.uint64))
    values = _values(prior.sample(streams.at(Purpose.ENVIRONMENT, 0), TASKS))
    apart = values.max(axis=1)[:, None] - values
    looks = np.unique(np.linspace(1, horizon, min(horizon, LOOKS)).round().astype(np.int64))
    stop_at, chosen = np.full(TASKS, horizon + 1), np.zeros(TASKS, dtype=np.int64)
    for look in looks[looks < horizon].tolist():
        running = np.flatnonzero(stop_at > horizon)
        if not running.size:
            break
        statistics = kind.of(run, steps=look, **kind.known(prior))
        rng = streams.at(Purpose.WORLD, look)
        seen = Seen(look + 1, horizon, prior.arms)
        near = running
        for draws in (*SCREENS, DRAWS):
            size = max(1, MOST_VALUES // (draws * prior.arms))
            passed = []
            for first in range(0, len(near), size):
                tasks = near[first : first + size]
                belief = prior.belief_given(statistics.take(tasks))
                leader, loss, error = _leads(belief, draws, seen, rng.take(tasks))
                slack = SCREEN_ERRORS * error if draws < DRAWS else 0.0
                low = loss - slack <= tolerance
                passed.append(tasks[low])
                chosen[tasks] = leader
            near = np.concatenate([*passed, near[:0]])
        stop_at[near] = look
    stopped = stop_at <= horizon
    wrong = int((stopped & (apart[np.arange(TASKS), chosen] > 0.0)).sum())
    share = (wrong + 1.0) / (TASKS + 2.0)  # allows for those that did not happen by chance
    rate = Estimate(wrong / TASKS, float(np.sqrt(share * (1.0 - share) / TASKS)))
    lost = apart[np.arange(TASKS), chosen]
    some = lost[stopped] if stopped.any() else np.zeros(1)
    return Stopping(
        tolerance,
        float(stopped.mean()),
        rate,
        mean_estimate(some),
        float(stop_at[stopped].mean()) if stopped.any() else float(horizon),
        len(looks) == horizon,
    )


def _leads(
    belief: Belief, draws: int, seen: Seen, rng: Stream
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return each task's leader, the expected loss of playing it, and the error of that loss."""
    values = belief.sample(rng, draws, seen)
    mean = belief.mean(seen) if isinstance(belief, MeanBelief) else values.mean(axis=1)
    leader = np.argmax(mean, axis=1)
    ahead = values.max(axis=2) - np.take_along_axis(values, leader[:, None, None], axis=2)[..., 0]
    return leader, ahead.mean(axis=1), ahead.std(axis=1) / np.sqrt(draws)


def _values(environment: Environment) -> FloatArray:
    assert isinstance(environment, ValuedEnvironment)
    return environment.values(None)
