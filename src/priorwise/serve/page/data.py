"""The numbers of the page: each picture with the tables that it is drawn from.

Trails of tasks are kept and extended, so that looking again costs only what is new.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, NamedTuple, TypeVar, final

import numpy as np
from markupsafe import Markup
from scipy.special import ndtr

from priorwise.advise.choices import Ratio, Uniform
from priorwise.core.errors import printable
from priorwise.core.estimates import percent, plus_minus
from priorwise.core.frames import Table
from priorwise.core.protocols import MeanBelief, QuantileBelief, for_arms
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.figures import live
from priorwise.figures.fit import fit_figure, prior_table
from priorwise.figures.predictive import predictive_figure
from priorwise.figures.style import Picture
from priorwise.logs.predictive import PredictiveCheck, predictive_check
from priorwise.serve.ahead import Newest
from priorwise.serve.choosing import LivePrior, has_features, names_of
from priorwise.serve.operations import Operations
from priorwise.serve.page import views
from priorwise.serve.page.session import Service
from priorwise.serve.page.trails import Rewards, Trail, judged, rewards_of, uniform_estimate
from priorwise.serve.rows import Decided, Event, Listed, Size, Task, Version, copied
from priorwise.serve.stores.store import Session
from priorwise.serve.summary import Summary, summarised

K = TypeVar("K")
V = TypeVar("V")

MOST_TASKS: Final = 2_000
"""Tasks whose rewards are summed up, the newest ones."""
MOST_DECISIONS: Final = 20_000
"""The same for decisions."""
BUDGET: Final = 2.0
"""Seconds that one look spends on tasks that are new to it; the rest is read at the next one."""
FRESH: Final = 2.0
"""Seconds for which numbers over all tasks are not looked up again."""
ALARM_EVERY: Final = 60.0
"""Seconds between fits that the alarm is made from."""
CHECKED: Final = 1_000
"""Closed tasks that the predictive check reads, the newest ones."""
FEWEST: Final = 10
"""Closed tasks that it needs."""
DRAWS: Final = 4_000
POINTS: Final = 81
"""Points of a density."""
MOMENTS: Final = 120
"""Moments at which pulls are counted for a picture."""
CHECK: Final = "Do closed tasks look like the prior's?"
WAITING: Final = (
    "How often advice to stop would be wrong is being worked out by playing tasks of this prior. "
    "That takes some seconds, once for each prior."
)
PAGE: Final = 20
"""Tasks in one list."""
SCANNED: Final = 20_000
"""Tasks that one search looks at, and among which live ones are counted by prior."""
VIEWS: Final = 16
"""Tasks whose numbers are kept."""
CACHED: Final = 256
"""Pictures that are kept."""


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """A picture with its tables, by the name that they are downloaded under."""

    title: str
    caption: str
    tables: Mapping[str, Table]
    draw: Callable[[float], Picture]


class Log(NamedTuple):
    """A task with all that happened in it."""

    task: Task
    decisions: list[Decided]
    events: list[Event]


class Alarm(NamedTuple):
    """Something that somebody should look at, or that all is well."""

    raised: bool
    about: str
    text: str


@final
@dataclass(frozen=True, eq=False)
class Overview:
    """Numbers over all tasks."""

    number: int  # of the look, for pictures
    open: int
    closed: int
    decisions: int
    tasks_read: int
    decisions_read: int
    batched: int
    uniform: Uniform
    chosen: Ratio
    rewarded: Ratio
    health: Table
    alarms: list[Alarm]
    shown: dict[str, Shown]

    @property
    def at(self) -> str:
        """Return what tells two looks apart."""
        return f"{self.number:x}"

    @property
    def words(self) -> list[str]:
        """Say what uniform allocation would have earned."""
        return uniform_words(self.uniform)

    @property
    def health_rows(self) -> list[tuple[str, str]]:
        """Write how rewards come in."""
        return [
            (what, views.span(value) if unit == "seconds" else f"{value:,.0f}")
            for what, value, unit in zip(*self.health.values(), strict=True)
        ]


@final
@dataclass(frozen=True, eq=False)
class TaskView:
    """One task."""

    task: Task
    key: str  # of what its pictures show
    horizon: int
    outstanding: int
    rewards: int
    summary: Summary | None  # None where values depend on a context that nobody has shown yet
    latest: Table
    shown: dict[str, Shown]

    @property
    def arm_rows(self) -> list[tuple[object, ...]]:
        """Write what is believed of each arm."""
        assert self.summary is not None
        return [
            (
                views.name(arm), views.number(pulls, 6), views.number(mean),
                f"{views.number(low)} to {views.number(high)}", percent(float(best)),
                views.number(loss),
            )
            for arm, pulls, mean, low, high, best, loss in zip(
                *self.summary.table().values(), strict=True
            )
        ]  # fmt: skip

    @property
    def latest_rows(self) -> list[tuple[object, ...]]:
        """Write the last decisions."""
        return [
            (
                f"{step:,}", views.moment(when), views.name(arm, 40), views.number(chance),
                "outstanding" if delay is None else views.number(reward) or "left out",
                "" if delay is None else views.span(delay),
            )
            for step, when, arm, chance, reward, delay in zip(*self.latest.values(), strict=True)
        ]  # fmt: skip


@final
@dataclass(frozen=True, eq=False)
class PriorView:
    """A version of the prior, among all of them."""

    version: Version
    versions: list[Version]
    current: int
    running: dict[int, int]  # open tasks by version
    key: str
    check: PredictiveCheck | None
    verdict: str  # of the check, or why there is none
    shown: dict[str, Shown]

    def status(self, version: Version) -> str:
        """Say what a version is now."""
        return "in use for new tasks" if version.number == self.current else version.status

    @property
    def story_rows(self) -> list[tuple[str, Markup]]:
        """Write what it was fitted on."""
        text = Markup('<span class="plain">{}</span>')
        return [(key, text.format(views.plain(value))) for key, value in self.version.story.items()]


@dataclass(eq=False)
class _Kept:
    """A trail, and where its task stood."""

    trail: Trail
    rewards: Rewards
    at: tuple[int, int]


@final
class Aside(Generic[K, V]):
    """Results that take a while, each worked out once, in a thread of its own."""

    def __init__(self, name: str, wait: float) -> None:
        """Wait so many seconds for a result that is not there yet."""
        self._name, self._wait = name, wait
        self._threads: dict[K, threading.Thread] = {}
        self._results: dict[K, V] = {}

    def get(self, key: K, work: Callable[[], V], failed: Callable[[str], V]) -> V | None:
        """Return a result, None where it is being worked out; an error becomes one, too."""

        def run() -> None:
            try:
                self._results[key] = work()
            except Exception as error:  # it must not end the page, and is shown on it
                self._results[key] = failed(printable(f"{type(error).__name__}: {error}"))

        if key not in self._threads:
            self._threads[key] = threading.Thread(target=run, name=self._name, daemon=True)
            self._threads[key].start()
        self._threads[key].join(self._wait)
        return self._results.get(key)


@final
class Watch:
    """Reads a service for the page."""

    def __init__(self, service: Service, fresh: float = FRESH, budget: float = BUDGET) -> None:
        """Nothing was read yet."""
        self.service, self.decider = service, service.decider
        self.fresh, self.budget = fresh, budget
        self._lock = threading.RLock()
        self._trails: dict[str, _Kept] = {}
        self._chosen, self._rewarded = Ratio(), Ratio()  # all decisions, and those rewarded
        self._overview: tuple[float, Overview] | None = None
        self._size: tuple[float, Size] | None = None  # until when it holds
        self._views = Newest[tuple[str, str], TaskView](VIEWS)
        self._pictures = Newest[tuple[str, ...], bytes](CACHED)
        self._checks = Newest[tuple[int, int], PredictiveCheck | str](CACHED)
        self._alarms = Aside[tuple[int, int], Alarm]("priorwise-alarm", 0.2)
        self._alarm: tuple[tuple[int, int], float, Alarm] | None = None
        self._advice = Aside[tuple[int, int], str]("priorwise-advice", 0.5)

    # -- all tasks

    def overview(self) -> Overview:
        """Sum up all tasks, at most every few seconds."""
        with self._lock:
            now = time.monotonic()
            if self._overview is None or now - self._overview[0] > self.fresh:
                before = None if self._overview is None else self._overview[1]
                self._overview = now, self._summed(before)
            return self._overview[1]

    def _summed(self, before: Overview | None) -> Overview:
        decider = self.decider
        names: list[str] = []
        read, began = 0, time.monotonic()
        for row in decider.store.tasks(most=MOST_TASKS):
            read += row.steps
            if names and read > MOST_DECISIONS:
                break
            if row.name in self._trails or time.monotonic() - began < self.budget:
                names.append(row.name)
                self._extend(row)
        self._trails = {name: self._trails[name] for name in names}
        pairs = [(kept.trail, kept.rewards) for kept in self._trails.values()]
        size = self._sized()
        uniform = uniform_estimate(pairs)
        chosen, rewarded = self._chosen, self._rewarded
        health = health_of(pairs, decider.clock(), self.service.counters())
        state = tuple((name, *kept.at) for name, kept in self._trails.items()), size
        number = hash(state) & 0xFFFFFFFF
        same = before is not None and before.number == number
        alarms = [
            self._prior_alarm(size.closed),
            Alarm(chosen.doubtful, "sample ratio", chosen.verdict()),
            Alarm(rewarded.doubtful, "rewards by arm", rewarded.verdict("rewarded")),
        ]
        return Overview(
            number, size.open, size.closed, size.decisions, len(names),
            sum(len(trail.rows) for trail, _ in pairs), sum(trail.batched for trail, _ in pairs),
            uniform, chosen, rewarded, health, alarms,
            before.shown if same and before else overview_shown(uniform, chosen, rewarded),
        )  # fmt: skip

    def _sized(self) -> Size:
        """Count what the store holds; the longer that takes, the more seldom."""
        now = time.monotonic()
        if self._size is None or now > self._size[0]:
            size = self.decider.store.size()
            took = time.monotonic() - now
            self._size = now + took + 50.0 * took, size
        return self._size[1]

    def _extend(self, row: Listed) -> None:
        kept = self._trails.get(row.name)
        if kept is not None and kept.at == (row.steps, row.events):
            return
        log = self._log(row.name)
        assert log is not None
        operations = self.decider.operations
        trail = Trail(row.name) if kept is None else kept.trail
        known = len(trail.rows)
        trail.extend(operations, log.task, log.decisions, log.events)
        rewards = rewards_of(trail, log.events)
        came = rewards.came.copy()
        if kept is not None:
            came[:known] &= ~kept.rewards.came
        shared = operations.arms_of(self.decider.version) is not None
        new = np.arange(len(came)) >= known
        self._chosen = judged(self._chosen, trail, new, shared=shared)
        if operations.missing == "leave out":  # with a default, which rewards come depends on them
            self._rewarded = judged(self._rewarded, trail, came, shared=shared)
        self._trails[row.name] = _Kept(trail, rewards, (log.task.steps, log.task.events))

    def _prior_alarm(self, closed: int) -> Alarm:
        """Say whether recent tasks contradict the prior; fits are made aside."""
        key, now = (self.decider.version, closed), time.monotonic()
        if self._alarm is None:
            waiting = "Closed tasks are being compared with the prior."
            self._alarm = key, now, Alarm(False, "prior", waiting)
        elif self._alarm[0] != key and now - self._alarm[1] > ALARM_EVERY:
            self._alarm = key, now, self._alarm[2]
        key, since, last = self._alarm

        def work() -> Alarm:
            alarm = self.decider.alarm()
            return Alarm(alarm.raised, "prior", str(alarm))

        alarm = self._alarms.get(
            key,
            work,
            lambda said: Alarm(False, "prior", f"Closed tasks cannot be compared: {said}"),
        )
        if alarm is not None:
            self._alarm = key, since, alarm
        return alarm or last

    def found(
        self, words: str, closed: bool | None, after: str | None
    ) -> tuple[list[tuple[Listed, tuple[str, float]]], str | None]:
        """Search tasks by a part of their names, the newest first; and after which more come."""
        wanted = words.casefold()
        rows: list[Listed] = []
        more = None
        store, last, scanned = self.decider.store, after, 0
        while len(rows) <= PAGE and scanned < SCANNED:
            block = store.tasks(closed=closed, most=4 * PAGE, after=last)
            scanned += len(block)
            rows += [each for each in block if wanted in each.name.casefold()]
            if len(block) < 4 * PAGE:
                break
            last = block[-1].name
        else:
            more = last
        if len(rows) > PAGE:
            rows = rows[:PAGE]
            more = rows[-1].name
        return self._leading(rows), more

    def _leading(self, rows: list[Listed]) -> list[tuple[Listed, tuple[str, float]]]:
        """Return the arm with the largest posterior mean of each task, and that mean."""
        operations = self.decider.operations
        groups: dict[tuple[int, int], list[Task]] = {}
        for task in self._tasks([row.name for row in rows]):
            groups.setdefault((task.version, len(task.arms)), []).append(task)
        leaders: dict[str, tuple[str, float]] = {}
        for (version, width), group in groups.items():
            chooser = operations.chooser(version, width)
            if has_features(chooser.prior):
                continue
            belief = chooser.belief(*(task.state for task in group))
            if not isinstance(belief, MeanBelief):
                continue
            means = belief.mean(Seen(1, operations.horizon, width))
            for task, mean in zip(group, means, strict=True):
                best = int(np.argmax(mean))
                leaders[task.name] = (task.arms[best], float(mean[best]))
        return [(row, leaders.get(row.name, ("", float("nan")))) for row in rows]

    def _tasks(self, names: list[str]) -> list[Task]:
        """Return tasks as they stand."""

        def read(session: Session) -> list[Task]:
            rows = (session.task(name) for name in names)
            return [copied(row) for row in rows if row is not None]

        return self.decider.store.look(read)

    def _log(self, name: str) -> Log | None:
        """Return a task with its log."""

        def read(session: Session) -> Log | None:
            task = session.task(name)
            if task is None:
                return None
            return Log(copied(task), session.decisions(name), session.events(name))

        return self.decider.store.look(read)

    # -- one task

    def task(self, name: str) -> TaskView | None:
        """Look at one task."""
        tasks = self._tasks([name])
        log = self._log(name) if tasks else None
        if log is None:
            return None
        key = (name, _key(tasks[0]))
        if self._advised(log.task) == WAITING:  # which is not kept
            return self._viewed(log)
        return self._views.made(key, lambda: self._viewed(log))

    def _viewed(self, log: Log) -> TaskView:
        operations = self.decider.operations
        task = log.task
        settled = {event.step for event in log.events if event.step is not None}
        single = [row for row in log.decisions if row.counts is None]
        outstanding = sum(row.step not in settled for row in single)
        context = next((row.context for row in reversed(single) if row.context is not None), None)
        summary = self._summary(task, context)
        rewards = sum(event.kind == "reward" for event in log.events)
        shown: dict[str, Shown] = {}
        if summary is not None:
            shown |= task_shown(summary.table(), densities(operations, task, context))
        played = allocation(task, log.decisions, log.events)
        if played["step"]:
            shown["allocation"] = Shown(
                "Allocation over time", "How many pulls each arm got, as the task went on",
                {"allocation": played}, lambda width: live.allocation_figure(played, width),
            )  # fmt: skip
        return TaskView(
            task, _key(task), operations.horizon, outstanding, rewards, summary,
            latest(task, log.decisions, log.events), shown,
        )  # fmt: skip

    def _summary(self, task: Task, context: list[list[float]] | None) -> Summary | None:
        """Say where a task stands; None where values depend on a context that is not known."""
        chooser = self.decider.operations.chooser(task.version, len(task.arms))
        if has_features(chooser.prior):
            return None if context is None else self.decider.summary(task.name, context)
        advice = self._advised(task)
        if not advice:
            return self.decider.summary(task.name)
        return replace(summarised(chooser, task, self.decider.operations.seed, None), advice=advice)

    def _advised(self, task: Task) -> str:
        """Return what stands in place of advice to stop, "" where there is advice. The first one
        under a prior takes seconds.
        """
        if has_features(self.decider.prior(task.version)):
            return ""

        def work() -> str:
            self.decider.summary(task.name)
            return ""

        text = self._advice.get(
            (task.version, len(task.arms)), work,
            lambda said: f"There is no advice to stop under this prior ({said}).",
        )  # fmt: skip
        return WAITING if text is None else text

    # -- the prior

    def prior(self, wanted: int | None) -> PriorView | None:
        """Look at a version of the prior, by default the one that new tasks start with."""
        versions, current = self.decider.versions(), self.decider.version
        number = current if wanted is None else wanted
        mine = next((row for row in versions if row.number == number), None)
        if mine is None:
            return None
        prior = self.decider.prior(number)
        rows = self.decider.store.tasks(most=SCANNED)
        running = Counter(row.version for row in rows if row.closed is None)
        ended = [
            row.name
            for row in rows
            if row.closed is not None and row.version == number and row.events
        ][:CHECKED]
        check = self._checked(number, prior, ended)
        beliefs = prior_table(prior)
        shown = {
            "prior": Shown(
                "What is believed before the first pull",
                "The mean reward of each arm in a new task",
                {"prior": beliefs},
                lambda width: _drawn(
                    lambda: fit_figure(prior, [], f"Prior, version {number}", width)
                ),
            )
        }
        text = (
            check
            if isinstance(check, str)
            else check.verdict_on("the closed ones", "Closed tasks have")
        )
        if isinstance(check, PredictiveCheck):
            shown["predictive"] = Shown(
                "Do closed tasks look like that?",
                "Closed tasks (line) among tasks that the prior generates (bars)",
                {"predictive": check.table()},
                lambda width: _drawn(
                    lambda: predictive_figure(check.observed, check.drawn, CHECK, width)
                ),
            )
        return PriorView(
            mine, versions, current, running, f"{number}-{len(ended)}",
            check if isinstance(check, PredictiveCheck) else None, text, shown,
        )  # fmt: skip

    def _checked(self, number: int, prior: LivePrior, names: list[str]) -> PredictiveCheck | str:
        """Compare closed tasks with the prior that they ran with."""
        if has_features(prior):
            return "Tasks with contexts have no predictive check."
        if len(names) < FEWEST:
            return (
                f"{len(names)} closed tasks under this version so far: the predictive check needs "
                f"{FEWEST}."
            )
        with self._lock:
            return self._checks.made(
                (number, len(names)), lambda: self._compared(number, prior, names)
            )

    def _compared(self, number: int, prior: LivePrior, names: list[str]) -> PredictiveCheck | str:
        tasks = self._tasks(names)
        fold = self.decider.operations.fold(number)
        widths = np.array([len(task.arms) for task in tasks])
        most = int(widths.max())
        states = [
            task.state if len(task.arms) == most else fold.grown(task.state, most) for task in tasks
        ]
        statistics = fold.statistics(states, names_of(for_arms(prior, most)))
        exists = np.arange(most)[None] < widths[:, None]
        try:
            return predictive_check(prior, statistics, exists, seed=self.decider.operations.seed)
        except (AttributeError, TypeError, ValueError) as error:
            return f"This family has no predictive check ({printable(str(error))})."

    # -- pictures

    def svg(self, key: tuple[str, ...], shown: Shown, *, narrow: bool, dark: bool) -> bytes:
        """Draw a picture, or take it from those that were drawn."""
        width = live.NARROW if narrow else live.WIDE
        plain = self._pictures.made((*key, str(narrow)), lambda: shown.draw(width)["svg"])
        return (live.dark(plain) or plain) if dark else plain


def _key(task: Task) -> str:
    """Return what tells two states of a task apart."""
    return f"{task.version}-{task.steps}-{task.events}-{task.closed is not None:d}-{len(task.arms)}"


def _drawn(draw: Callable[[], Picture]) -> Picture:
    """Draw a picture that other parts of the library make."""
    with live.DRAWING:
        return draw()


# -- tables and their pictures


def overview_shown(uniform: Uniform, chosen: Ratio, rewarded: Ratio) -> dict[str, Shown]:
    """Pictures over all tasks."""
    shown = {}
    if uniform.decisions:
        sums = uniform.table()
        shown["earned"] = Shown(
            "Reward", "Reward so far, and what uniform allocation would have earned",
            {"earned": sums}, lambda width: live.earned_figure(sums, width),
        )  # fmt: skip
    for name, ratio, what in (
        ("chosen", chosen, "chosen"),
        ("rewarded", rewarded, "rewarded"),
    ):
        if ratio.decisions:
            counts = ratio.table()
            shown[name] = Shown(
                f"Sample ratio: {'decisions' if name == 'chosen' else 'rewards that came'}",
                f"How often each arm was {what}, less what propensities let expect",
                {name: counts},
                lambda width, counts=counts: live.ratio_figure(counts, width),  # type: ignore[misc]
            )
    return shown


def uniform_words(uniform: Uniform) -> list[str]:
    """Say what uniform allocation would have earned."""
    if not uniform.decisions:
        return ["No reward of a decision with a propensity is known yet."]
    error = uniform.std_error
    estimate = plus_minus(uniform.estimate, error)
    text = (
        f"Earned {uniform.total:,.5g} in {uniform.decisions:,} rewarded decisions; uniform "
        f"allocation would have earned {estimate} (standard error), estimated from propensities"
    )
    lines = []
    gap = uniform.total - uniform.estimate
    if uniform.estimate > 0.0:
        share = percent(abs(gap) / uniform.estimate)
        text += f": {share} {'more' if gap >= 0.0 else 'less'} than uniform"
    lines.append(text + ".")
    if abs(gap) < 2.0 * error:
        lines.append("The difference is within two standard errors: it may be chance.")
    if uniform.frail:
        lines.append(
            "One decision with a small propensity makes up much of this error, which may be too "
            "small: a floor per arm makes such estimates steadier."
        )
    return lines


def health_of(
    pairs: list[tuple[Trail, Rewards]], now: float, counted: Mapping[str, int] | None
) -> Table:
    """How rewards come in: columns ``what``, ``value`` and ``unit``."""
    delays = np.concatenate([r.delay[np.isfinite(r.delay)] for _, r in pairs] or [np.zeros(0)])
    waiting = [
        now - row.time
        for trail, rewards in pairs
        for row, settled in zip(trail.rows, rewards.settled, strict=True)
        if not settled
    ]
    closed = sum(rewards.expired for _, rewards in pairs)
    rows: list[tuple[str, float, str]] = [("rewards that came", float(len(delays)), "count")]
    if len(delays):
        for name, level in (("half of them within", 0.5), ("90 % of them within", 0.9)):
            rows.append((name, float(np.quantile(delays, level)), "seconds"))
        rows.append(("the latest after", float(delays.max()), "seconds"))
    rows.append(("outstanding", float(len(waiting)), "count"))
    if waiting:
        rows.append(("the oldest outstanding since", max(waiting), "seconds"))
    rows.append(("closed because none came in time", float(closed), "count"))
    rows.append(("corrected", float(sum(r.corrected for _, r in pairs)), "count"))
    for name, count in (counted or {}).items():
        rows.append((f"{name} (since this process started)", float(count), "count"))
    names, values, units = zip(*rows, strict=True)
    return {"what": list(names), "value": list(values), "unit": list(units)}


def task_shown(arms: Table, hills: Table) -> dict[str, Shown]:
    """Pictures of what is believed of a task's arms."""
    return {
        "posterior": Shown(
            "Posterior of every arm",
            "What each arm earns per pull, by all that is known: mean, middle 95 % and density",
            {"arms": arms, **({"densities": hills} if hills["arm"] else {})},
            lambda width: live.posterior_figure(arms, hills, width),
        ),
        "best": Shown(
            "Which arm is best",
            "How likely each arm is the best, and what playing it for good is expected to lose",
            {"arms": arms},
            lambda width: live.best_figure(arms, width),
        ),
    }


def densities(operations: Operations, task: Task, context: list[list[float]] | None) -> Table:
    """Density of each arm's mean reward: columns ``arm``, ``value`` and ``density``. Empty where a
    law has no density.
    """
    chooser = operations.chooser(task.version, len(task.arms))
    belief = chooser.belief(task.state)
    signal = None if context is None else np.asarray(context, dtype=np.float64)[None]
    seen = Seen(1, operations.horizon, len(task.arms), signal)
    levels = ndtr(np.linspace(-3.3, 3.3, POINTS))
    if isinstance(belief, QuantileBelief):
        values = np.array([belief.quantile(float(level), seen)[0] for level in levels])
    else:
        rng = Streams(operations.seed, np.array([task.key], dtype=np.uint64))
        drawn = belief.sample(rng.at(Purpose.WORLD, 1), DRAWS, seen)[0]
        levels = ndtr(np.linspace(-2.4, 2.4, 25))  # draws say little beyond
        values = np.quantile(drawn, levels, axis=0)
    out: dict[str, list[str | float]] = {"arm": [], "value": [], "density": []}
    for place, arm in enumerate(task.arms):
        x = values[:, place]
        step = np.diff(x)
        if not (step > 0.0).all():
            continue
        out["arm"] += [arm] * len(step)
        out["value"] += ((x[1:] + x[:-1]) / 2.0).tolist()
        out["density"] += (np.diff(levels) / step).tolist()
    return dict(out)


def allocation(task: Task, decisions: list[Decided], events: list[Event]) -> Table:
    """Pulls of each arm so far, at some moments: columns ``step``, ``arm`` and ``pulls``."""
    width = len(task.arms)
    moves: list[tuple[int, list[tuple[int, float]]]] = []
    for row in decisions:
        if row.counts is None:
            moves.append((row.step, [(row.arm, 1.0)]))
        else:
            each = [(arm, float(count)) for arm, count in enumerate(row.counts)]
            moves.append((row.step + row.pulls - 1, each))
    if not moves:
        done = 0
        for event in events:
            if event.kind == "record":
                done += int(event.pulls)
                moves.append((done, [(event.arm, float(event.pulls))]))
    sums, counts = np.zeros(width), np.zeros((len(moves), width))
    for at, (_, pulls) in enumerate(moves):
        for arm, count in pulls:
            sums[arm] += count
        counts[at] = sums
    kept = np.unique(np.linspace(0, len(moves) - 1, min(MOMENTS, len(moves))).round().astype(int))
    out: dict[str, list[str | float]] = {"step": [], "arm": [], "pulls": []}
    for at in kept.tolist() if moves else []:
        out["step"] += [moves[at][0]] * width
        out["arm"] += list(task.arms)
        out["pulls"] += counts[at].tolist()
    return dict(out)


def latest(task: Task, decisions: list[Decided], events: list[Event], most: int = 10) -> Table:
    """The last decisions: columns ``step``, ``time``, ``arm``, ``propensity``, ``reward`` and
    ``delay``.
    """
    known = {each.step: each for each in events if each.step is not None}
    out: dict[str, list[str | float | None]] = {
        name: [] for name in ("step", "time", "arm", "propensity", "reward", "delay")
    }
    for row in reversed(decisions[-most:]):
        event = known.get(row.step)
        batch = row.counts is not None
        out["step"].append(row.step)
        out["time"].append(row.time)
        out["arm"].append(f"a batch of {row.pulls:,}" if batch else task.arms[row.arm])
        out["propensity"].append(row.propensity)
        out["reward"].append(None if event is None else event.value)
        out["delay"].append(None if event is None else event.time - row.time)
    return dict(out)
