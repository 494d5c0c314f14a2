"""What the service answers stays as it was: every address, and the OpenAPI document.

Answers are compared without texts of errors. ``python tests/test_frozen_service.py`` freezes them
again.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from serving import prior

import priorwise as pw
from priorwise.serve import Decider
from priorwise.serve.http.logs import Log
from priorwise.serve.http.service import Service

FROZEN: Final = Path(__file__).with_name("frozen_service.json")
SEED: Final = 0  # what is frozen has one
TOKEN: Final = "{token}"
"""Stands for the token of the last decision."""
PRIOR: Final = json.loads(
    pw.BetaPrior([3.0, 2.0, 3.0], [8.0, 7.0, 9.0], names=["red", "blue", "green"]).to_json()
)

Request = tuple[str, str, Any]

REQUESTS: Final[tuple[Request, ...]] = (
    ("GET", "/health", None),
    ("GET", "/ready", None),
    ("POST", "/v1/decide", {"task": "t"}),
    ("POST", "/v1/reward", {"token": TOKEN, "value": 1}),
    ("POST", "/v1/reward", {"token": TOKEN, "value": 1}),
    ("POST", "/v1/reward", {"token": TOKEN, "value": 0}),
    ("POST", "/v1/reward", {"token": TOKEN, "value": 0, "correct": True}),
    ("POST", "/v1/reward", {"token": TOKEN, "value": 0.5, "correct": True}),
    ("POST", "/v1/decide", {"task": "t", "unit": "u", "request": "r"}),
    ("POST", "/v1/decide", {"task": "t", "request": "r"}),
    ("POST", "/v1/decide", {"task": "t", "unit": "u"}),
    ("POST", "/v1/decide", {"task": "t", "available": ["red", "green"]}),
    ("POST", "/v1/decide", {"task": "t", "available": ["pink"]}),
    ("POST", "/v1/decide", {"task": "t", "context": [[1.0]]}),
    ("POST", "/v1/decide", {"task": 7}),
    ("POST", "/v1/decide", {}),
    ("POST", "/v1/decide_many", {"tasks": ["t", "v"]}),
    ("POST", "/v1/decide_many", {"tasks": ["t", "v"], "requests": ["a", "b"]}),
    ("POST", "/v1/decide_many", {"tasks": ["t", "v"], "requests": ["a", "b"]}),
    ("POST", "/v1/decide_many", {"tasks": ["t", "v"], "requests": ["a"]}),
    ("POST", "/v1/decide_many", {"tasks": []}),
    ("POST", "/v1/rewards", {"rewards": [{"token": "x", "value": 1}, {"token": "y"}, 3]}),
    ("POST", "/v1/rewards", {"rewards": []}),
    ("POST", "/v1/allocate", {"task": "t", "pulls": 30, "request": "c"}),
    ("POST", "/v1/allocate", {"task": "t", "pulls": 30, "request": "c"}),
    ("POST", "/v1/allocate", {"task": "t", "pulls": 0}),
    ("POST", "/v1/record", {"task": "t", "arm": "red", "pulls": 5, "reward": 2, "request": "d"}),
    ("POST", "/v1/record", {"task": "t", "arm": "red", "pulls": 5, "reward": 2, "request": "d"}),
    ("POST", "/v1/record", {"task": "t", "arm": "red", "pulls": 5, "reward": 3, "request": "d"}),
    ("POST", "/v1/record", {"task": "t", "arm": "pink", "pulls": 5, "reward": 2}),
    ("POST", "/v1/record", {"task": "t", "arm": "red", "pulls": 5, "reward": 6}),
    ("POST", "/v1/record", {"task": "nobody", "arm": "red", "pulls": 5, "reward": 2}),
    ("GET", "/v1/tasks?limit=1", None),
    ("GET", "/v1/tasks?closed=true", None),
    ("GET", "/v1/tasks?limit=0", None),
    ("GET", "/v1/tasks?other=1", None),
    ("GET", "/v1/tasks/t?context=x", None),
    ("GET", "/v1/tasks/t?context=[[1]]", None),
    ("GET", "/v1/tasks/nobody", None),
    ("GET", "/v1/tasks/t", None),
    ("POST", "/v1/tasks/v/close", None),
    ("POST", "/v1/tasks/v/close", None),
    ("POST", "/v1/tasks/nobody/close", None),
    ("POST", "/v1/decide", {"task": "v"}),
    ("DELETE", "/v1/units/u", None),
    ("DELETE", "/v1/units/u", None),
    ("GET", "/v1/priors", None),
    ("POST", "/v1/priors", {"prior": PRIOR, "story": {"why": "a test"}}),
    ("POST", "/v1/priors", {"prior": {"family": "beta"}}),
    ("POST", "/v1/priors/2/accept", None),
    ("POST", "/v1/priors/2/decline", None),
    ("POST", "/v1/priors/9/accept", None),
    ("POST", "/v1/priors/x/decline", None),
    ("GET", "/v1/priors", None),
    ("POST", "/v1/decide", {"task": "new"}),
    ("GET", "/v1/log", None),
    ("GET", "/metrics", None),
    ("GET", "/nowhere", None),
    ("PUT", "/v1/decide", None),
    ("GET", "/openapi.json", None),
)
"""Each address in an order in which it has something to do."""


async def answers(store: Path | None) -> list[dict[str, Any]]:
    """What a service without keys answers, one after the other."""
    now = [1000.0]
    decider = Decider(
        prior(), pw.ThompsonSampling(), horizon=200, seed=SEED, store=store, clock=lambda: now[0]
    )
    service = Service(decider, open=True, page=False, log=Log(io.StringIO()))
    token, result = "", []
    transport = httpx.ASGITransport(service)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as line:
        for method, path, given in REQUESTS:
            last = isinstance(given, dict) and given.get("token") == TOKEN
            body = given | {"token": token} if last else given
            now[0] += 1.0
            answer = await line.request(method, path, json=body)
            is_json = answer.headers["content-type"] == "application/json"
            content = plain(answer.json()) if is_json else answer.headers["content-type"]
            if "token" in content and isinstance(content, dict):
                token = content["token"]
            asked = [method, path, body]
            result.append({"request": asked, "status": answer.status_code, "answer": content})
    decider.close()
    return result


def plain(value: Any) -> Any:
    """An answer without texts of errors and other sentences."""
    if isinstance(value, dict):
        texts = {"message"} if "code" in value else {"advice"} if "leader" in value else set()
        return {name: plain(each) for name, each in value.items() if name not in texts}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["memory", "sqlite"])
def test_answers(stored: bool, tmp_path: Path) -> None:
    frozen = json.loads(FROZEN.read_text())
    found = asyncio.run(answers(tmp_path / "decisions.db" if stored else None))
    *found, document = found
    *frozen, before = frozen
    for now, then in zip(found, frozen, strict=True):
        assert now["request"] == then["request"]
        assert now["status"] == then["status"], now
        close(now["answer"], then["answer"], now["request"])
    contains(document["answer"], before["answer"], "openapi")


def close(now: Any, then: Any, where: Any) -> None:
    """Numbers agree to the last digits but a few, all else exactly."""
    if isinstance(then, float):
        assert now == pytest.approx(then, rel=1e-9), where
    elif isinstance(then, dict):
        assert now.keys() == then.keys(), where
        for name, value in then.items():
            close(now[name], value, [where, name])
    elif isinstance(then, list):
        assert len(now) == len(then), where
        for one, other in zip(now, then, strict=True):
            close(one, other, where)
    else:
        assert now == then, where


def contains(now: Any, then: Any, where: str) -> None:
    """All that the document says is said still; operations and types may be new."""
    if isinstance(then, dict):
        for name, value in then.items():
            if name not in ("summary", "description", "version", "title"):
                contains(now[name], value, f"{where} {name}")
    else:
        assert now == then, where


if __name__ == "__main__":
    FROZEN.write_text(json.dumps(asyncio.run(answers(None)), indent=1) + "\n")
    sys.exit(0)
