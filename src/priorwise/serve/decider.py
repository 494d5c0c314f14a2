"""``Decider``: decisions about tasks while they run, in the user's process."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final, Literal, Self, final

from priorwise.core import argument_checks, validation
from priorwise.core.protocols import for_arms
from priorwise.core.serial import Serializable, load_prior
from priorwise.families.registry import ask
from priorwise.serve.ahead import ROUNDS, Ahead, too_busy
from priorwise.serve.choosing import Shares, has_features
from priorwise.serve.errors import NotFound
from priorwise.serve.export import tables, write_log
from priorwise.serve.folding import fold_of
from priorwise.serve.learning import Accept, Learning, LiveAlarm, Proposal, alarm_of, refit
from priorwise.serve.many import Told, decide_together
from priorwise.serve.operations import (
    Allocation,
    Decision,
    Operations,
    Outcome,
    arms_of,
    checked_context,
    parsed,
    writable,
)
from priorwise.serve.rows import Version, copied
from priorwise.serve.stores import opened
from priorwise.serve.summary import DRAWS, Stopping, Summary, stopping_of, summarised, tolerance_of
from priorwise.theory.influence import has_state

LONGEST: Final = 500
"""Letters of the name of a task, a unit or a request."""


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
        prior: Any,
        policy: Any,
        *,
        horizon: int,
        seed: int,
        store: Any = None,
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
            raise TypeError(
                f"control must be an arm and its share, ('current', 0.1), got "
                f"{validation.shown(control)}"
            )
        shares = Shares(floor, *(control or (None, 0.0)))
        if window is not None and validation.number("window", window) <= 0.0:
            raise ValueError(f"window must be positive seconds, got {window:g}")
        if missing != "leave out":
            missing = validation.number("missing", missing)
        if prior is not None:
            _checked(prior, policy)
        if not callable(clock):
            raise TypeError(
                f"clock must be a function like time.time, got {validation.shown(clock)}"
            )
        if tolerance is not None:
            validation.not_negative("tolerance", tolerance)
        self._tolerance, self._looking = tolerance, threading.Lock()
        if learn is not None and not isinstance(learn, Learning):
            raise TypeError(f"learn must be a Learning(...), got {validation.shown(learn)}")
        self._learn, self._fitting = learn, threading.Lock()
        self._fit_thread: threading.Thread | None = None
        self._stops: dict[tuple[int, int], Any] = {}
        self._clock = clock
        self.computes = True  # itself; a service lets others compute what takes long
        self._priors: dict[int, Any] = {}
        self.store = opened(store)
        try:
            self._started(prior, policy)
            self.operations = Operations(
                self.prior,
                policy,
                horizon=horizon,
                seed=seed,
                shares=shares,
                propensities=propensities,
                window=window,
                missing=missing,
            )
            self.store.use(self.operations)
            self._fits_settings(self.prior(self.version))
            if (arms := self.operations.arms_of(self.version)) is not None:
                self.operations.chooser(self.version, len(arms))  # compile now
            self.operations.settings = self._settings_number(shares)
        except BaseException:
            self.store.close()
            raise

    def _started(self, prior: Any, policy: Any) -> None:
        version = self.version
        if prior is None and not version:
            raise ValueError("prior is missing: the store has none yet")
        if not version:
            made = Version(1, prior.to_json(), "accepted", self._clock(), self._clock(), {})
            self.store.put_version(made)
        elif prior is not None and prior.to_json() != self._row(version).prior:
            raise ValueError(
                "prior is not the one that the store's tasks run with; pass prior=None to go on "
                "with that, and replace_prior(prior) for a new one"
            )
        _checked(self.prior(self.version), policy)

    def _fits_settings(self, prior: Any) -> None:
        """Refuse a prior whose tasks could not be decided about with these settings."""
        if (missing := self.operations.missing) != "leave out":
            fold_of(prior).check(missing, "missing")
        if (arms := arms_of(prior)) is not None:
            _known_arms(self.operations.shares, arms)

    def _settings_number(self, shares: Shares) -> int:
        """Return the number of these settings; decisions name it."""
        o = self.operations
        text = json.dumps(
            {
                "policy": repr(o.policy),
                "horizon": o.horizon,
                "seed": o.seed,
                "propensities": o.propensities,
                "floor": shares.floor,
                "control": None if shares.control is None else [shares.control, shares.share],
                "window": o.window,
                "missing": o.missing,
            },
            sort_keys=True,
        )
        known = self.store.settings()
        return known.index(text) + 1 if text in known else self.store.add_settings(text)

    # -- priors

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with."""
        return int(self.store.look(lambda session: session.version))  # which reads no priors

    def prior(self, version: int | None = None) -> Any:
        """Return the prior of a version, by default that of new tasks."""
        version = self.version if version is None else version
        found = self._priors.get(version)
        if found is None:
            found = self._priors[version] = load_prior(self._row(version).prior)
        return found

    def _row(self, version: int) -> Version:
        for row in self.versions():
            if row.number == version:
                return row
        raise NotFound(f"there is no prior of version {validation.shown(version)}")

    def versions(self) -> list[Version]:
        """Every prior that was ever proposed, the first one first."""
        return list(self.store.versions())

    def propose(self, prior: Any, story: Mapping[str, Any] | None = None) -> int:
        """Keep a prior for somebody to accept; return its version."""
        _checked(prior, self.operations.policy)
        self._fits_settings(prior)
        number = len(self.store.versions()) + 1
        made = Version(number, prior.to_json(), "proposed", self._clock(), None, dict(story or {}))
        return int(self.store.put_version(made))

    def accept(self, version: int) -> None:
        """Let new tasks start with a proposed prior; running ones keep theirs."""
        self._judged(version, "accepted")

    def decline(self, version: int) -> None:
        """Put a proposed prior aside."""
        self._judged(version, "declined")

    def _judged(self, version: int, status: Any) -> None:
        row = self._row(version)
        if status == "declined" and version == self.version:
            raise ValueError("version is in use; accept another one first")
        when = self._clock() if status == "accepted" else None
        self.store.put_version(row._replace(status=status, accepted=when))

    def replace_prior(self, prior: Any, story: Mapping[str, Any] | None = None) -> int:
        """Let new tasks start with another prior; running ones keep theirs. Returns its version."""
        version = self.propose(prior, story)
        self.accept(version)
        return version

    # -- decisions

    def decide(
        self,
        task: str,
        available: Sequence[str] | None = None,
        context: Any = None,
        *,
        unit: str | None = None,
        request: str | None = None,
    ) -> Decision:
        """Choose an arm for the next pull of a task.

        Parameters
        ----------
        task
            Its name; a new name starts a task.
        available
            Names of the arms that may be played, by default all. Where arms are new in every task,
            the first decision names them, and later ones may add some.
        context
            Features of the arms, one row per arm, for priors with features.
        unit
            Who is decided about: a unit keeps its first decision in a task, and a repeat is not
            another pull.
        request
            An id of this request: a retry with the same id returns the same decision.

        """
        _check_name("task", task)
        if unit is not None:
            _check_name("unit", unit)
        if request is not None:
            _check_name("request", request)
        operations, now = self.operations, self._clock()
        store = self.store
        if not store.durable:
            try:
                with store.lock:
                    return operations.decide(
                        store, task, store.version, now, available, context, unit, request
                    )
            except Ahead as ahead:
                if not self.computes:
                    raise
                ahead.compute()
        return self._run(
            lambda session: operations.decide(
                session, task, session.version, now, available, context, unit, request
            ),
            tasks=[task],
            requests=[] if request is None else [(task, request)],
            units=[] if unit is None else [(task, unit)],
        )

    def decide_many(
        self,
        tasks: Iterable[str],
        available: Sequence[str] | None = None,
        contexts: Any = None,
        *,
        requests: Sequence[str] | None = None,
    ) -> Sequence[Decision]:
        """Choose an arm for each of several tasks, all or none of them; ``available`` holds for
        all, ``contexts`` and ``requests`` have one for each. The same request decides once.

        The result has ``arms`` and ``tokens``, lists of those of all decisions, and is otherwise a
        sequence of decisions.
        """
        if isinstance(tasks, (str, bytes)):
            raise TypeError(f"tasks must be a list of names, got {validation.shown(tasks)}")
        names = list(tasks)
        for name in names:
            _check_name("task", name)
        each: list[list[Any]] = []
        for what, given in (("contexts", contexts), ("requests", requests)):
            each.append([None] * len(names) if given is None else list(given))
            if len(each[-1]) != len(names):
                raise ValueError(
                    f"{what} must have one for each of {len(names)} tasks, got {len(each[-1])}"
                )
        for request in each[1] if requests is not None else ():
            _check_name("request", request)
        if isinstance(available, list):
            available = tuple(available)  # compared with the arms of each task
        now, operations = self._clock(), self.operations

        def work(session: Any) -> Sequence[Decision]:
            version = session.version
            if not self.store.durable and available is contexts is requests is None:
                together = decide_together(operations, session, names, version, now)
                if together is not None:
                    return together
            # a durable store takes back by itself what is refused
            made, missing = Told(), []
            with nullcontext() if self.store.durable else self.store.all_or_none(names):
                for name, context, request in zip(names, *each, strict=True):
                    try:
                        made.append(
                            operations.decide(
                                session, name, version, now, available, context, None, request
                            )
                        )
                    except Ahead as ahead:  # all that is missing is computed together
                        missing += ahead.works
                if missing:
                    raise Ahead(missing)
            return made

        pairs = [] if requests is None else list(zip(names, each[1], strict=True))
        return self._run(work, tasks=names, requests=pairs)

    def allocate(
        self,
        task: str,
        pulls: int,
        available: Sequence[str] | None = None,
        *,
        request: str | None = None,
    ) -> Allocation:
        """Choose the next ``pulls`` pulls of a task at once, all from what is known now."""
        _check_name("task", task)
        if request is not None:
            _check_name("request", request)
        if validation.count("pulls", pulls) > 10_000_000:
            raise ValueError(f"pulls must be at most 10,000,000, got {pulls:,}")
        now, operations = self._clock(), self.operations
        return self._run(
            lambda session: operations.allocate(
                session, task, session.version, now, pulls, available, request
            ),
            tasks=[task],
            requests=[] if request is None else [(task, request)],
        )

    # -- rewards

    def reward(self, token: str, value: float, *, correct: bool = False) -> Outcome:
        """Take the reward of a decision.

        Returns ``"counted"``; ``"repeated"`` where the same reward came before, which changes
        nothing; or ``"corrected"``. Another value for the same token is refused, unless
        ``correct=True`` replaces the first one.
        """
        name, step, check = parsed(token)
        if type(value) is not float:
            value = validation.number("value", value)
        now, operations = self._clock(), self.operations
        store = self.store
        if not store.durable:
            with store.lock:
                return operations.reward(store, name, step, check, value, now, correct)
        return store.run(
            lambda session: operations.reward(session, name, step, check, value, now, correct),
            tasks=[name],
            steps=[(name, step)],
        )

    def record(
        self,
        task: str,
        arm: str,
        pulls: int,
        reward: float,
        *,
        squares: float | None = None,
        request: str | None = None,
    ) -> Outcome:
        """Take the sum of the rewards of several pulls of an arm, as of a batch.

        Parameters
        ----------
        task, arm, pulls, reward
            ``reward`` is the sum over ``pulls`` pulls: successes, for rewards 0 and 1.
        squares
            Sum of the squared rewards, for families that learn how far rewards scatter.
        request
            An id: a retry with the same id is not counted twice. Without one it is.

        """
        _check_name("task", task)
        pulls = validation.count("pulls", pulls)
        reward = validation.number("reward", reward)
        if squares is not None:
            squares = validation.not_negative("squares", squares)
        if request is not None:
            _check_name("request", request)
        now, operations = self._clock(), self.operations
        return self._run(
            lambda session: operations.record(
                session, task, arm, pulls, reward, now, squares, request
            ),
            tasks=[task],
            requests=[] if request is None else [(task, request)],
        )

    def expire(self, most: int = 10_000) -> int:
        """Close pulls whose rewards did not come within the window; returns how many."""
        window = self.operations.window
        if window is None:
            return 0
        now, operations, count = self._clock(), self.operations, 0
        late = self.store.outstanding(now - window, validation.count("most", most))

        def close(some: list[tuple[str, int]]) -> Callable[[Any], int]:
            return lambda session: sum(operations.expire(session, *each, now) for each in some)

        for first in range(0, len(late), 500):
            some = late[first : first + 500]
            count += self._run(close(some), tasks=[name for name, _ in some], steps=some)
        return count

    def close(self, task: str | None = None) -> bool:
        """Close a task: no more decisions, but late rewards. Returns whether it was open.

        Without a task, let go of the store, as the end of a ``with`` statement does: what was
        acknowledged is kept, and a fit that runs is waited for.
        """
        if task is None:
            if self._fit_thread is not None:
                self._fit_thread.join()
            self.store.close()
            return True
        _check_name("task", task)
        now = self._clock()
        done: bool = self._run(
            lambda session: self.operations.close(session, task, now), tasks=[task]
        )
        if done:
            self._learned()
        return done

    def delete(self, unit: str) -> int:
        """Erase what is known of a unit; returns in how many decisions it was.

        Its name, its context and its request ids are erased. The arms that it was shown and its
        rewards stay as parts of sums that name nobody, so that the decisions of others can still be
        made again.
        """
        _check_name("unit", unit)
        return self._run(lambda session: self.operations.delete(session, unit), whole=True)

    def replay(self, task: str) -> list[int]:
        """Make every decision of a task again from the log; return the steps that differ."""
        return self.store.look(lambda session: self.operations.replay(session, task))

    # -- looking at tasks

    def summary(self, task: str, context: Any = None) -> Summary:
        """Say where a task stands: what is believed of each arm, what stopping now would cost, and
        whether to stop.

        Where values depend on features, ``context`` says which: one row per arm. The first summary
        under a prior takes seconds: it plays tasks of that prior to say how often its advice would
        stop at a wrong arm.
        """
        _check_name("task", task)

        def look(session: Any) -> Any:
            found = session.task(task)
            if found is None:
                raise NotFound(f"no task is called {validation.shown(task)}")
            return copied(found)

        row = self.store.look(look)
        operations = self.operations
        chooser = operations.chooser(row.version, len(row.arms))
        stopping = None
        if context is not None or has_features(chooser.prior):
            context = checked_context(context, chooser.prior)
        else:
            stopping = self._stopping(row.version, len(row.arms))
        return summarised(chooser, row, operations.seed, stopping, context)

    def _stopping(self, version: int, arms: int) -> Any:
        key = (version, arms)
        with self._looking:
            if key not in self._stops:
                operations = self.operations
                chooser = operations.chooser(version, arms)
                tolerance = self._tolerance
                if tolerance is None:
                    tolerance = tolerance_of(chooser.prior, operations.seed)
                key_in_store = (
                    f"stopping of settings {operations.settings}, prior {version}, arms {arms}, "
                    f"tolerance {tolerance!r}, draws {DRAWS}"
                )
                kept = self.store.value(key_in_store)
                if kept is None:  # counting takes seconds: other processes read the result
                    kept = stopping_of(chooser, operations.seed, tolerance).to_json()
                    self.store.put_value(key_in_store, kept)
                self._stops[key] = Stopping.of(kept)
            return self._stops[key]

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

    def tables(self, *, closed: bool | None = None, outstanding: bool = False) -> Iterator[Any]:
        """Return the same as Arrow tables, some tasks each."""
        prior, version = self.prior(), self.version
        dim = int(getattr(prior, "dim", 0) or 0) if has_features(prior) else 0
        binary = self.operations.fold(version).binary
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

    def _learned(self) -> None:
        """Fit again if enough tasks were closed since the last time; errors are kept to be read."""
        learn = self._learn
        if learn is None:
            return
        closed = len(self.store.names(closed=True))
        last = int(self.store.value("closed tasks at the last fit") or 0)
        if closed - last < learn.every or not self._fitting.acquire(blocking=False):
            return
        self.store.put_value("closed tasks at the last fit", str(closed))

        def fit() -> None:
            try:
                refit(self, learn.family, seed=self.operations.seed + closed, accept=learn.accept)
                self.store.put_value("what the last fit said", "")
            except Exception as error:  # it must not end the service; who looks is told
                self.store.put_value("what the last fit said", f"{type(error).__name__}: {error}")
            finally:
                self._fitting.release()

        self._fit_thread = threading.Thread(target=fit, name="priorwise-refit", daemon=True)
        self._fit_thread.start()

    # -- the store

    def _run(self, work: Callable[[Any], Any], **wanted: Any) -> Any:
        for _ in range(ROUNDS):
            try:
                if self.store.durable:
                    return self.store.run(work, **wanted)
                with self.store.lock:
                    return work(self.store)
            except Ahead as ahead:
                if not self.computes:
                    raise
                ahead.compute()
        raise too_busy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _check_name(what: str, value: Any) -> None:
    if type(value) is not str or not 0 < len(value) <= LONGEST or not writable(value):
        raise ValueError(
            f"{what} must be a name of 1 to {LONGEST} letters without NUL that UTF-8 can write, "
            f"got {validation.shown(value)}"
        )


def _checked(prior: Any, policy: Any) -> None:
    """Refuse priors and policies that cannot decide while tasks run."""
    argument_checks.prior("prior", prior)
    argument_checks.policy("policy", policy)
    if not isinstance(prior, Serializable):
        raise TypeError(f"prior must have a JSON form, and {type(prior).__name__} has none")
    if not hasattr(prior, "belief_given"):
        raise TypeError(
            f"prior must have belief_given, as a task's state is its statistics, and "
            f"{type(prior).__name__} has none"
        )
    ask(prior, "statistics", "Decider")
    example = for_arms(prior, 2)
    if getattr(example, "actions", None) is not None or has_state(example):
        raise ValueError(
            f"Decider is for problems in which actions do not influence later signals; those of a "
            f"{type(prior).__name__} do"
        )
    argument_checks.offering(policy, example.belief(1))


def _known_arms(shares: Shares, arms: tuple[str, ...]) -> None:
    """Refuse promises to arms that there are not."""
    promised = list(shares.floor) if isinstance(shares.floor, Mapping) else []
    named = [("floor", arm) for arm in promised]
    named += [("control", shares.control)] if shares.control is not None else []
    for what, arm in named:
        if arm not in arms:
            raise ValueError(
                f"{what} names {validation.shown(arm)}, which is no arm of the prior; its arms are "
                f"{', '.join(arms[:20])}"
            )
    import numpy as np

    shares.of(arms, np.ones(len(arms)))
