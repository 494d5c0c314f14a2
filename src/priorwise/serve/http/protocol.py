"""The HTTP server's connections, with limits that it does not have itself: the size of headers, and
the time that a client may take to send them or to read an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final, final

import msgspec
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http import httptools_impl as server

from priorwise.serve import types
from priorwise.serve.http.errors import CODES
from priorwise.serve.http.limits import Limits

MOST: Final = 100
"""Headers of a request."""


@final
class Connection(server.HttpToolsProtocol):
    """One connection of a client."""

    limits = Limits()  # those of the process
    waiting: ClassVar[dict[Connection, None]] = {}
    """Connections without a whole request, those that have waited the longest first: they make room
    for new ones.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        """Nothing has come yet."""
        super().__init__(*given, **options)
        self._timer: asyncio.TimerHandle | None = None  # until the headers are there
        self._stuck: asyncio.TimerHandle | None = None  # until the client reads on
        self._heading = False  # whether headers have begun that are not complete
        self._inside = False  # whether the body has begun, and what follows it is not complete
        self._size = 0  # of what came since headers began, or since the last piece of a body
        self._moved = False  # whether a piece of a body came
        self._answered: server.RequestResponseCycle | None = None  # others may wait behind this one
        self._long = False

    def connection_made(self, transport: Any) -> None:
        """Give the first request so long."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            oldest = next(iter(self.waiting), None)
            if oldest is None:
                self._refuse(503, "too many connections")
                return
            del self.waiting[oldest]
            oldest.transport.abort()
        self.waiting[self] = None
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.waiting.pop(self, None)
        self._unwatch()
        self._read_on()
        self._unset_keepalive_if_required()  # a timer would keep a reset connection in memory
        for cycle in (self._answered, *(each for each, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True  # nobody is there to be answered
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: server.RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless headers do not end."""
        before, self._moved = self._heading, False
        super().data_received(data)
        if self._inside and not self.transport.is_closing():
            # chunk headers and trailers, which the parser collects until they end
            self._size = 0 if self._moved else self._size + len(data)
            if self._size > self.limits.headers:
                self._refuse(431, self._too_long())
        if self._heading and not self.transport.is_closing():
            if before:
                self._size += len(data)
                if self._size > self.limits.headers:
                    self._refuse(431, self._too_long())
            elif self._timer is None:
                self._watch()

    def pause_writing(self) -> None:
        """Wait for a client that does not read, but not for ever."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(self.limits.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        self._read_on()
        super().resume_writing()

    def _read_on(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def on_message_begin(self) -> None:
        """Wait for the end of the headers."""
        super().on_message_begin()
        self._heading, self._size = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body are counted with it and not read."""
        if self._heading:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Nothing more belongs to this request."""
        self._inside = False
        self.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has come already."""
        if not self.pipeline and not self.transport.is_closing():
            self.waiting[self] = None
        super().on_response_complete()

    def on_headers_complete(self) -> None:
        """Let the application go on: it has its own patience."""
        self._heading, self._inside, self._size = False, True, 0
        self._unwatch()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.headers or len(self.headers) > MOST:
            self._long = True
            raise ValueError  # which ends in send_400_response
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in our words."""
        if self._long:
            self._refuse(431, self._too_long())
        else:
            self._refuse(400, "this is not valid HTTP")

    def _too_long(self) -> str:
        return f"headers must have at most {self.limits.headers:,} bytes, and be at most {MOST}"

    def _refuse(self, status: int, message: str) -> None:
        cycle = self.cycle
        begun = cycle is not None and not cycle.response_complete
        if begun and not cycle.more_body:
            cycle.keep_alive = False  # good requests came before: they are answered, then it ends
            return
        if not begun or not (self.pipeline or cycle.response_started):
            content = msgspec.json.encode(types.Failed(types.Problem(CODES[status], message)))
            self.transport.write(
                server.STATUS_LINE[status]
                + b"content-type: application/json\r\ncontent-length: "
                + str(len(content)).encode()
                + b"\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
                + content
            )
        self.transport.close()

    def _watch(self) -> None:
        self._timer = self.loop.call_later(self.limits.patience, self._too_slow)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._heading:
            self._refuse(408, "the headers did not come in time")
        else:
            self.transport.close()
