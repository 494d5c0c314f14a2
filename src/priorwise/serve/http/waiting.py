"""Between the event loop and the store, whose writer commits many requests at once."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, final

from priorwise.serve.ahead import CLIENT, ROUNDS, Ahead, Turns, too_busy
from priorwise.serve.errors import Unavailable
from priorwise.serve.http.limits import Limits

WAITED: Final = "other long computations came first, and took the time that this one had"


@final
class Few:
    """Threads for work of one sort, which takes a while. Clients take turns, and each of them may
    have so many works that run or wait.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        """Start no thread yet."""
        self._name, self._most, self._count = name, most, Counter[str]()
        self._pool, self._lock = ThreadPoolExecutor(threads, f"priorwise-{name}"), threading.Lock()
        self.waiting: Turns[tuple[Future[Any], Callable[[], Any]]] = Turns()

    def submit(self, work: Callable[[], Any], client: str | None = None) -> Future[Any]:
        """Return what the work will return; by default it is for the client that asks."""
        client, answer = CLIENT.get() if client is None else client, Future[Any]()
        with self._lock:
            if self._count[client] >= self._most:
                raise Unavailable(f"too many {self._name} at once")
            self._count[client] += 1
            self.waiting.put(client, (answer, work))
        self._pool.submit(self._next)
        return answer

    def _next(self) -> None:
        with self._lock:
            client, (answer, work) = self.waiting.take()
        try:
            result = work() if answer.set_running_or_notify_cancel() else None
        except BaseException as error:
            self._done(client)
            answer.set_exception(error)
        else:
            self._done(client)
            if not answer.cancelled():
                answer.set_result(result)

    def _done(self, client: str) -> None:
        with self._lock:
            self._count[client] -= 1

    def close(self) -> None:
        """Drop what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        while self.waiting:
            with self._lock:
                _, (answer, _) = self.waiting.take()
            answer.cancel()


@final
class Alone:
    """A call on a thread of its own, which waits for nothing else. Whoever asks while it runs gets
    the result of that call.
    """

    def __init__(self, name: str, work: Callable[[], Any]) -> None:
        """Start no thread yet."""
        self._pool, self._lock = ThreadPoolExecutor(1, f"priorwise-{name}"), threading.Lock()
        self._work, self._running = work, None  # type: Callable[[], Any], Future[Any] | None

    def __call__(self) -> Future[Any]:
        """Return what the call will return."""
        with self._lock:
            if self._running is None or self._running.done():
                self._running = self._pool.submit(self._work)
            return self._running

    def close(self) -> None:
        """Take no more calls."""
        self._pool.shutdown(wait=False)


@final
class Long:
    """Computes what takes long, a few at a time, within the limits of a service."""

    def __init__(self, limits: Limits) -> None:
        """Start no thread yet."""
        self._limits = limits
        self.threads = Few("long computations", limits.long, limits.waiting)

    def compute(self, ahead: Ahead, after: Callable[[], None] = lambda: None) -> Future[None]:
        """Return what is done when all is computed and ``after`` was called, in the same thread."""
        asked = time.monotonic()

        def work() -> None:
            if time.monotonic() - asked > self._limits.deadline:
                raise Unavailable(WAITED)
            ahead.compute(self._limits.work)
            after()

        return self.threads.submit(work)


@final
class Later:
    """A store that says what it did later: ``run`` returns a future."""

    durable = True

    def __init__(self, store: Any, long: Long) -> None:
        """Stand before a store with ``submit``."""
        self._store, self._long = store, long

    def run(self, work: Callable[[Any], Any], **wanted: Any) -> Future[Any]:
        """Return what the store will return, once all that it takes is computed."""
        answer: Future[Any] = Future()
        self._try(answer, ROUNDS, copy_context(), work, wanted)
        return answer

    def _try(
        self, answer: Future[Any], rounds: int, asking: Context, work: Callable[[Any], Any],
        wanted: dict[str, Any],
    ) -> None:  # fmt: skip
        def stored(done: Future[Any]) -> None:
            error = _error_of(done)
            if error is None:
                answer.set_result(done.result())
            elif not isinstance(error, Ahead):
                answer.set_exception(error)
            elif rounds == 1:
                answer.set_exception(too_busy())
            else:
                # not from the writer's thread, in which this may run
                again = partial(self._try, answer, rounds - 1, asking, work, wanted)
                _then(answer, lambda: asking.copy().run(self._long.compute, error, again), computed)

        def computed(done: Future[Any]) -> None:
            error = _error_of(done)
            if error is not None:
                answer.set_exception(error)

        _then(answer, lambda: asking.copy().run(self._store.submit, work, **wanted), stored)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _then(
    answer: Future[Any], start: Callable[[], Future[Any]], after: Callable[[Future[Any]], None]
) -> None:
    """Start something and go on after it; where it cannot start, that is the answer."""
    try:
        future = start()
    except Exception as error:
        answer.set_exception(error)
    else:
        future.add_done_callback(after)


def _error_of(done: Future[Any]) -> BaseException | None:
    return Unavailable("the service is closing") if done.cancelled() else done.exception()


def later(decider: Any, long: Long) -> Any:
    """Return a decider whose ``decide``, ``reward`` and the like return futures; None where the
    store has none.
    """
    if getattr(decider.store, "submit", None) is None:
        return None
    made = copy.copy(decider)
    made.store = Later(decider.store, long)
    return made


@final
class Bridge:
    """Wakes the event loop once for all futures that a batch completes, instead of once each."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, count: Callable[[int], None] = lambda number: None
    ) -> None:
        """Belong to a loop; ``count`` hears how many came at once."""
        self._loop, self._count = loop, count
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._woken = False

    def wait(self, future: Future[Any]) -> asyncio.Future[Any]:
        """Return what can be awaited for a future of another thread."""
        mine = self._loop.create_future()
        future.add_done_callback(lambda other: self._finished(mine, other))
        return mine

    def _finished(self, mine: asyncio.Future[Any], other: Future[Any]) -> None:
        self._done.append((mine, other))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False  # before looking: what comes from here on wakes again
        number = 0
        while self._done:
            number += 1
            mine, other = self._done.popleft()
            if mine.done():
                continue
            error = other.exception()
            if error is not None:
                mine.set_exception(error)
            else:
                mine.set_result(other.result())
        if number:
            self._count(number)
