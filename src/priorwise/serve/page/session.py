"""Log-in by key: a signed cookie that ends by itself.

The cookie says when it ends, and whose it is by a name that tells nothing about the key. It is
signed with a secret that the store keeps, so that all processes of a service know it. Logging out
ends a session in the process that was asked, and forgets the cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, final

from priorwise.serve.values import SECRET, value_of

if TYPE_CHECKING:
    from priorwise.serve.decider import Decider

COOKIE: Final = "priorwise_session"
HOURS: Final = 8.0
READS: Final = frozenset({"read", "admin"})
LONGEST_KEY: Final = 500
READ: Final = 1.0
"""Seconds after which another wrong cookie makes us read the secret again."""


class Service(Protocol):
    """What the page needs of a service."""

    open: bool
    """Whether nobody needs a key."""

    @property
    def decider(self) -> Decider:
        """Who decides."""
        ...

    def scope_of(self, key: str) -> set[str] | None:
        """Return what a key may do, None for one that there is not."""
        ...

    def key_id(self, key: str) -> str | None:
        """Return a name of a key from which nothing follows about it."""
        ...

    def key_reads(self, name: str) -> bool:
        """Whether the key of such a name is in use and may read."""
        ...

    def counters(self) -> Mapping[str, int]:
        """How often something was repeated since the process started."""
        ...

    def bug(self, error: BaseException, route: str = "", /) -> object:
        """Log an error of our own."""
        ...


@final
@dataclass(eq=False)
class Sessions:
    """Makes and checks cookies for the readers of one service."""

    service: Service
    _secret: bytes = b""
    _read: float = -math.inf  # when the store was asked for it
    _ended: OrderedDict[str, float] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self, key: str) -> str | None:
        """Return a cookie for a key that may read, None for any other."""
        if not 0 < len(key) <= LONGEST_KEY or "\x00" in key:
            return None
        scopes = self.service.scope_of(key)
        if scopes is None or not READS & set(scopes):
            return None
        owner = self.service.key_id(key) or ""
        content = f"{time.time() + 3600.0 * HOURS:.0f}~{secrets.token_urlsafe(12)}~{owner}"
        return f"{content}~{self._signed(content, self._kept())}"

    def holds(self, cookie: str | None) -> bool:
        """Whether a cookie is one of ours, still good, and its key too."""
        if not cookie or len(cookie) > 500 or not cookie.isascii():
            return False
        content, _, signature = cookie.rpartition("~")
        if not self._true(content, signature):
            return False
        ends, number, owner = content.split("~", 2)
        with self._lock:
            if number in self._ended:
                return False
        if owner and not self.service.key_reads(owner):
            return False
        return float(ends) > time.time()

    def end(self, cookie: str | None) -> None:
        """End a session."""
        if not self.holds(cookie):
            return
        assert cookie is not None
        ends, number, _ = cookie.split("~", 2)
        now = time.time()
        with self._lock:
            self._ended[number] = float(ends)
            for old in [each for each, until in self._ended.items() if until < now]:
                del self._ended[old]

    def _true(self, content: str, signature: str) -> bool:
        if content.count("~") < 2:
            return False
        known = self._secret
        if known and hmac.compare_digest(self._signed(content, known), signature):
            return True
        if time.monotonic() - self._read < READ:
            return False
        # another process may have put its secret in the store after we read it
        return hmac.compare_digest(self._signed(content, self._kept()), signature)

    def _kept(self) -> bytes:
        """Return the secret that all processes share."""
        store = self.service.decider.store
        with self._lock:
            text = value_of(store, SECRET)
            if text is None:
                store.put_value(SECRET, secrets.token_hex(32))
                text = value_of(store, SECRET) or ""
            self._secret, self._read = bytes.fromhex(text), time.monotonic()
            return self._secret

    @staticmethod
    def _signed(content: str, secret: bytes) -> str:
        return hmac.new(secret, content.encode(), hashlib.sha256).hexdigest()
