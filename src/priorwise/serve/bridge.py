"""Between an event loop and the thread of a store that commits many operations at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar, final

R = TypeVar("R")


@final
class Bridge:
    """Wakes the event loop once for all futures that a batch completes, instead of once each."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, count: Callable[[int], None] = lambda number: None
    ) -> None:
        """Belong to a loop; ``count`` hears how many came at once."""
        self._loop, self._count = loop, count
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()  # of any results
        self._woken = False

    def wait(self, future: Future[R]) -> asyncio.Future[R]:
        """Return what can be awaited for a future of another thread."""
        mine: asyncio.Future[R] = self._loop.create_future()
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
