"""Keys to the service: 256 random bits each, of which the store keeps a hash.

A slow hash is for passwords: nobody guesses 256 random bits, so SHA-256 does.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Final, final, get_args

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, shown
from priorwise.serve.errors import NotFound, Unavailable
from priorwise.serve.rows import Key
from priorwise.serve.stores.store import Store
from priorwise.serve.types import Scope

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
REFRESHED: Final = 2.0
"""Seconds after which a process reads the keys again, which may have been revoked elsewhere."""
STALE: Final = 4.0
"""Seconds after which keys that could not be read again are good for nothing."""


def may(key: Key, scope: Scope) -> bool:
    """Whether a key is good for something."""
    return scope in key.scopes or "admin" in key.scopes


def add(store: Store, name: str, scopes: Iterable[str], rate: float | None = None) -> str:
    """Make a key and return it: this is the only time that it can be read."""
    if not isinstance(name, str) or not name.strip() or len(name) > 100 or not name.isprintable():
        raise ArgumentError("name", "must be 1 to 100 letters that can be printed", got=name)
    given = [word.strip() for word in scopes]
    for word in given or [""]:
        if word not in SCOPES:
            raise ArgumentError("scopes", f"must be some of {','.join(SCOPES)}", got=word)
    if rate is not None and validation.number("rate", rate) <= 0.0:
        raise ArgumentError("rate", "must be positive", got=rate)
    if any(key.name == name for key in in_use(store)):
        raise ArgumentError(
            "name", f"{shown(name)} is taken by a key in use", cure="revoke it or choose another"
        )
    key = f"pw_{secrets.token_urlsafe(32)}"
    kinds = tuple(scope for scope in SCOPES if scope in given)
    store.put_key(Key(name, _digest(key), kinds, time.time(), None, rate))
    return key


def revoke(store: Store, name: str) -> None:
    """End a key; services know of it within seconds."""
    key = next((key for key in in_use(store) if key.name == name), None)
    if key is None:
        raise NotFound(f"no key in use is called {shown(name)}")
    store.put_key(key._replace(ended=time.time()))


def name_of(key: Key) -> str:
    """Return a name of a key from which nothing follows about it."""
    return _digest(f"name of {key.digest}")[:16]


def in_use(store: Store) -> list[Key]:
    """Keys that were not revoked."""
    return [key for key in store.keys() if key.ended is None]  # noqa: SIM118 - of a store


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@final
class Keys:
    """The keys of a running service, read again every few seconds."""

    def __init__(self, store: Store) -> None:
        """Read them."""
        self._store = store
        self.refresh()

    def refresh(self) -> None:
        """Read the keys again."""
        began = time.monotonic()
        self._known = {each.digest: each for each in in_use(self._store)}
        self.read = began  # a key may have been revoked since

    @property
    def stale(self) -> bool:
        """Whether they were read too long ago to be trusted."""
        return time.monotonic() - self.read > STALE

    def check(self) -> None:
        """Raise an error where they are stale: one of them may have been revoked."""
        if self.stale:
            raise Unavailable(f"the store has not answered for {STALE:g} s: keys cannot be checked")

    def __iter__(self) -> Iterator[Key]:
        """Go through those in use."""
        self.check()
        return iter(self._known.values())

    def find(self, key: str) -> Key | None:
        """Return the row of a key, if there is such a key and it was not revoked."""
        self.check()
        digest = _digest(key)
        # what is looked up is a hash, of which nobody can choose a part
        found = self._known.get(digest)
        same = hmac.compare_digest(digest, found.digest if found is not None else "")
        return found if same else None
