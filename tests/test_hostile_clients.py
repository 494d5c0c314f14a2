"""What one client does to the service leaves it to all others."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import json
import os
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from serving import read, started
from test_http import Asked, error

from priorwise import ExchangeableBetaPrior
from priorwise.cli.serve import _other_settings
from priorwise.serve import Client, Unavailable
from priorwise.serve.http import keys, running, service
from priorwise.serve.http.limits import APART, SLOW, TRIES, Limits, Tries
from priorwise.serve.http.logs import Log
from priorwise.serve.http.protocol import Connection
from priorwise.serve.http.running import Server, bound, configured
from priorwise.serve.http.waiting import Few
from priorwise.serve.stores import opened, sql
from priorwise.serve.stores.schema import tuple_of
from priorwise.serve.types import Decision

LIMITS = Limits(patience=0.5, waiting=2, headers=4096)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Asked]]:
    """A service with its page and little patience, and its port."""
    monkeypatch.setattr(Connection, "limits", LIMITS)
    asked = Asked(limits=LIMITS, page=True)
    place = bound("127.0.0.1", 0)
    server = Server(configured(asked.service, LIMITS))
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield place.getsockname()[1], asked
    server.should_exit = True
    thread.join()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 30)


def decide(port: int, asked: Asked) -> int:
    body = b'{"task": "t"}'
    with connected(port) as line:
        line.sendall(
            b"POST /v1/decide HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer "
            + asked.keys["decide"].encode()
            + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        return read(line)[0].status


LOGIN = b"POST /watch/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nkey="


def test_log_ins_that_never_end_do_not_count_and_are_ended(served: tuple[int, Asked]) -> None:
    port, asked = served
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connected(port)) for _ in range(LIMITS.waiting + 3)]
        for line in lines:
            line.sendall(LOGIN)
        assert decide(port, asked) == 200
        for line in lines:
            assert [each.status for each in read(line)] == [408]


def test_who_leaves_during_log_in_is_no_bug(served: tuple[int, Asked]) -> None:
    port, asked = served
    with connected(port) as line:
        line.sendall(LOGIN)
        time.sleep(0.1)
    for _ in range(200):
        statuses = [each["status"] for each in asked.lines() if each["event"] == "request"]
        if statuses:
            break
        time.sleep(0.02)
    assert statuses == [499]
    assert asked.service.metrics.value("bugs_total") == 0.0


@pytest.mark.parametrize("piece", [b"a" * 512, b"a: b\r\n" * 100])
def test_trailers_have_a_limit(served: tuple[int, Asked], piece: bytes) -> None:
    port, asked = served
    head = (
        b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + asked.keys["decide"].encode() + b"\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
    )
    sent = 0
    with connected(port) as line:
        line.sendall(head + b"X: ")
        try:
            for _ in range(400):
                line.sendall(piece)
                sent += len(piece)
                time.sleep(0.001)
        except OSError:
            pass
        answers = read(line)
    assert sent < 400 * len(piece) or answers
    assert [each.status for each in answers] in ([431], [])


def test_small_chunks_and_short_trailers_are_taken(served: tuple[int, Asked]) -> None:
    port, asked = served
    body = b'{"task": "' + b"t" * 450 + b'"}'
    chunks = b"".join(b"1;%s\r\n%c\r\n" % (b"x" * 20, each) for each in body)
    with connected(port) as line:
        line.sendall(
            b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + asked.keys["decide"].encode() + b"\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for first in range(0, len(chunks), 1000):
            line.sendall(chunks[first : first + 1000])
            time.sleep(0.002)
        line.sendall(b"0\r\nX: y\r\n\r\n")
        assert [each.status for each in read(line)] == [200]


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Asked]:
    asked = Asked(tmp_path / "decisions.db", limits=Limits(summaries=1, exports=1))
    yield asked
    asked.decider.close()


def test_keys_and_readiness_do_not_wait_behind_work(
    on_disk: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priorwise.serve.http.service.REFRESHED", 0.05)
    asked, go = on_disk, threading.Event()
    service = asked.service
    for name in ("summary", "export"):
        monkeypatch.setattr(type(asked.decider), name, lambda *_, **__: go.wait(60))

    async def scenario() -> None:
        transport = httpx.ASGITransport(service)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as line:

            async def ask(method: str, path: str, key: str | None, body: Any = None) -> int:
                headers = {} if key is None else {"authorization": f"Bearer {asked.keys[key]}"}
                return (await line.request(method, path, headers=headers, json=body)).status_code

            assert await ask("POST", "/v1/decide", "decide", {"task": "t"}) == 200
            service.start()
            for _ in range(64):  # all that works aside is taken
                service._pool.submit(go.wait, 60)
            slow = [
                asyncio.create_task(ask("GET", path, "read"))
                for path in ("/v1/tasks/t", "/v1/log")
                for _ in range(12)
            ]
            done: list[int] = []
            while len(done) < 6:  # one works, eight wait, the others are turned away
                await asyncio.sleep(0.01)
                done = [each.result() for each in slow if each.done()]
            assert done == [503] * 6
            assert await ask("GET", "/ready", None) == 200
            assert await ask("GET", "/health", None) == 200
            keys.revoke(asked.decider.store, "decide")
            for _ in range(100):
                if await ask("POST", "/v1/decide", "decide", {"task": "t"}) == 401:
                    break
                await asyncio.sleep(0.02)
            else:
                pytest.fail("a revoked key decides")
            go.set()
            await asyncio.gather(*slow, return_exceptions=True)
            for timer in service._timers:
                timer.cancel()

    try:
        asyncio.run(scenario())
    finally:
        go.set()


def test_clients_take_turns() -> None:
    """However much one of them asks for, the next turn but one is that of another."""
    few, go, order = Few("works", 1, 10), threading.Event(), []

    def submitted(client: str, number: int) -> Any:
        return few.submit(lambda: go.wait(60) and order.append((client, number)), client)

    works = [submitted("a", number) for number in range(10)]
    with pytest.raises(Unavailable, match="works"):
        submitted("a", 10)
    works += [submitted("b", number) for number in range(2)]
    works[2].cancel()
    go.set()
    concurrent.futures.wait(works, 60)
    few.submit(lambda: None, "a").result(60)
    assert order[:4] in (
        [("a", 0), ("a", 1), ("b", 0), ("b", 1)], [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    )  # fmt: skip
    assert order[4:] == [("a", number) for number in range(3, 10)]
    with pytest.raises(ZeroDivisionError):
        few.submit(lambda: 1 / 0, "b").result(60)
    go.clear()
    works = [submitted(client, 0) for client in "abc"]
    few.close()
    go.set()
    concurrent.futures.wait(works, 60)
    assert [each.cancelled() for each in works[1:]] == [True, True]


def test_a_key_leaves_places_to_the_others(tmp_path: Path) -> None:
    """All that one key has at once is half of what the service takes on."""
    asked = Asked(tmp_path / "d.db", limits=Limits(waiting=6), prior=ExchangeableBetaPrior(2, 8))
    service, go = asked.service, threading.Event()
    for _ in range(service.limits.long):
        service._long.threads.submit(lambda: go.wait(60), "somebody")
    body = {"task": "t", "available": ["a", "b"]}

    async def scenario() -> None:
        transport = httpx.ASGITransport(service)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as line:

            def ask(key: str) -> asyncio.Task[httpx.Response]:
                headers = {"authorization": f"Bearer {asked.keys[key]}"}
                return asyncio.create_task(line.post("/v1/decide", headers=headers, json=body))

            many = [ask("decide") for _ in range(5)]
            while sum(each.done() for each in many) < 2:
                await asyncio.sleep(0.01)
            assert [each.result().status_code for each in many if each.done()] == [503] * 2
            other = ask("admin")
            while service._working.total() < 4:
                await asyncio.sleep(0.01)
            turns = service._long.threads.waiting
            while len(turns) < 4:
                await asyncio.sleep(0.01)
            assert sorted(map(len, turns._waiting.values())) == [1, 3]  # which take turns
            go.set()
            assert (await other).status_code == 200
            assert [(await each).status_code for each in many].count(200) == 3

    try:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    finally:
        go.set()
        asked.decider.close()
    assert service._working.total() == 0


def test_keys_that_cannot_be_read_are_good_for_nothing(
    on_disk: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priorwise.serve.http.service.SOON", 0.05)
    go = threading.Event()
    monkeypatch.setattr(on_disk.decider.store, "keys", lambda: go.wait(60) and [])
    on_disk.service.keys.read -= 4.5
    answer = on_disk("POST", "/v1/decide", {"task": "t"}, key="decide")
    go.set()
    assert "keys" in error(answer, 503, "unavailable")


def test_ready_writes_a_row_and_reads_no_prior(
    on_disk: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = on_disk.decider.store
    monkeypatch.setattr(store, "versions", lambda: pytest.fail("reads every prior"))
    assert on_disk("GET", "/ready", key=None).status_code == 200
    assert on_disk("GET", "/metrics").status_code == 200
    store._writer._connection.execute("PRAGMA query_only = ON")  # as a full disk is
    error(on_disk("GET", "/ready", key=None), 503, "unavailable")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_is_noticed(on_disk: Asked, tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "decisions.db"
    assert on_disk("POST", "/v1/decide", {"task": "t"}).status_code == 200
    copy = path.read_bytes()
    path.unlink()
    if replaced:
        path.write_bytes(copy)
    word = "replaced" if replaced else "deleted"
    for method, way, body in (
        ("POST", "/v1/decide", {"task": "t"}),
        ("GET", "/ready", None),
        ("GET", "/v1/tasks", None),
    ):
        assert word in error(on_disk(method, way, body), 503, "unavailable")


def test_wrong_bearer_keys_are_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asked = Asked()
    asked.keys["wrong"] = "pw_wrong"
    monkeypatch.setattr("priorwise.serve.http.service.asyncio.sleep", sleep)
    for _ in range(TRIES + 1):
        error(asked("GET", "/v1/tasks", key="wrong"), 401, "no_key")
    assert slept == [pytest.approx(SLOW, abs=APART)]
    assert asked("GET", "/v1/tasks", key="read").status_code == 200
    assert len(slept) == 1


def test_slow_answers_are_few_and_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priorwise.serve.http.limits.SLOWED", 3)
    tries, sleep, slept = Tries(lambda: 0.0), asyncio.sleep, list[float]()

    async def scenario() -> None:
        go = asyncio.Event()

        async def slow(seconds: float) -> None:
            slept.append(seconds)
            await go.wait()

        monkeypatch.setattr("priorwise.serve.http.limits.asyncio.sleep", slow)
        for _ in range(TRIES):
            tries.wrong("a")
        waiting = [asyncio.create_task(tries.slow("a")) for _ in range(5)]
        for _ in range(10):
            await sleep(0)
        assert [each.done() for each in waiting] == [False] * 3 + [True] * 2
        go.set()
        await asyncio.gather(*waiting)
        await tries.slow("a")

    asyncio.run(scenario())
    assert slept == pytest.approx([SLOW + each * APART for each in range(4)])


def test_who_asks_for_too_much_waits_for_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer at once would be asked for again at once. Nobody else waits."""
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asked = Asked(tmp_path / "d.db", prior=ExchangeableBetaPrior(2, 8))
    monkeypatch.setattr("priorwise.serve.http.limits.asyncio.sleep", sleep)
    assert asked("GET", "/v1/log", key="read").status_code == 200
    assert not slept
    monkeypatch.setattr(asked.service.exports, "_most", 0)
    error(asked("GET", "/v1/log", key="read"), 503, "unavailable")
    assert slept == [pytest.approx(SLOW, abs=0.1)]
    assert asked("GET", "/v1/tasks", key="read").status_code == 200
    assert len(slept) == 1


def test_a_transaction_has_one_job_about_many_tasks(tmp_path: Path) -> None:
    """A decision about one task waits for at most one of them, and goes before the next."""
    store = opened(str(tmp_path / "d.db"))
    assert isinstance(store, sql.SqlStore)
    try:
        waiting: sql.Turns[Any] = sql.Turns()
        jobs = {
            name: SimpleNamespace(wanted=SimpleNamespace(tasks=["t"] * tasks))
            for name, tasks in (("many", 10), ("more", 10), ("one", 1), ("other", 1))
        }
        for name, client in (("many", "a"), ("more", "a"), ("one", "b"), ("other", "b")):
            waiting.put(client, jobs[name])
        store._waiting = waiting
        batches = []
        while store._waiting:
            batches.append([name for job in store._batch() for name in jobs if jobs[name] is job])
    finally:
        store.close()
    assert [sum(name in ("many", "more") for name in each) for each in batches[:2]] == [1, 1]
    assert batches[0] == ["many"]
    assert batches[1] == ["one", "more"]


def test_a_connection_that_was_reset_is_forgotten(served: tuple[int, Asked]) -> None:
    port, _ = served
    made = weakref.WeakSet[Connection]()
    with connected(port) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not Connection.waiting:
            time.sleep(0.01)
        time.sleep(0.1)
        made.update(Connection.waiting)
        assert made
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for _ in range(10):  # well before the timer of an idle connection
        gc.collect()
        if not made:
            break
        time.sleep(0.2)
    assert not made


def test_a_service_waits_little_for_threads_and_collections() -> None:
    before, frozen = sys.getswitchinterval(), gc.get_freeze_count()
    try:
        running.prompt()
        assert sys.getswitchinterval() == pytest.approx(running.SWITCHED)
        assert gc.get_freeze_count() > frozen
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()


def test_names_of_arms_do_not_fill_the_memory(tmp_path: Path) -> None:
    """Tasks that clients name keep what is read of them within 60 MB."""
    asked = Asked(tmp_path / "d.db", prior=ExchangeableBetaPrior(2, 8))
    fits = [f"{arm:03}" + 99 * "\N{SNOWMAN}" for arm in range(300)]
    assert asked("POST", "/v1/decide", {"task": "t", "available": fits}).status_code == 200
    more = [f"{arm:03}" + 497 * "a" for arm in range(300, 330)]
    for task, arms in (("t", fits[:1] + more), ("u", fits + more)):
        answer = asked("POST", "/v1/decide", {"task": task, "available": arms})
        assert "100,000" in error(answer, 422, "wrong_value")
    assert asked("POST", "/v1/decide", {"task": "t"}).status_code == 200
    most = tuple_of.cache_info().maxsize
    assert most is not None
    assert most * (2 * 100_000 + 2 * 100_000) < 60e6
    asked.decider.close()


def test_cookies_fit_what_a_proxy_shows() -> None:
    asked = Asked(page=True)
    form = {"headers": {"content-type": "application/x-www-form-urlencoded"}}
    content = b"key=" + asked.keys["read"].encode()
    asked.service.https, asked.service.prefix = True, "/pw"
    answer = asked("POST", "/watch/login", key=None, content=content, **form)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "Secure" in cookie
    assert "Path=/pw/watch/" in cookie
    value = cookie.partition(";")[0]
    assert asked("GET", "/watch/", key=None, headers={"cookie": value}).status_code == 200
    asked.service.https, asked.service.prefix = False, ""
    plain = asked("POST", "/watch/login", key=None, content=content, **form)
    assert "Secure" not in plain.headers["set-cookie"]
    assert "Path=/watch/" in plain.headers["set-cookie"]


class Ports(BaseHTTPRequestHandler):
    """Answers a decision whose step is the port that it was asked from."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        made = Decision("a", "t", None, "t", self.client_address[1], 1)
        content = msgspec.json.encode(made)
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *given: Any) -> None:
        """Say nothing."""


@pytest.fixture
def ports() -> Iterator[Client]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ports)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with Client(f"http://127.0.0.1:{server.server_address[1]}") as client:
        yield client
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_client_keeps_no_connection_for_each_thread(ports: Client) -> None:
    steps: list[int] = []
    for _ in range(20):
        thread = threading.Thread(target=lambda: steps.append(ports.decide("t").step))
        thread.start()
        thread.join()
    assert len(set(steps)) == 1
    assert len(ports._idle) == 1
    ports._idle[0] = (ports._idle[0][0] - 60.0, ports._idle[0][1])
    old = ports._idle[0][1]
    assert ports.decide("t").step != steps[0]
    assert old.sock is None
    with ThreadPoolExecutor(30) as pool:
        list(pool.map(lambda _: ports.decide("t"), range(90)))
    assert len(ports._idle) <= 8


def test_a_child_of_a_fork_connects_anew(ports: Client) -> None:
    before = ports.decide("t").step
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(into, str(ports.decide("t").step).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(out, 100)) != before
    assert ports.decide("t").step == before
    os.close(out)
    os.close(into)


def test_another_database_is_no_folder() -> None:
    with pytest.raises(TypeError, match="postgresql://"):
        opened("mysql://host/name")


@pytest.mark.slow
def test_metrics_are_those_of_all_workers(tmp_path: Path) -> None:
    service = started(tmp_path, "--workers", "2")
    for _ in range(8):
        assert service.ask("POST", "/v1/decide", {"task": "t"}).status == 200
        assert service.ask("POST", "/v1/reward", {"token": "x", "value": 1}).status == 404
    for _ in range(8):  # whichever answers
        text = service.ask("GET", "/metrics").body.decode()
        assert "\npriorwise_decisions_total 8.0\n" in text
        assert 'priorwise_rewards_total{outcome="refused"} 8.0' in text
        assert 'priorwise_request_seconds_count{route="/v1/decide"} 8.0' in text
        assert "\npriorwise_open_tasks 1.0\n" in text
    assert service.stop() == 0


@pytest.mark.parametrize("ids", [False, True])
def test_other_keys_have_their_turn_within_many_decisions(
    on_disk: Asked, monkeypatch: pytest.MonkeyPatch, ids: bool
) -> None:
    on_disk("POST", "/v1/decide", {"task": "t"})  # the first one computes ahead
    store, sizes = on_disk.decider.store, list[int]()
    submit = store.submit

    def spied(work: Any, about: Any) -> Any:
        sizes.append(len(about.wanted().tasks))
        return submit(work, about)

    monkeypatch.setattr(store, "submit", spied)
    names = [f"t{number}" for number in range(130)]
    body = {"tasks": names, **({"requests": names} if ids else {})}
    made = on_disk("POST", "/v1/decide_many", body).json()["decisions"]
    assert [each["task"] for each in made] == names
    assert sum(sizes) == len(names)
    assert max(sizes) == service.AT_ONCE
    assert service.AT_ONCE < sql.MOST  # no transaction of its own
    on_disk.decider.close("t100")
    answer = on_disk("POST", "/v1/decide_many", {"tasks": names})
    error(answer, 409, "conflict")
    look = on_disk.decider.store.look
    steps = look(lambda session: [session.task(name).steps for name in names])
    assert steps == [2] * 100 + [1] * 30


def test_what_is_said_of_the_store_names_no_path(on_disk: Asked, tmp_path: Path) -> None:
    on_disk.decider.store._writer._connection.execute("PRAGMA query_only = ON")
    answers = [on_disk("GET", "/ready", key=None), on_disk("POST", "/v1/decide", {"task": "t"})]
    for answer in answers:
        error(answer, 503, "unavailable")
        assert str(tmp_path) not in answer.text
    assert str(tmp_path) in on_disk.log.getvalue()  # who runs it reads more


def test_erased_units_are_gone_from_the_files_at_once(on_disk: Asked, tmp_path: Path) -> None:
    name = "somebody-to-be-forgotten"
    for task in range(20):
        on_disk("POST", "/v1/decide", {"task": f"t{task}", "unit": name})

    def times() -> int:
        files = tmp_path.glob("decisions.db*")
        return sum(each.read_bytes().count(name.encode()) for each in files)

    assert times() > 0
    assert on_disk("DELETE", f"/v1/units/{name}").json() == {"decisions": 20}
    assert times() == 0


def test_a_log_that_nobody_reads_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    go, lines = threading.Event(), []

    class Unread:
        def write(self, text: str) -> None:
            go.wait(60)
            lines.extend(map(json.loads, text.splitlines()))

        def flush(self) -> None:
            """Nothing is kept."""

    monkeypatch.setattr("priorwise.serve.http.logs.sys.stderr", Unread())
    monkeypatch.setattr("priorwise.serve.http.logs.WAITING", 5)
    log = Log()
    for number in range(20):
        log.write("info", "test", number=number)
    go.set()
    log.drain(30.0)
    log.write("info", "test")
    log.drain(30.0)
    assert 5 <= len(lines) <= 7
    assert int(lines[-1]["dropped"]) == 20 - (len(lines) - 1)


def test_the_document_has_the_status_of_a_wrong_query() -> None:
    paths = json.loads(Asked()("GET", "/openapi.json", key=None).content)["paths"]
    for path in ("/v1/tasks", "/v1/tasks/{task}"):
        assert "422" in paths[path]["get"]["responses"]


def test_another_horizon_or_seed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _other_settings(['{"horizon": 5, "seed": 3}'], 6, 3)
    text = capsys.readouterr().err
    assert "--horizon" in text
    assert "--seed" not in text
