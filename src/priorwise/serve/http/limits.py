"""How much a service takes on: of one request, of one key, and of one connection."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True)
class Limits:
    """Bounds of what clients may ask for."""

    body: int = 1 << 20
    """Bytes of a request; those of a proposed prior may be 16 times as many."""
    headers: int = 16 << 10
    """Bytes of the first line and the headers of a request."""
    rate: float | None = None
    """Requests per second of each key, in each process; None for any number."""
    burst: float = 2.0
    """Seconds of that rate that may come at once."""
    waiting: int = 1024
    """Requests that are worked on at once; more are turned away with 503."""
    connections: int = 4096
    patience: float = 15.0
    """Seconds within which the headers of a request have to be there, then its body, and within
    which a client has to read on.
    """
    deadline: float = 30.0
    """Seconds that the store may take."""
    work: float = 5.0
    """Seconds that the computing of one request may take, where it takes long."""
    long: int = 2
    """Long computations at once."""
    summaries: int = 4
    """Summaries at once; eight times as many wait."""
    exports: int = 1
    """Exports of the log at once; eight times as many wait."""
    keep_alive: float = 30.0
    """Seconds that a connection may stay open without a request."""


TRIES: Final = 20
"""Wrong keys from one address within :data:`SPAN` that are answered at once."""
SPAN: Final = 60.0
SLOW: Final = 1.0
"""Seconds that the answer to another one takes."""
SLOWED: Final = 500
"""Answers that are slow at once: others must not keep connections from right keys."""
APART: Final = 0.002
"""Seconds between two slow answers: many at the same moment would hold up all other requests."""
ADDRESSES: Final = 10_000
"""Addresses that are remembered."""


@final
class Tries:
    """Slows wrong keys down. A right key is never slow: many may have one address, behind a proxy,
    and none of them can lock the others out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with none."""
        self._clock, self._last = clock, -math.inf
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()
        self._waiting = 0

    async def slow(self, address: str) -> None:
        """Count a wrong key, and wait with the answer."""
        await self.hold(self.wrong(address))

    async def hold(self, seconds: float = SLOW) -> None:
        """Wait with an answer, apart from the others: whoever gets it at once asks again at once,
        and such requests hold up those of other keys.
        """
        if not seconds or self._waiting >= SLOWED:
            return
        now = self._clock()
        self._last = max(self._last + APART, now + seconds)
        self._waiting += 1
        try:
            await asyncio.sleep(self._last - now)
        finally:
            self._waiting -= 1

    def wrong(self, address: str) -> float:
        """Count a wrong key; return after how many seconds to say so."""
        now = self._clock()
        times = self._wrong.setdefault(address, [])
        times.append(now)
        del times[: -TRIES - 1]
        self._wrong.move_to_end(address)
        if len(self._wrong) > ADDRESSES:
            self._wrong.popitem(last=False)
        return SLOW if len(times) > TRIES and now - times[0] < SPAN else 0.0


@final
class Bucket:
    """Lets through so many requests per second on average, and a few more at once."""

    __slots__ = ("_clock", "_left", "_most", "_rate", "_then")

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start full."""
        self._rate, self._most = rate, max(1.0, rate * burst)
        self._clock, self._then, self._left = clock, clock(), self._most

    def take(self) -> int:
        """Take one request; return 0, or after how many seconds to come again."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left >= 1.0:
            self._left -= 1.0
            return 0
        return max(1, math.ceil((1.0 - self._left) / self._rate))
