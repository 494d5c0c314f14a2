"""Requests that no one should have sent: what ``test_hostile_requests`` sends to a real service.

Each has the statuses that are right for it. No answer may hold a trace or what was sent as markup,
and after all of them the service is alive, its log is whole and its statistics are what they were.
``python tests/hostile_requests.py`` prints every answer, to be read.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving import Answer, Running, started

NOTHING = (0,)
"""The service may end the connection without an answer."""
INJECTIONS = (
    "'; DROP TABLE task; --",
    '" OR 1=1 --',
    "t'); DELETE FROM decision; --",
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "{{7*7}}",
    "${jndi:ldap://127.0.0.1/a}",
    "%00",
    "%s%s%n",
    "a\r\nSet-Cookie: x=y",
    "a\nX-Evil: 1",
    "../../etc/passwd",
    "..\\..\\windows",
    "file:///etc/passwd",
    "\u202egnp.exe",
    "\x1b[31mred",
    "task\x7f",
    "NULL",
    "true",
    "-1",
    "1.00000000.t",
    "🦄" * 100,
    "ﷺ" * 400,
    "a" * 500,
    " ",
    "\t",
    "__proto__",
    "constructor",
    "=cmd|' /C calc'!A0",
)
WRONG_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**30, -(10**30), "", [], {}, [[]], {"a": 1}, ["a"]),
)


@dataclass(frozen=True)
class Case:
    """Bytes to send, and the statuses that are right."""

    label: str
    pieces: tuple[bytes, ...]
    statuses: tuple[int, ...]
    wait: float = 0.0  # between pieces
    answers: int = 1


class Cases:
    """Writes requests for a service."""

    def __init__(self, service: Running) -> None:
        self.keys = service.keys

    def http(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        key: str | None = "admin",
        *,
        kind: str | None = "application/json",
        headers: tuple[tuple[str, str], ...] = (),
        length: str | None = None,
    ) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
        if key is not None:
            lines.append(f"Authorization: Bearer {self.keys.get(key, key)}")
        if kind is not None:
            lines.append(f"Content-Type: {kind}")
        if length != "":
            lines.append(f"Content-Length: {len(content) if length is None else length}")
        lines += [f"{name}: {value}" for name, value in headers]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + content

    def one(self, label: str, statuses: Any, *given: Any, **options: Any) -> Case:
        wanted = statuses if isinstance(statuses, tuple) else (statuses,)
        return Case(label, (self.http(*given, **options),), wanted)

    def __iter__(self) -> Iterator[Case]:
        yield from self.wrong_values()
        yield from self.wrong_json()
        yield from self.unknown()
        yield from self.injections()
        yield from self.without_rights()
        yield from self.addresses()
        yield from self.sizes()
        yield from self.kinds()
        yield from self.broken_http()
        yield from self.slow()

    # -- what stands in bodies

    def wrong_values(self) -> Iterator[Case]:
        good: dict[str, dict[str, Any]] = {
            "/v1/decide": {"task": "w"},
            "/v1/decide_many": {"tasks": ["w"]},
            "/v1/reward": {"token": "1.00000000.w", "value": 1.0},
            "/v1/allocate": {"task": "w", "pulls": 2},
            "/v1/record": {"task": "w", "arm": "red", "pulls": 1, "reward": 1},
        }
        wrong: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
            ("/v1/decide", "task", WRONG_VALUES),
            ("/v1/decide", "available", (True, 1, "red", {}, [], [1], ["pink"], ["red", "red"])),
            ("/v1/decide", "context", (1, "x", {}, [1], [["a"]], [[1.0]], [[[1]]])),
            ("/v1/decide", "unit", (True, 1, "", [], "u" * 501)),
            ("/v1/decide", "request", (True, 1, "", [], "r" * 501, "r\x00")),
            ("/v1/decide_many", "tasks", (None, "w", {}, [], [1], [""], [None], [["w"]])),
            ("/v1/decide_many", "requests", ("x", [], [1], ["a", "b"])),
            ("/v1/reward", "token", (None, 1, "", [], "x" * 601)),
            ("/v1/reward", "value", (None, True, "1", [], {}, "NaN")),
            ("/v1/reward", "correct", (None, 1, "yes")),
            ("/v1/allocate", "pulls", (None, 0, -1, 1.5, "2", 10**8, 10**30, True)),
            ("/v1/record", "pulls", (None, 0, -1, 1.5, "2", 10**30)),
            ("/v1/record", "reward", (None, True, "1", 10**400, [])),
            ("/v1/record", "squares", (True, "1", [])),
        )
        for path, name, values in wrong:
            for value in values:
                body = json.dumps({**good[path], name: value}).encode()
                yield self.one(f"{path} {name}={str(value)[:20]!r}", 422, "POST", path, body)
        for path, body in good.items():
            for name in body:
                less = {key: value for key, value in body.items() if key != name}
                yield self.one(
                    f"{path} without {name}", 422, "POST", path, json.dumps(less).encode()
                )
            more = json.dumps({**body, "isAdmin": True}).encode()
            yield self.one(f"{path} with a field more", 422, "POST", path, more)

    def wrong_json(self) -> Iterator[Case]:
        for content, statuses in (
            (b"", 400), (b" ", 400), (b"{", 400), (b"}", 400), (b"nul", 400), (b'"task"', 422),
            (b"null", 422), (b"1", 422), (b"[]", 422), (b"{'task': 'a'}", 400),
            (b'{"task": "a",}', 400), (b'{"task": NaN}', 400), (b'{"task": Infinity}', 400),
            (b'{"task": "a\xff\xfe"}', 400), (b'{"task": "\xc0\xaf"}', 400),
            (b'{"task": "\xed\xa0\x80"}', 400), (b'{"task": "\\ud800"}', 400),
            (b'{"task": "\\udc00\\ud800"}', 400), (b'{"task": "a\x00"}', 400),
            (b'{"task": "a\\u0000"}', 422), (b'{"task": "a\n"}', 400), (b"\xff\xfe{\x00}\x00", 400),
            (b"\xef\xbb\xbf{}", 400), (b'{"task": "a"}{"task": "b"}', 400),
            (b'{"task": "a"} //', 400), (b"[" * 500_000, 422), (b'{"task":' * 100_000, 422),
            (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 422),
            (b'{"task": "a", "context": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", 422),
            (b'{"task": 1e999}', 422), (b'{"task": -}', 400), (b'{"task": 01}', 400),
            (b"\x00" * 100, 400), (b"\x1f\x8b\x08\x00" + b"\x00" * 60, 400),
            (b"<?xml version='1.0'?><task/>", 400), (b"task=a&unit=b", 400),
        ):  # fmt: skip
            yield self.one(f"decide {content[:24]!r}", statuses, "POST", "/v1/decide", content)
        for content in (
            b'{"token": "a", "value": NaN}', b'{"token": "a", "value": -Infinity}',
            b'{"token": "a", "value": 0x10}', b'{"token": "a", "value": 1_000}',
        ):  # fmt: skip
            yield self.one(f"reward {content!r}", 400, "POST", "/v1/reward", content)
        deep = b'{"prior": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001
        yield self.one("a deep prior", 400, "POST", "/v1/priors", deep)
        for text in (
            {}, {"prior": None}, {"prior": []}, {"prior": {}}, {"prior": {"priorwise": 1}},
            {"prior": {"priorwise": 2, "family": "beta"}},
            {"prior": {"priorwise": 1, "family": "os.system"}},
            {"prior": {"priorwise": 1, "family": "beta", "alpha": [-1, 1], "beta": [1, 1]}},
            {"prior": {"priorwise": 1, "family": "beta", "alpha": "x" * 100, "beta": 1}},
            {"prior": {"priorwise": 1, "family": "prior-fit"}},
        ):  # fmt: skip
            yield self.one(
                f"prior {str(text)[:60]}", 422, "POST", "/v1/priors", json.dumps(text).encode()
            )
        huge = b'{"token": "1.00000000.t", "value": 1' + b"0" * 400 + b"}"
        yield self.one("a value of 400 digits", 422, "POST", "/v1/reward", huge)
        twice = b'{"task": "twice", "task": "twice again", "request": "q"}'
        yield self.one("a field twice", 200, "POST", "/v1/decide", twice)

    # -- what there is not, and replays

    def unknown(self) -> Iterator[Case]:
        for token in (
            "x", "1.00000000.victim", "1..victim", ".", "..", "1.zzzzzzzz.victim",
            "99999999999999999999.00000000.victim", "-1.00000000.victim", "1e3.00000000.victim",
            "0.00000000.victim", "٣.00000000.victim", "1.00000000.", "1.00000000.nobody",
            "1.00000000.victim' OR '1'='1",
        ):  # fmt: skip
            body = json.dumps({"token": token, "value": 1}).encode()
            yield self.one(f"token {token!r}", 404, "POST", "/v1/reward", body)
        for name in ("nobody", "victim%00", "%20", "a" * 501, "%F0%9F%A6%84"):
            yield self.one(f"close {name[:20]}", (404, 422), "POST", f"/v1/tasks/{name}/close")
        for name in ("nobody", "a" * 600):
            yield self.one(f"summary of {name[:20]}", (404, 422), "GET", f"/v1/tasks/{name}")
        for version in ("0", "9", "-1", "1.0", "x", "%31%30", "9" * 30, "٣"):
            path = f"/v1/priors/{version}/accept".encode("utf-8", "replace").decode()
            yield self.one(f"accept {version}", (400, 404), "POST", path)
        yield self.one("decline the one in use", 422, "POST", "/v1/priors/1/decline")
        yield self.one("delete nobody", 200, "DELETE", "/v1/units/nobody")
        body = json.dumps({"task": "nobody", "arm": "red", "pulls": 1, "reward": 1}).encode()
        yield self.one("record to nobody", 404, "POST", "/v1/record", body)
        body = json.dumps({"task": "victim", "arm": "pink", "pulls": 1, "reward": 1}).encode()
        yield self.one("record of no arm", 422, "POST", "/v1/record", body)
        body = json.dumps({"task": "victim", "arm": "red", "pulls": 1, "reward": 2}).encode()
        yield self.one("more successes than pulls", 422, "POST", "/v1/record", body)
        same = json.dumps({"task": "victim", "request": "first"}).encode()
        for _ in range(3):
            yield self.one("a decision replayed", 200, "POST", "/v1/decide", same)

    def injections(self) -> Iterator[Case]:
        for name in INJECTIONS:
            body = json.dumps({"task": name, "unit": name, "request": name}).encode()
            yield self.one(f"a task called {name[:30]!r}", 200, "POST", "/v1/decide", body)
        for name in INJECTIONS[:12]:
            body = json.dumps({"task": "victim", "available": [name]}).encode()
            yield self.one(f"an arm called {name[:30]!r}", 422, "POST", "/v1/decide", body)
            body = json.dumps({"token": name, "value": 1}).encode()
            yield self.one(f"a token {name[:30]!r}", 404, "POST", "/v1/reward", body)
        for query in ("after=';DROP TABLE task;--", "after=%27%20OR%201=1", "closed=true'--"):
            wanted = 422 if query.startswith("closed") else 200
            quoted = query.replace(" ", "%20")
            yield self.one(f"query {query}", wanted, "GET", f"/v1/tasks?{quoted}")
        for value in ("a b", "../x", "<script>", "x" * 200, "%0d%0aX-Evil:1", "é"):
            headers = (("X-Request-Id", value),)
            yield self.one(f"id {value[:20]!r}", 200, "GET", "/health", headers=headers)

    # -- keys

    def without_rights(self) -> Iterator[Case]:
        body = b'{"task": "victim"}'
        admin = self.keys["admin"]
        for key in ("", "x", "pw_", "pw_" + "A" * 43, admin[:-1], admin + "x", admin.lower(),
                    "' OR '1'='1", "null", "undefined", "x" * 4000, "ключ"):  # fmt: skip
            yield self.one(f"key {key[:12]!r}", 401, "POST", "/v1/decide", body, key)
        yield self.one("no key", 401, "POST", "/v1/decide", body, None)
        for scope, path in (
            *(("read", "/v1/decide"), ("reward", "/v1/decide"), ("decide", "/v1/reward")),
            *(("decide", "/v1/priors"), ("read", "/v1/priors/1/accept")),
        ):
            yield self.one(f"{scope} at {path}", 403, "POST", path, body, scope)
        for header in (
            f"Basic {admin}", admin, f"bearer{admin}", f"Bearer,{admin}", f"Digest {admin}",
            "Bearer", "Bearer ", f"Bearer {admin} {admin}",
        ):  # fmt: skip
            headers = (("Authorization", header),)
            yield self.one(
                f"Authorization: {header[:14]}", 401, "GET", "/v1/tasks", key=None, headers=headers
            )
        twice = (("Authorization", f"Bearer {admin}"),)
        yield self.one("two keys", 401, "GET", "/v1/tasks", key="read", headers=twice)
        for header in ("X-Api-Key", "Cookie", "X-Forwarded-User", "Proxy-Authorization"):
            headers = ((header, admin),)
            yield self.one(f"key in {header}", 401, "GET", "/v1/tasks", key=None, headers=headers)
        yield self.one("key in the query", 401, "GET", f"/v1/tasks?key={admin}", key=None)
        yield self.one("metrics without a key", 401, "GET", "/metrics", key=None)

    # -- addresses

    def addresses(self) -> Iterator[Case]:
        for path in (
            "/v1", "/v1/", "/v1/decide/", "//v1/decide", "/v1//decide", "/v1/./decide",
            "/v1/../v1/decide", "/v1/decide/..", "/V1/DECIDE", "/v1/decide%00", "/v1/decide%20",
            "/v1%2Fdecide", "/%76%31/decide", "/v1/decide;x=1", "/v1/decide.json",
            "/v1/tasks//close", "/v1/tasks/a/b/close", "/v1/tasks/a/close/", "/.git/config",
            "/.env", "/../../../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "/admin",
            "/wp-login.php", "/v1/units/", "/v1/units/a/b", "/actuator/env", "/docs/..;/v1/decide",
        ):  # fmt: skip
            yield self.one(f"POST {path}", (404, 405), "POST", path, b"{}")
        for path in ("/v1/tasks/%ff", "/v1/tasks/%c0%ae", "/v1/tasks/%ed%a0%80/close"):
            method = "POST" if path.endswith("close") else "GET"
            yield self.one(f"{method} {path}", 400, method, path)
        for path in ("/v1/tasks/%", "/v1/tasks/%zz", "/v1/tasks/%2", "/v1/tasks/%252e%252e"):
            yield self.one(f"GET {path}", (400, 404), "GET", path)
        for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            yield self.one(f"{method} /v1/decide", 405, method, "/v1/decide")
        yield self.one("CONNECT", (400, 404, 405), "CONNECT", "127.0.0.1:22", kind=None)
        for query in (
            *("x=1", "limit=", "limit=0", "limit=-1", "limit=1e9", "limit=" + "9" * 400),
            *("limit=%d9%a3", "closed=", "closed=TRUE", "limit=1&limit=2", "&&&=&"),
        ):
            yield self.one(f"query {query[:20]}", (200, 422), "GET", f"/v1/tasks?{query}")
        yield self.one("query %ff", 400, "GET", "/v1/tasks?after=%ff")
        yield self.one(
            "query of many names", 400, "GET", "/v1/tasks?" + "&".join(f"a{n}=1" for n in range(99))
        )
        yield self.one("an address elsewhere", (404, 401), "GET", "http://example.org/x", key=None)

    # -- sizes

    def sizes(self) -> Iterator[Case]:
        big = b'{"task": "' + b"a" * (3 << 20) + b'"}'
        yield self.one("a body of 3 MB", 413, "POST", "/v1/decide", big)
        yield self.one("a body of 3 MB without a key", 401, "POST", "/v1/decide", big, None)
        yield self.one("a length of 10 GB", 413, "POST", "/v1/decide", length=str(10**10))
        yield self.one("a length of 40 digits", (400, 413), "POST", "/v1/decide", length="9" * 40)
        prior = b'{"prior": {"x": "' + b"a" * (17 << 20) + b'"}}'
        yield self.one("a prior of 17 MB", (413, *NOTHING), "POST", "/v1/priors", prior)
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        head = self.http(
            "POST", "/v1/decide", headers=(("Transfer-Encoding", "chunked"),), length=""
        )
        yield Case("chunks without end", (head, *[chunk] * 40), (413,))
        yield Case("chunks to where no body belongs", (self.http(
            "POST", "/v1/tasks/victim/close", headers=(("Transfer-Encoding", "chunked"),), length=""
        ), *[chunk] * 3, b"0\r\n\r\n"), (413,))  # fmt: skip
        many = json.dumps({"tasks": ["t"] * 1001}).encode()
        yield self.one("1,001 tasks", 422, "POST", "/v1/decide_many", many)
        many = json.dumps({"rewards": [{"token": "x", "value": 1}] * 1001}).encode()
        yield self.one("1,001 rewards", 422, "POST", "/v1/rewards", many)
        many = json.dumps({"task": "x", "available": [str(n) for n in range(1001)]}).encode()
        yield self.one("1,001 arms", 422, "POST", "/v1/decide", many)
        long = (("X-Long", "a" * 40_000),)
        yield self.one("a header of 40 KB", 431, "GET", "/health", headers=long)
        lots = tuple((f"X-{n}", "1") for n in range(500))
        yield self.one("500 headers", 431, "GET", "/health", headers=lots)
        yield self.one("an address of 40 KB", 431, "GET", "/" + "a" * 40_000)
        endless = (b"GET /health HTTP/1.1\r\nX: ", *[b"a" * 8192] * 80)
        yield Case("a header without end", endless, (431, *NOTHING), wait=0.002)

    # -- other kinds of bodies

    def kinds(self) -> Iterator[Case]:
        body = b'{"task": "victim", "request": "first"}'
        for kind in (
            None, "", "text/plain", "text/html", "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x", "application/xml",
            "application/json; charset=utf-16", "application/jsonx", "json",
            "application/json, text/plain", "application/x-msgpack",
        ):  # fmt: skip
            yield self.one(f"kind {kind}", 415, "POST", "/v1/decide", body, kind=kind)
        for kind in ("application/json;charset=UTF-8", "Application/JSON", "application/json; "):
            yield self.one(f"kind {kind}", 200, "POST", "/v1/decide", body, kind=kind)
        packed = (("Content-Encoding", "gzip"),)
        content = b"\x1f\x8b" + b"\x00" * 50
        yield self.one("gzip", (400, 415), "POST", "/v1/decide", content, headers=packed)
        forged = (("X-HTTP-Method-Override", "DELETE"), ("X-Original-URL", "/v1/units/victim"))
        yield self.one("another method by a header", 200, "GET", "/v1/tasks", headers=forged)
        waits = (("Expect", "100-continue"),)
        yield self.one("Expect", 200, "POST", "/v1/decide", body, headers=waits)
        yield self.one("Upgrade", 200, "GET", "/health", headers=(
            ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "x"),
            ("Sec-WebSocket-Version", "13"),
        ))  # fmt: skip
        yield self.one("HTTP/2 by a header", 200, "GET", "/health", headers=(
            ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", ""),
        ))  # fmt: skip

    # -- what is no HTTP

    def broken_http(self) -> Iterator[Case]:
        get, post, end = b"GET /health HTTP/1.1\r\n", b"POST /v1/decide HTTP/1.1\r\n", b"\r\n\r\n"
        for content in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
            b"PRI * HTTP/2.0\r\n\r\nSM" + end,
            *(b"hello" + end, b"GET" + end, b"\x00\x00\x00\x00" + end, b"GE T /health" + end),
            *(b"GET /health HTTP/9.9" + end, b"GET /health HTP/1.1" + end),
            *(get + b"Host x" + end, get + b": x" + end, get + b"Ho st: x" + end),
            *(b"GET /he\x01alth HTTP/1.1" + end, get + b"X: a\x00b" + end),
            b"GET /health HTTP/1.1\nHost: x\n bad\n\n\n",
            *(post + b"Content-Length: %b" % length + end for length in (b"-1", b"abc", b"1, 2")),
            post + b"Content-Length: 5\r\nContent-Length: 6" + end + b"abcdef",
            post + b"Content-Length: 5\r\nTransfer-Encoding: chunked" + end + b"0" + end,
            post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x" + end,
            post + b"Transfer-Encoding: xchunked" + end,
        ):
            yield Case(f"bytes {content[:60]!r}", (content,), (400,))
        yield Case("HTTP/0.9", (b"GET /health" + end,), (200, 400))
        head = self.http(
            "POST", "/v1/decide", headers=(("Transfer-Encoding", "chunked"),), length=""
        )
        for chunk in (b"zz\r\n", b"-1\r\n", b"5\r\nabc", b"ffffffffffffffff\r\nabc"):
            wanted = (400,) if chunk[:1] in (b"z", b"-") else (400, 408, 413)
            yield Case(f"chunk {chunk!r}", (head, chunk + b"\r\n\r\n"), wanted, wait=0.05)
        body = b'{"task": "victim", "request": "first"}'
        short = self.http("POST", "/v1/decide", body, length=str(len(body) - 4))
        yield Case("a length too short", (short,), (400,), answers=1)
        ask = self.http("POST", "/v1/decide", body)
        yield Case("20 requests at once", (ask * 20,), (200,) * 20, answers=20)
        inside = self.http("POST", "/v1/decide", b"{")
        yield Case("good, bad, good", (ask + inside + ask,), (200, 400, 200), answers=3)
        health = b"GET /health HTTP/1.0\r\n\r\n"
        yield Case("HTTP/1.0", (health,), (200,))
        yield Case("no host", (b"GET /health HTTP/1.1\r\n\r\n",), (200, 400))

    # -- clients that take their time

    def slow(self) -> Iterator[Case]:
        body = b'{"task": "victim", "request": "first"}'
        ask = self.http("POST", "/v1/decide", body)
        single = tuple(ask[at : at + 16] for at in range(0, len(ask), 16))
        yield Case("a piece at a time", single, (200,), wait=0.01)
        yield Case("half of a header", (ask[:60],), (408, *NOTHING))
        yield Case("half of a body", (ask[:-10],), (408, *NOTHING))
        yield Case("nothing at all", (b"",), NOTHING)
        document = self.http("GET", "/openapi.json")
        yield Case("many answers that nobody reads", (document * 400,), (200, *NOTHING), wait=8.0)


def send(service: Running, case: Case) -> tuple[list[str], list[Answer]]:
    """Send a request; return what is wrong with the answers."""
    answers = service.raw(*case.pieces, wait=case.wait, most=case.answers)
    wrong = []
    if case.answers > 1:
        if tuple(each.status for each in answers) != case.statuses:
            wrong.append(f"{[each.status for each in answers]} instead of {case.statuses}")
    elif not answers:
        if 0 not in case.statuses:
            wrong.append("no answer")
    elif answers[0].status not in case.statuses:
        wrong.append(f"{answers[0].status} instead of {case.statuses}: {answers[0].body[:300]!r}")
    for answer in answers:
        wrong += [f"holds {word}" for word in _FORBIDDEN if word in answer.body]
        if b"<script" in answer.body and "json" not in answer.headers.get("content-type", ""):
            wrong.append("holds markup")
        if {"set-cookie", "x-evil"} & set(answer.headers):
            wrong.append("holds a header that was sent as a name")
        if answer.status >= 400:
            try:
                problem = answer.json["error"]
                if set(problem) != {"code", "message", "where"}:
                    wrong.append("an error of another form")
            except (ValueError, KeyError, TypeError):
                wrong.append(f"an error that is not JSON: {answer.body[:100]!r}")
    return wrong, answers


_FORBIDDEN = (b"Traceback", b'File "', b"site-packages", b"sqlite3", b"psycopg", b"root:")


def prepared(folder: Path) -> tuple[Running, dict[str, Any]]:
    """Start a service with a task that all of it is about."""
    service = started(folder, "--no-propensities", "--patience", "3")
    made = service.ask("POST", "/v1/decide", {"task": "victim", "request": "first"}).json
    service.ask("POST", "/v1/reward", {"token": made["token"], "value": 1})
    return service, made


def sent(service: Running) -> Iterator[tuple[Case, list[str], list[Answer]]]:
    """Send all of them, a few at a time: some take as long as the service has patience."""
    with ThreadPoolExecutor(8) as pool:
        yield from pool.map(lambda case: (case, *send(service, case)), Cases(service))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        service, _ = prepared(Path(name))
        count = failed = 0
        for case, wrong, answers in sent(service):
            count, failed = count + 1, failed + bool(wrong)
            said = answers[0].body[:150] if answers else b"(no answer)"
            status = answers[0].status if answers else 0
            print(f"{'WRONG ' if wrong else ''}{case.label}: {status} {said!r} {wrong or ''}")
        print(f"{count} requests, {failed} wrong, exit code {service.stop()}")
        for line in service.lines():
            if line["event"] == "bug":
                print(line["trace"])


if __name__ == "__main__":
    main()
