"""What can be done with tasks, given a session of a store: each operation reads rows, decides or
adds up, and writes rows. Nothing is kept here but what can be made again from the store, so that
any number of processes may share one.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar, final

import numpy as np
from msgspec.structs import replace

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, printable, shown
from priorwise.core.protocols import for_arms
from priorwise.core.types import IntArray
from priorwise.serve.ahead import CLIENT, KEPT, Ahead, Newest, Until
from priorwise.serve.choosing import (
    Choice,
    Chooser,
    LivePrior,
    Mask,
    Rules,
    has_features,
    names_of,
    task_key,
)
from priorwise.serve.errors import Conflict, NotFound, Refused, TooLate
from priorwise.serve.folding import Fold, fold_of
from priorwise.serve.many import Batch, DecisionList, Decisions, chosen_together
from priorwise.serve.rows import COUNTED, Decided, Event, Kind, State, Task, copied
from priorwise.serve.stores.store import Session
from priorwise.serve.tokens import check_of, parsed, token_of
from priorwise.serve.types import (
    LONGEST,
    Allocate,
    Allocation,
    CloseTask,
    Context,
    Decide,
    DecideMany,
    Decision,
    DeleteUnit,
    Outcome,
    Record,
    Reward,
    Rewards,
    writable,
)

T = TypeVar("T")

MOST_ARMS: Final = 1000
"""Arms that a task may have: one request must not be able to ask for a matrix of any size."""
MOST_BYTES: Final = 100_000
"""Bytes that the names of a task's arms may have together: all that is done with it reads them."""
FEW_ARMS: Final = 32
BRIEF: Final = 0.005
"""Decisions among up to :data:`FEW_ARMS` that took less than so many seconds are made within the
transaction, where they hold up everybody else. All others are computed ahead of it.
"""
ENTRIES: Final = 10_000_000
"""Sum of squared numbers of arms of the choosers that are kept. Those for up to :data:`FEW_ARMS`
are small and always kept. Correlated arms have 24 bytes per entry, and all choosers for up to 310
arms fit. A client that asks for more pushes out its own.
"""
TOO_LATE: Final = (
    "the reward came after its window and the pull is closed; correct=True takes it all the same"
)

SAME_LAW: Final = 1e-4
"""How far a propensity that is computed again may be from the one in the log."""


@final
class Operations:
    """The operations of one set of settings; priors are looked up by ``prior_of(version)``."""

    def __init__(self, prior_of: Callable[[int], LivePrior], rules: Rules) -> None:
        """Remember the rules; ``settings`` is the number that a store gives them."""
        self.policy, self.horizon, self.seed = rules.policy, rules.horizon, rules.seed
        self.shares, self.propensities = rules.shares, rules.propensities
        self.window, self.missing, self.settings = rules.window, rules.missing, 0
        self._prior_of = prior_of
        self._choosers: OrderedDict[tuple[int, int], Chooser] = OrderedDict()  # the last used last
        self._builders: dict[tuple[int, int], str] = {}  # clients for whom large ones were built
        self._making = threading.Lock()
        self._seconds: dict[tuple[int, int], float] = {}  # that a decision took, lately
        self._results = Newest[bytes, Any](KEPT)  # of any operation
        self._folds: dict[int, Fold] = {}
        self._full_names: dict[int, tuple[str, ...] | None] = {}

    # -- priors

    def fold(self, version: int) -> Fold:
        """Return how statistics of tasks under a prior are summed up."""
        fold = self._folds.get(version)
        if fold is None:
            fold = self._folds[version] = fold_of(self._prior_of(version))
        return fold

    def chooser(self, version: int, arms: int) -> Chooser:
        """Return what decides under a prior about tasks with so many arms."""
        kind = (version, arms)
        chooser = self._choosers.get(kind)
        if chooser is None:
            chooser = Chooser(
                for_arms(self._prior_of(version), arms), self.fold(version), self.policy,
                self.horizon, self.seed, self.shares, self.propensities,
            )  # fmt: skip
        if arms <= FEW_ARMS:
            self._choosers[kind] = chooser
            return chooser
        with self._making:
            self._choosers[kind] = chooser
            self._choosers.move_to_end(kind)
            self._builders.setdefault(kind, CLIENT.get())
            self._make_room()
        return chooser

    def _make_room(self) -> None:
        """Drop large choosers, the oldest of the client that has the most, until the rest fits."""
        *older, newest = [kind for kind in self._choosers if kind[1] > FEW_ARMS]
        entries = Counter[str]()  # of each client
        for kind in (*older, newest):
            entries[self._builders[kind]] += kind[1] ** 2
        while older and entries.total() > ENTRIES:
            oldest = max(older, key=lambda kind: entries[self._builders[kind]])
            entries[self._builders.pop(oldest)] -= oldest[1] ** 2
            older.remove(oldest)
            del self._choosers[oldest]

    def _choice(
        self, task: Task, step: int, mask: Mask, context: list[list[float]] | None
    ) -> Choice:
        """Choose the arm of a pull: now if that is brief, otherwise as computed ahead."""
        kind = task.version, len(task.arms)
        chooser = self._choosers.get(kind)
        if chooser is None or kind[1] > FEW_ARMS:
            return self._computed_choice(task, step, mask, context)
        if chooser.one is not None:  # compiled: microseconds
            return chooser.choose(task, step, task.state, mask, context)
        if self._seconds.get(kind, math.inf) > BRIEF:
            return self._computed_choice(task, step, mask, context)
        began = time.thread_time()
        choice = chooser.choose(task, step, task.state, mask, context)
        self._took(kind, time.thread_time() - began)
        return choice

    def _took(self, kind: tuple[int, int], seconds: float) -> None:
        """Remember how long decisions compute: one slow call is forgotten after some fast ones.
        Time in which other threads computed does not count. Under load all decisions would
        otherwise queue behind the long ones.
        """
        self._seconds[kind] = max(seconds, self._seconds.get(kind, 0.0) / 2.0)

    def _computed_choice(
        self, task: Task, step: int, mask: Mask, context: list[list[float]] | None
    ) -> Choice:
        kind = task.version, len(task.arms)

        def work(then: Task, until: Until) -> Choice:
            chooser, began = self.chooser(*kind), time.thread_time()
            choice = chooser.choose(then, step, then.state, mask, context, until)
            self._took(kind, time.thread_time() - began)
            return choice

        return self._computed(task, [step, context], mask, work)

    def _computed_counts(self, task: Task, step: int, mask: Mask, pulls: int) -> IntArray:
        def work(then: Task, until: Until) -> IntArray:
            chooser = self.chooser(task.version, len(task.arms))
            return chooser.allocate(then, step, then.state, mask, pulls, until)

        return self._computed(task, [step, None, pulls], mask, work)

    def _computed(
        self, task: Task, asked: list[Any], mask: Mask, work: Callable[[Task, Until], T]
    ) -> T:
        """Return what was computed before for a task as it stands; ask for it where it was not."""
        facts = [task.version, task.key, task.arms, self.settings, asked]
        text = json.dumps([*facts, None if mask is None else mask.tolist()])
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32)
        digest.update(self.fold(task.version).encode(task.state))
        key, then = digest.digest(), copied(task)
        result: T | None = self._results.get(key)
        if result is None:
            raise Ahead([lambda until: self._results.__setitem__(key, work(then, until))])
        return result

    def arms_of(self, version: int) -> tuple[str, ...] | None:
        """Names of the arms of all tasks under a prior; None where each task has its own."""
        if version not in self._full_names:
            self._full_names[version] = arms_of(self._prior_of(version))
        return self._full_names[version]

    # -- tasks

    def opened(self, name: str, available: Sequence[str] | None, version: int, now: float) -> Task:
        """Return a new task, which is kept with its first decision."""
        arms = self.arms_of(version)
        if arms is None:
            if available is None:
                raise ArgumentError(
                    "available",
                    f"is missing: the arms of task {shown(name)} are its own, so its first "
                    "decision has to name them",
                )
            arms = _names(available)
        state = self.fold(version).empty(len(arms))
        return Task(name, task_key(self.seed, name), version, arms, state, now)

    def mask(self, task: Task, available: Sequence[str] | None) -> Mask:
        """Return which arms are available, 1 or 0 each; None for all. New names become arms of a
        task that has its own.
        """
        if available is None or (type(available) is tuple and available == task.arms):
            return None
        places = task.places
        if places is None:
            places = task.places = {arm: place for place, arm in enumerate(task.arms)}
        wanted = _names(available)
        new = [arm for arm in wanted if arm not in places]
        if new:
            if self.arms_of(task.version) is not None:
                raise ArgumentError(
                    "available",
                    f"names {shown(new[0])}, which is no arm of the prior",
                    cure=f"its arms are {', '.join(task.arms[:20])}",
                )
            task.arms = _names((*task.arms, *new))
            task.places = places = {arm: place for place, arm in enumerate(task.arms)}
            task.state = self.fold(task.version).grown(task.state, len(task.arms))
        if len(wanted) == len(task.arms):
            return None
        mask = np.zeros(len(task.arms), dtype=np.uint8)
        mask[[places[arm] for arm in wanted]] = 1
        return mask

    def decide(self, session: Session, asked: Decide, now: float) -> Decision:
        """Choose an arm for the next pull of a task, which starts with its first decision."""
        task = session.task(asked.task)
        new = task is None
        if task is None:
            task = self.opened(asked.task, asked.available, session.version, now)
        else:
            if asked.unit is not None or asked.request is not None:
                before = self._before(session, task, asked.unit, asked.request)
                if before is not None:
                    return _decision(task, before, True)
            if task.closed is not None:
                _check_open(task)
        row = self._chosen(task, asked, now)
        if new:
            session.add_task(task)
        task.steps = row.step
        session.add_decided(task, row)
        session.save(task)
        return _decision(task, row)

    def decide_many(self, session: Session, asked: DecideMany, now: float) -> Sequence[Decision]:
        """Choose an arm for each of several tasks, all or none of them."""
        names, available = asked.tasks, asked.available
        if available is None and asked.contexts is None and asked.requests is None:
            together = self._decided_together(session, names, now)
            if together is not None:
                return together
        if isinstance(available, list):
            available = tuple(available)  # compared with the arms of each task
        nothing: list[None] = [None] * len(names)
        tasks: dict[str, Task] = {}
        rows: list[tuple[Task, Decided, bool]] = []
        new: dict[tuple[str, str], Decided] = {}  # of these requests
        missing: list[Callable[[Until], None]] = []
        for name, context, request in zip(
            names, asked.contexts or nothing, asked.requests or nothing, strict=True
        ):
            task = tasks.get(name)
            if task is None:  # copied: nothing is written before all is decided
                task = session.task(name) or self.opened(name, available, session.version, now)
                tasks[name] = task = copied(task)
            before = None if request is None else new.get((name, request))
            if before is None and request is not None and session.task(name) is not None:
                before = self._before(session, task, None, request)
            if before is not None:
                rows.append((task, before, True))
                continue
            _check_open(task)
            try:
                row = self._chosen(task, Decide(name, available, context, None, request), now)
            except Ahead as ahead:  # all that is missing is computed together
                missing += ahead.works
                continue
            task.steps = row.step
            rows.append((task, row, False))
            if request is not None:
                new[name, request] = row
        if missing:
            raise Ahead(missing)
        for task, row, repeated in rows:
            if not repeated:
                there = session.task(task.name)
                if there is None:
                    session.add_task(task)
                    there = task
                there.arms, there.places, there.state = task.arms, task.places, task.state
                there.steps = row.step
                session.add_decided(there, row)
                session.save(there)
        return DecisionList(_decision(*row) for row in rows)

    def _decided_together(
        self, session: Session, names: Sequence[str], now: float
    ) -> Sequence[Decision] | None:
        """Decide about tasks with all their arms at once; None where that cannot be: with
        propensities, contexts, repeated names or a policy that is not compiled.
        """
        if self.propensities or len(set(names)) < len(names):
            return None
        get, version, tasks = session.task, session.version, list[Task]()
        new: list[Task] = []
        groups: dict[tuple[int, int], list[Task]] = {}
        for name in names:
            task = get(name)
            if task is None:
                task = self.opened(name, None, version, now)
                new.append(task)
            elif task.closed is not None:
                _check_open(task)
            tasks.append(task)
            kind = (task.version, len(task.arms))
            if kind in groups:
                groups[kind].append(task)
            else:
                groups[kind] = [task]
        lives = {kind: self.chooser(*kind).live for kind in groups}
        if any(live is None for live in lives.values()):
            return None
        for task in new:
            session.add_task(task)
        for kind, some in groups.items():
            arms = chosen_together(lives[kind], some)
            for task in some:
                task.steps += 1
            session.add_batch(some, Batch(some, arms, kind[1], now, self.settings))
        if len(groups) == 1:
            return Decisions(tasks, arms)
        return DecisionList(
            _decision(task, row)
            for task in tasks
            if (row := session.decided(task.name, task.steps))
        )

    def _chosen(self, task: Task, asked: Decide, now: float) -> Decided:
        """Return the row of a decision; where there is none, the task is left as it was."""
        before = task.arms, task.places, task.state
        try:
            mask, context = self.mask(task, asked.available), asked.context
            width, step = len(task.arms), task.steps + 1
            rows = None
            if context is not None or has_features(self._prior_of(task.version)):
                rows = checked_context(context, self.chooser(task.version, width).prior)
            choice = self._choice(task, step, mask, rows)
        except BaseException:
            task.arms, task.places, task.state = before  # what is refused leaves no arms behind
            raise
        return Decided(
            step, choice.arm, width, task.events, now, self.settings, 1,
            None if mask is None else "".join(map(str, mask.tolist())),
            choice.propensity, choice.error, rows, asked.unit, asked.request,
        )  # fmt: skip

    def allocate(self, session: Session, asked: Allocate, now: float) -> Allocation:
        """Choose the next pulls of a task at once."""
        name, pulls = asked.task, asked.pulls
        task = session.task(name)
        new = task is None
        if task is None:
            task = self.opened(name, asked.available, session.version, now)
        else:
            row = self._before(session, task, None, asked.request)
            if row is not None:
                if row.counts is None:
                    raise Conflict(f"request {shown(asked.request)} decided one pull before")
                same = dict(zip(task.arms, row.counts, strict=False))
                return Allocation(
                    same, token_of(task, row.step), name, row.step, task.version, True
                )
            _check_open(task)
        before = task.arms, task.places, task.state
        try:
            mask = self.mask(task, asked.available)
            if has_features(self._prior_of(task.version)):
                raise ArgumentError(
                    "task", "must have no contexts for allocate", cure="decide pull by pull"
                )
            step = task.steps + 1
            counts = [int(each) for each in self._computed_counts(task, step, mask, pulls)]
        except BaseException:
            task.arms, task.places, task.state = before
            raise
        if new:
            session.add_task(task)
        task.steps += pulls
        row = Decided(
            step, -1, len(task.arms), task.events, now, self.settings, pulls,
            None if mask is None else "".join(map(str, mask.tolist())),
            request=asked.request, counts=tuple(counts),
        )  # fmt: skip
        session.add_decided(task, row)
        session.save(task)
        each = dict(zip(task.arms, counts, strict=True))
        return Allocation(each, token_of(task, step), name, step, task.version)

    def _before(
        self, session: Session, task: Task, unit: str | None, request: str | None
    ) -> Decided | None:
        """Return the decision that a request or a unit got before."""
        if request is not None:
            row = session.by_request(task.name, request)
            if isinstance(row, Event):
                raise Conflict(f"request {shown(request)} recorded rewards before")
            if row is not None:
                return row
        return None if unit is None else session.by_unit(task.name, unit)

    # -- rewards

    def reward(self, session: Session, asked: Reward, now: float) -> Outcome:
        """Take the reward of a decision; the same reward again changes nothing."""
        name, step, check = parsed(asked.token)
        value, correct = asked.value, asked.correct
        task = session.task(name)
        row = None if task is None else session.decided(name, step)
        if task is None or row is None or row.counts is not None or check != check_of(task, step):
            raise NotFound(f"no decision has the token {step}.{check}.{printable(name)[:80]}")
        fold = self.fold(task.version)
        fold.check(value)
        before = session.settled(name, step)
        kind: Kind = "reward"
        if before is not None:
            if before.kind == "sealed":
                raise Conflict("the data of this decision's unit were deleted")
            if before.kind in ("reward", "correction") and before.value == value:
                return "repeated"
            if not correct:
                if before.kind in ("expired", "left out"):
                    raise TooLate(TOO_LATE)
                raise Conflict(
                    f"this decision has the reward {before.value:g} already, and now {value:g} "
                    "came; correct=True replaces it"
                )
            kind = "correction"
        elif self.window is not None and now - row.time > self.window and not correct:
            self._expire(session, task, row, now)
            raise TooLate(TOO_LATE)
        number = task.events + 1
        event = Event(number, kind, step, row.arm, 1, value, None, now)
        if before is None:
            task.state = fold.add(task.state, row.arm, 1, value, None, row.context)
        else:
            self._check_unsealed(session, task, before)
            events = [*session.events(name), event]
            task.state = self.folded_from(task, len(task.arms), events, session.decided)
        task.events = number
        session.add_event(task, event)
        session.save(task)
        return "counted" if before is None else "corrected"

    def rewards(self, session: Session, asked: Rewards, now: float) -> list[Outcome | Exception]:
        """Take rewards of several decisions; an error takes the place of an outcome."""
        result: list[Outcome | Exception] = []
        for each in asked.rewards:
            try:
                if isinstance(each, Reward):
                    result.append(self.reward(session, each.checked(), now))
                elif isinstance(each, Exception):
                    result.append(each)
            except (Refused, ArgumentError) as error:
                result.append(error)
        return result

    def record(self, session: Session, asked: Record, now: float) -> Outcome:
        """Take the sum of the rewards of several pulls of an arm."""
        name, arm, request = asked.task, asked.arm, asked.request
        pulls, value, squares = asked.pulls, asked.reward, asked.squares
        task = session.task(name)
        if task is None:
            raise NotFound(f"no task is called {shown(name)}")
        place = task.arms.index(arm) if arm in task.arms else None
        if request is not None and (before := session.by_request(name, request)) is not None:
            if not isinstance(before, Event):
                raise Conflict(f"request {shown(request)} was a decision before")
            same = (before.arm, before.pulls, before.value, before.squares)
            if same != (place, pulls, value, squares):
                raise Conflict(f"request {shown(request)} recorded something else before")
            return "repeated"
        if place is None:
            arms = ", ".join(task.arms[:20])
            raise ArgumentError("arm", f"must be one of the task's, {arms}", got=arm)
        fold = self.fold(task.version)
        fold.check_record(pulls, value, squares)
        task.state = fold.add(task.state, place, pulls, value, squares)
        task.events += 1
        event = Event(task.events, "record", None, place, pulls, value, squares, now, request)
        session.add_event(task, event)
        task.steps = max(task.steps, int(sum(fold.pulls(task.state) or ())))
        session.save(task)
        return "counted"

    def expire(self, session: Session, name: str, step: int, now: float) -> bool:
        """Close a pull whose reward did not come in time; whether that was still to do."""
        task, row = session.task(name), session.decided(name, step)
        if task is None or row is None or session.settled(name, step) is not None:
            return False
        if self.window is None or now - row.time <= self.window:
            return False
        self._expire(session, task, row, now)
        return True

    def _expire(self, session: Session, task: Task, row: Decided, now: float) -> None:
        number = task.events + 1
        if self.missing == "leave out":
            event = Event(number, "left out", row.step, row.arm, 0, None, None, now)
        else:
            value = float(self.missing)
            event = Event(number, "expired", row.step, row.arm, 1, value, None, now)
            fold = self.fold(task.version)
            task.state = fold.add(task.state, row.arm, 1, value, None, row.context)
        task.events = number
        session.add_event(task, event)
        session.save(task)

    def close(self, session: Session, asked: CloseTask, now: float) -> bool:
        """Close a task: it takes no more decisions, but late rewards."""
        task = session.task(asked.task)
        if task is None:
            raise NotFound(f"no task is called {shown(asked.task)}")
        if task.closed is not None:
            return False
        task.closed = now
        session.save(task)
        return True

    # -- summing up again

    def folded(self, session: Session, task: Task) -> State:
        """Sum up a task's events again, in their order."""
        events = session.events(task.name)
        return self.folded_from(task, len(task.arms), events, session.decided)

    def folded_from(
        self,
        task: Task,
        arms: int,
        events: Sequence[Event],
        decided: Callable[[str, int], Decided | None],
        upto: int | None = None,
    ) -> State:
        """Sum up given events, all or those up to a number; a corrected one counts as it was
        corrected.
        """
        fold = self.fold(task.version)
        kept = [event for event in events if upto is None or event.number <= upto]
        # of each decision the last event counts
        last = {event.step: event.number for event in kept if event.step is not None}
        state = fold.empty(arms)
        for event in kept:
            if event.state is not None:
                state = fold.decode(event.state)
            elif (
                event.kind in COUNTED
                and event.value is not None
                and (event.step is None or last[event.step] == event.number)
            ):
                row = None if event.step is None else decided(task.name, event.step)
                context = None if row is None else row.context
                state = fold.add(state, event.arm, event.pulls, event.value, event.squares, context)
        return state

    def replay(self, session: Session, name: str) -> list[int]:
        """Make every decision of a task again from the log; return the steps that come out
        otherwise. Decisions under other settings, and of units that were deleted where these had a
        context, are passed over.
        """
        task = session.task(name)
        if task is None:
            raise NotFound(f"no task is called {shown(name)}")
        events, differ = session.events(name), []
        for row in session.decisions(name):
            chooser = self.chooser(task.version, row.width)
            if row.settings != self.settings:
                continue
            if row.context is None and has_features(chooser.prior):
                continue
            # arms that came later do not matter to what was known then
            state = self.folded_from(task, row.width, events, session.decided, row.seen)
            mask = None if row.mask is None else np.array([int(c) for c in row.mask], np.uint8)
            then = Task(name, task.key, task.version, task.arms[: row.width], state, 0.0)
            if row.counts is not None:
                again = chooser.allocate(then, row.step, state, mask, row.pulls)
                same = tuple(int(each) for each in again) == row.counts
            else:
                choice = chooser.choose(then, row.step, state, mask, row.context)
                same = choice.arm == row.arm and _close(choice.propensity, row.propensity)
            if not same:
                differ.append(row.step)
        return differ

    # -- deletion

    def delete(self, session: Session, asked: DeleteUnit, now: float) -> int:
        """Erase what is known of a unit; the arms it was shown and its rewards stay as part of
        sums. Returns in how many decisions it was.
        """
        rows = session.of_unit(asked.unit)
        for task, steps in rows:
            if has_features(self._prior_of(task.version)):
                self._seal(session, task, steps)
        session.erase(asked.unit)
        return sum(len(steps) for _, steps in rows)

    def _seal(self, session: Session, task: Task, steps: list[int]) -> None:
        """Put the sum of all events so far in the place of each event that reads a context which
        is to be erased. A later correction takes back what such a sum has, so it gets its own.
        """
        events, fold = session.events(task.name), self.fold(task.version)
        sealed: list[Event] = []
        for event in events:
            erased = event.step in steps and event.kind in COUNTED
            if erased or (sealed and event.kind == "correction"):
                state = fold.encode(
                    self.folded_from(task, len(task.arms), events, session.decided, event.number)
                )
                sealed.append(
                    replace(event, state=state, kind="sealed", value=None)
                    if erased
                    else replace(event, state=state)
                )
        for event in sealed:
            session.replace_event(task.name, event)

    def _check_unsealed(self, session: Session, task: Task, before: Event) -> None:
        """Refuse to correct what is only known as part of a sum."""
        sealed = [event.number for event in session.events(task.name) if event.state is not None]
        if sealed and before.number <= max(sealed):
            raise Conflict(
                "this reward is part of a sum since a unit was deleted: it cannot change"
            )


def _decision(task: Task, row: Decided, repeated: bool = False) -> Decision:
    if row.counts is not None:
        raise Conflict(f"request {shown(row.request)} allocated a batch before")
    return Decision(
        task.arms[row.arm], token_of(task, row.step), row.propensity, task.name, row.step,
        task.version, row.error, repeated,
    )  # fmt: skip


def _check_open(task: Task) -> None:
    if task.closed is not None:
        raise Conflict(f"task {shown(task.name)} is closed")


def arms_of(prior: LivePrior) -> tuple[str, ...] | None:
    """Names of the arms of a prior's tasks; None where each task has its own."""
    if hasattr(prior, "for_arms"):
        return None
    return names_of(prior) or tuple(str(place) for place in range(prior.arms))


def _close(now: float | None, then: float | None) -> bool:
    """Whether a propensity is that of the log, up to what quadratures of two versions differ by."""
    return now is then is None or (
        now is not None and then is not None and abs(now - then) <= SAME_LAW
    )


def _names(arms: object) -> tuple[str, ...]:
    """Check names of arms."""
    if isinstance(arms, (str, bytes, Mapping)) or not isinstance(arms, Iterable):
        raise ArgumentTypeError("available", "must be a list of names of arms", got=arms)
    names = tuple(arms)
    if not names:
        raise ArgumentError("available", "must name at least one arm")
    if len(names) > MOST_ARMS:
        raise ArgumentError("available", f"must name at most {MOST_ARMS:,} arms", got=len(names))
    for arm in names:
        if not isinstance(arm, str) or not 0 < len(arm) <= LONGEST or not writable(arm):
            raise ArgumentError(
                "available",
                f"must hold names of 1 to {LONGEST} letters without NUL that UTF-8 can write",
                got=arm,
            )
    if len(set(names)) < len(names):
        raise ArgumentError("available", "must name each arm once")
    size = sum(len(arm) if arm.isascii() else len(arm.encode()) for arm in names)
    if size > MOST_BYTES:
        raise ArgumentError(
            "available",
            f"must have names of at most {MOST_BYTES:,} bytes of UTF-8 together",
            got=size,
        )
    return names


def checked_context(context: Context | None, prior: LivePrior) -> list[list[float]]:
    """Check features, one row per arm."""
    if not has_features(prior):
        raise ArgumentError("context", "must be left out: this prior has no features")
    if context is None:
        raise ArgumentError(
            "context", "is missing: this prior decides from features, one row per arm"
        )
    shape = (prior.arms, getattr(prior, "dim", None))
    rows: list[list[float]] = validation.matrix("context", context, shape).tolist()
    return rows
