"""Which answer an error becomes: what the caller can mend is said in a line, a bug has an id under
which the log has its trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from priorwise.core.refusals import refused
from priorwise.core.validation import printable
from priorwise.serve.ahead import TooMuch
from priorwise.serve.errors import Conflict, NotFound, Refused, TooLate, Unavailable
from priorwise.serve.http import types

LONGEST: Final = 1000
"""Letters of a message."""

RETRY_AFTER: Final = 1
"""Seconds to wait before asking a store again that did not answer."""

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


@final
class Stop(Exception):  # noqa: N818 - it ends a request, and is caught at its top
    """Ends a request with a status and what is wrong."""

    def __init__(
        self,
        status: int,
        message: str,
        where: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        unread: bool = False,
    ) -> None:
        """Say what is wrong; ``unread``: the rest of the request is not worth reading."""
        super().__init__(message)
        self.status, self.where, self.headers = status, where, dict(headers or {})
        self.unread = unread

    @property
    def problem(self) -> types.Problem:
        """What the answer says."""
        message = printable(str(self))
        if len(message) > LONGEST:
            message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
        return types.Problem(CODES[self.status], message, self.where)


def stop_of(error: BaseException, body: type[types.Request] | None = None) -> Stop | None:
    """Return the answer that an error of an operation becomes; None for a bug. Where the library
    speaks of an argument that is a field of the request, the answer names it.
    """
    if isinstance(error, Stop):
        return error
    if isinstance(error, Refused):
        kinds = {NotFound: 404, Conflict: 409, TooLate: 410, TooMuch: 422}
        status = next((code for kind, code in kinds.items() if isinstance(error, kind)), 409)
        return Stop(status, str(error))
    if isinstance(error, Unavailable):
        return Stop(503, error.public, None, {"retry-after": str(RETRY_AFTER)})
    if isinstance(error, (ValueError, TypeError)) and refused(error):
        first = str(error).partition(" ")[0].rstrip(":")
        named = body is not None and first in body.__struct_fields__
        return Stop(422, str(error), f"$.{first}" if named else None)
    return None


def undecoded(error: Exception) -> Stop:
    """Return the answer to a body that is no JSON, or holds something else than it should."""
    if isinstance(error, msgspec.ValidationError):
        message, _, where = str(error).partition(" - at ")
        return Stop(422, message.replace("`", ""), where.strip("`") or "$")
    if isinstance(error, UnicodeDecodeError):
        return Stop(400, "the body is not UTF-8 text")
    if isinstance(error, RecursionError):
        return Stop(400, "the body is nested too deeply")
    return Stop(400, f"the body is not JSON: {str(error).removeprefix('JSON is malformed: ')}")
