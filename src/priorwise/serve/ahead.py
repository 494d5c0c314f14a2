"""Long computations, done before the transaction that needs them.

A decision is a function of what is known, so whoever works it out does not have to hold its task.
An operation that lacks such a result raises :class:`Ahead`. Its caller computes, outside of any
transaction and lock, and starts the operation again. Where the task has changed meanwhile, the
operation asks for another result.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar, final

from priorwise.serve.errors import TooMuch, Unavailable

ROUNDS: Final = 20
"""How often an operation computes anew because its task changed meanwhile."""
KEPT: Final = 4096
"""Results that wait for the operations that asked for them."""


CLIENT: Final[ContextVar[str]] = ContextVar("CLIENT", default="")
"""Who asks: the digest of a key."""

T = TypeVar("T")


@final
class Turns(Generic[T]):
    """What waits for its turn: clients take turns, and each has its own in order."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()  # whose turn is next comes first

    def put(self, client: str, item: T) -> None:
        """Let something wait."""
        self._waiting.setdefault(client, deque()).append(item)

    def take(self) -> tuple[str, T]:
        """Return whose turn it is, and what."""
        client, items = self._waiting.popitem(last=False)
        item = items.popleft()
        if items:
            self._waiting[client] = items
        return client, item

    def __len__(self) -> int:
        """Count what waits."""
        return sum(map(len, self._waiting.values()))


@final
class Until:
    """A limit on the time that a computation takes; None for no limit."""

    def __init__(self, seconds: float | None = None) -> None:
        """Start the clock."""
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def check(self) -> None:
        """Raise an error where the time is over."""
        if self._end is not None and time.monotonic() > self._end:
            raise TooMuch(
                f"this request takes more than the {self._seconds:g} s of computing that a request "
                "may take: name fewer arms, ask for fewer pulls or tasks, or let the service run "
                "without propensities"
            )


@final
class Ahead(Exception):  # noqa: N818 - it asks for work
    """An operation needs results that nobody has computed yet."""

    def __init__(self, works: list[Callable[[Until], None]]) -> None:
        """Take what computes them."""
        super().__init__()
        self.works = works

    def compute(self, seconds: float | None = None) -> None:
        """Compute them, all within so many seconds."""
        until = Until(seconds)
        for work in self.works:
            until.check()
            work(until)


@final
class Results:
    """The newest results of computations, by a digest of all that they depend on."""

    def __init__(self) -> None:
        """Start empty."""
        self._results: OrderedDict[bytes, Any] = OrderedDict()  # of any operation
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Any:
        """Return a result, None where there is none."""
        with self._lock:
            return self._results.get(key)

    def put(self, key: bytes, result: object) -> None:
        """Keep a result, and forget the oldest one."""
        with self._lock:
            self._results[key] = result
            if len(self._results) > KEPT:
                self._results.popitem(last=False)


def too_busy() -> Unavailable:
    """Return the error of an operation whose task never stayed as it was."""
    return Unavailable(
        "the task changes faster than its next decision can be computed; nothing was changed"
    )
