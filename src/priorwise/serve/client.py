"""``Client``: the operations of a service, called as those of a decider are."""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, final
from urllib.parse import quote, urlsplit

from priorwise.core import validation
from priorwise.serve.errors import Conflict, NotFound, TooLate, Unavailable
from priorwise.serve.operations import Allocation, Decision, Outcome

ERRORS: Final[dict[int, type[Exception]]] = {
    404: NotFound,
    409: Conflict,
    410: TooLate,
    429: Unavailable,
    503: Unavailable,
}
"""What a status is raised as; other refusals are ValueErrors."""
AGAIN: Final = (429, 502, 503, 504)
"""Statuses after which the same request is sent again."""
LONGEST_WAIT: Final = 30.0
IDLE: Final = 8
"""Connections that are kept open while nobody uses them."""
OLD: Final = 20.0
"""Seconds after which an unused connection is closed: the service does it after 30."""
MOST: Final = 1000
"""Items in one request."""


class ArmStanding(NamedTuple):
    """What is believed of an arm; see :class:`priorwise.serve.summary.Summary`."""

    arm: str
    pulls: float | None
    mean: float
    low: float
    high: float
    prob_best: float
    expected_loss: float


@final
class TaskSummary:
    """Where a task stands, as the service says: ``arms`` are rows, the rest is by name."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Take an answer of the service."""
        self.content = dict(content)
        self.task: str = content["task"]
        self.arms = [ArmStanding(**each) for each in content["arms"]]
        self.decided: int = content["decided"]
        self.horizon: int = content["horizon"]
        self.closed: bool = content["closed"]
        self.version: int = content["version"]
        self.leader: str = content["leader"]
        self.expected_loss: float = content["expected_loss"]
        self.value_remaining: float = content["value_remaining"]
        self.stop: bool = content["stop"]
        self.advice: str = content["advice"]
        self.stopping: dict[str, float] | None = content["stopping"]

    def __repr__(self) -> str:
        """Say what it is of."""
        return f"TaskSummary of {validation.shown(self.task)}: {self.advice}"


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
            raise ValueError(
                f"url must be one such as http://127.0.0.1:8000, got {validation.shown(url)}"
            )
        if key is not None and not (validation.text("key", key).isascii() and key.isprintable()):
            raise ValueError("key must be one that priorwise keys add printed")
        if validation.number("timeout", timeout) <= 0.0:
            raise ValueError(f"timeout must be positive, got {timeout:g}")
        self._retries = validation.count("retries", retries, 0)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._root, self._timeout = parts.path.rstrip("/"), float(timeout)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._forget()

    # -- the operations

    def decide(
        self,
        task: str,
        available: Sequence[str] | None = None,
        context: Any = None,
        *,
        unit: str | None = None,
        request: str | None = None,
    ) -> Decision:
        """Choose an arm for the next pull of a task; see :meth:`Decider.decide`."""
        body = {
            "task": task, "available": _listed(available), "context": _rows(context),
            "unit": unit, "request": request or _id(),
        }  # fmt: skip
        return Decision(**self._ask("POST", "/v1/decide", body))

    def decide_many(
        self, tasks: Iterable[str], available: Sequence[str] | None = None, contexts: Any = None
    ) -> list[Decision]:
        """Choose an arm for each of several tasks; see :meth:`Decider.decide_many`."""
        if isinstance(tasks, (str, bytes)):
            raise TypeError(f"tasks must be a list of names, got {validation.shown(tasks)}")
        names = list(tasks)
        features = None if contexts is None else [_rows(each) for each in contexts]
        out: list[Decision] = []
        for start in range(0, len(names), MOST):
            part = names[start : start + MOST]
            body = {
                "tasks": part, "available": _listed(available),
                "contexts": None if features is None else features[start : start + MOST],
                "requests": [_id() for _ in part],
            }  # fmt: skip
            answer = self._ask("POST", "/v1/decide_many", body)
            out += [Decision(**each) for each in answer["decisions"]]
        return out

    def reward(self, token: str, value: float, *, correct: bool = False) -> Outcome:
        """Send the reward of a decision; see :meth:`Decider.reward`."""
        body = {"token": token, "value": _number(value), "correct": correct}
        outcome: Outcome = self._ask("POST", "/v1/reward", body)["outcome"]
        return outcome

    def rewards(
        self, rewards: Iterable[tuple[str, float]], *, correct: bool = False
    ) -> list[Outcome | Exception]:
        """Send rewards of several decisions, pairs of token and value. Each has its outcome, or the
        error that :meth:`reward` would raise.
        """
        items = [
            {"token": token, "value": _number(value), "correct": correct}
            for token, value in rewards
        ]
        out: list[Outcome | Exception] = []
        for start in range(0, len(items), MOST):
            answer = self._ask("POST", "/v1/rewards", {"rewards": items[start : start + MOST]})
            for each in answer["outcomes"]:
                wrong = each.get("error")
                out.append(each["outcome"] if wrong is None else _error(_STATUS, wrong))
        return out

    def allocate(
        self,
        task: str,
        pulls: int,
        available: Sequence[str] | None = None,
        *,
        request: str | None = None,
    ) -> Allocation:
        """Choose the next pulls of a task at once; see :meth:`Decider.allocate`."""
        body = {
            "task": task, "pulls": pulls, "available": _listed(available),
            "request": request or _id(),
        }  # fmt: skip
        return Allocation(**self._ask("POST", "/v1/allocate", body))

    def record(
        self,
        task: str,
        arm: str,
        pulls: int,
        reward: float,
        *,
        squares: float | None = None,
        request: str | None = None,
    ) -> Outcome:
        """Send the sum of the rewards of several pulls; see :meth:`Decider.record`."""
        body = {
            "task": task, "arm": arm, "pulls": pulls, "reward": _number(reward),
            "squares": None if squares is None else _number(squares), "request": request or _id(),
        }  # fmt: skip
        outcome: Outcome = self._ask("POST", "/v1/record", body)["outcome"]
        return outcome

    def close(self, task: str | None = None) -> bool:
        """Close a task; whether it was open. Without a task, close the connections that nobody
        uses.
        """
        if task is None:
            with self._lock:
                idle = self._idle[:]
                self._idle.clear()
            for _, unused in idle:
                unused.close()
            return True
        return bool(self._ask("POST", f"/v1/tasks/{_part(task)}/close")["closed"])

    def summary(self, task: str, context: Any = None) -> TaskSummary:
        """Say where a task stands; see :meth:`Decider.summary`."""
        query = "" if context is None else f"?context={quote(json.dumps(_rows(context)))}"
        return TaskSummary(self._ask("GET", f"/v1/tasks/{_part(task)}{query}"))

    def delete(self, unit: str) -> int:
        """Erase what is known of a unit; returns in how many decisions it was."""
        return int(self._ask("DELETE", f"/v1/units/{_part(unit)}")["decisions"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
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

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = None
        if body is not None:
            # what is None is what the service takes by itself
            given = {name: value for name, value in body.items() if value is not None}
            content = json.dumps(given, allow_nan=False).encode()
        headers = {**self._headers, "X-Request-Id": _id()}
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            # the service may have closed a connection that nobody used for a while
            connection = self._connection()
            fresh = connection.sock is None
            try:
                status, answer, wait = self._once(connection, method, path, content, headers)
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise Unavailable(
                        f"no answer from the service at {self._host}: "
                        f"{error or type(error).__name__}"
                    ) from error
                wait = None if fresh or attempt else 0.0
            else:
                if 200 <= status < 300:
                    return answer
                if last or status not in AGAIN:
                    wrong = answer.get("error") if isinstance(answer, dict) else None
                    raise _error(status, wrong or {"message": f"the service answered {status}"})
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
    ) -> tuple[int, Any, float | None]:
        try:
            connection.request(method, self._root + path, content, dict(headers))
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()  # the next request has another one
            raise
        self._back(connection)
        wait = answer.getheader("Retry-After", "")
        try:
            value = json.loads(text) if text else None
        except ValueError:
            value = None  # not ours: of a proxy on the way
            if answer.status < 300:
                raise http.client.HTTPException("the answer is not JSON") from None
        return answer.status, value, float(wait) if wait.isdigit() else None


_STATUS: Final = -1


def _error(status: int, wrong: Mapping[str, Any]) -> Exception:
    """Return the exception that a decider would raise."""
    codes = {"not_found": 404, "conflict": 409, "too_late": 410, "unavailable": 503}
    known = codes.get(str(wrong.get("code")), status) if status == _STATUS else status
    where = wrong.get("where")
    text = f"{wrong.get('message', '')}{f' (at {where})' if where else ''}"
    if known in ERRORS:
        return ERRORS[known](text)
    if known in (401, 403):
        return PermissionError(text)
    return RuntimeError(text) if known >= 500 else ValueError(text)


def _id() -> str:
    return uuid.uuid4().hex


def _part(name: str) -> str:
    """Write a name as one part of an address, which nobody on the way takes for a folder."""
    return quote(validation.text("name", name), safe="").replace(".", "%2E")


def _listed(names: Sequence[str] | None) -> list[str] | None:
    if isinstance(names, (str, bytes)):
        raise TypeError(f"available must be a list of names, got {validation.shown(names)}")
    return None if names is None else list(names)


def _rows(context: Any) -> Any:
    return context.tolist() if hasattr(context, "tolist") else context


def _number(value: Any) -> float:
    return validation.number("value", value)
