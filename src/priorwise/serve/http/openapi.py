"""The OpenAPI document, made from the table of endpoints and the types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from priorwise.serve.http import types
from priorwise.serve.http.problems import CODES
from priorwise.serve.http.table import JSON, Endpoint

PLACE: Final = "#/components/schemas/{name}"
ABOUT: Final = (
    "Decisions about tasks while they run. Errors are all of one form. Of a field that stands "
    "twice in an object the last one counts."
)


def document(endpoints: Iterable[Endpoint]) -> bytes:
    """Write the document as JSON."""
    endpoints = tuple(endpoints)
    kinds = {kind for each in endpoints for kind in (each.body, each.answer) if kind is not None}
    ordered = sorted(kinds | {types.Failed}, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=PLACE)
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    from priorwise import __version__

    return msgspec.json.format(
        msgspec.json.encode(
            {
                "openapi": "3.1.0",
                "info": {
                    "title": "priorwise", "version": __version__, "description": ABOUT,
                    "license": {"name": "MIT", "identifier": "MIT"},
                },
                "paths": paths,
                "components": {
                    "schemas": components,
                    "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
                },
            }
        ),
        indent=1,
    )  # fmt: skip


def _operation(each: Endpoint) -> dict[str, Any]:
    good = {"type": "string"} if each.answer is None else _ref(each.answer)
    if each.answer is None and each.kind == JSON:
        good = {"type": "object"}
    out: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "security": [] if each.scope is None else [{"key": [each.scope]}],
        "responses": {
            "200": {"description": "As asked for.", "content": {each.kind: {"schema": good}}},
            **{str(status): _failed(status) for status in _statuses(each)},
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", each.path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in each.query.items()
    ]
    if parameters:
        out["parameters"] = parameters
    if each.body is not None:
        out["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(each.body)}}}
    return out


def _statuses(each: Endpoint) -> list[int]:
    wanted = [422, 500, 503]  # 422: a query that the address does not know
    if each.scope is not None:
        wanted += [401, 403, 429]
    if each.body is not None:
        wanted += [400, 408, 413, 415]
    if "{" in each.path or each.name in ("reward", "record"):
        wanted += [404, 409]
    if each.name in ("decide", "decide_many", "allocate"):
        wanted.append(409)
    if each.name == "reward":
        wanted.append(410)
    return sorted(set(wanted))


def _failed(status: int) -> dict[str, Any]:
    return {
        "description": f"{CODES[status]}: the message says more.",
        "content": {JSON: {"schema": _ref(types.Failed)}},
    }


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": PLACE.format(name=kind.__name__)}
