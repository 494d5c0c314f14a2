"""Long computations, done before the transaction that needs them.

A decision is a function of what is known, so whoever works it out does not have to hold its task.
An operation that lacks such a result raises :class:`Ahead`. Its caller computes, outside of any
transaction and lock, and starts the operation again. Where the task has changed meanwhile, the
operation asks for another result.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Generic, TypeVar, final

from priorwise.serve.errors import TooMuch, Unavailable

ROUNDS: Final = 20
"""How often an operation computes anew because its task changed meanwhile."""
KEPT: Final = 4096
"""Results that wait for the operations that asked for them."""


CLIENT: Final[ContextVar[str]] = ContextVar("CLIENT", default="")
"""Who asks: the digest of a key."""

PIECE: Final = 0.002
"""Seconds that background work computes before it rests."""

K = TypeVar("K")
T = TypeVar("T")


@final
class Pace:
    """Lets a thread compute a share of the time only, so that decisions find the interpreter free.

    The interpreter lock goes from one thread to another every half millisecond. A thread that
    computes without a rest takes half of it, and each of the many steps of a decision waits.
    """

    def __init__(
        self,
        share: float,
        clock: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Start to count the processor time of this thread."""
        self._share, self._clock, self._sleep, self._begin = share, clock, sleep, clock()

    def rest(self) -> None:
        """Rest after a piece of work, long enough for the share."""
        spent = self._clock() - self._begin
        if spent >= PIECE:
            self._sleep(spent * (1.0 / self._share - 1.0))
            self._begin = self._clock()


PACE: Final[ContextVar[Pace | None]] = ContextVar("PACE", default=None)
"""How fast the work of this thread may go; None for as fast as it can."""


def rest() -> None:
    """Rest between two pieces of background work, if this thread has a pace."""
    if (pace := PACE.get()) is not None:
        pace.rest()


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
class Newest(OrderedDict[K, T]):
    """The newest values, at most so many."""

    def __init__(self, most: int) -> None:
        """Start empty."""
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: T) -> None:
        """Keep a value, and forget the oldest one."""
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.popitem(last=False)

    def made(self, key: K, make: Callable[[], T]) -> T:
        """Return a value, which is made if there is none."""
        value = self.get(key)
        if value is None:
            value = self[key] = make()
        return value


def too_busy() -> Unavailable:
    """Return the error of an operation whose task never stayed as it was."""
    return Unavailable(
        "the task changes faster than its next decision can be computed; nothing was changed"
    )
