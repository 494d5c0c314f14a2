"""What can be done with tasks, given a session of a store: each operation reads rows, decides or
adds up, and writes rows. Nothing is kept here but what can be made again from the store, so that
any number of processes may share one.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np

from priorwise.core import hashing, validation
from priorwise.core.protocols import for_arms
from priorwise.serve.ahead import Ahead, Results, Until
from priorwise.serve.choosing import Chooser, Shares, has_features, task_key
from priorwise.serve.errors import Conflict, NotFound, TooLate
from priorwise.serve.folding import fold_of
from priorwise.serve.rows import COUNTED, Decided, Event, Task, copied

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
arms fit. To push others out, a client has to let the service build larger ones for seconds.
"""
TOO_LATE: Final = (
    "the reward came after its window and the pull is closed; correct=True takes it all the same"
)

SAME_LAW: Final = 1e-4
"""How far a propensity that is computed again may be from the one in the log."""

Outcome = Literal["counted", "repeated", "corrected"]


class Decision(NamedTuple):
    """An arm to play, and the token that its reward will come with.

    ``propensity`` is the probability with which this arm was drawn, None where propensities are
    off; ``error`` is how far the law that it was drawn from may be from the policy's, in total
    variation. ``repeated``: made before, for the same request or unit; it is not another pull.
    """

    arm: str
    token: str
    propensity: float | None
    task: str
    step: int
    version: int
    error: float | None = None
    repeated: bool = False


class Allocation(NamedTuple):
    """How many of the next pulls each arm gets."""

    counts: dict[str, int]
    token: str
    task: str
    step: int
    version: int
    repeated: bool = False


@final
class Operations:
    """The operations of one set of settings; priors are looked up by ``prior_of(version)``."""

    def __init__(
        self,
        prior_of: Any,
        policy: Any,
        *,
        horizon: int,
        seed: int,
        shares: Shares,
        propensities: bool,
        window: float | None,
        missing: float | Literal["leave out"],
        settings: int = 0,
    ) -> None:
        """Remember the settings."""
        self.policy, self.horizon, self.seed = policy, horizon, seed
        self.shares, self.propensities = shares, propensities
        self.window, self.missing, self.settings = window, missing, settings
        self._prior_of = prior_of
        self._choosers: OrderedDict[tuple[int, int], Chooser] = OrderedDict()  # the last used last
        self._making = threading.Lock()
        self._seconds: dict[tuple[int, int], float] = {}  # that a decision took, lately
        self._results = Results()
        self._folds: dict[int, Any] = {}
        self._full_names: dict[int, tuple[str, ...] | None] = {}

    # -- priors

    def fold(self, version: int) -> Any:
        """Return how statistics of tasks under a prior are summed up."""
        found = self._folds.get(version)
        if found is None:
            found = self._folds[version] = fold_of(self._prior_of(version))
        return found

    def chooser(self, version: int, arms: int) -> Chooser:
        """Return what decides under a prior about tasks with so many arms."""
        found = self._choosers.get((version, arms))
        if found is None:
            found = Chooser(
                for_arms(self._prior_of(version), arms), self.fold(version), self.policy,
                self.horizon, self.seed, self.shares, self.propensities,
            )  # fmt: skip
        if arms <= FEW_ARMS:
            self._choosers[version, arms] = found
            return found
        with self._making:
            self._choosers[version, arms] = found
            self._choosers.move_to_end((version, arms))
            large = [kind for kind in self._choosers if kind[1] > FEW_ARMS]
            entries = sum(kind[1] ** 2 for kind in large)
            for kind in large[:-1]:
                if entries <= ENTRIES:
                    break
                del self._choosers[kind]
                entries -= kind[1] ** 2
        return found

    def _choice(self, task: Task, step: int, mask: Any, context: Any) -> Any:
        """Choose the arm of a pull: now if that is brief, otherwise as computed ahead."""
        kind = task.version, len(task.arms)
        chooser, before = self._choosers.get(kind), self._seconds.get(kind, math.inf)
        if chooser is None or kind[1] > FEW_ARMS:
            return self._computed(task, step, mask, context)
        if hasattr(chooser, "one"):  # compiled: microseconds
            return chooser.choose(task, step, task.state, mask, context)
        if before > BRIEF:
            return self._computed(task, step, mask, context)
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

    def _computed(
        self, task: Task, step: int, mask: Any, context: Any = None, pulls: int | None = None
    ) -> Any:
        """Return a choice, or with ``pulls`` an allocation, that was computed before; ask for it
        where it was not.
        """
        kind = task.version, len(task.arms)
        facts = json.dumps(
            [
                *kind, task.key, step, pulls, task.arms, context, self.settings,
                None if mask is None else mask.tolist(),
            ]
        )  # fmt: skip
        digest = blake2b(facts.encode("utf-8", "surrogatepass"), digest_size=32)
        digest.update(self.fold(task.version).encode(task.state))
        key, then = digest.digest(), copied(task)
        found = self._results.get(key)
        if found is not None:
            return found

        def work(until: Until) -> None:
            chooser = self.chooser(*kind)
            if pulls is not None:
                counts = chooser.allocate(then, step, then.state, mask, pulls, until)
                self._results.put(key, counts)
                return
            began = time.thread_time()
            choice = chooser.choose(then, step, then.state, mask, context, until)
            self._took(kind, time.thread_time() - began)
            self._results.put(key, choice)

        raise Ahead([work])

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
                raise ValueError(
                    f"available is missing: the arms of task {validation.shown(name)} are its own, "
                    "so its first decision has to name them"
                )
            arms = _names(available)
        state = self.fold(version).empty(len(arms))
        return Task(name, task_key(self.seed, name), version, arms, state, now)

    def mask(self, task: Task, available: Sequence[str] | None) -> Any:
        """Return which arms are available, 1 or 0 each; None for all. New names become arms of a
        task that has its own.
        """
        if available is None:
            return None
        if type(available) is tuple and available == task.arms:
            return None
        places = task.places
        if places is None:
            places = task.places = {arm: place for place, arm in enumerate(task.arms)}
        wanted = _names(available)
        new = [arm for arm in wanted if arm not in places]
        if new:
            if self.arms_of(task.version) is not None:
                known = ", ".join(task.arms[:20])
                raise ValueError(
                    f"available names {validation.shown(new[0])}, which is no arm of the prior; "
                    f"its arms are {known}"
                )
            task.arms = _names((*task.arms, *new))
            task.places = places = {arm: place for place, arm in enumerate(task.arms)}
            task.state = self.fold(task.version).grown(task.state, len(task.arms))
        if len(wanted) == len(task.arms):
            return None
        mask = np.zeros(len(task.arms), dtype=np.uint8)
        mask[[places[arm] for arm in wanted]] = 1
        return mask

    def decide(
        self,
        session: Any,
        name: str,
        version: int,
        now: float,
        available: Sequence[str] | None = None,
        context: Any = None,
        unit: str | None = None,
        request: str | None = None,
    ) -> Decision:
        """Choose an arm for the next pull of a task, which starts with its first decision."""
        task = session.task(name)
        new = task is None
        if task is None:
            task = self.opened(name, available, version, now)
        else:
            before = self._before(session, task, unit, request)
            if before is not None:
                return self._told(task, before)
            if task.closed is not None:
                raise Conflict(f"task {validation.shown(name)} is closed")
        kept = task.arms, task.places, task.state
        try:
            mask = self.mask(task, available)
            width = len(task.arms)
            if context is not None or has_features(self._prior_of(task.version)):
                context = checked_context(context, self.chooser(task.version, width).prior)
            step = task.steps + 1
            choice = self._choice(task, step, mask, context)
        except BaseException:
            task.arms, task.places, task.state = kept  # what is refused leaves no arms behind
            raise
        if new:
            session.add_task(task)
        task.steps = step
        row = Decided(
            step, choice.arm, width, task.events, now, self.settings, 1,
            None if mask is None else "".join(map(str, mask.tolist())),
            choice.propensity, choice.error, context, unit, request,
        )  # fmt: skip
        session.add_decided(task, row)
        session.save(task)
        return Decision(
            task.arms[choice.arm], token_of(task, step), choice.propensity, name, step,
            task.version, choice.error,
        )  # fmt: skip

    def allocate(
        self,
        session: Any,
        name: str,
        version: int,
        now: float,
        pulls: int,
        available: Sequence[str] | None = None,
        request: str | None = None,
    ) -> Allocation:
        """Choose the next ``pulls`` pulls of a task at once."""
        task = session.task(name)
        new = task is None
        if task is None:
            task = self.opened(name, available, version, now)
        else:
            before = self._before(session, task, None, request)
            if before is not None:
                if before.counts is None:
                    raise Conflict(f"request {validation.shown(request)} decided one pull before")
                same = dict(zip(task.arms, before.counts, strict=False))
                return Allocation(
                    same, token_of(task, before.step), name, before.step, task.version, True
                )
            if task.closed is not None:
                raise Conflict(f"task {validation.shown(name)} is closed")
        kept = task.arms, task.places, task.state
        try:
            mask = self.mask(task, available)
            if has_features(self._prior_of(task.version)):
                raise ValueError("allocate is for tasks without contexts: decide pull by pull")
            step = task.steps + 1
            counts = [int(each) for each in self._computed(task, step, mask, None, pulls)]
        except BaseException:
            task.arms, task.places, task.state = kept
            raise
        if new:
            session.add_task(task)
        task.steps += pulls
        row = Decided(
            step, -1, len(task.arms), task.events, now, self.settings, pulls,
            None if mask is None else "".join(map(str, mask.tolist())),
            None, None, None, None, request, tuple(counts),
        )  # fmt: skip
        session.add_decided(task, row)
        session.save(task)
        told = dict(zip(task.arms, counts, strict=True))
        return Allocation(told, token_of(task, step), name, step, task.version)

    def _before(
        self, session: Any, task: Task, unit: str | None, request: str | None
    ) -> Decided | None:
        """Return the decision that a request or a unit got before."""
        if request is not None:
            found = session.by_request(task.name, request)
            if found is not None:
                if isinstance(found, Event):
                    raise Conflict(f"request {validation.shown(request)} recorded rewards before")
                return found
        return None if unit is None else session.by_unit(task.name, unit)

    def _told(self, task: Task, row: Decided) -> Decision:
        if row.counts is not None:
            raise Conflict(f"request {validation.shown(row.request)} allocated a batch before")
        return Decision(
            task.arms[row.arm], token_of(task, row.step), row.propensity, task.name, row.step,
            task.version, row.error, True,
        )  # fmt: skip

    # -- rewards

    def reward(
        self, session: Any, name: str, step: int, check: str, value: float, now: float,
        correct: bool = False,
    ) -> Outcome:  # fmt: skip
        """Take the reward of a decision; the same reward again changes nothing."""
        task = session.task(name)
        row = None if task is None else session.decided(name, step)
        if task is None or row is None or row.counts is not None or check != check_of(task, step):
            raise NotFound(
                f"no decision has the token {step}.{check}.{validation.printable(name)[:80]}"
            )
        fold = self.fold(task.version)
        fold.check(value)
        before = session.settled(name, step)
        kind: Any = "reward"
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
            task.state = self.folded_from(
                task.version, len(task.arms), [*session.events(name), event], session.decided, name
            )
        task.events = number
        session.add_event(task, event)
        session.save(task)
        return "counted" if before is None else "corrected"

    def record(
        self, session: Any, name: str, arm: str, pulls: int, value: float, now: float,
        squares: float | None = None, request: str | None = None,
    ) -> Outcome:  # fmt: skip
        """Take the sum of the rewards of several pulls of an arm."""
        task = session.task(name)
        if task is None:
            raise NotFound(f"no task is called {validation.shown(name)}")
        if request is not None and (before := session.by_request(name, request)) is not None:
            if not isinstance(before, Event):
                raise Conflict(f"request {validation.shown(request)} was a decision before")
            same = (before.arm, before.pulls, before.value, before.squares)
            if arm not in task.arms or same != (task.arms.index(arm), pulls, value, squares):
                raise Conflict(
                    f"request {validation.shown(request)} recorded something else before"
                )
            return "repeated"
        if arm not in task.arms:
            raise ValueError(
                f"arm must be one of the task's, {', '.join(task.arms[:20])}, got "
                f"{validation.shown(arm)}"
            )
        fold = self.fold(task.version)
        fold.check_record(pulls, value, squares)
        place = task.arms.index(arm)
        task.state = fold.add(task.state, place, pulls, value, squares)
        task.events += 1
        event = Event(task.events, "record", None, place, pulls, value, squares, now, request)
        session.add_event(task, event)
        known = fold.pulls(task.state)
        task.steps = max(task.steps, int(sum(known)))
        session.save(task)
        return "counted"

    def expire(self, session: Any, name: str, step: int, now: float) -> bool:
        """Close a pull whose reward did not come in time; whether that was still to do."""
        task, row = session.task(name), session.decided(name, step)
        if task is None or row is None or session.settled(name, step) is not None:
            return False
        if self.window is None or now - row.time <= self.window:
            return False
        self._expire(session, task, row, now)
        return True

    def _expire(self, session: Any, task: Task, row: Decided, now: float) -> None:
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

    def close(self, session: Any, name: str, now: float) -> bool:
        """Close a task: it takes no more decisions, but late rewards."""
        task = session.task(name)
        if task is None:
            raise NotFound(f"no task is called {validation.shown(name)}")
        if task.closed is not None:
            return False
        task.closed = now
        session.save(task)
        return True

    # -- summing up again

    def folded(self, session: Any, task: Task, upto: int | None = None) -> Any:
        """Sum up a task's events again, all or those up to a number, in their order."""
        return self.folded_from(
            task.version, len(task.arms), session.events(task.name), session.decided, task.name,
            upto,
        )  # fmt: skip

    def folded_from(
        self, version: int, arms: int, events: list[Event], decided: Any, name: str,
        upto: int | None = None,
    ) -> Any:  # fmt: skip
        """Sum up given events; a corrected one counts as it was corrected."""
        fold = self.fold(version)
        kept = [each for each in events if upto is None or each.number <= upto]
        # of each decision the last event counts
        last = {each.step: each.number for each in kept if each.step is not None}
        state = fold.empty(arms)
        for event in kept:
            if event.state is not None:
                state = fold.decode(event.state)
            elif (
                event.kind in COUNTED
                and event.value is not None
                and (event.step is None or last[event.step] == event.number)
            ):
                row = None if event.step is None else decided(name, event.step)
                context = None if row is None else row.context
                state = fold.add(state, event.arm, event.pulls, event.value, event.squares, context)
        return state

    def replay(self, session: Any, name: str) -> list[int]:
        """Make every decision of a task again from the log; return the steps that come out
        otherwise. Decisions under other settings, and of units that were deleted where these had a
        context, are passed over.
        """
        task = session.task(name)
        if task is None:
            raise NotFound(f"no task is called {validation.shown(name)}")
        events, differ = session.events(name), []
        for row in session.decisions(name):
            chooser = self.chooser(task.version, row.width)
            if row.settings != self.settings:
                continue
            if row.context is None and has_features(chooser.prior):
                continue
            # arms that came later do not matter to what was known then
            known = [each for each in events if each.number <= row.seen]
            state = self.folded_from(
                task.version, row.width, known, session.decided, name, row.seen
            )
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

    def delete(self, session: Any, unit: str) -> int:
        """Erase what is known of a unit; the arms it was shown and its rewards stay as part of
        sums. Returns in how many decisions it was.
        """
        rows = session.of_unit(unit)
        for task, steps in rows:
            if has_features(self._prior_of(task.version)):
                self._seal(session, task, steps)
        session.erase(unit)
        return sum(len(steps) for _, steps in rows)

    def _seal(self, session: Any, task: Task, steps: list[int]) -> None:
        """Put the sum of all events so far in the place of each event that reads a context which
        is to be erased. A later correction takes back what such a sum has, so it gets its own.
        """
        events, fold = session.events(task.name), self.fold(task.version)
        sealed: list[Event] = []
        for event in events:
            erased = event.step in steps and event.kind in COUNTED
            if erased or (sealed and event.kind == "correction"):
                state = self.folded_from(
                    task.version, len(task.arms), events, session.decided, task.name, event.number
                )
                told = event._replace(state=fold.encode(state))
                sealed.append(told._replace(kind="sealed", value=None) if erased else told)
        for event in sealed:
            session.replace_event(task.name, event)

    def _check_unsealed(self, session: Any, task: Task, before: Event) -> None:
        """Refuse to correct what is only known as part of a sum."""
        sealed = [each.number for each in session.events(task.name) if each.state is not None]
        if sealed and before.number <= max(sealed):
            raise Conflict(
                "this reward is part of a sum since a unit was deleted: it cannot change"
            )


def arms_of(prior: Any) -> tuple[str, ...] | None:
    """Names of the arms of a prior's tasks; None where each task has its own."""
    if hasattr(prior, "for_arms"):
        return None
    return getattr(prior, "names", None) or tuple(str(each) for each in range(prior.arms))


def _close(now: float | None, then: float | None) -> bool:
    """Whether a propensity is that of the log, up to what quadratures of two versions differ by."""
    return now is then is None or (
        now is not None and then is not None and abs(now - then) <= SAME_LAW
    )


def token_of(task: Task, step: int) -> str:
    """Return the token of a decision: its step, a check, and the task."""
    return f"{step}.{check_of(task, step)}.{task.name}"


def check_of(task: Task, step: int) -> str:
    """Eight digits that tell tokens of this service from others."""
    return f"{hashing.mix(task.key + step) >> 32:08x}"


def parsed(token: Any) -> tuple[str, int, str]:
    """Return the task, the step and the check of a token."""
    if isinstance(token, str):
        step, _, rest = token.partition(".")
        check, dot, task = rest.partition(".")
        if dot and len(check) == 8 and step.isascii() and step.isdigit() and len(step) < 19:
            return task, int(step), check
    raise NotFound(f"token must be one that a decision came with, got {validation.shown(token)}")


def writable(text: str) -> bool:
    """Whether every store and every file can hold a text."""
    if "\x00" in text:
        return False
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _names(arms: Any) -> tuple[str, ...]:
    """Check names of arms."""
    if isinstance(arms, (str, bytes, Mapping)) or not hasattr(arms, "__iter__"):
        raise TypeError(f"available must be a list of names of arms, got {validation.shown(arms)}")
    names = tuple(arms)
    if not names:
        raise ValueError("available must name at least one arm")
    if len(names) > MOST_ARMS:
        raise ValueError(f"available must name at most {MOST_ARMS:,} arms, got {len(names):,}")
    for arm in names:
        if not isinstance(arm, str) or not 0 < len(arm) <= 500 or not writable(arm):
            raise ValueError(
                "available must hold names of 1 to 500 letters without NUL that UTF-8 can write, "
                f"got {validation.shown(arm)}"
            )
    if len(set(names)) < len(names):
        raise ValueError("available must name each arm once")
    size = sum(len(arm) if arm.isascii() else len(arm.encode()) for arm in names)
    if size > MOST_BYTES:
        raise ValueError(
            f"available must have names of at most {MOST_BYTES:,} bytes of UTF-8 together, got "
            f"{size:,}"
        )
    return names


def checked_context(context: Any, prior: Any) -> Any:
    """Check features, one row per arm."""
    if not has_features(prior):
        raise ValueError("context must be left out: this prior has no features")
    if context is None:
        raise ValueError("context is missing: this prior decides from features, one row per arm")
    shape = (prior.arms, getattr(prior, "dim", None))
    return validation.matrix("context", context, shape).tolist()
