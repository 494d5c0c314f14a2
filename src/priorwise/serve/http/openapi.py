"""The OpenAPI document, made from the table of operations and the types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from priorwise.serve import types
from priorwise.serve.http.errors import CODES
from priorwise.serve.table import TABLE
from priorwise.serve.types import Json

JSON: Final = "application/json"
PARQUET: Final = "application/vnd.apache.parquet"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
PLACE: Final = "#/components/schemas/{name}"
ABOUT: Final = (
    "Decisions about tasks while they run. Errors are all of one form. Of a field that stands "
    "twice in an object the last one counts."
)


SYSTEM: Final[dict[str, tuple[str, str, types.Scope | None, type[types.Answer] | None, str]]] = {
    "openapi": ("/openapi.json", "Describe the service, as OpenAPI.", None, None, JSON),
    "health": ("/health", "Say that the service runs.", None, types.Alive, JSON),
    "ready": ("/ready", "Say whether the store answers.", None, types.Ready, JSON),
    "metrics": (
        "/metrics", "Counts and times in the text format of Prometheus.", "read", None, PROMETHEUS,
    ),
}  # fmt: skip
"""What is about the service itself: path, text, scope, answer and its type."""


def document() -> bytes:
    """Write the document as JSON."""
    kinds: set[type] = {types.Failed, types.Alive, types.Ready}
    paths: dict[str, Json] = {}
    for name, each in TABLE.items():
        kinds |= {each.request} if each.has_body else set()
        kinds |= {each.answer} if each.answer is not None else set()
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(
            name,
            " ".join((each.request.__doc__ or "").partition("\n\n")[0].split()),
            each.scope,
            each.answer,
            JSON if each.answer is not None else PARQUET,
            each.request if each.has_body else None,
            _parameters(each.request, each.path, each.has_body),
            {error.status for error in each.raises},
        )
    for name, (path, text, scope, answer, kind) in SYSTEM.items():
        paths[path] = {"get": _operation(name, text, scope, answer, kind)}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=PLACE)
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


def _operation(
    name: str,
    summary: str,
    scope: types.Scope | None,
    answer: type[types.Answer] | None,
    kind: str,
    body: type[types.Request] | None = None,
    parameters: list[Json] | None = None,
    statuses: set[int] | None = None,
) -> Json:
    good: Mapping[str, str] = {"type": "object" if kind == JSON else "string"}
    wanted = {422, 500, 503} | (statuses or set())  # 422: a query that the address does not know
    wanted |= {401, 403, 429} if scope is not None else set()
    wanted |= {400, 408, 413, 415} if body is not None else set()
    result: Json = {
        "operationId": name,
        "summary": summary,
        "security": [] if scope is None else [{"key": [scope]}],
        "responses": {
            "200": {
                "description": "As asked for.",
                "content": {kind: {"schema": good if answer is None else _ref(answer)}},
            },
            **{str(status): _failed(status) for status in sorted(wanted)},
        },
    }
    if parameters:
        result["parameters"] = parameters
    if body is not None:
        result["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(body)}}}
    return result


def _parameters(request: type[types.Request], path: str, has_body: bool) -> list[Json]:
    """Return what stands in the path and in the query, as JSON."""
    named = re.findall(r"{(\w+)}", path)
    result: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in named
    ]
    whole = msgspec.json.schema(request)["$defs"][request.__name__]
    for name, schema in ({} if has_body else whole["properties"]).items():
        if name not in named:
            text = {"description": schema["description"]}
            result.append({"name": name, "in": "query", "schema": {"type": "string"}, **text})
    return result


def _failed(status: int) -> Json:
    return {
        "description": f"{CODES[status]}: the message says more.",
        "content": {JSON: {"schema": _ref(types.Failed)}},
    }


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": PLACE.format(name=kind.__name__)}
