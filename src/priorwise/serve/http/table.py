"""What an endpoint is. Routing, keys and the OpenAPI document are all made from one table of
them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, final
from urllib.parse import unquote_to_bytes

import msgspec

from priorwise.serve.http.problems import Stop
from priorwise.serve.http.types import Request, Scope
from priorwise.serve.rows import Key

JSON: Final = "application/json"
PARQUET: Final = "application/vnd.apache.parquet"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


class Call(NamedTuple):
    """One request: what stood in its body, its path and its query."""

    body: Any
    names: tuple[str, ...]
    query: Mapping[str, str]
    key: Key | None


class Raw(NamedTuple):
    """An answer that is no JSON."""

    content: bytes
    kind: str


class Download(NamedTuple):
    """A file to send and then remove."""

    path: Path
    kind: str
    name: str


@final
@dataclass(frozen=True, eq=False)
class Endpoint:
    """A method and a path; names in braces stand for one part of it each."""

    method: str
    path: str
    scope: Scope | None  # None: anybody
    answer: type | None  # None: no JSON, but ``kind``
    call: Callable[[Any, Call], Awaitable[Any]]
    body: type[Request] | None = None
    query: Mapping[str, str] = field(default_factory=dict)  # with what each is
    kind: str = JSON
    large: bool = False

    @property
    def name(self) -> str:
        """Name of the operation."""
        return self.call.__name__.strip("_")

    @property
    def summary(self) -> str:
        """What it does."""
        return " ".join((self.call.__doc__ or "").split())

    def __post_init__(self) -> None:
        if self.body is not None:
            object.__setattr__(self, "decode", msgspec.json.Decoder(self.body).decode)


@final
class Table:
    """Finds the endpoint of a request."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        """Sort by path: those without names in braces are looked up."""
        self.endpoints = tuple(endpoints)
        self._fixed: dict[bytes, dict[str, Endpoint]] = {}
        self._open: dict[tuple[bytes | None, ...], dict[str, Endpoint]] = {}
        for each in self.endpoints:
            if "{" in each.path:
                parts = tuple(
                    None if part.startswith("{") else part.encode() for part in each.path.split("/")
                )
                self._open.setdefault(parts, {})[each.method] = each
            else:
                self._fixed.setdefault(each.path.encode(), {})[each.method] = each

    def find(self, method: str, path: bytes) -> tuple[Endpoint, tuple[str, ...]] | None:
        """Return the endpoint of a path as it was sent, and the names in it; None if there is no
        such path. A slash in a name is written ``%2F``.
        """
        methods = self._fixed.get(path)
        names: tuple[str, ...] = ()
        if methods is None:
            given = path.split(b"/")
            for parts, found in self._open.items():
                if len(parts) == len(given) and all(
                    bool(mine) if part is None else mine == part
                    for part, mine in zip(parts, given, strict=True)
                ):
                    wanted = zip(parts, given, strict=True)
                    methods, names = found, tuple(_name(b) for a, b in wanted if a is None)
                    break
            else:
                return None
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
            raise Stop(405, f"use {allowed} for this address", None, {"allow": allowed})
        return endpoint, names


def _name(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Stop(400, "a name in the address is not UTF-8 text") from None
