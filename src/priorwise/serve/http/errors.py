"""Errors as answers: what the caller can mend is said in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, final, get_args, get_origin

import msgspec

from priorwise.serve.errors import Refused, Unavailable
from priorwise.serve.problems import Sent, problem, problem_of
from priorwise.serve.types import MOST_ITEMS, Problem, Request, bare, hints_of

CODES: Final = {
    400: "bad_request",
    401: "no_key",
    403: "not_allowed",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    409: "conflict",
    410: "too_late",
    413: "too_large",
    415: "not_json",
    422: "wrong_value",
    429: "too_many",
    431: "too_large",
    500: "bug",
    503: "unavailable",
}
"""The word for each status."""
AGAIN: Final = {"retry-after": "1"}
"""Says when to ask a store again that did not answer."""


@final
class HttpError(Sent):
    """Ends a request with a status and what is wrong."""

    def __init__(
        self,
        status: int,
        sent: Problem | str,
        where: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        unread: bool = False,
    ) -> None:
        """Say what is wrong; ``unread``: the rest of the request is not worth reading."""
        self.status, self.headers, self.unread = status, dict(headers or {}), unread
        self.problem = problem(CODES[status], sent, where) if isinstance(sent, str) else sent
        super().__init__(self.problem.message)


def http_error(error: Exception, fields: tuple[str, ...] = ()) -> HttpError | None:
    """Return the answer that an error becomes, None for a bug. ``fields``: those of the request."""
    if isinstance(error, HttpError):
        return error
    sent = problem_of(error)
    if sent is None:
        return None
    if sent.where is not None and sent.where[2:] not in fields:  # not of the request
        sent = Problem(sent.code, sent.message)
    status = error.status if isinstance(error, (Refused, Unavailable)) else 422
    return HttpError(status, sent, None, AGAIN if status == 503 else None)


def undecoded(error: Exception, content: bytes, kind: type[Request]) -> HttpError:
    """Return the answer to what is not JSON, or not a request of this kind."""
    if isinstance(error, msgspec.ValidationError):
        where, message = _wrong_part(content, kind, "$") or ("$", str(error))
        return HttpError(422, message.replace("`", ""), where)
    if isinstance(error, UnicodeDecodeError):
        return HttpError(400, "the body is not UTF-8 text")
    if isinstance(error, RecursionError):
        return HttpError(400, "the body is nested too deeply")
    return HttpError(400, f"the body is not JSON: {error}")


def _wrong_part(content: bytes | msgspec.Raw, kind: object, where: str) -> tuple[str, str] | None:
    """Return the place of the first part that is not of its type, and why; None if there is none.
    Each part is decoded alone, because an error of the decoder has no place but in its text.
    """
    try:
        msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        with suppress(msgspec.ValidationError, RecursionError):  # wrong as a whole
            for name, part, inner in _parts(content, kind):
                wrong = _wrong_part(part, inner, where + name)
                if wrong is not None:
                    return wrong
        return where, str(error)
    return None


def _parts(content: bytes | msgspec.Raw, kind: object) -> Iterator[tuple[str, msgspec.Raw, object]]:
    """Go through the places, texts and types of fields, or of the first items of a list."""
    kind = bare(kind)
    if get_origin(kind) in (list, Sequence):
        (inner,) = get_args(kind)
        items = msgspec.json.decode(content, type=list[msgspec.Raw])
        for place, item in enumerate(items[:MOST_ITEMS]):
            yield f"[{place}]", item, inner
    elif isinstance(kind, type) and issubclass(kind, Request):
        fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        for name, hint in hints_of(kind).items():
            if name in fields:
                yield f".{name}", fields[name], hint
