"""What one client does to the service leaves it to all others."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from serving import read
from test_http import Asked

from priorwise.serve.http.limits import Limits
from priorwise.serve.http.protocol import Connection
from priorwise.serve.http.running import Server, bound, configured

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
    assert asked.service.metrics.bugs == 0


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
