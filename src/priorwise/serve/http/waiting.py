"""Between the event loop and the store, whose writer commits many requests at once."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, final


@final
class Later:
    """A store that says what it did later: ``run`` returns a future."""

    durable = True

    def __init__(self, store: Any) -> None:
        """Stand before a store with ``submit``."""
        self._store = store
        self.run = store.submit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def later(decider: Any) -> Any:
    """Return a decider whose ``decide``, ``reward`` and the like return futures; None where the
    store has none.
    """
    if getattr(decider.store, "submit", None) is None:
        return None
    made = copy.copy(decider)
    made.store = Later(decider.store)
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
