"""The service: routes made from the table of operations, with keys, limits and a log around them.

Nothing is kept between requests but counts: any number of processes may share a store.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, final
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from priorwise.core.errors import shown
from priorwise.serve import types
from priorwise.serve.ahead import CLIENT
from priorwise.serve.decider import AsyncDecider, Decider
from priorwise.serve.errors import TooMany, Unavailable
from priorwise.serve.http.errors import HttpError, http_error, undecoded
from priorwise.serve.http.keys import REFRESHED, Keys, may, name_of
from priorwise.serve.http.limits import Bucket, Limits, Tries
from priorwise.serve.http.logs import Log
from priorwise.serve.http.metrics import Metrics
from priorwise.serve.http.openapi import JSON, PARQUET, PROMETHEUS, SYSTEM, document
from priorwise.serve.http.waiting import Alone, Few, Long
from priorwise.serve.rows import Key
from priorwise.serve.table import TABLE, Inquiry, Operation
from priorwise.serve.values import READY

R = TypeVar("R")
Row = Operation[..., Any, Any] | Inquiry[..., Any, Any]  # of the table

THREADS: Final = 64
EXPIRED: Final = 2.0
"""Seconds between looks for pulls whose window is over."""
DRAINED: Final = 4 << 20
"""Bytes of a body that is refused which are read all the same, so that the client gets to read why
instead of a broken connection.
"""
AT_ONCE: Final = 10
"""Items of one request that are worked on before other keys have their turn."""
SOON: Final = 2.0
"""Seconds that a request waits for the keys."""
LAST: Final = 2.0
"""Seconds after which a process that has stopped ends, whatever its threads compute."""
FORM: Final = 16 << 10
"""Bytes of a form of the page."""
LARGE: Final = 16
"""How many times as many bytes as another request a proposed prior may have."""
LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "testserver"})

SAFE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_JSON: Final = (b"content-type", JSON.encode())
_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_ENCODE: Final = msgspec.json.Encoder().encode


@dataclass
class Seen:
    """What is known of a request, for the log and for its errors."""

    headers: dict[bytes, bytes]
    route: str = "other"
    key: Key | None = None
    status: int = 499  # the client left
    fields: tuple[str, ...] = ()


@final
class Service:
    """Answers requests with a decider.

    ``decider`` decides, ``keys`` knows who may ask (``keys.find(text)``), ``open`` says that
    everybody on this machine may, ``metrics`` counts, ``log`` writes lines.
    """

    def __init__(
        self,
        decider: Decider,
        *,
        open: bool = False,  # noqa: A002 - the word of the command line
        limits: Limits | None = None,
        log: Log | None = None,
        page: bool = True,
        alone: bool = False,
        https: bool = False,
        prefix: str = "",
    ) -> None:
        """Read the keys; ``alone``: the process ends with the service. ``https`` and ``prefix`` say
        how browsers see it, behind a proxy.
        """
        self.alone, self.https, self.prefix = alone, https, prefix.rstrip("/")
        self.decider, self.open = decider, open
        self.limits, self.log, self.metrics = limits or Limits(), log or Log(), Metrics()
        self.keys = Keys(decider.store)
        self.document, self.started = document(), time.time()
        self._long = Long(self.limits)
        self.live = AsyncDecider(decider, self._long.compute)
        self.live.counted = self.metrics.committed
        self._pool = ThreadPoolExecutor(THREADS, "priorwise")
        # what others rely on waits for no other work
        self._reading, self._trying = Alone("keys", self.keys.refresh), Alone("ready", self._try)
        self._expiring, self._closing = Alone("expire", self._expire), Alone("close", decider.close)
        few = self.limits.summaries
        self.summaries = Few("summaries", few, 9 * few)
        self.exports = Few("exports", self.limits.exports, 9 * self.limits.exports)
        self._decoders: dict[type[types.Request], Callable[[bytes], types.Request]] = {
            row.request: msgspec.json.Decoder(row.request).decode
            for row in TABLE.values()
            if row.has_body
        }
        self._buckets: dict[str, Bucket] = {}
        self._tries = Tries()
        self._working = Counter[str]()  # requests of each key
        self._prefix, self._count = secrets.token_hex(4), 0
        self._timers: list[asyncio.Task[None]] = []
        self._closed = False
        pages: list[Route] = []
        if page:
            from priorwise.serve.page.app import routes

            pages = [
                Route(page.path, _Page(self, page.app), methods=page.methods)
                for page in routes(self)
            ]
        self._app = ExceptionMiddleware(
            Router(
                [*self._routes(), *pages],
                redirect_slashes=False,
                default=self._lost,
                lifespan=self._lifespan,
            ),
            handlers={Exception: self._failed, HTTPException: self._failed},  # type: ignore[dict-item]
        )

    def _routes(self) -> list[Route]:
        """Return a route for each path of the table, and those about the service itself."""
        paths: dict[str, dict[str, Row]] = {}
        for row in TABLE.values():
            paths.setdefault(row.path, {})[row.method] = row
        answers = {
            "openapi": self._openapi, "health": self._health, "ready": self._ready,
            "metrics": self._metrics,
        }  # fmt: skip
        return [
            *(Route(path, _Endpoint(self, rows), methods=[*rows]) for path, rows in paths.items()),
            *(Route(SYSTEM[name][0], answer, methods=["GET"]) for name, answer in answers.items()),
        ]

    # -- what the page asks

    def scope_of(self, key: str) -> set[str] | None:
        """Return what a key may do, None for one that there is not; it may read the store."""
        if self.keys.stale:
            self._keys_awaited()
        row = self.keys.find(key)
        if row is None and time.monotonic() - self.keys.read > 1.0:
            self._keys_awaited()
            row = self.keys.find(key)
        return None if row is None else set(row.scopes)

    def _keys_awaited(self) -> None:
        with suppress(TimeoutError):
            self._reading().result(SOON)

    def key_id(self, key: str) -> str | None:
        """Return a name of a key from which nothing follows about it."""
        row = self.keys.find(key)
        return None if row is None else name_of(row)

    def key_reads(self, name: str) -> bool:
        """Whether the key of such a name is in use and may read."""
        return any(may(row, "read") for row in self.keys if name_of(row) == name)

    def counters(self) -> dict[str, int]:
        """How often something was repeated since the process started."""
        return {"repeated rewards": int(self.metrics.value("rewards_total", outcome="repeated"))}

    # -- operations

    async def answer(self, row: Row, request: Request) -> Response:
        """Carry out an operation of the table."""
        seen: Seen = request.scope["priorwise"]
        seen.route, seen.fields = row.path, row.request.__struct_fields__ if row.has_body else ()
        key = seen.key = await self._allowed(request, row.scope)
        client = "" if key is None else key.digest
        CLIENT.set(client)
        if self._full(client):
            await self._tries.hold()
            raise HttpError(503, "too many requests at once", None, {"retry-after": "1"})
        self._working[client] += 1  # of those who may ask, and not of the page
        try:
            asked = await self._asked(row, request)
            if isinstance(row, Operation):
                async with self._deadline():
                    # other keys have their turn between parts; after an error earlier ones stay
                    parts = asked.checked().parts(AT_ONCE)
                    value = row.joined([await self.live.do(row, part) for part in parts])
            elif row.threads == "aside":
                value = await self.aside(lambda: row.run(self.decider, asked.checked()))
            else:
                threads = self.summaries if row.threads == "summaries" else self.exports
                work = threads.submit(lambda: row.run(self.decider, asked.checked()))
                value = await asyncio.wrap_future(work)
        except Exception as error:
            if isinstance(error, TooMany):
                await self._tries.hold()
            if row.scope == "reward":
                self.metrics.rewarded(None)
            raise
        finally:
            self._working[client] -= 1
        if isinstance(value, Path):
            return _download(value)
        result = row.wrap(value)
        self.metrics.count(result)
        return _Answer(result)

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        seconds = self.limits.deadline
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Unavailable(
                f"the store did not answer within {seconds:g} s; whether the change was kept is "
                "not known: send it again with the same id"
            ) from None

    async def aside(self, work: Callable[[], R]) -> R:
        """Call what takes a while in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _asked(self, row: Row, request: Request) -> types.Request:
        """Return the request that came in the body, or in the path and the query."""
        if row.has_body:
            most = self.limits.body * (LARGE if row.request is types.Propose else 1)
            content = await self.body(request, most, JSON)
            try:
                return self._decoders[row.request](content)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if row.request is types.Rewards and isinstance(error, msgspec.ValidationError):
                    return _rewards(content)
                raise undecoded(error, content, row.request) from None
        self.check_length(request.scope, 0)
        names = {name: _unquoted(part) for name, part in request.path_params.items()}
        hints, values = types.hints_of(row.request), dict[str, object]()
        for name, text in (names | _query(row, request)).items():
            try:
                value = values[name] = msgspec.convert(text, hints[name], strict=False)
                if type(value) is int and str(value) != text:
                    raise msgspec.ValidationError("Expected a whole number")
            except msgspec.ValidationError as error:
                if name in names:
                    raise HttpError(404, f"there is no {name} {shown(text)}") from None
                raise HttpError(422, str(error).replace("`", ""), f"?{name}") from None
        return row.request(**values)

    # -- about the service itself

    async def _openapi(self, request: Request) -> Response:
        await self._system(request)
        return Response(self.document, media_type=JSON)

    async def _health(self, request: Request) -> Response:
        await self._system(request)
        return _Answer(types.Alive())

    async def _ready(self, request: Request) -> Response:
        """Say whether the store answers."""
        await self._system(request)
        if self._closed:
            raise Unavailable("the service is closing")
        try:
            async with asyncio.timeout(5.0):
                await asyncio.shield(asyncio.wrap_future(self._trying()))
        except TimeoutError:
            raise Unavailable("the store does not answer") from None
        return _Answer(types.Ready())

    async def _metrics(self, request: Request) -> Response:
        await self._system(request, "read")
        gauges = await self.aside(self._gauges)
        return Response(self.metrics.text(gauges), headers={"content-type": PROMETHEUS})

    async def _system(self, request: Request, scope: types.Scope | None = None) -> None:
        seen: Seen = request.scope["priorwise"]
        seen.route = request.url.path
        seen.key = await self._allowed(request, scope)
        self.check_length(request.scope, 0)
        if request.scope["query_string"]:
            raise HttpError(422, "this address takes no query", "?")

    def _gauges(self) -> dict[str, tuple[str, float]]:
        size = self.decider.store.size()
        return {
            "open_tasks": ("Tasks that are open.", size.open),
            "closed_tasks": ("Tasks that are closed.", size.closed),
            "prior_version": ("Version of new tasks.", self.decider.version),
            "started_seconds": ("When the process started.", self.started),
        }

    def _try(self) -> None:
        """Write a row: a store that can only be read is not ready."""
        self.decider.store.put_value(READY, f"{time.time():.3f}")

    # -- requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, self._count = time.perf_counter(), self._count + 1
        seen = scope["priorwise"] = Seen(dict(scope["headers"]))
        given = seen.headers.get(b"x-request-id", b"")
        number = given.decode() if _ID.fullmatch(given) else f"{self._prefix}-{self._count:x}"
        # a slash in a name is one of the name
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        scope["path"], scope["root_path"] = raw.decode("latin-1"), self.prefix
        scope["priorwise.id"], scope["app"] = number, self
        if self.https:
            scope["scheme"] = "https"

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                start = message["headers"]
                names = {name for name, _ in start}
                start += [each for each in SAFE if each[0] not in names]
                start.append((b"x-request-id", number.encode()))
            await send(message)

        await self._app(scope, receive, answered)
        seconds = time.perf_counter() - began
        method = "" if seen.route == "other" else scope["method"]
        self.metrics.answered(method, seen.route, seen.status, seconds)
        self.log.write(
            "error" if seen.status >= 500 else "info", "request", method=scope["method"][:16],
            route=seen.route, status=seen.status, ms=round(seconds * 1e3, 2),
            key=None if seen.key is None else seen.key.name, id=number,
        )  # fmt: skip

    async def _failed(self, request: Request, error: Exception) -> Response | None:
        """Answer an error: what the caller can mend is said, a bug has an id in the log."""
        if isinstance(error, ClientDisconnect):
            return None
        seen: Seen = request.scope["priorwise"]
        number = request.scope["priorwise.id"]
        if isinstance(error, Unavailable) and error.public != str(error):
            self.log.write("error", "store", message=str(error), id=number)
        if isinstance(error, HTTPException):
            allowed = {name.lower(): value for name, value in (error.headers or {}).items()}
            error = HttpError(
                error.status_code, f"use {allowed.get('allow')} for this address", None, allowed
            )
        wrong = http_error(error, seen.fields) or self.bug(error, seen.route, number)
        headers, length = dict(wrong.headers), _length(seen.headers)
        chunked = b"transfer-encoding" in seen.headers
        if chunked or length > self.limits.body or wrong.unread:
            headers["connection"] = "close"
            if wrong.status != 408:
                await _drained(request)
        return Response(_ENCODE(types.Failed(wrong.problem)), wrong.status, headers, JSON)

    async def _lost(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        named = path.startswith(("/v1/tasks/", "/v1/u"))
        hint = "; a slash in a name is written %2F" if named else ""
        raise HttpError(
            404, f"there is nothing at this address; /openapi.json lists what there is{hint}"
        )

    def _full(self, client: str) -> bool:
        """Whether so many requests are worked on that this client gets no more: each key leaves as
        many places free as it takes.
        """
        free = self.limits.waiting - self._working.total()
        return free <= (self._working[client] if client else 0)

    def bug(self, error: BaseException, route: str = "", number: str = "") -> HttpError:
        """Log an error of our own; return what the client is told of it."""
        name = secrets.token_hex(6)
        self.metrics.bug()
        self.log.bug(error, bug=name, route=route, id=number)
        return HttpError(500, f"an error of the service itself; its log has more under {name}")

    async def _allowed(self, request: Request, scope: types.Scope | None) -> Key | None:
        """Return the key of who may ask for this."""
        if self.open:
            self.check_local(request)
            return None
        if scope is None:
            return None
        given = [value for name, value in request.scope["headers"] if name == b"authorization"]
        # two of them: whichever is checked, somebody else may have read the other
        key = await self._known(given[0].decode("latin-1")) if len(given) == 1 else None
        if key is None:
            if any(given):
                await self._tries.slow(request.client.host if request.client else "?")
            what = "wrong or revoked" if any(given) else "missing"
            raise HttpError(
                401, f"the key is {what}; send it as 'Authorization: Bearer pw_...'", None,
                {"www-authenticate": "Bearer"},
            )  # fmt: skip
        if not may(key, scope):
            raise HttpError(403, f"this key is for {', '.join(key.scopes)}, not for {scope}")
        self._rated(key)
        return key

    async def _known(self, header: str) -> Key | None:
        """Return the key that an ``Authorization`` header holds."""
        kind, _, text = header.partition(" ")
        if kind.lower() != "bearer":
            return None
        secret = text.strip()
        if self.keys.stale:
            await self._keys_read()
        key = self.keys.find(secret)
        if key is None and time.monotonic() - self.keys.read > 1.0:
            # it may have been made a moment ago
            await self._keys_read()
            key = self.keys.find(secret)
        return key

    async def _keys_read(self) -> None:
        """Read the keys again, if that is soon done."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SOON):
                await asyncio.shield(asyncio.wrap_future(self._reading()))

    def _rated(self, key: Key) -> None:
        rate = self.limits.rate if key.rate is None else key.rate
        if rate is None:
            return
        bucket = self._buckets.get(key.digest)
        if bucket is None:
            bucket = self._buckets[key.digest] = Bucket(rate, self.limits.burst)
        if wait := bucket.take():
            raise HttpError(
                429, f"more than {rate:g} requests per second with this key", None,
                {"retry-after": str(wait)},
            )  # fmt: skip

    @staticmethod
    def check_local(request: Request) -> None:
        """Refuse what a page from elsewhere makes a browser on this machine send."""
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name.lower() not in LOCAL:
            raise HttpError(
                403, "without keys, only requests to this machine by its own name are taken"
            )
        origin = request.headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2] != host
        if foreign and request.method not in ("GET", "HEAD"):
            raise HttpError(403, "without keys, pages from elsewhere may change nothing")

    def check_length(self, scope: Scope, most: int) -> None:
        """Refuse a body that is longer, by what its headers say."""
        headers = scope["priorwise"].headers
        if most and _length(headers) > most:
            raise HttpError(413, f"the body must have at most {most:,} bytes", unread=True)
        if not most and (_length(headers) > self.limits.body or b"transfer-encoding" in headers):
            raise HttpError(413, "this address takes no body", unread=True)

    async def body(self, request: Request, most: int, kind: str) -> bytes:
        """Read a body of a type that comes in time and is not too long."""
        self.check_length(request.scope, most)
        given = request.scope["priorwise"].headers.get(b"content-type", b"")
        if kind == JSON and given != b"application/json" and not _is_json(given):
            raise HttpError(415, "the body must be JSON, with 'Content-Type: application/json'")
        content = bytearray()
        try:
            async with asyncio.timeout(self.limits.patience):
                async for part in request.stream():
                    content += part
                    if len(content) > most:
                        raise HttpError(
                            413, f"the body must have at most {most:,} bytes", unread=True
                        )
        except TimeoutError:
            raise HttpError(408, "the body did not come in time", unread=True) from None
        return bytes(content)

    # -- starting and stopping

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        self.start()
        yield
        await self.stop()

    def start(self) -> None:
        """Start what goes on between requests."""
        self._timers = [asyncio.create_task(self._every(REFRESHED, self._reading))]
        if self.decider.operations.window is not None:
            self._timers.append(asyncio.create_task(self._every(EXPIRED, self._expiring)))

    async def stop(self) -> None:
        """Finish, and let go of the store."""
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        await asyncio.gather(*self._timers, return_exceptions=True)
        for threads in (self._long.threads, self.summaries, self.exports):
            threads.close()
        self._expiring.close()
        self._trying.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        try:
            await asyncio.wrap_future(self._closing())
        finally:
            self._reading.close()
            self._closing.close()
        self.log.write("info", "stopped")
        self.log.drain(1.0)
        if self.alone:  # nobody waits for summaries and exports that are still worked on
            last = threading.Timer(LAST, os._exit, [0])
            last.daemon = True
            last.start()

    def _expire(self) -> None:
        self.metrics.expired(self.decider.expire())

    async def _every(self, seconds: float, work: Alone[None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.shield(asyncio.wrap_future(work()))
            except Exception as error:  # the next time may do better
                if isinstance(error, Unavailable):
                    self.log.write("warning", "store", message=str(error))
                else:
                    self.bug(error)


@final
class _Answer(Response):
    """An answer in JSON."""

    def __init__(self, value: types.Answer) -> None:
        self.status_code, self.background, self.body = 200, None, _ENCODE(value)
        self.raw_headers = [_JSON, (b"content-length", str(len(self.body)).encode())]


@final
class _Endpoint:
    """Answers a path by the method of the request."""

    def __init__(self, service: Service, rows: Mapping[str, Row]) -> None:
        self._service, self._rows = service, rows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        answer = await self._service.answer(self._rows[method], Request(scope, receive))
        await answer(scope, receive, send)


@final
class _Page:
    """Lets the page answer, with limits as everywhere."""

    def __init__(self, service: Service, page: ASGIApp) -> None:
        self._service, self._page = service, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service, request = self._service, Request(scope, receive)
        scope["priorwise"].route = "page"
        if service.open:
            service.check_local(request)
        service.check_length(scope, service.limits.body)
        content = await service.body(request, FORM, "") if request.method == "POST" else b""

        async def read() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        await self._page(scope, read, send)


class _Unchecked(types.Request):
    """Rewards before each is looked at."""

    rewards: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=types.MOST_ITEMS)]
    correct: bool = False


def _rewards(content: bytes) -> types.Rewards:
    """Decode rewards of which some are wrong: those become what is said of them."""
    try:
        raw = msgspec.json.decode(content, type=_Unchecked)
    except (ValueError, RecursionError) as error:
        raise undecoded(error, content, _Unchecked) from None
    rewards: list[types.Pair] = []
    for each in raw.rewards:
        try:
            rewards.append(msgspec.json.decode(each, type=types.Reward))
        except (ValueError, RecursionError) as error:
            rewards.append(undecoded(error, bytes(each), types.Reward))
    return types.Rewards(rewards, raw.correct)


def _query(row: Row, request: Request) -> types.Json:
    """Return the fields that stand in the query."""
    text: bytes = request.scope["query_string"]
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        )
    except ValueError:
        raise HttpError(400, "the query is not UTF-8 text, or too long") from None
    query: types.Json = dict(pairs)
    fields = [each for each in row.request.__struct_fields__ if each not in request.path_params]
    for name in query:
        if row.has_body or name not in fields:
            listed = ", ".join(fields) or "none"
            raise HttpError(
                422, f"the query of this address knows {listed}, not {name[:80]!r}", "?"
            )
    if len(query) < len(pairs):
        raise HttpError(422, "the query has a name twice", "?")
    if "context" in query:
        try:
            query["context"] = msgspec.json.decode(query["context"])
        except (ValueError, RecursionError):
            raise HttpError(422, "context must be rows of numbers as JSON", "?context") from None
    return query


def _unquoted(part: str) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "a name in the address is not UTF-8 text") from None


def _length(headers: Mapping[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"0")
    return int(text) if text.isdigit() and len(text) < 19 else 1 << 62


def _is_json(kind: bytes) -> bool:
    first, *rest = (part.strip() for part in kind.lower().split(b";"))
    utf8 = (b"", b"charset=utf-8", b'charset="utf-8"')
    return first == b"application/json" and all(part in utf8 for part in rest)


def _download(path: Path) -> Response:
    """Return a file that is removed before it is sent, and so in any case."""
    file = path.open("rb")
    path.unlink()

    async def pieces() -> AsyncIterator[bytes]:
        with file:
            while piece := file.read(1 << 18):
                yield piece

    headers = {
        "content-length": str(os.fstat(file.fileno()).st_size),
        "content-disposition": 'attachment; filename="decisions.parquet"',
    }
    return StreamingResponse(pieces(), 200, headers, PARQUET)


async def _drained(request: Request) -> None:
    """Read what is left of a body, up to a point."""
    left = DRAINED
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(1.0):
            async for piece in request.stream():
                left -= len(piece)
                if left <= 0:
                    return
