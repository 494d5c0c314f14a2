"""``Decider``: decisions about tasks while they run, in the user's process."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability, shown
from priorwise.core.protocols import Policy, for_arms
from priorwise.core.serial import Serializable, load_prior
from priorwise.families.registry import family_for
from priorwise.serve import table, types
from priorwise.serve.ahead import ROUNDS, Ahead, too_busy
from priorwise.serve.bridge import Bridge
from priorwise.serve.choosing import LivePrior, Rules, Shares, dim_of, has_features
from priorwise.serve.errors import NotFound
from priorwise.serve.export import tables, write_log
from priorwise.serve.folding import fold_of
from priorwise.serve.learning import Accept, Learning, LiveAlarm, Proposal, alarm_of, refit
from priorwise.serve.operations import Operations, arms_of, checked_context
from priorwise.serve.rows import Status, Task, Version, copied
from priorwise.serve.stores import opened
from priorwise.serve.stores.store import Session, Store, Wanted, Wanting, Work
from priorwise.serve.summary import Stopping, Summary, stopping_of, summarised, tolerance_of
from priorwise.serve.table import Operation, described
from priorwise.serve.types import Context
from priorwise.serve.values import CLOSED_AT_FIT, LAST_FIT, stopping_names, value_of
from priorwise.theory.influence import has_state

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
Q = TypeVar("Q", bound=types.Request)
A = TypeVar("A")


def _method(operation: Operation[P, Q, A]) -> Callable[Concatenate[Decider, P], A]:
    """Return the method of a decider that does an operation."""
    parameters = operation.parameters

    def method(self: Decider, /, *given: P.args, **options: P.kwargs) -> A:
        return self.do(operation, parameters(*given, **options))

    return described(method, operation)


@final
class Decider:
    """Decides about tasks while they run, and keeps the log that all of it can be made again from.

    A task starts with its first decision. Its state is its statistics, the sum of the rewards so
    far; rewards may come late, in any order, repeatedly, or never. A decision is a function of the
    seed, the task, the step, the statistics, the prior, the available arms, the context and the
    promised shares. Methods may be called from several threads.

    Parameters
    ----------
    prior
        The prior of each task; one with ``for_arms`` has its own arms in every task. If the store
        has priors already, None goes on with the last accepted one, and another one is proposed
        with :meth:`replace_prior`.
    policy
        Any policy without memory.
    horizon
        Pulls of a task. A task may go on beyond: then every pull is decided as the last one.
    seed
        Of all decisions.
    store
        None keeps everything in memory, a path in an SQLite file, a URL (``postgresql://...``) in
        PostgreSQL, which any number of processes may share. Or a store.
    propensities
        Whether to compute the probability of each decision, and draw the arm from that law. Without
        it a decision takes microseconds, and its propensity is None.
    floor
        Least probability of each available arm: a number for all, or numbers by name. The policy's
        law w becomes ``f + (1 - sum(f)) w``.
    control
        An arm and its share of the pulls, ``("current", 0.1)``: exactly that, and the policy does
        not play it.
    window
        Seconds within which a reward has to come; None waits for ever.
    missing
        What a reward that did not come counts as: a number, or ``"leave out"``.
    tolerance
        Loss per pull at which a summary advises to stop, in units of the reward; by default a
        twentieth of what the best arm of a task has beyond an average one.
    learn
        Fit the prior again on closed tasks, on a schedule: see :class:`Learning`. New tasks start
        with what was accepted, running ones keep their prior.
    clock
        Returns the time in seconds, for logs and the window.

    Examples
    --------
    >>> import priorwise as pw
    >>> prior = pw.BetaPrior([2, 2], 8, names=["red", "blue"])
    >>> decider = pw.Decider(prior, pw.ThompsonSampling(), horizon=100, seed=0)
    >>> d = decider.decide("visitor 1")
    >>> d.arm in ("red", "blue"), round(d.propensity, 3)
    (True, 0.5)
    >>> decider.reward(d.token, 1.0)
    'counted'

    """

    def __init__(
        self,
        prior: LivePrior | None,
        policy: Policy,
        *,
        horizon: int,
        seed: int,
        store: Store | str | os.PathLike[str] | None = None,
        propensities: bool = True,
        floor: float | Mapping[str, float] = 0.0,
        control: tuple[str, float] | None = None,
        window: float | None = None,
        missing: float | Literal["leave out"] = "leave out",
        tolerance: float | None = None,
        learn: Learning | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Check everything, open the store, and compile what decides."""
        horizon, seed = validation.count("horizon", horizon), validation.seed(seed)
        validation.flag("propensities", propensities)
        if control is not None and (not isinstance(control, (tuple, list)) or len(control) != 2):
            raise ArgumentTypeError(
                "control", "must be an arm and its share, ('current', 0.1)", got=control
            )
        shares = Shares(floor, *(control or (None, 0.0)))
        if window is not None and validation.number("window", window) <= 0.0:
            raise ArgumentError("window", "must be positive seconds", got=window)
        if missing != "leave out":
            missing = validation.number("missing", missing)
        if prior is not None:
            _checked(prior, policy)
        if not callable(clock):
            raise ArgumentTypeError("clock", "must be a function like time.time", got=clock)
        if tolerance is not None:
            validation.not_negative("tolerance", tolerance)
        self._tolerance, self._looking = tolerance, threading.Lock()
        if learn is not None and not isinstance(learn, Learning):
            raise ArgumentTypeError("learn", "must be a Learning(...)", got=learn)
        self._learn, self._fitting = learn, threading.Lock()
        self._fit_thread: threading.Thread | None = None
        self._stops: dict[tuple[int, int], Stopping] = {}
        self.clock = clock
        self._priors: dict[int, LivePrior] = {}
        self.store = opened(store)
        try:
            self._started(prior, policy)
            rules = Rules(policy, horizon, seed, shares, propensities, window, missing)
            self.operations = Operations(self.prior, rules)
            self.store.use(self.operations.fold)
            self._fits_settings(self.prior(self.version))
            if (arms := self.operations.arms_of(self.version)) is not None:
                self.operations.chooser(self.version, len(arms))  # compile now
            text, texts = rules.text(), self.store.settings()
            known = text in texts  # decisions name the number
            self.operations.settings = (
                texts.index(text) + 1 if known else self.store.add_settings(text)
            )
        except BaseException:
            self.store.close()
            raise

    def _started(self, prior: LivePrior | None, policy: Policy) -> None:
        version = self.version
        if not version:
            if prior is None:
                raise ArgumentError("prior", "is missing: the store has none yet")
            now = self.clock()
            self.store.put_version(Version(1, prior.to_json(), "accepted", now, now, {}))
        elif prior is not None and prior.to_json() != self._row(version).prior:
            raise ArgumentError(
                "prior",
                "is not the one that the store's tasks run with",
                cure="pass prior=None to go on with that, and replace_prior(prior) for a new one",
            )
        _checked(self.prior(self.version), policy)

    def _fits_settings(self, prior: LivePrior) -> None:
        """Refuse a prior whose tasks could not be decided about with these settings."""
        if (missing := self.operations.missing) != "leave out":
            fold_of(prior).check(float(missing), "missing")
        if (arms := arms_of(prior)) is not None:
            _check_promises(self.operations.shares, arms)

    # -- priors

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with."""
        return self.store.look(lambda session: session.version)  # which reads no priors

    def prior(self, version: int | None = None) -> LivePrior:
        """Return the prior of a version, by default that of new tasks."""
        version = self.version if version is None else version
        if version not in self._priors:
            self._priors[version] = load_prior(self._row(version).prior)
        return self._priors[version]

    def _row(self, version: int) -> Version:
        for row in self.versions():
            if row.number == version:
                return row
        raise NotFound(f"there is no prior of version {shown(version)}")

    def versions(self) -> list[Version]:
        """Every prior that was ever proposed, the first one first."""
        return self.store.versions()

    def priors(self) -> types.Priors:
        """Return the same as a service answers it."""
        current = self.version
        return types.Priors(
            [
                types.Prior(
                    row.number, row.status, row.number == current, row.made, row.accepted,
                    row.story, json.loads(row.prior),
                )
                for row in self.versions()
            ]
        )  # fmt: skip

    def propose(self, prior: LivePrior, story: Mapping[str, Any] | None = None) -> int:
        """Keep a prior for somebody to accept; return its version. ``story``, values that JSON has,
        says where it comes from.
        """
        _checked(prior, self.operations.policy)
        self._fits_settings(prior)
        number = len(self.store.versions()) + 1
        row = Version(number, prior.to_json(), "proposed", self.clock(), None, dict(story or {}))
        return self.store.put_version(row)

    def accept(self, version: int) -> None:
        """Let new tasks start with a proposed prior; running ones keep theirs."""
        self.judge(version, "accepted")

    def decline(self, version: int) -> None:
        """Put a proposed prior aside."""
        self.judge(version, "declined")

    def judge(self, version: int, status: Status) -> types.Proposed:
        """Accept or decline a proposed prior."""
        row = self._row(version)
        if status == "declined" and version == self.version:
            raise ArgumentError("version", "is in use", cure="accept another one first")
        when = self.clock() if status == "accepted" else None
        self.store.put_version(row._replace(status=status, accepted=when))
        return types.Proposed(version, status)

    def replace_prior(self, prior: LivePrior, story: Mapping[str, Any] | None = None) -> int:
        """Let new tasks start with another prior; running ones keep theirs. Returns its version."""
        version = self.propose(prior, story)
        self.accept(version)
        return version

    # -- decisions and rewards

    decide = _method(table.DECIDE)
    decide_many = _method(table.DECIDE_MANY)
    allocate = _method(table.ALLOCATE)
    reward = _method(table.REWARD)
    rewards = _method(table.REWARDS)
    record = _method(table.RECORD)
    delete = _method(table.DELETE)

    def close(self, task: str | None = None) -> bool:
        """Close a task: no more decisions, but late rewards. Returns whether it was open.

        Without a task, let go of the store, as the end of a ``with`` statement does: what was
        acknowledged is kept, and a fit that runs is waited for.
        """
        if task is not None:
            return self.do(table.CLOSE, types.CloseTask(task))
        if self._fit_thread is not None:
            self._fit_thread.join()
        self.store.close()
        return True

    def expire(self, most: int = 10_000) -> int:
        """Close pulls whose rewards did not come within the window; returns how many."""
        window = self.operations.window
        if window is None:
            return 0
        now, operations, count = self.clock(), self.operations, 0
        late = self.store.outstanding(now - window, validation.count("most", most))

        def close(some: list[tuple[str, int]]) -> Work[int]:
            return lambda session: sum(operations.expire(session, *each, now) for each in some)

        for first in range(0, len(late), 500):
            some = late[first : first + 500]
            count += self._run(close(some), Wanted([name for name, _ in some], some))
        return count

    def replay(self, task: str) -> list[int]:
        """Make every decision of a task again from the log; return the steps that differ."""
        return self.store.look(lambda session: self.operations.replay(session, task))

    # -- looking at tasks

    def tasks(
        self, closed: bool | None = None, after: str | None = None, limit: int = 100
    ) -> types.Tasks:
        """List tasks, the newest first: all of them, those that are closed, or those that are not,
        from the one that follows the task ``after``.
        """
        rows = self.store.tasks(closed=closed, most=limit + 1, after=after)
        lines = [types.TaskLine(*row) for row in rows[:limit]]
        return types.Tasks(lines, lines[-1].task if len(rows) > limit else None)

    def summary(self, task: str, context: Context | None = None) -> Summary:
        """Say where a task stands: what is believed of each arm, what stopping now would cost, and
        whether to stop.

        Where values depend on features, ``context`` says which: one row per arm. The first summary
        under a prior takes seconds: it plays tasks of that prior to say how often its advice would
        stop at a wrong arm.
        """
        types.check_name("task", task)

        def look(session: Session) -> Task:
            row = session.task(task)
            if row is None:
                raise NotFound(f"no task is called {shown(task)}")
            return copied(row)

        row = self.store.look(look)
        operations = self.operations
        chooser = operations.chooser(row.version, len(row.arms))
        if context is not None or has_features(chooser.prior):
            rows = checked_context(context, chooser.prior)
            return summarised(chooser, row, operations.seed, None, rows)
        stopping = self._stopping(row.version, len(row.arms))
        return summarised(chooser, row, operations.seed, stopping)

    def _stopping(self, version: int, arms: int) -> Stopping:
        kind = (version, arms)
        with self._looking:
            if kind not in self._stops:
                operations = self.operations
                chooser = operations.chooser(version, arms)
                tolerance = self._tolerance
                if tolerance is None:
                    tolerance = tolerance_of(chooser.prior, operations.seed)
                names = stopping_names(operations.settings, version, arms, tolerance)
                text = value_of(self.store, *names)
                if text is None:  # counting takes seconds: other processes read the result
                    text = stopping_of(chooser, operations.seed, tolerance).to_json()
                    self.store.put_value(names[0], text)
                self._stops[kind] = Stopping.of(text)
            return self._stops[kind]

    # -- the log, and learning from it

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        closed: bool | None = None,
        outstanding: bool = False,
    ) -> int:
        """Write the log as Parquet (or CSV, by its name), which ``fit_prior`` and ``backtest``
        read: one row per pull with its reward and propensity. Returns the number of rows.

        Parameters
        ----------
        path
            The file, which appears when it is whole.
        closed
            True for closed tasks only, False for open ones.
        outstanding
            Also decisions whose reward is not known.

        """
        return write_log(path, self.tables(closed=closed, outstanding=outstanding))

    def tables(
        self, *, closed: bool | None = None, outstanding: bool = False
    ) -> Iterator[pa.Table]:
        """Return the same as Arrow tables, some tasks each."""
        dim, binary = dim_of(self.prior()), self.operations.fold(self.version).binary
        return tables(self.store, closed=closed, outstanding=outstanding, dim=dim, binary=binary)

    def refit(self, family: str = "auto", *, seed: int, accept: Accept = "ask") -> Proposal:
        """Fit the prior again on the closed tasks, and propose it with a backtest.

        Parameters
        ----------
        family
            As in :func:`~priorwise.logs.fitting.fit_prior`.
        seed
            Of the fit and the backtest.
        accept
            ``"ask"`` waits for :meth:`accept`; ``"better"`` accepts it if its backtest earned more
            than the prior in use, by two standard errors; ``"always"`` does.

        """
        return refit(self, family, seed=seed, accept=accept)

    def alarm(self, *, level: float = 0.01) -> LiveAlarm:
        """Say whether closed tasks contradict the prior in use, with a rate of false alarms of at
        most ``level`` however often one looks.
        """
        return alarm_of(self, seed=self.operations.seed, level=level)

    def learn_if_due(self) -> None:
        """Fit again if enough tasks were closed since the last time; errors are kept to be read."""
        learn = self._learn
        if learn is None:
            return
        closed = len(self.store.names(closed=True))
        last = int(value_of(self.store, CLOSED_AT_FIT) or 0)
        if closed - last < learn.every or not self._fitting.acquire(blocking=False):
            return
        self.store.put_value(CLOSED_AT_FIT, str(closed))

        def fit() -> None:
            try:
                refit(self, learn.family, seed=self.operations.seed + closed, accept=learn.accept)
                self.store.put_value(LAST_FIT, "")
            except Exception as error:  # it must not end the service, and is kept for who looks
                self.store.put_value(LAST_FIT, f"{type(error).__name__}: {error}")
            finally:
                self._fitting.release()

        self._fit_thread = threading.Thread(target=fit, name="priorwise-refit", daemon=True)
        self._fit_thread.start()

    # -- the store

    def do(self, operation: Operation[P, Q, A], asked: Q) -> A:
        """Do any operation of the table."""
        asked.checked()
        now, operations, run = self.clock(), self.operations, operation.run
        try:
            result = self.store.run(lambda session: run(operations, session, asked, now), asked)
        except Ahead as ahead:  # once: the next round may need other results
            ahead.compute()
            result = self._run(lambda session: run(operations, session, asked, now), asked)
        if operation.after is not None:
            operation.after(self, result)
        return result

    def _run(self, work: Work[A], about: Wanting) -> A:
        for _ in range(ROUNDS):
            try:
                return self.store.run(work, about)
            except Ahead as ahead:
                ahead.compute()
        raise too_busy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _awaited(
    operation: Operation[P, Q, A],
) -> Callable[Concatenate[AsyncDecider, P], Coroutine[None, None, A]]:
    async def method(self: AsyncDecider, /, *given: P.args, **options: P.kwargs) -> A:
        return await self.do(operation, operation.parameters(*given, **options))

    return described(method, operation)


def _aside(
    method: Callable[Concatenate[Decider, P], A],
) -> Callable[Concatenate[AsyncDecider, P], Coroutine[None, None, A]]:
    @wraps(method)
    async def awaited(self: AsyncDecider, /, *given: P.args, **options: P.kwargs) -> A:
        return await asyncio.to_thread(method, self.decider, *given, **options)

    return awaited


@final
class AsyncDecider:
    """Decides from an event loop: the methods of a :class:`Decider`, to be awaited.

    Operations of many coroutines share a commit. Belongs to the event loop that uses it first.

    Parameters
    ----------
    decider
        Which decides.
    compute
        Computes what takes long before an operation, and says when it is done; by default a thread
        does.

    Examples
    --------
    >>> import asyncio
    >>> import priorwise as pw
    >>> prior = pw.BetaPrior([2, 2], 8, names=["red", "blue"])
    >>> async def play():
    ...     decider = pw.Decider(prior, pw.ThompsonSampling(), horizon=100, seed=0)
    ...     async with pw.serve.AsyncDecider(decider) as live:
    ...         decision = await live.decide("visitor 1")
    ...         return await live.reward(decision.token, 1.0)
    >>> asyncio.run(play())
    'counted'

    """

    def __init__(
        self, decider: Decider, compute: Callable[[Ahead], Future[None]] | None = None
    ) -> None:
        """Take a decider, which is closed with it."""
        self.decider = decider
        self._compute = compute
        self._bridge: Bridge | None = None
        self.counted: Callable[[int], None] = lambda number: None
        """Hears how many operations the store answered at once."""

    decide = _awaited(table.DECIDE)
    decide_many = _awaited(table.DECIDE_MANY)
    allocate = _awaited(table.ALLOCATE)
    reward = _awaited(table.REWARD)
    rewards = _awaited(table.REWARDS)
    record = _awaited(table.RECORD)
    delete = _awaited(table.DELETE)
    expire = _aside(Decider.expire)
    replay = _aside(Decider.replay)
    tasks = _aside(Decider.tasks)
    summary = _aside(Decider.summary)
    prior = _aside(Decider.prior)
    versions = _aside(Decider.versions)
    propose = _aside(Decider.propose)
    accept = _aside(Decider.accept)
    decline = _aside(Decider.decline)
    replace_prior = _aside(Decider.replace_prior)
    export = _aside(Decider.export)
    refit = _aside(Decider.refit)
    alarm = _aside(Decider.alarm)

    async def close(self, task: str | None = None) -> bool:
        """Close a task, or the decider, as :meth:`Decider.close`."""
        if task is not None:
            return await self.do(table.CLOSE, types.CloseTask(task))
        return await asyncio.to_thread(self.decider.close)

    async def do(self, operation: Operation[P, Q, A], asked: Q) -> A:
        """Do any operation of the table."""
        asked.checked()
        decider, run = self.decider, operation.run
        now, operations = decider.clock(), decider.operations
        for _ in range(ROUNDS):
            try:
                result = await self._wait(
                    decider.store.submit(
                        lambda session: run(operations, session, asked, now), asked
                    )
                )
            except Ahead as ahead:
                if self._compute is None:
                    await asyncio.to_thread(ahead.compute)
                else:
                    await asyncio.wrap_future(self._compute(ahead))
                continue
            if operation.after is not None:
                await asyncio.to_thread(operation.after, decider, result)
            return result
        raise too_busy()

    async def _wait(self, future: Future[A]) -> A:
        if future.done():
            self.counted(1)
            return future.result()
        if self._bridge is None:
            self._bridge = Bridge(asyncio.get_running_loop(), self.counted)
        return await self._bridge.wait(future)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


for _name, _row in table.TABLE.items():  # those without a line above
    if isinstance(_row, Operation) and _name not in ("close_task", "delete_unit"):
        for _class, _made in ((Decider, _method), (AsyncDecider, _awaited)):
            if not hasattr(_class, _name):
                setattr(_class, _name, _made(_row))


def _checked(prior: LivePrior, policy: Policy) -> None:
    """Refuse priors and policies that cannot decide while tasks run."""
    argument_checks.prior("prior", prior)
    argument_checks.policy("policy", policy)
    name = type(prior).__name__
    if not isinstance(prior, Serializable):
        raise MissingCapability("prior", f"must have a JSON form, and {name} has none")
    if not hasattr(prior, "belief_given"):
        raise MissingCapability(
            "prior",
            f"must have belief_given, as a task's state is its statistics, and {name} has none",
        )
    family_for(prior, "Decider").require("statistics")
    example = for_arms(prior, 2)
    if getattr(example, "actions", None) is not None or has_state(example):
        raise MissingCapability(
            "prior",
            f"must be of problems in which actions do not influence later signals; those of a "
            f"{name} do",
        )
    argument_checks.offering(policy, example.belief(1))


def _check_promises(shares: Shares, arms: tuple[str, ...]) -> None:
    """Refuse promises to arms that there are not."""
    promised = [("floor", arm) for arm in shares.floor] if isinstance(shares.floor, dict) else []
    promised += [("control", shares.control)] if shares.control is not None else []
    for what, arm in promised:
        if arm not in arms:
            raise ArgumentError(
                what,
                f"names {shown(arm)}, which is no arm of the prior",
                cure=f"its arms are {', '.join(arms[:20])}",
            )
    shares.of(arms, np.ones(len(arms)))
