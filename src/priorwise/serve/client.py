"""``Client``: the operations of a service, called as those of a decider are."""

from __future__ import annotations

import http.client
import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.files import file_path
from priorwise.core.serial import load_prior
from priorwise.serve import table, types
from priorwise.serve.choosing import LivePrior
from priorwise.serve.errors import Unavailable
from priorwise.serve.problems import error_of
from priorwise.serve.table import Declared, described

P = ParamSpec("P")
Q = TypeVar("Q", bound=types.Request)
A = TypeVar("A")
R = TypeVar("R")

AGAIN: Final = (429, 502, 503, 504)
"""Statuses after which the same request is sent again."""
LONGEST_WAIT: Final = 30.0
IDLE: Final = 8
"""Connections that are kept open while nobody uses them."""
OLD: Final = 20.0
"""Seconds after which an unused connection is closed: the service does it after 30."""

ArmStanding = types.Arm
TaskSummary = types.Summary


def _method(operation: Declared[P, Q, A]) -> Callable[Concatenate[Client, P], A]:
    """Return the method of a client that asks for an operation."""

    def method(self: Client, /, *given: P.args, **options: P.kwargs) -> A:
        return self._do(operation, operation.parameters(*given, **options))

    return described(method, operation)


@final
class Client:
    """Asks a service, as one asks a :class:`Decider`: the same methods, results and errors.

    May be used from several threads, and by the children of a fork, which connect anew. There are
    as many connections as requests at once, and a few stay open between requests. A request that
    gets no answer is sent again with the same id, so that it is carried out once.

    Parameters
    ----------
    url
        Of the service, such as ``http://127.0.0.1:8000``.
    key
        Made by ``priorwise keys add``; None for a service without keys.
    timeout
        Seconds to wait for each answer.
    retries
        How often a request is sent again that got no answer, or that the service could not take.

    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 10.0, retries: int = 3
    ) -> None:
        """Check; connects with the first request."""
        parts = urlsplit(validation.text("url", url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ArgumentError("url", "must be one such as http://127.0.0.1:8000", got=url)
        if key is not None and not (validation.text("key", key).isascii() and key.isprintable()):
            raise ArgumentError("key", "must be one that priorwise keys add printed")
        if validation.number("timeout", timeout) <= 0.0:
            raise ArgumentError("timeout", "must be positive", got=timeout)
        self._retries = validation.count("retries", retries, 0)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._root, self._timeout = parts.path.rstrip("/"), float(timeout)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._forget()

    # -- the operations

    decide = _method(table.DECIDE)
    decide_many = _method(table.DECIDE_MANY)
    allocate = _method(table.ALLOCATE)
    reward = _method(table.REWARD)
    rewards = _method(table.REWARDS)
    record = _method(table.RECORD)
    delete = _method(table.DELETE)
    tasks = _method(table.TASKS)
    summary = _method(table.SUMMARY)
    replay = _method(table.REPLAY)
    priors = _method(table.PRIORS)
    accept = _method(table.ACCEPT)
    decline = _method(table.DECLINE)
    refit = _method(table.REFIT)
    alarm = _method(table.ALARM)

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with."""
        return next(row.version for row in self.priors().priors if row.current)

    def prior(self, version: int | None = None) -> LivePrior:
        """Return the prior of a version, by default that of new tasks."""
        version = self.version if version is None else version
        row = next((row for row in self.priors().priors if row.version == version), None)
        if row is None:
            raise error_of(types.Problem("not_found", f"there is no prior of version {version}"))
        prior: LivePrior = load_prior(msgspec.json.encode(row.prior).decode())
        return prior

    def propose(self, prior: LivePrior, story: Mapping[str, Any] | None = None) -> int:
        """Keep a prior for somebody to accept; return its version. ``story``, values that JSON has,
        says where it comes from.
        """
        content = msgspec.json.decode(prior.to_json())
        return self._do(table.PROPOSE, types.Propose(content, dict(story or {}))).version

    def replace_prior(self, prior: LivePrior, story: Mapping[str, Any] | None = None) -> int:
        """Let new tasks start with another prior; running ones keep theirs. Returns its version."""
        version = self.propose(prior, story)
        self.accept(version)
        return version

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        closed: bool | None = None,
        outstanding: bool = False,
    ) -> Path:
        """Write the log as Parquet; see :meth:`Decider.export`. Returns the file."""
        target = file_path(path)
        target.write_bytes(self._one(table.LOG, types.Export(closed, outstanding), bytes))
        return target

    def close(self, task: str | None = None) -> bool:
        """Close a task; whether it was open. Without a task, close the connections that nobody
        uses.
        """
        if task is not None:
            return self._do(table.CLOSE, types.CloseTask(task))
        with self._lock:
            idle = self._idle[:]
            self._idle.clear()
        for _, unused in idle:
            unused.close()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- HTTP

    def _forget(self) -> None:
        """Start without connections: in a new process those of its parent are not ours."""
        self._process, self._lock = os.getpid(), threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []  # since when

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection for one request: the one used last, or a new one."""
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            young = time.monotonic() - OLD
            old = [each for since, each in self._idle if since < young]
            self._idle = [each for each in self._idle if each[0] >= young]
            found = self._idle.pop()[1] if self._idle else None
        for each in old:
            each.close()
        if found is not None:
            return found
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _back(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection for other requests, if there are not enough."""
        with self._lock:
            keep = len(self._idle) < IDLE
            if keep:
                self._idle.append((time.monotonic(), connection))
        if not keep:
            connection.close()

    def _do(self, operation: Declared[P, Q, A], asked: Q) -> A:
        """Ask for an operation, in several requests where it is long."""
        decode = msgspec.json.Decoder(operation.answer).decode
        parts = asked.checked().parts()
        return operation.joined(
            [operation.unwrap(self._one(operation, part, decode)) for part in parts]
        )

    def _one(self, operation: Declared[P, Q, A], asked: Q, read: Callable[[bytes], R]) -> R:
        """Return the answer to one request, which is repeated with the same id."""
        asked.identify(_id)
        # what is None is what the service takes by itself
        values = msgspec.to_builtins(asked, enc_hook=_plain)
        given = {name: value for name, value in values.items() if value is not None}
        if operation.has_body:
            return self._ask(operation.method, operation.path, read, msgspec.json.encode(given))
        names = {name: _part(str(value)) for name, value in given.items()}
        query = {
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in given.items()
            if f"{{{name}}}" not in operation.path
        }
        path = operation.path.format(**names) + (f"?{urlencode(query)}" if query else "")
        return self._ask(operation.method, path, read)

    def _ask(
        self, method: str, path: str, read: Callable[[bytes], R], content: bytes | None = None
    ) -> R:
        headers = {**self._headers, "X-Request-Id": _id()}
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            # the service may have closed a connection that nobody used for a while
            connection = self._connection()
            fresh = connection.sock is None
            try:
                status, answer, wait = self._once(connection, method, path, content, headers)
                if 200 <= status < 300:
                    return read(answer)
            except (OSError, http.client.HTTPException, msgspec.MsgspecError) as error:
                if last:  # what is no answer of ours is one of a proxy on the way
                    raise Unavailable(
                        f"no answer from the service at {self._host}: "
                        f"{error or type(error).__name__}"
                    ) from error
                wait = None if fresh or attempt else 0.0
            else:
                if last or status not in AGAIN:
                    raise _error(status, answer)
            backoff = 0.05 * 2.0**attempt * (1.0 + random.random())
            time.sleep(min(wait if wait is not None else backoff, LONGEST_WAIT))
        raise AssertionError

    def _once(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes, float | None]:
        try:
            connection.request(method, self._root + path, content, dict(headers))
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()  # the next request has another one
            raise
        self._back(connection)
        wait = answer.getheader("Retry-After", "")
        return answer.status, text, float(wait) if wait.isdigit() else None


for _name, _row in table.TABLE.items():  # those without a line above
    if not hasattr(Client, _name) and _name not in ("close_task", "delete_unit", "log"):
        setattr(Client, _name, _method(_row))


def _error(status: int, content: bytes) -> Exception:
    """Return the exception that a decider would raise."""
    try:
        problem = msgspec.json.decode(content, type=types.Failed).error
    except (msgspec.MsgspecError, UnicodeDecodeError):  # not ours: of a proxy on the way
        code = "unavailable" if status in AGAIN else ""
        problem = types.Problem(code, f"the service answered {status}")
    if status == 429:
        return Unavailable(problem.message)
    if status in (401, 403):
        return PermissionError(problem.message)
    if status == 500:
        return RuntimeError(problem.message)
    return error_of(problem)


def _id() -> str:
    return uuid.uuid4().hex


def _part(name: str) -> str:
    """Write a name as one part of an address, which nobody on the way takes for a folder."""
    return quote(name, safe="").replace(".", "%2E")


def _plain(value: Any) -> Any:  # of whatever the caller passed
    """Return lists of arrays and numbers of NumPy's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ArgumentTypeError("arguments", "must be values that JSON has", got=value)
