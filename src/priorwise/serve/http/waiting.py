"""Threads for work that takes a while, so that nothing else waits for it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar, final

from priorwise.serve.ahead import CLIENT, PACE, Ahead, Pace, Turns
from priorwise.serve.errors import TooMany, Unavailable
from priorwise.serve.http.limits import Limits

R = TypeVar("R")

SHARE: Final = 0.25
"""Share of the time that one thread of such work computes, if the work rests in between."""
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
        # works of any results
        self.waiting: Turns[tuple[Future[Any], Callable[[], Any]]] = Turns()

    def submit(self, work: Callable[[], R], client: str | None = None) -> Future[R]:
        """Return what the work will return; by default it is for the client that asks."""
        client, answer = CLIENT.get() if client is None else client, Future[R]()
        with self._lock:
            if self._count[client] >= self._most:
                raise TooMany(f"too many {self._name} at once")
            self._count[client] += 1
            self.waiting.put(client, (answer, work))
        self._pool.submit(self._next)
        return answer

    def _next(self) -> None:
        with self._lock:
            client, (answer, work) = self.waiting.take()
        CLIENT.set(client)  # what the work builds is counted for it
        PACE.set(Pace(SHARE))
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
class Alone(Generic[R]):
    """A call on a thread of its own, which waits for nothing else. Whoever asks while it runs gets
    the result of that call.
    """

    def __init__(self, name: str, work: Callable[[], R]) -> None:
        """Start no thread yet."""
        self._pool, self._lock = ThreadPoolExecutor(1, f"priorwise-{name}"), threading.Lock()
        self._work = work
        self._running: Future[R] | None = None

    def __call__(self) -> Future[R]:
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

    def compute(self, ahead: Ahead) -> Future[None]:
        """Return what is done when all is computed."""
        asked = time.monotonic()

        def work() -> None:
            if time.monotonic() - asked > self._limits.deadline:
                raise Unavailable(WAITED)
            ahead.compute(self._limits.work)

        return self.threads.submit(work)
