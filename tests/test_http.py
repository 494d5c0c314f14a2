"""The service over HTTP: what each endpoint does, who may ask, what is refused and how, and that it
starts and ends well.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from serving import ARMS, Running, prior, read, started
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.core.errors import ArgumentError
from priorwise.serve import Client, Conflict, Decider, NotFound, Unavailable, types
from priorwise.serve.client import _part
from priorwise.serve.http import keys
from priorwise.serve.http.limits import Bucket, Limits
from priorwise.serve.http.logs import Log
from priorwise.serve.http.openapi import SYSTEM
from priorwise.serve.http.protocol import Connection
from priorwise.serve.http.running import Server, bound, configured
from priorwise.serve.http.service import Service
from priorwise.serve.http.waiting import Alone
from priorwise.serve.table import DECIDE, TABLE
from priorwise.testing import base_seed


class Endpoint(NamedTuple):
    """An address of the service."""

    name: str
    method: str
    path: str
    scope: str | None


ENDPOINTS = [
    *(Endpoint(name, row.method, row.path, row.scope) for name, row in TABLE.items()),
    *(Endpoint(name, "GET", row[0], row[2]) for name, row in SYSTEM.items()),
]
CLOSED = [each for each in ENDPOINTS if each.scope is not None]
EXAMPLES: dict[str, Any] = {
    "decide": {"task": "t"},
    "decide_many": {"tasks": ["t", "u"]},
    "reward": {"token": "1.00000000.t", "value": 1},
    "rewards": {"rewards": [{"token": "1.00000000.t", "value": 1}]},
    "allocate": {"task": "t", "pulls": 3},
    "record": {"task": "t", "arm": "red", "pulls": 2, "reward": 1},
    "propose": {"prior": json.loads(prior().to_json())},
    "refit": {"seed": 0},
}


class Asked:
    """A service in this process, with keys of every scope."""

    def __init__(self, store: Any = None, **options: Any) -> None:
        limits, page = options.pop("limits", None), options.pop("page", False)
        start, made = options.pop("prior", None) or prior(), options.pop("made", True)
        self.log = io.StringIO()
        self.decider = Decider(
            start, pw.ThompsonSampling(), horizon=200, seed=base_seed(), store=store, **options
        )
        scopes = keys.SCOPES if made else ()
        self.keys = {each: keys.add(self.decider.store, each, [each]) for each in scopes}
        self.service = Service(self.decider, limits=limits, log=Log(self.log), page=page)

    def __call__(
        self, method: str, path: str, body: Any = None, key: str | None = "admin", **more: Any
    ) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if key is not None:
            headers["authorization"] = f"Bearer {self.keys.get(key, key)}"
        if body is not None:
            more["json"] = body

        async def ask() -> httpx.Response:
            self.service.live._bridge = None  # each request has a loop of its own here
            transport = httpx.ASGITransport(self.service)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as line:
                return await line.request(method, path, headers=headers, **more)

        return asyncio.run(ask())

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture(params=["memory", "sqlite"])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Asked]:
    made = Asked(None if request.param == "memory" else tmp_path / "decisions.db")
    yield made
    made.decider.close()


@pytest.fixture
def quick() -> Asked:
    return Asked()


def error(answer: httpx.Response, status: int, code: str) -> str:
    """Check that an answer is an error of the one form; return its message."""
    assert answer.status_code == status, answer.text
    (name, problem), *more = answer.json().items()
    assert (name, more) == ("error", [])
    assert set(problem) == {"code", "message", "where"}
    assert problem["code"] == code
    assert "Traceback" not in answer.text
    return str(problem["message"])


# -- the operations


def test_decide_and_reward(asked: Asked) -> None:
    made = asked("POST", "/v1/decide", {"task": "a/b", "request": "r1"}).json()
    assert made["arm"] in ARMS
    assert (made["task"], made["step"], made["version"], made["repeated"]) == ("a/b", 1, 1, False)
    assert 0.0 < made["propensity"] < 1.0
    again = asked("POST", "/v1/decide", {"task": "a/b", "request": "r1"}).json()
    assert again == made | {"repeated": True}
    token = made["token"]
    for value, expected in ((1, "counted"), (1, "repeated")):
        answer = asked("POST", "/v1/reward", {"token": token, "value": value})
        assert answer.json() == {"outcome": expected}
    error(asked("POST", "/v1/reward", {"token": token, "value": 0}), 409, "conflict")
    correct = {"token": token, "value": 0, "correct": True}
    assert asked("POST", "/v1/reward", correct).json() == {"outcome": "corrected"}
    assert "0 or 1" in error(
        asked("POST", "/v1/reward", {"token": token, "value": 7}), 422, "wrong_value"
    )
    error(asked("POST", "/v1/reward", {"token": "nobody", "value": 1}), 404, "not_found")


def test_the_service_decides_as_the_decider_does(asked: Asked, seed: int) -> None:
    alone = Decider(prior(), pw.ThompsonSampling(), horizon=200, seed=seed)
    for step in range(8):
        made = asked("POST", "/v1/decide", {"task": "t"}).json()
        own = alone.decide("t")
        assert types.Decision(**made) == own
        value = float(step % 2)
        asked("POST", "/v1/reward", {"token": made["token"], "value": value})
        alone.reward(own.token, value)


def test_a_bad_reward_does_not_stop_the_others(asked: Asked) -> None:
    tokens = [asked("POST", "/v1/decide", {"task": f"t{at}"}).json()["token"] for at in range(3)]
    items = [
        {"token": tokens[0], "value": 1},
        {"token": tokens[1], "value": "much"},
        {"token": "nobody", "value": 1},
        {"token": tokens[1], "value": 9},
        "nothing",
        {"token": tokens[2], "value": 0},
        {"token": tokens[0], "value": 1},
    ]
    answer = asked("POST", "/v1/rewards", {"rewards": items})
    assert answer.status_code == 200
    out = answer.json()["outcomes"]
    told = [each["outcome"] or each["error"]["code"] for each in out]
    assert told == [
        *("counted", "wrong_value", "not_found", "wrong_value", "wrong_value", "counted"),
        "repeated",
    ]
    assert out[1]["error"]["where"] == "$.rewards[1].value"
    assert out[4]["error"]["where"] == "$.rewards[4]"
    few = asked("POST", "/v1/rewards", {"rewards": []})
    error(few, 422, "wrong_value")
    many = asked("POST", "/v1/rewards", {"rewards": [items[0]] * (types.MOST_ITEMS + 1)})
    error(many, 422, "wrong_value")
    error(asked("POST", "/v1/rewards", {"rewards": items, "more": 1}), 422, "wrong_value")


def test_many_decisions(asked: Asked) -> None:
    body = {"tasks": ["a", "b", "c"]}
    made = asked("POST", "/v1/decide_many", body).json()["decisions"]
    assert [(each["task"], each["step"]) for each in made] == [("a", 1), ("b", 1), ("c", 1)]
    body["requests"] = ["x", "y", "z"]
    first = asked("POST", "/v1/decide_many", body).json()["decisions"]
    again = asked("POST", "/v1/decide_many", body).json()["decisions"]
    assert [each["step"] for each in first] == [2, 2, 2]
    assert again == [each | {"repeated": True} for each in first]
    body["requests"] = ["x"]
    assert "one for each" in error(asked("POST", "/v1/decide_many", body), 422, "wrong_value")


def test_allocate_record_and_close(asked: Asked) -> None:
    made = asked("POST", "/v1/allocate", {"task": "t", "pulls": 50, "request": "a"}).json()
    assert sum(made["counts"].values()) == 50
    assert set(made["counts"]) == set(ARMS)
    body = {"task": "t", "arm": "red", "pulls": 10, "reward": 4, "request": "b"}
    assert asked("POST", "/v1/record", body).json() == {"outcome": "counted"}
    assert asked("POST", "/v1/record", body).json() == {"outcome": "repeated"}
    error(asked("POST", "/v1/record", body | {"reward": 5}), 409, "conflict")
    error(asked("POST", "/v1/record", body | {"arm": "pink", "request": "c"}), 422, "wrong_value")
    assert asked("POST", "/v1/tasks/t/close").json() == {"closed": True}
    assert asked("POST", "/v1/tasks/t/close").json() == {"closed": False}
    error(asked("POST", "/v1/decide", {"task": "t"}), 409, "conflict")
    error(asked("POST", "/v1/tasks/nobody/close"), 404, "not_found")


@pytest.mark.parametrize("name", ["a/b", "a/close", "..", "a%2Fb", "ä ö", "x?y#z", "a b", "..%2f"])
def test_any_name_can_stand_in_an_address(quick: Asked, name: str) -> None:
    quick("POST", "/v1/decide", {"task": name})
    answer = quick("POST", f"/v1/tasks/{_part(name)}/close")
    assert answer.json() == {"closed": True}
    listed = quick("GET", "/v1/tasks").json()["tasks"]
    assert [(each["task"], each["closed"] is not None) for each in listed] == [(name, True)]


def test_tasks_are_listed_page_by_page(asked: Asked) -> None:
    for at in range(5):
        asked("POST", "/v1/decide", {"task": f"t{at}"})
    asked("POST", "/v1/tasks/t1/close")
    first = asked("GET", "/v1/tasks?limit=2").json()
    assert [each["task"] for each in first["tasks"]] == ["t4", "t3"]
    second = asked("GET", f"/v1/tasks?limit=3&after={first['next']}").json()
    assert [each["task"] for each in second["tasks"]] == ["t2", "t1", "t0"]
    assert second["next"] is None
    closed = asked("GET", "/v1/tasks?closed=true").json()["tasks"]
    assert [each["task"] for each in closed] == ["t1"]
    assert closed[0]["arms"] == list(ARMS)
    for query in ("limit=0", "limit=x", "limit=1001", "closed=maybe", "other=1", "limit=1&limit=2"):
        error(asked("GET", f"/v1/tasks?{query}"), 422, "wrong_value")
    error(asked("GET", "/v1/tasks?after=%ff"), 400, "bad_request")


@pytest.mark.slow
def test_a_summary_says_where_a_task_stands(asked: Asked) -> None:
    made = asked("POST", "/v1/decide", {"task": "t"}).json()
    asked("POST", "/v1/reward", {"token": made["token"], "value": 1})
    found = asked("GET", "/v1/tasks/t").json()
    assert [each["arm"] for each in found["arms"]] == list(ARMS)
    assert sum(each["prob_best"] for each in found["arms"]) == pytest.approx(1.0)
    assert {each["arm"]: each["pulls"] for each in found["arms"]}[made["arm"]] == 1.0
    assert found["leader"] in ARMS
    error(asked("GET", "/v1/tasks/nobody"), 404, "not_found")
    error(asked("GET", "/v1/tasks/t?context=[[1]]"), 422, "wrong_value")
    error(asked("GET", "/v1/tasks/t?context=x"), 422, "wrong_value")


def test_priors_are_proposed_and_judged(asked: Asked) -> None:
    other = pw.BetaPrior([3.0, 2.0, 3.0], [8.0, 7.0, 9.0], names=list(ARMS))
    content = json.loads(other.to_json())
    answer = asked("POST", "/v1/priors", {"prior": content, "story": {"why": "a test"}})
    assert answer.json() == {"version": 2, "status": "proposed"}
    assert asked("POST", "/v1/priors/2/accept").json()["status"] == "accepted"
    rows = asked("GET", "/v1/priors").json()["priors"]
    assert [(each["version"], each["status"], each["current"]) for each in rows] == [
        (1, "accepted", False),
        (2, "accepted", True),
    ]
    assert rows[1]["prior"] == content
    assert rows[1]["story"] == {"why": "a test"}
    assert asked("POST", "/v1/decide", {"task": "new"}).json()["version"] == 2
    asked("POST", "/v1/priors", {"prior": content})
    assert asked("POST", "/v1/priors/3/decline").json()["status"] == "declined"
    for version in ("9", "x", "-1", "%00", "1e3"):
        error(asked("POST", f"/v1/priors/{version}/accept"), 404, "not_found")
    error(asked("POST", "/v1/priors", {"prior": {"family": "beta"}}), 422, "wrong_value")
    error(asked("POST", "/v1/priors", {"prior": "/etc/passwd"}), 422, "wrong_value")


def test_units_are_deleted(asked: Asked) -> None:
    asked("POST", "/v1/decide", {"task": "t", "unit": "anna/1"})
    again = asked("POST", "/v1/decide", {"task": "t", "unit": "anna/1"}).json()
    assert again["repeated"]
    assert asked("DELETE", "/v1/units/anna%2F1").json() == {"decisions": 1}
    assert asked("DELETE", "/v1/units/anna%2F1").json() == {"decisions": 0}


def test_the_log_is_downloaded_as_parquet(asked: Asked) -> None:
    import pyarrow.parquet as pq

    for at in range(4):
        made = asked("POST", "/v1/decide", {"task": f"t{at % 2}"}).json()
        asked("POST", "/v1/reward", {"token": made["token"], "value": at % 2})
    answer = asked("GET", "/v1/log")
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    table = pq.read_table(io.BytesIO(answer.content))
    assert table.num_rows == 4
    assert "propensity" in table.column_names


def test_health_and_readiness(asked: Asked) -> None:
    assert asked("GET", "/health", key=None).json() == {"status": "alive"}
    assert asked("GET", "/ready", key=None).json() == {"status": "ready"}
    assert asked("HEAD", "/health", key=None).status_code == 200
    asked.decider.close()
    if asked.decider.store.durable:
        answer = asked("GET", "/ready", key=None)
        error(answer, 503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        error(asked("POST", "/v1/decide", {"task": "t"}), 503, "unavailable")


def test_late_rewards_are_told_so(tmp_path: Path) -> None:
    now = [0.0]
    asked = Asked(None, window=10.0, missing=0.0, clock=lambda: now[0])
    token = asked("POST", "/v1/decide", {"task": "t"}).json()["token"]
    now[0] = 11.0
    error(asked("POST", "/v1/reward", {"token": token, "value": 1}), 410, "too_late")


def test_metrics(asked: Asked) -> None:
    made = asked("POST", "/v1/decide", {"task": 't"\n'}).json()
    asked("POST", "/v1/reward", {"token": made["token"], "value": 1})
    asked("POST", "/v1/reward", {"token": "x", "value": 1})
    asked("GET", "/nowhere")
    text = asked("GET", "/metrics", key="read").text
    if asked.decider.store.durable:
        assert "priorwise_store_batch_sum 3.0" in text.splitlines()
    sample = re.compile(r'[a-z_]+(\{([a-z_]+="(\\.|[^"\\\n])*",?)*\})? [0-9.e+-]+|[+]Inf')
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(sample.fullmatch(line) for line in lines)
    for line in (
        'priorwise_requests_total{method="POST",route="/v1/decide",status="200"} 1.0',
        'priorwise_requests_total{method="POST",route="/v1/reward",status="404"} 1.0',
        'priorwise_requests_total{method="",route="other",status="404"} 1.0',
        'priorwise_request_seconds_count{route="/v1/reward"} 2.0',
        "priorwise_decisions_total 1.0",
        'priorwise_rewards_total{outcome="counted"} 1.0',
        'priorwise_rewards_total{outcome="refused"} 1.0',
        "priorwise_open_tasks 1.0",
    ):
        assert line in lines
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    ends = re.compile(r"_(bucket|sum|count)(?=[{ ])")
    assert {re.split(r"[{ ]", ends.sub("", line))[0] for line in lines} <= named


# -- who may ask


@pytest.mark.parametrize("endpoint", CLOSED, ids=lambda each: f"{each.method} {each.path}")
def test_every_endpoint_asks_for_a_key_of_its_scope(quick: Asked, endpoint: Any) -> None:
    path = re.sub(r"{\w+}", "1", endpoint.path)
    body = EXAMPLES.get(endpoint.name)
    missing = quick(endpoint.method, path, body, key=None)
    error(missing, 401, "no_key")
    assert missing.headers["www-authenticate"] == "Bearer"
    error(quick(endpoint.method, path, body, key="pw_" + "A" * 43), 401, "no_key")
    good = quick.keys[endpoint.scope]
    for wrong in (good[:-1], good + "A", good.upper(), f" {good[3:]}", "", good[3:]):
        error(quick(endpoint.method, path, body, key=f"{wrong} "), 401, "no_key")
    for scope in keys.SCOPES:
        status = quick(endpoint.method, path, body, key=scope).status_code
        if scope in (endpoint.scope, "admin"):
            assert status not in (401, 403)
        else:
            assert status == 403
    keys.revoke(quick.decider.store, endpoint.scope)
    quick.service.keys.refresh()
    error(quick(endpoint.method, path, body, key=endpoint.scope), 401, "no_key")


def test_only_these_are_open_to_everybody() -> None:
    assert {each.path for each in ENDPOINTS if each.scope is None} == {
        *("/health", "/ready", "/openapi.json")
    }


def test_keys_are_hashed_where_they_are_kept(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "decisions.db")
    secret = asked.keys["admin"]
    asked.decider.close()
    content = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert secret.encode() not in content
    assert secret[3:].encode() not in content
    with sqlite3.connect(tmp_path / "decisions.db") as base:
        (digest,) = base.execute("SELECT digest FROM api_key WHERE name = 'admin'").fetchone()
    base.close()
    assert len(digest) == 64
    assert len(secret) == 46  # 256 bits


def test_keys_of_another_scheme_or_two_at_once_are_refused(quick: Asked) -> None:
    key = quick.keys["admin"]
    for headers in (
        [("authorization", f"Basic {key}")],
        [("authorization", key)],
        [("authorization", f"Bearer{key}")],
        [("authorization", f"Bearer {key}"), ("authorization", f"Bearer {key}")],
    ):
        error(quick("GET", "/v1/tasks", key=None, headers=_many(headers)), 401, "no_key")


def _many(pairs: list[tuple[str, str]]) -> Any:
    return dict(pairs) if len(dict(pairs)) == len(pairs) else {"authorization": ", ".join(
        value for _, value in pairs
    )}  # fmt: skip


def test_open_services_take_nothing_from_pages_elsewhere() -> None:
    asked = Asked()
    asked.service.open = True
    assert asked("GET", "/v1/tasks", key=None).status_code == 200
    rebound = asked("GET", "/v1/tasks", key=None, headers={"host": "evil.example"})
    error(rebound, 403, "not_allowed")
    forged = asked(
        "POST", "/v1/priors/1/accept", key=None, headers={"origin": "http://evil.example"}
    )
    error(forged, 403, "not_allowed")
    own = asked("POST", "/v1/priors/1/accept", key=None, headers={"origin": "http://localhost"})
    assert own.status_code == 200


def test_a_rate_per_key() -> None:
    now = [0.0]
    bucket = Bucket(2.0, 2.0, lambda: now[0])
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, 0, 1]
    now[0] = 0.5
    assert [bucket.take() for _ in range(2)] == [0, 1]
    now[0] = 100.0
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, 0, 1]
    slow = Bucket(0.01, 2.0, lambda: now[0])
    assert [slow.take(), slow.take()] == [0, 100]
    asked = Asked(limits=Limits(rate=0.001))
    assert asked("GET", "/v1/tasks", key="read").status_code == 200
    answer = asked("GET", "/v1/tasks", key="read")
    error(answer, 429, "too_many")
    assert int(answer.headers["retry-after"]) > 500
    assert asked("GET", "/v1/tasks", key="admin").status_code == 200  # another key


def test_more_requests_at_once_than_it_takes_on() -> None:
    asked = Asked(limits=Limits(waiting=0))
    answer = asked("GET", "/v1/tasks")
    error(answer, 503, "unavailable")
    assert answer.headers["retry-after"] == "1"
    assert asked("GET", "/health").status_code == 200


def test_a_store_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path / "decisions.db", limits=Limits(deadline=0.05))
    monkeypatch.setattr(type(asked.decider.store), "submit", lambda *_, **__: Future())
    answer = asked("POST", "/v1/decide", {"task": "t"})
    assert "not known" in error(answer, 503, "unavailable")
    item = {"token": "1.00000000.t", "value": 1}
    error(asked("POST", "/v1/rewards", {"rewards": [item, item]}), 503, "unavailable")
    asked.decider.close()


def test_the_page_is_part_of_the_service() -> None:
    asked = Asked(page=True)
    first = asked("GET", "/", key=None)
    assert (first.status_code, first.headers["location"]) == (303, "watch/")
    assert asked("GET", "/watch/", key=None).status_code in (303, 401)
    form = asked("GET", "/watch/login", key=None)
    assert form.status_code == 200
    assert form.headers["x-content-type-options"] == "nosniff"
    assert "content-security-policy" in form.headers
    error(asked("GET", "/watch/nowhere", key=None), 404, "not_found")
    error(asked("GET", "/nowhere", key=None), 404, "not_found")
    long = asked("POST", "/watch/login", key=None, content=b"k" * (Limits().body + 1))
    error(long, 413, "too_large")
    service, read = asked.service, asked.keys["read"]
    assert service.scope_of(read) == {"read"}
    assert service.scope_of("pw_other") is None
    name = service.key_id(read)
    assert name is not None
    assert name not in read
    assert service.key_reads(name)
    assert not service.key_reads(str(service.key_id(asked.keys["decide"])))
    keys.revoke(asked.decider.store, "read")
    service.keys.refresh()
    assert not service.key_reads(name)
    assert {line["route"] for line in asked.lines()} == {"page", "other"}


# -- what is refused


def test_bodies_that_are_not_json(quick: Asked) -> None:
    for content, status in (
        (b"", 400),
        (b"{", 400),
        (b"null", 422),
        (b"[]", 422),
        (b'{"task": NaN}', 400),
        (b'{"task": "a\xff"}', 400),
        (b'{"task": "\\ud800"}', 400),
        (b'{"task": 1}', 422),
        (b'{"task": ""}', 422),
        (b'{"task": "a\\u0000"}', 422),
        (b'{"task": "a", "tasks": []}', 422),
        (b"\xef\xbb\xbf{}", 400),
        (b'{"task": "a"} {"task": "b"}', 400),
        (b"[" * 100_000, 422),
        (b'{"task": "a", "context": ' + b"[" * 100_000, 422),
    ):
        answer = quick(
            "POST", "/v1/decide", content=content, headers={"content-type": "application/json"}
        )
        error(answer, status, "bad_request" if status == 400 else "wrong_value")
    for content in (b'{"token": "a", "value": %s}' % word for word in (b"NaN", b"-Infinity")):
        answer = quick(
            "POST", "/v1/reward", content=content, headers={"content-type": "application/json"}
        )
        error(answer, 400, "bad_request")
    deep = b'{"prior": ' + b'{"a":' * 100_000
    answer = quick("POST", "/v1/priors", content=deep, headers={"content-type": "application/json"})
    error(answer, 400, "bad_request")


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"],
)
def test_bodies_of_another_kind(quick: Asked, kind: str) -> None:
    answer = quick("POST", "/v1/decide", content=b'{"task": "a"}', headers={"content-type": kind})
    error(answer, 415, "not_json")


def test_sizes(quick: Asked) -> None:
    most = Limits().body
    headers = {"content-type": "application/json"}
    long = b'{"task": "' + b"a" * most + b'"}'
    error(quick("POST", "/v1/decide", content=long, headers=headers), 413, "too_large")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(most // 1000 + 2):
            yield b" " * 1000

    answer = quick("POST", "/v1/decide", content=pieces(), headers=headers)
    error(answer, 413, "too_large")
    body = {"tasks": ["t"] * (types.MOST_ITEMS + 1)}
    error(quick("POST", "/v1/decide_many", body), 422, "wrong_value")
    many = {"task": "t", "available": ["x"] * 1001}
    error(quick("POST", "/v1/decide", many), 422, "wrong_value")


def test_addresses_and_methods_that_there_are_not(quick: Asked) -> None:
    nowhere = "/ /v1 /v1/ /v1/decide/ /v2/decide /v1/tasks/ /v1/tasks/a/b /V1/decide"
    for path in (*nowhere.split(), "/v1/tasks/a/close/"):
        error(quick("POST", path, {}), 404, "not_found")
    for endpoint in ENDPOINTS:
        path = re.sub(r"{\w+}", "1", endpoint.path)
        for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "BREW"):
            answer = quick(method, path)
            error(answer, 405, "wrong_method")
            assert endpoint.method in answer.headers["allow"]


def test_a_bug_is_told_by_its_id_alone(quick: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        return {}["secret"]  # type: ignore[no-any-return]

    monkeypatch.setattr(DECIDE, "run", broken)
    message = error(quick("POST", "/v1/decide", {"task": "t"}), 500, "bug")
    assert "secret" not in message
    (bug,) = [line for line in quick.lines() if line["event"] == "bug"]
    assert bug["bug"] in message
    assert "KeyError" in bug["trace"]
    assert quick("GET", "/health").status_code == 200


def test_every_answer_has_headers_that_keep_browsers_from_guessing(quick: Asked) -> None:
    for answer in (quick("GET", "/health"), quick("GET", "/nowhere"), quick("GET", "/v1/log")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers


def test_lines_of_the_log(quick: Asked) -> None:
    quick("POST", "/v1/decide", {"task": "somebody"}, headers={"x-request-id": "mine-1"})
    quick("POST", "/v1/decide", {"task": "x"}, headers={"x-request-id": "no good"})
    quick("POST", "/v1/reward", {"token": "hidden", "value": 1}, key="pw_hidden")
    first, second, third = quick.lines()
    assert {"time", "level", "event", "method", "route", "status", "ms", "key", "id"} == set(first)
    assert (first["route"], first["status"], first["key"]) == ("/v1/decide", 200, "admin")
    assert first["id"] == "mine-1"
    assert second["id"] not in ("no good", "mine-1")
    assert (third["status"], third["key"]) == (401, None)
    text = quick.log.getvalue()
    assert not any(word in text for word in ("somebody", "hidden", quick.keys["admin"]))


# -- the OpenAPI document


def test_the_openapi_document_describes_every_endpoint(quick: Asked) -> None:
    document = quick("GET", "/openapi.json", key=None).json()
    assert document["openapi"] == "3.1.0"
    assert {"title", "version"} <= set(document["info"])
    schemas = document["components"]["schemas"]
    operations = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == {(each.method, each.path) for each in ENDPOINTS}
    names = [each["operationId"] for each in operations.values()]
    assert len(set(names)) == len(names)
    for (_, path), operation in operations.items():
        wanted = re.findall(r"{(\w+)}", path)
        given = [e["name"] for e in operation.get("parameters", []) if e["in"] == "path"]
        assert given == wanted
        assert operation["summary"]
        for status, answer in operation["responses"].items():
            assert re.fullmatch(r"[1-5]\d\d", status)
            assert answer["description"]
        for kind in operation["security"]:
            assert set(kind) <= set(document["components"]["securitySchemes"])
    for place in _places(document):
        assert place.startswith("#/components/schemas/")
        assert place.rpartition("/")[2] in schemas
    assert schemas["Decide"]["additionalProperties"] is False
    assert schemas["Decide"]["required"] == ["task"]


def _places(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from _places(each)
    elif isinstance(value, list):
        for each in value:
            yield from _places(each)


def test_every_status_of_the_examples_is_in_the_document(quick: Asked) -> None:
    document = quick("GET", "/openapi.json", key=None).json()
    for endpoint in ENDPOINTS:
        path = re.sub(r"{\w+}", "7", endpoint.path)
        known = document["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        for key in (None, "decide", "admin"):
            answer = quick(endpoint.method, path, EXAMPLES.get(endpoint.name), key=key)
            assert str(answer.status_code) in known, (endpoint.path, answer.text)


# -- connections


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Server]]:
    """A server that takes three connections, with its port."""
    limits = Limits(connections=3, patience=0.3)
    monkeypatch.setattr(Connection, "limits", limits)
    service = Asked().service
    place = bound("127.0.0.1", 0)
    server = Server(configured(service, limits))
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    yield place.getsockname()[1], server
    server.should_exit = True
    thread.join()


def test_a_connection_without_a_request_makes_room_for_another(three: tuple[int, Server]) -> None:
    def healthy(line: socket.socket) -> list[int]:
        line.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        return [each.status for each in read(line)]

    with contextlib.ExitStack() as stack:

        def connected(first: bytes = b"") -> socket.socket:
            line = stack.enter_context(socket.create_connection(("127.0.0.1", three[0]), 10))
            line.sendall(first)
            return line

        login = b"POST /watch/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nkey="
        kept = connected()
        assert healthy(kept) == [200]
        lines = [connected(first) for first in (b"", b"GET /health HT", login)]
        threading.Event().wait(0.05)
        assert healthy(connected()) == [200]
        assert [kept.recv(1), lines[0].recv(1)] == [b"", b""]  # waited the longest
        assert healthy(connected()) == [200]
    assert not [each for each in Connection.waiting if each.transport.is_closing()]


def test_connections_that_are_answered_make_no_room(three: tuple[int, Server]) -> None:
    service: Any = three[1].config.app
    go = threading.Event()
    service._trying = Alone("ready", lambda: go.wait(60))
    with contextlib.ExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection(("127.0.0.1", three[0]), 10))
            for _ in range(3)
        ]
        for line in lines:
            line.sendall(b"GET /ready HTTP/1.1\r\n\r\n")
        while len(Connection.waiting) > 0 or len(three[1].server_state.connections) < 3:
            threading.Event().wait(0.01)
        with socket.create_connection(("127.0.0.1", three[0]), 10) as line:
            (answer,) = read(line)
            assert (answer.status, answer.json["error"]["code"]) == (503, "unavailable")
            assert line.recv(1) == b""
        go.set()
        for line in lines:
            assert [each.status for each in read(line)] == [200]


def test_a_connection_is_not_kept_for_who_sends_or_reads_nothing(three: tuple[int, Server]) -> None:
    with socket.create_connection(("127.0.0.1", three[0]), 10) as line:
        assert line.recv(1) == b""  # nothing came
    with socket.create_connection(("127.0.0.1", three[0]), 10) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        assert [each.status for each in read(line)] == [408]
    with socket.create_connection(("127.0.0.1", three[0]), 10) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            line.settimeout(1.0)
            line.sendall(b"GET /openapi.json HTTP/1.1\r\n\r\n" * 400)
        for _ in range(500):
            if not three[1].server_state.connections:
                break
            threading.Event().wait(0.02)
        else:
            pytest.fail("a connection is kept for who does not read")


# -- a process of its own


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = started(tmp_path_factory.mktemp("service"))
    yield made
    assert made.stop() == 0


@pytest.mark.slow
def test_the_client_asks_as_one_asks_a_decider(running: Running) -> None:
    with Client(running.url, running.keys["admin"]) as client:
        made = client.decide("client/1")
        assert type(made) is pw.serve.Decision
        assert client.reward(made.token, 1.0) == "counted"
        assert client.reward(made.token, 1.0) == "repeated"
        many = client.decide_many([f"client/{at}" for at in range(3)])
        assert [each.step for each in many] == [1, 2, 1]
        out = client.rewards([(many[0].token, 0.0), ("nobody", 1.0), (many[1].token, 5.0)])
        assert out[0] == "counted"
        assert isinstance(out[1], NotFound)
        assert isinstance(out[2], ValueError)
        counts = client.allocate("client/4", 30).counts
        assert sum(counts.values()) == 30
        assert client.record("client/4", "red", 10, 3.0) == "counted"
        summary = client.summary("client/4")
        assert summary.leader in ARMS
        assert sum(each.prob_best for each in summary.arms) == pytest.approx(1.0)
        assert client.close("client/4")
        with pytest.raises(Conflict, match="closed"):
            client.decide("client/4")
        with pytest.raises(NotFound):
            client.summary("client/nobody")
        with pytest.raises(ValueError, match="0 or 1"):
            client.reward(many[1].token, 5.0)
        with pytest.raises(ValueError, match="finite"):
            client.reward(many[1].token, float("nan"))
        with pytest.raises(ArgumentError) as caught:
            client.decide("x" * 501)
        assert caught.value.argument == "task"
    with Client(running.url, running.keys["read"]) as client, pytest.raises(PermissionError):
        client.decide("t")
    with Client(running.url) as client, pytest.raises(PermissionError):
        client.decide("t")


@pytest.mark.slow
def test_clients_may_be_shared_by_threads(running: Running) -> None:
    made: list[str] = []
    with Client(running.url, running.keys["admin"]) as client:

        def work() -> None:
            for _ in range(20):
                one = client.decide("shared")
                made.append(one.token)
                client.reward(one.token, 1.0)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(set(made)) == 120


def _size(head: bytes) -> int:
    found = re.search(rb"content-length: (\d+)", head.lower())
    return 1 if found is None else int(found[1])


class Lossy(threading.Thread):
    """Stands before a service and loses the first answers."""

    def __init__(self, port: int, lost: int) -> None:
        super().__init__(daemon=True)
        self.behind, self.lost = port, lost
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self) -> None:
        while True:
            try:
                front, _ = self.server.accept()
            except OSError:
                return
            with front, socket.create_connection(("127.0.0.1", self.behind)) as back:
                while data := front.recv(1 << 16):
                    head, _, body = data.partition(b"\r\n\r\n")
                    while len(body) < _size(head):
                        more = front.recv(1 << 16)
                        body, data = body + more, data + more
                    back.sendall(data)
                    answer = b""
                    while not answer or len(answer.partition(b"\r\n\r\n")[2]) < _size(answer):
                        answer += back.recv(1 << 16)
                    if self.lost:
                        self.lost -= 1
                        break
                    front.sendall(answer)


@pytest.mark.slow
def test_a_retried_decision_is_the_first_one(running: Running) -> None:
    between = Lossy(running.port, 2)
    between.start()
    with Client(f"http://127.0.0.1:{between.port}", running.keys["admin"]) as client:
        made = client.decide("lossy")
        assert (made.step, made.repeated) == (1, True)
        between.lost = 1
        assert client.reward(made.token, 1.0) == "repeated"
        between.lost = 1
        assert [each.step for each in client.decide_many(["lossy", "lossy 2"])] == [2, 1]
        between.lost = 9
        with pytest.raises(Unavailable, match="no answer"):
            client.decide("lossy")
    between.server.close()


@pytest.mark.slow
def test_what_was_begun_is_finished(tmp_path: Path) -> None:
    service = started(tmp_path)
    made = service.ask("POST", "/v1/decide", {"task": "t"}).json
    body = json.dumps({"token": made["token"], "value": 1}).encode()
    head = (
        f"POST /v1/reward HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.keys['admin']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", service.port), 30) as line:
        line.sendall(head + body[:5])
        service.ask("GET", "/health")  # it has the first half by now
        service.process.terminate()
        line.sendall(body[5:])
        (answer,) = read(line)
    assert (answer.status, answer.json) == (200, {"outcome": "counted"})
    assert service.stop() == 0
    assert [each["event"] for each in service.lines()][-1] == "stopped"
    again = started(tmp_path, made=service.keys)
    answer = again.ask("POST", "/v1/reward", json.loads(body))
    assert answer.json == {"outcome": "repeated"}
    assert again.stop() == 0


@pytest.mark.slow
def test_pulls_expire_by_themselves(tmp_path: Path) -> None:
    service = started(tmp_path, "--window", "0.5", "--missing", "0")
    token = service.ask("POST", "/v1/decide", {"task": "t"}).json["token"]
    for _ in range(200):
        if "priorwise_expired_total 1" in service.ask("GET", "/metrics").body.decode():
            break
    else:
        for _ in range(40):
            threading.Event().wait(0.25)
            if "priorwise_expired_total 1" in service.ask("GET", "/metrics").body.decode():
                break
    answer = service.ask("POST", "/v1/reward", {"token": token, "value": 1})
    assert answer.status == 410
    assert service.stop() == 0


@pytest.mark.slow
def test_keys_come_and_go_while_the_service_runs(tmp_path: Path) -> None:
    service = started(tmp_path)
    store = str(tmp_path / "decisions.db")
    runner = CliRunner()
    line = ["keys", "add", store, "--name", "web", "--scopes", "read"]
    service.keys["web"] = runner.invoke(app, line).stdout.strip()
    for _ in range(50):
        if service.ask("GET", "/v1/tasks", key="web").status == 200:
            break
        threading.Event().wait(0.25)
    else:
        pytest.fail("the new key is not known")
    assert runner.invoke(app, ["keys", "revoke", store, "web"]).exit_code == 0
    for _ in range(80):
        if service.ask("GET", "/v1/tasks", key="web").status == 401:
            break
        threading.Event().wait(0.25)
    else:
        pytest.fail("the revoked key is still good")
    assert service.stop() == 0
    assert service.keys["web"] not in service.log.read_text()


@pytest.mark.slow
def test_the_first_key_is_printed_to_the_terminal_and_nowhere_else(tmp_path: Path) -> None:
    prior().save(tmp_path / "prior.json")
    master, terminal = pty.openpty()
    files = (str(tmp_path / "prior.json"), "--store", str(tmp_path / "d.db"))
    line = [sys.executable, "-m", "priorwise", "serve", *files, *SERVE[2:], "--port", "0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(line, stdout=terminal, stderr=log)
    os.close(terminal)
    text = ""
    while "pw_" not in text or "\n" not in text:
        text += os.read(master, 1000).decode()
    key = re.search(r"pw_[\w-]{43}", text)
    assert key is not None
    while "Serving on" not in (tmp_path / "log").read_text():
        assert process.poll() is None
        threading.Event().wait(0.1)
    address = (tmp_path / "log").read_text().partition("Serving on ")[2].split()[0]
    with Client(address, key[0], retries=8) as client:
        assert client.decide("t").step == 1
    process.terminate()
    assert process.wait(60) == 0
    os.close(master)
    assert key[0] not in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_several_workers_share_a_store(tmp_path: Path) -> None:
    service = started(tmp_path, "--workers", "2")
    steps = [service.ask("POST", "/v1/decide", {"task": "t"}).json["step"] for _ in range(20)]
    assert steps == list(range(1, 21))
    starts = {line["process"] for line in service.lines() if line["event"] == "started"}
    for _ in range(100):
        starts = {line["process"] for line in service.lines() if line["event"] == "started"}
        if len(starts) == 2:
            break
        threading.Event().wait(0.2)
    assert len(starts) == 2
    os.kill(starts.pop(), signal.SIGKILL)
    for _ in range(10):  # the other one goes on
        with Client(service.url, service.keys["admin"], retries=5) as client:
            steps.append(client.decide("t").step)
    assert steps == list(range(1, 31))
    assert service.stop() == 0
    assert "take turns" in service.log.read_text()


# -- the command line


def invoke(*line: str) -> Any:
    return CliRunner().invoke(app, list(line))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prior().save("prior.json")
    return tmp_path


SERVE = ("serve", "prior.json", "--policy", "ts", "--horizon", "9", "--seed", "0")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--open", "--host", "0.0.0.0"), "--open"),
        (("--open", "--host", "example.org"), "--open"),
        (("--port", "65536"), "--port"),
        (("--port", "-1"), "--port"),
        (("--store", ""), "--store"),
        (("--store", "."), "--store"),
        (("--store", "memory"), "--store"),
        (("--store", "memory", "--open", "--workers", "2"), "--workers"),
        (("--workers", "0"), "--workers"),
        (("--missing", "0"), "--missing"),
        (("--window", "-1"), "window"),
        (("--window", "9", "--missing", "7"), "0 or 1"),
        (("--floor", "x"), "--floor"),
        (("--floor", "2"), "floor"),
        (("--floor", "0.9"), "floor"),
        (("--floor", "pink=0.1"), "pink"),
        (("--control", "red"), "--control"),
        (("--control", "=0.1"), "--control"),
        (("--control", "pink=0.1"), "pink"),
        (("--control", "red=2"), "control"),
        (("--rate", "0"), "--rate"),
        (("--patience", "0"), "--patience"),
        (("--host", "256.1.1.1", "--port", "0"), "--host"),
        ((), "keys add"),  # no terminal to print a key to
    ],
)
def test_bad_options_end_in_one_line(folder: Path, options: tuple[str, ...], names: str) -> None:
    result = invoke(*SERVE, *options)
    assert result.exit_code == 2, result.output
    assert names in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    if options:
        assert [each.name for each in folder.iterdir()] == ["prior.json"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("keys add d.db --name x --scopes write", "scopes"),
        ("keys add d.db --name x --scopes ,", "scopes"),
        ("keys add d.db --name x --scopes read --rate 0", "rate"),
        ("keys add . --name x --scopes read", "STORE"),
        ("keys list nowhere.db", "nowhere.db"),
        ("keys revoke nowhere.db x", "nowhere.db"),
        ("keys add prior.json --name x --scopes read", "STORE"),
    ],
)
def test_bad_lines_about_keys(folder: Path, line: str, names: str) -> None:
    result = invoke(*line.split())
    assert result.exit_code == 2, result.output
    assert names in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_keys_are_added_listed_and_revoked(folder: Path) -> None:
    made = invoke("keys", "add", "d.db", "--name", "web", "--scopes", "decide,reward")
    assert re.fullmatch(r"pw_[\w-]{43}\n", made.stdout)
    twice = invoke("keys", "add", "d.db", "--name", "web", "--scopes", "read")
    assert twice.exit_code == 2
    listed = invoke("keys", "list", "d.db").stdout
    assert "decide,reward" in listed
    assert made.stdout.strip() not in listed
    assert invoke("keys", "revoke", "d.db", "web").exit_code == 0
    assert invoke("keys", "revoke", "d.db", "web").exit_code == 2


def test_without_the_extra_a_line_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util as util

    found = util.find_spec
    monkeypatch.setattr(
        util, "find_spec", lambda name, *more: None if name == "starlette" else found(name, *more)
    )
    result = invoke(*SERVE)
    assert result.exit_code == 2
    assert "pip install 'priorwise[serve]'" in result.stderr
