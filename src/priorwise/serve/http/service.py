"""The service as an ASGI application: a plain function from request to answer, without layers.

A request is found in the table, its key is checked, its body read and decoded, and the decider
asked. Nothing is kept between requests but counts: any number of processes may share a store.
"""

from __future__ import annotations

import asyncio
import copy
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, final
from urllib.parse import parse_qsl

import msgspec

from priorwise.serve.ahead import CLIENT, ROUNDS, Ahead, too_busy
from priorwise.serve.errors import Unavailable
from priorwise.serve.http import types
from priorwise.serve.http.endpoints import TABLE, rewards_one_by_one
from priorwise.serve.http.keys import REFRESHED, Keys, may, name_of
from priorwise.serve.http.limits import Bucket, Limits, Tries
from priorwise.serve.http.logs import Log
from priorwise.serve.http.metrics import Metrics, Together
from priorwise.serve.http.openapi import document
from priorwise.serve.http.problems import Stop, stop_of, undecoded
from priorwise.serve.http.table import JSON, Call, Download, Endpoint, Raw
from priorwise.serve.http.waiting import Alone, Bridge, Few, Long, later
from priorwise.serve.rows import Key

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

THREADS: Final = 64
EXPIRED: Final = 2.0
"""Seconds between looks for pulls whose window is over."""
COUNTED: Final = 1.0
"""Seconds after which other processes know what this one has counted."""
DRAINED: Final = 4 << 20
"""Bytes of a body that is refused which are read all the same, so that the client gets to read why
instead of a broken connection.
"""
SOON: Final = 2.0
"""Seconds that a request waits for the keys."""
LAST: Final = 2.0
"""Seconds after which a process that has stopped ends, whatever its threads compute."""
READY: Final = "when the service was ready"
FORM: Final = 16 << 10
"""Bytes of a form of the page."""
LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "testserver"})

SAFE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_IS_JSON: Final = (b"application/json", b"application/json; charset=utf-8")
_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_ENCODE: Final = msgspec.json.Encoder().encode


@final
class Gone(Exception):  # noqa: N818 - nobody is there to be told
    """The client left."""


@final
class Headers:
    """The headers that matter."""

    __slots__ = ("chunked", "host", "id", "key", "kind", "length", "origin")

    def __init__(self, given: Iterable[tuple[bytes, bytes]]) -> None:
        """Look through all of them once."""
        self.key: bytes | None = None
        self.kind = self.host = b""
        self.length = 0
        self.chunked = False
        self.id: bytes | None = None
        self.origin: bytes | None = None
        for name, value in given:
            if name == b"authorization":
                # two of them: whichever is checked, somebody else may have read the other
                self.key = value if self.key is None else b""
            elif name == b"content-type":
                self.kind = value
            elif name == b"content-length":
                self.length = int(value) if value.isdigit() and len(value) < 19 else 1 << 62
            elif name == b"transfer-encoding":
                self.chunked = True
            elif name == b"x-request-id":
                self.id = value
            elif name == b"host":
                self.host = value
            elif name == b"origin":
                self.origin = value


@final
class Service:
    """Answers requests with a decider.

    ``decider`` decides, ``keys`` knows who may ask (``keys.find(text)``), ``open`` says that
    everybody on this machine may, ``metrics`` counts, ``log`` writes lines.
    """

    def __init__(
        self,
        decider: Any,
        *,
        open: bool = False,  # noqa: A002 - the word of the command line
        limits: Limits | None = None,
        log: Log | None = None,
        page: bool = True,
        alone: bool = False,
        https: bool = False,
        prefix: str = "",
        counts: str | None = None,
    ) -> None:
        """Read the keys, and take on the page where it is there; ``alone``: the process ends with
        the service. ``https`` and ``prefix`` say how browsers see it, behind a proxy;
        ``counts`` is the folder of the counts of several processes.
        """
        self.alone, self.https, self.prefix = alone, https, prefix.rstrip("/")
        self.decider = decider
        self.open = open
        self.limits = limits or Limits()
        self.log = log or Log()
        self.metrics = Metrics()
        self._together = None if counts is None else Together(counts, self.metrics)
        self.keys = Keys(decider.store)
        self.document = document(TABLE.endpoints)
        self.started = time.time()
        self._direct = not decider.store.durable
        self._long = Long(self.limits)
        self._later = later(decider, self._long)
        # calls of a store in memory are made by the event loop, but for what takes long
        self._brief = copy.copy(decider)
        self._brief.computes = False
        self._bridge: Bridge | None = None
        self._pool = ThreadPoolExecutor(THREADS, "priorwise")
        # what others rely on waits for no other work
        self._reading, self._trying = Alone("keys", self.keys.refresh), Alone("ready", self._try)
        self._expiring, self._closing = Alone("expire", self._expire), Alone("close", decider.close)
        self.summaries = Few("summaries", self.limits.summaries, 9 * self.limits.summaries)
        self.exports = Few("exports", self.limits.exports, 9 * self.limits.exports)
        self._buckets: dict[str, Bucket] = {}
        self._tries = Tries()
        self._working = Counter[str]()  # requests of each key
        self._prefix = secrets.token_hex(4)
        self._count = 0
        self._timers: list[asyncio.Task[None]] = []
        self._closed = False
        self._page = _page(self) if page else None

    # -- what the page asks

    def scope_of(self, key: str) -> set[str] | None:
        """Return what a key may do, None for one that there is not; it may read the store."""
        if self.keys.stale:
            self._keys_awaited()
        found = self.keys.find(key)
        if found is None and time.monotonic() - self.keys.read > 1.0:
            self._keys_awaited()
            found = self.keys.find(key)
        return None if found is None else set(found.scopes)

    def _keys_awaited(self) -> None:
        with suppress(TimeoutError):
            self._reading().result(SOON)

    def key_id(self, key: str) -> str | None:
        """Return a name of a key that tells nothing about it."""
        found = self.keys.find(key)
        return None if found is None else name_of(found)

    def key_reads(self, name: str) -> bool:
        """Whether the key of such a name is in use and may read."""
        return any(may(each, "read") for each in self.keys if name_of(each) == name)

    def counters(self) -> dict[str, int]:
        """How often something was repeated since the process started."""
        return {"repeated rewards": self.metrics.rewards.get("repeated", 0)}

    # -- the decider

    async def do(self, name: str, *given: Any, **options: Any) -> Any:
        """Call a method of the decider that is quick but for the store's commit."""
        if self._direct:
            return await self._directly(name, given, options)
        if self._later is not None:
            async with self.deadline():
                return await self._wait(getattr(self._later, name)(*given, **options))
        return await self.aside(getattr(self.decider, name), *given, **options)

    async def _directly(self, name: str, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        async with self.deadline():
            for _ in range(ROUNDS):
                try:
                    return getattr(self._brief, name)(*given, **options)
                except Ahead as ahead:
                    await asyncio.wrap_future(self._long.compute(ahead))
        raise too_busy()

    async def together(
        self, name: str, calls: list[tuple[tuple[Any, ...], dict[str, Any]]]
    ) -> list[Any]:
        """Call a method several times, in order and if possible in one commit; an error takes the
        place of its result.
        """
        if self._direct:
            done = [self._directly(name, *each) for each in calls]
            return await asyncio.gather(*done, return_exceptions=True)
        if self._later is None:

            def work() -> list[Any]:
                return [_tried(getattr(self.decider, name), *each) for each in calls]

            return await self.aside(work)
        # all before the first await: they come to the writer together
        futures = [_tried(getattr(self._later, name), *each) for each in calls]
        waiting = [
            each if isinstance(each, BaseException) else self._wait(each) for each in futures
        ]
        awaited = [each for each in waiting if not isinstance(each, BaseException)]
        async with self.deadline():
            after = iter(await asyncio.gather(*awaited, return_exceptions=True))
        return [each if isinstance(each, BaseException) else next(after) for each in waiting]

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Give up where the store takes too long."""
        seconds = self.limits.deadline
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Unavailable(
                f"the store did not answer within {seconds:g} s; whether the change was kept is "
                "not known: send it again with the same id"
            ) from None

    def _wait(self, future: Any) -> asyncio.Future[Any]:
        if self._bridge is None:
            self._bridge = Bridge(asyncio.get_running_loop(), self.metrics.committed)
        return self._bridge.wait(future)

    async def aside(self, work: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Call what takes a while in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: work(*given, **options))

    async def few(self, threads: Few, work: Callable[..., Any], *given: Any) -> Any:
        """Call what takes a while in one of a few threads."""
        return await asyncio.wrap_future(threads.submit(lambda: work(*given)))

    def counted(self) -> Metrics:
        """Return what was counted, by all processes."""
        return self.metrics if self._together is None else self._together.total()

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Return what the store has to say, for the metrics."""
        size = self.decider.store.size()
        return {
            "priorwise_open_tasks": ("Tasks that are open.", size.open),
            "priorwise_closed_tasks": ("Tasks that are closed.", size.closed),
            "priorwise_prior_version": ("Version of new tasks.", self.decider.version),
            "priorwise_started_seconds": ("When the process started.", self.started),
        }

    async def answers(self) -> None:
        """Raise where the store does not answer."""
        if self._closed:
            raise Unavailable("the service is closing")
        try:
            async with asyncio.timeout(5.0):
                await asyncio.shield(asyncio.wrap_future(self._trying()))
        except TimeoutError:
            raise Unavailable("the store does not answer") from None

    def _try(self) -> None:
        """Write a row: a store that can only be read is not ready."""
        self.decider.store.put_value(READY, f"{time.time():.3f}")

    # -- requests

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        method, path = scope["method"], scope.get("raw_path") or scope["path"].encode()
        headers = Headers(scope["headers"])
        self._count += 1
        number = f"{self._prefix}-{self._count:x}".encode()
        if headers.id is not None and _ID.fullmatch(headers.id):
            number = headers.id
        route, key, answer, kind_of_body = "other", None, None, None
        extra: list[tuple[bytes, bytes]] = []
        try:
            found = TABLE.find(method, path)
            if found is None:
                if self._page is None or path.startswith(b"/v1/"):
                    raise Stop(404, _no_path(path))
                status = await self._to_page(scope, receive, send, headers)
                self._said(method, "page", status, began, None, number)
                return
            endpoint, names = found
            route, kind_of_body = endpoint.path, endpoint.body
            key = await self._allowed(endpoint, headers, method, scope.get("client"))
            client = "" if key is None else key.digest
            CLIENT.set(client)
            if endpoint.scope is not None and self._full(client):
                raise Stop(503, "too many requests at once", None, {"retry-after": "1"})
            self._working[client] += 1  # of those who may ask, and not of the page
            try:
                query = _query(endpoint, scope["query_string"])
                body = await self._body(endpoint, headers, receive)
                answer = await endpoint.call(self, Call(body, names, query, key))
            finally:
                self._working[client] -= 1
            status, kind, content = 200, JSON.encode(), b""
            if isinstance(answer, Raw):
                kind, content = answer.kind.encode(), answer.content
            elif not isinstance(answer, Download):
                content = _ENCODE(answer)
        except Gone:
            self._said(method, route, 499, began, key, number)
            return
        except Exception as error:
            if isinstance(error, Unavailable) and error.public != str(error):
                self.log.write("error", "store", message=str(error), id=number.decode())
            stop = stop_of(error, kind_of_body) or self.bug(error, route, number.decode())
            status, kind, content = stop.status, JSON.encode(), _ENCODE(types.Failed(stop.problem))
            extra += [(name.encode(), value.encode()) for name, value in stop.headers.items()]
            if headers.chunked or headers.length > self.limits.body or stop.unread:
                extra.append((b"connection", b"close"))
                if status != 408:
                    await _drained(receive)
        if isinstance(answer, Download):
            await self._download(answer, number, send)
        else:
            length = str(len(content)).encode()
            start = [(b"content-type", kind), (b"content-length", length)]
            await send(
                {
                    "type": "http.response.start",
                    "status": status,
                    "headers": [*start, (b"x-request-id", number), *SAFE, *extra],
                }
            )
            await send({"type": "http.response.body", "body": content})
        self._said(method, route, status, began, key, number)

    def _full(self, client: str) -> bool:
        """Whether so many requests are worked on that this client gets no more: each key leaves as
        many places free as it takes.
        """
        free = self.limits.waiting - self._working.total()
        return free <= (self._working[client] if client else 0)

    def _said(
        self, method: str, route: str, status: int, began: float, key: Key | None, number: bytes
    ) -> None:
        seconds = time.perf_counter() - began
        self.metrics.answered(method if route != "other" else "", route, status, seconds)
        self.log.write(
            "error" if status >= 500 else "info", "request", method=method[:16], route=route,
            status=status, ms=round(seconds * 1e3, 2), key=None if key is None else key.name,
            id=number.decode(),
        )  # fmt: skip

    def bug(self, error: BaseException, route: str = "", number: str = "") -> Stop:
        """Log an error of our own; return what the client is told of it."""
        name = secrets.token_hex(6)
        self.metrics.bugs += 1
        self.log.bug(error, bug=name, route=route, id=number)
        return Stop(500, f"an error of the service itself; its log has more under {name}")

    async def _allowed(
        self, endpoint: Endpoint, headers: Headers, method: str, client: Any
    ) -> Key | None:
        if self.open:
            self._local(headers, method)
            return None
        if endpoint.scope is None:
            return None
        key = await self.known(headers.key)
        if key is None:
            if headers.key:
                await self._tries.slow(client[0] if client else "?")
            what = "wrong or revoked" if headers.key else "missing"
            raise Stop(
                401, f"the key is {what}; send it as 'Authorization: Bearer pw_...'", None,
                {"www-authenticate": "Bearer"},
            )  # fmt: skip
        if not may(key, endpoint.scope):
            raise Stop(403, f"this key is for {', '.join(key.scopes)}, not for {endpoint.scope}")
        self._rated(key)
        return key

    async def known(self, header: bytes | None) -> Key | None:
        """Return the key that an ``Authorization`` header holds."""
        kind, _, text = (header or b"").partition(b" ")
        if kind.lower() != b"bearer":
            return None
        secret = text.strip().decode("ascii", "replace")
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
        wait = bucket.take()
        if wait:
            raise Stop(
                429, f"more than {rate:g} requests per second with this key", None,
                {"retry-after": str(wait)},
            )  # fmt: skip

    @staticmethod
    def _local(headers: Headers, method: str) -> None:
        """Refuse what a page from elsewhere makes a browser on this machine send."""
        host = headers.host.decode("latin-1")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name.lower() not in LOCAL:
            raise Stop(403, "without keys, only requests to this machine by its own name are taken")
        if headers.origin is not None and method not in ("GET", "HEAD"):
            other = headers.origin.decode("latin-1").partition("://")[2]
            if other != host:
                raise Stop(403, "without keys, pages from elsewhere may change nothing")

    async def _body(self, endpoint: Endpoint, headers: Headers, receive: Receive) -> Any:
        if endpoint.body is None:
            if headers.length > self.limits.body or headers.chunked:
                raise Stop(413, "this address takes no body", unread=True)
            return None
        most = self.limits.body * (16 if endpoint.large else 1)
        if headers.length > most:
            raise Stop(413, f"the body must have at most {most:,} bytes", unread=True)
        if headers.kind not in _IS_JSON and not _json(headers.kind):
            raise Stop(415, "the body must be JSON, with 'Content-Type: application/json'")
        content = await self._content(receive, most)
        try:
            return endpoint.decode(content)  # type: ignore[attr-defined]
        except msgspec.ValidationError as error:
            if endpoint.body is types.Rewards:
                try:
                    return rewards_one_by_one(content)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as other:
                    raise undecoded(other) from None
            raise undecoded(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise undecoded(error) from None

    async def _content(self, receive: Receive, most: int) -> bytes:
        """Read a body that comes in time."""
        try:
            async with asyncio.timeout(self.limits.patience):
                return await _received(receive, most)
        except TimeoutError:
            raise Stop(408, "the body did not come in time", unread=True) from None

    async def _download(self, file: Download, number: bytes, send: Send) -> None:
        try:
            size = file.path.stat().st_size
            name = f'attachment; filename="{file.name}"'.encode()
            start = [
                (b"content-type", file.kind.encode()),
                (b"content-length", str(size).encode()),
                (b"content-disposition", name),
                (b"x-request-id", number),
                *SAFE,
            ]
            await send({"type": "http.response.start", "status": 200, "headers": start})
            with file.path.open("rb") as content:
                while piece := content.read(1 << 18):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            file.path.unlink(missing_ok=True)

    async def _to_page(self, scope: Message, receive: Receive, send: Send, headers: Headers) -> int:
        """Let the page answer, with limits and headers as everywhere."""
        if self.open:
            self._local(headers, scope["method"])
        if headers.length > self.limits.body or (headers.chunked and not headers.length):
            raise Stop(413, f"the body must have at most {self.limits.body:,} bytes", unread=True)
        content = await self._content(receive, FORM) if scope["method"] == "POST" else b""
        scope = {**scope, "root_path": self.prefix}
        if self.https:
            scope["scheme"] = "https"
        status, begun = 500, False

        async def read() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def sent(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                given = list(message.get("headers", []))
                names = {name.lower() for name, _ in given}
                message = {
                    **message, "headers": given + [each for each in SAFE if each[0] not in names]
                }  # fmt: skip
            await send(message)

        try:
            await self._page(scope, read, sent)  # type: ignore[misc]
        except Exception as error:
            if not begun:
                raise
            self.bug(error, "page")  # in the middle of an answer
        return status

    # -- starting and stopping

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    def start(self) -> None:
        """Start what goes on between requests."""
        self._timers = [asyncio.create_task(self._every(REFRESHED, self._reading))]
        if self._together is not None:
            writing = Alone("counts", self._together.write)
            self._timers.append(asyncio.create_task(self._every(COUNTED, writing)))
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
        self.metrics.expired += self.decider.expire()

    async def _every(self, seconds: float, work: Alone) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.shield(asyncio.wrap_future(work()))
            except Exception as error:  # the next time may do better
                if isinstance(error, Unavailable):
                    self.log.write("warning", "store", message=str(error))
                else:
                    self.bug(error)


def _tried(work: Callable[..., Any], given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        return work(*given, **options)
    except Exception as error:
        return error


def _page(service: Service) -> Any:
    """Return the page that watches the service, where it is there."""
    try:
        from priorwise.serve.page import routes
    except ImportError:
        return None
    from starlette.responses import RedirectResponse
    from starlette.routing import Route, Router

    async def lost(scope: Message, receive: Receive, send: Send) -> None:
        raise Stop(404, _no_path(scope["path"].encode()))

    async def home(request: Any) -> Any:
        return RedirectResponse("watch/", 303)

    return Router([Route("/", home), *routes(service)], redirect_slashes=False, default=lost)


def _no_path(path: bytes) -> str:
    hint = (
        "; a slash in a name is written %2F" if path.startswith((b"/v1/tasks/", b"/v1/u")) else ""
    )
    return f"there is nothing at this address; /openapi.json lists what there is{hint}"


def _json(kind: bytes) -> bool:
    parts = [part.strip().lower() for part in kind.split(b";")]
    return parts[0] == b"application/json" and all(
        part in (b"", b"charset=utf-8", b'charset="utf-8"') for part in parts[1:]
    )


def _query(endpoint: Endpoint, text: bytes) -> dict[str, str]:
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        )
    except ValueError:
        raise Stop(400, "the query is not UTF-8 text, or too long") from None
    query = dict(pairs)
    for name in query:
        if name not in endpoint.query:
            known = ", ".join(endpoint.query) or "none"
            raise Stop(422, f"the query of this address knows {known}, not {name[:80]!r}", "?")
    if len(query) < len(pairs):
        raise Stop(422, "the query has a name twice", "?")
    return query


async def _received(receive: Receive, most: int) -> bytes:
    """Read a body, if it is not too long."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    content: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(content) <= most:
        return content
    pieces, length = [content], len(content)
    while message.get("more_body", False):
        if length > most:
            break
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        pieces.append(message.get("body", b""))
        length += len(pieces[-1])
    if length > most:
        raise Stop(413, f"the body must have at most {most:,} bytes", unread=True)
    return b"".join(pieces)


async def _drained(receive: Receive) -> None:
    """Read what is left of a body, up to a point."""
    left = DRAINED
    try:
        async with asyncio.timeout(1.0):
            while left > 0:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        return
