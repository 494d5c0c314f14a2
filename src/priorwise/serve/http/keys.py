"""Keys to the service: 256 random bits each, of which the store keeps a hash.

A key reads ``pw_<id>_<secret>``. The id finds its row; the secret is compared by its SHA-256 in
constant time. A slow hash is for passwords: nobody guesses 256 random bits.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast, final, get_args

import msgspec

from priorwise.core.validation import shown
from priorwise.serve.http.types import Scope

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
REFRESHED: Final = 5.0
"""Seconds after which a process knows of keys that were added or revoked elsewhere."""
VALUE: Final = "keys"


class Row(msgspec.Struct, frozen=True):
    """A key as it is kept."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    digest: str
    made: float
    revoked: float | None = None

    def may(self, scope: Scope) -> bool:
        """Whether the key is good for something."""
        return scope in self.scopes or "admin" in self.scopes


def scopes_of(words: Iterable[str]) -> tuple[Scope, ...]:
    """Check names of scopes."""
    given = [word.strip() for word in words]
    for word in given:
        if word not in SCOPES:
            raise ValueError(f"scopes must be some of {', '.join(SCOPES)}, got {shown(word)}")
    if not given:
        raise ValueError(f"scopes must name at least one of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in given)


def add(store: Any, name: str, scopes: Iterable[str]) -> str:
    """Make a key and return it: this is the only time that it can be read."""
    if not isinstance(name, str) or not name.strip() or len(name) > 100 or not name.isprintable():
        raise ValueError(f"name must be 1 to 100 letters that can be printed, got {shown(name)}")
    kinds = scopes_of(scopes)
    if name in (row.name for row in rows(store) if row.revoked is None):
        raise ValueError(f"name {shown(name)} is taken by a key in use; revoke it or choose another")
    number, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    _put(store, Row(number, name, kinds, _digest(secret), time.time()))
    return f"pw_{number}_{secret}"


def revoke(store: Any, name: str) -> int:
    """End the keys of a name, or the one with an id; return how many there were."""
    found = [row for row in rows(store) if name in (row.name, row.id) and row.revoked is None]
    for row in found:
        _put(store, msgspec.structs.replace(row, revoked=time.time()))
    return len(found)


def rows(store: Any) -> list[Row]:
    """Every key that was ever made."""
    return msgspec.json.decode(store.value(VALUE) or "[]", type=list[Row])


def _put(store: Any, row: Row) -> None:
    kept = {each.id: each for each in rows(store)} | {row.id: row}
    store.put_value(VALUE, msgspec.json.encode(list(kept.values())).decode())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@final
@dataclass
class Keys:
    """The keys of a running service, read again every few seconds."""

    store: Any
    known: dict[str, Row]
    read: float

    @classmethod
    def of(cls, store: Any) -> Keys:
        """Read them."""
        made = cls(store, {}, 0.0)
        made.refresh()
        return made

    def refresh(self) -> None:
        """Read the keys again."""
        self.known = {row.id: row for row in rows(self.store) if row.revoked is None}
        self.read = time.monotonic()

    def find(self, key: str) -> Row | None:
        """Return the row of a key, if there is such a key and it was not revoked."""
        start, _, rest = key.partition("_")
        number, _, secret = rest.partition("_")
        row = self.known.get(number)
        digest = _digest(secret) if secret.isascii() else ""
        # as much work for an id that there is not
        same = hmac.compare_digest(digest, row.digest if row is not None else "0" * 64)
        return cast("Row | None", row if same and start == "pw" else None)
