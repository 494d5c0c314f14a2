"""Addresses of the page. All stand in one folder and link to each other without its name, so that
the page works behind any prefix.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, final
from urllib.parse import parse_qs, quote

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from priorwise.core.frames import Table
from priorwise.figures.pages import CSS
from priorwise.serve.errors import TooMany, Unavailable
from priorwise.serve.http.limits import Tries
from priorwise.serve.http.waiting import Few
from priorwise.serve.page import views
from priorwise.serve.page.data import Shown, Watch
from priorwise.serve.page.session import COOKIE, HOURS, LONGEST_KEY, Service, Sessions

Endpoint = Callable[[Request], Awaitable[Response]]

FOLDER: Final = "/watch"
HERE: Final = Path(__file__).parent
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
IMAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Of a picture that is opened by itself: it brings its style along, and can run nothing."""
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
THREADS: Final = 2
"""Pages that are worked on at once. Readers take turns."""
MOST: Final = 40
"""Pages that one reader may ask for at once."""
LARGEST: Final = 4096
"""Bytes of a form."""


def routes(service: Service, *, fresh: float | None = None) -> list[Route]:
    """Return the addresses of the page that watches a service; numbers over all tasks are looked up
    again after ``fresh`` seconds.
    """
    page = _Page(service, Watch(service) if fresh is None else Watch(service, fresh))
    pages: dict[str, Callable[[Request], Response]] = {
        "/": page.page("overview"),
        "/overview.part": page.part("overview"),
        "/task": page.page("task"),
        "/task.part": page.part("task"),
        "/prior": page.page("prior"),
        "/prior.part": page.part("prior"),
        "/picture.svg": page.picture,
        "/table.csv": page.table,
    }
    anybody: dict[str, Callable[[Request], Response]] = {
        "/login": page.login,
        "/style.css": page.style,
        "/live.js": page.script,
    }
    return [
        Route("/", page.home, methods=["GET"]),
        Route(FOLDER, page.home, methods=["GET"]),
        *(
            Route(f"{FOLDER}{path}", page.guarded(make), methods=["GET"])
            for path, make in pages.items()
        ),
        *(Route(f"{FOLDER}{path}", make, methods=["GET"]) for path, make in anybody.items()),
        Route(f"{FOLDER}/login", page.enter, methods=["POST"]),
        Route(f"{FOLDER}/logout", page.leave, methods=["POST"]),
    ]


@final
class _Page:
    """Answers requests."""

    def __init__(self, service: Service, watch: Watch) -> None:
        self.watch, self.service = watch, service
        self.sessions, self.tries = Sessions(service), Tries()
        self.working = Few("pages", THREADS, MOST)
        self._css = CSS.read_bytes() + (HERE / "page.css").read_bytes()
        self._js = (HERE / "live.js").read_bytes()

    @property
    def open(self) -> bool:
        """Whether nobody needs a key."""
        return self.service.open

    def guarded(self, make: Callable[[Request], Response]) -> Endpoint:
        """Let only readers who have logged in see a page; others are sent to log in."""

        async def answer(request: Request) -> Response:
            cookie = request.cookies.get(COOKIE, "")
            try:
                if self.open or await run_in_threadpool(self.sessions.holds, cookie):
                    reader = cookie.rpartition("~")[0].rpartition("~")[2]
                    work = self.working.submit(lambda: make(request), reader)
                    return await asyncio.wrap_future(work)
            except Unavailable as error:
                if isinstance(error, TooMany):
                    await self.tries.hold()
                return self._sorry(503, f"The service cannot show this now: {error.public}.")
            except Exception as error:
                self.service.bug(error, "page")
                return self._sorry(500, "An error of the service itself: its log has more.")
            if request.url.path.endswith((".part", ".svg", ".csv")):
                return _answer("log in first", 401, kind="text/plain; charset=utf-8")
            return _to("login")

        return answer

    # -- log-in

    def home(self, request: Request) -> Response:
        """Send to the folder, in which links are right."""
        return _to(f"{FOLDER.strip('/')}/")

    def login(self, request: Request) -> Response:
        """Show the form."""
        if self.open or self.sessions.holds(request.cookies.get(COOKIE)):
            return _to("./")
        return _answer(_login())

    async def enter(self, request: Request) -> Response:
        """Take a key and give a session for it."""
        if _from_elsewhere(request):
            return _answer(_login("The form was sent from another site."), 403)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                return _answer(_login("That is too long for a key."), 413)
        key = _field(body, "key")
        cookie = await run_in_threadpool(self.sessions.opened, key)
        if cookie is None:
            await self.tries.slow(request.client.host if request.client else "?")
            return _answer(_login("This is no key with the scope read."), 403)
        response = _to("./")
        response.set_cookie(
            COOKIE, cookie, max_age=int(3600 * HOURS), path=_folder(request), httponly=True,
            samesite="strict", secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    async def leave(self, request: Request) -> Response:
        """End a session."""
        if _from_elsewhere(request):
            return _answer(_login("The form was sent from another site."), 403)
        await run_in_threadpool(self.sessions.end, request.cookies.get(COOKIE))
        response = _to("login")
        response.delete_cookie(
            COOKIE, path=_folder(request), httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    # -- pages

    def _values(self, kind: str, request: Request) -> dict[str, object] | None:
        """Return what a page shows; None where there is no such thing."""
        query = request.query_params
        if kind == "overview":
            asked = {key: query.get(key, "")[:500] for key in ("q", "state", "after")}
            if asked["state"] not in views.STATES:
                asked["state"] = ""
            closed = {"live": False, "closed": True}.get(asked["state"])
            tasks, more = self.watch.found(asked["q"], closed, asked["after"] or None)
            view = self.watch.overview()
            return {"asked": asked, "tasks": tasks, "more": more, "view": view, "title": "Overview"}
        if kind == "task":
            name = query.get("name", "")
            letters = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name[:80])
            task = self.watch.task(name) if name else None
            return task and {"asked": {"name": name}, "view": task, "title": "".join(letters)}
        number = _version(request)
        prior = None if number is False else self.watch.prior(number or None)
        asked = {"version": query.get("version", "")}
        return prior and {"asked": asked, "view": prior, "title": "Prior"}

    def page(self, kind: str) -> Callable[[Request], Response]:
        """Return what answers with a whole page."""

        def answer(request: Request) -> Response:
            values = self._values(kind, request)
            if values is not None:
                return _answer(views.rendered(kind, open=self.open, **values))
            if kind == "task":
                name = views.name(request.query_params.get("name", ""))
                return self._sorry(
                    404, Markup("No task is called {}.").format(name), "No such task"
                )
            return self._sorry(404, "There is no prior of this version.", "No such version")

        return answer

    def part(self, kind: str) -> Callable[[Request], Response]:
        """Return what answers with the part of a page that changes."""

        def answer(request: Request) -> Response:
            values = self._values(kind, request)
            if values is None:
                return _answer("", 404)
            part = request.query_params.get("part", "top")
            part = part if part in ("top", "tasks", "health") else "top"
            template = part if kind == "overview" else f"{kind}_part"
            return _answer(views.rendered(template, **values))

        return answer

    def _sorry(self, status: int, message: str, title: str = "Sorry") -> Response:
        page = views.rendered("sorry", title=title, message=message, open=self.open)
        return _answer(page, status)

    # -- pictures and tables

    def _shown(
        self, request: Request
    ) -> tuple[tuple[str, ...], dict[str, Shown], dict[str, Table]]:
        """Return the key of what is asked for, its pictures and its other tables."""
        asked = request.query_params
        kind = asked.get("of")
        if kind == "overview":
            view = self.watch.overview()
            return ("overview", view.at), view.shown, {"health": view.health}
        if kind == "task" and (task := self.watch.task(asked.get("name", ""))) is not None:
            return ("task", task.task.name, task.key), task.shown, {"latest": task.latest}
        if kind == "prior" and (wanted := _version(request)) is not False:
            prior = self.watch.prior(wanted or None)
            if prior is not None:
                return ("prior", prior.key), prior.shown, {}
        return (), {}, {}

    def picture(self, request: Request) -> Response:
        """Draw something."""
        key, shown, _ = self._shown(request)
        kind = request.query_params.get("kind", "")
        if kind not in shown:
            return _answer("there is no such picture", 404, kind="text/plain; charset=utf-8")
        narrow, dark = (request.query_params.get(each) == "1" for each in ("narrow", "dark"))
        svg = self.watch.svg((*key, kind), shown[kind], narrow=narrow, dark=dark)
        headers = {"content-security-policy": IMAGE_POLICY}
        return _answer(svg, 200, headers, "image/svg+xml")

    def table(self, request: Request) -> Response:
        """Return the numbers of a picture."""
        _, shown, others = self._shown(request)
        kind, part = (request.query_params.get(each, "") for each in ("kind", "part"))
        tables = shown[kind].tables if kind in shown else others
        if part not in tables:
            return _answer("there is no such table", 404, kind="text/plain; charset=utf-8")
        words = [request.query_params.get("of", ""), request.query_params.get("name", ""), part]
        plain = " ".join(each for each in words if each)[:120]
        file = quote(f"{plain}.csv".encode("utf-8", "replace"), safe="")
        headers = {
            "content-disposition": f"attachment; filename=\"table.csv\"; filename*=UTF-8''{file}"
        }
        return _answer(views.as_csv(tables[part]), 200, headers, "text/csv; charset=utf-8")

    # -- files

    def style(self, request: Request) -> Response:
        """How it looks."""
        return _file(request, self._css, "text/css; charset=utf-8")

    def script(self, request: Request) -> Response:
        """What keeps it up to date."""
        return _file(request, self._js, "text/javascript; charset=utf-8")


def _login(message: str = "") -> str:
    return views.rendered("login", title="Log in", message=message, outside=True)


def _answer(
    content: str | bytes, status: int = 200, headers: dict[str, str] | None = None,
    kind: str = "text/html; charset=utf-8",
) -> Response:  # fmt: skip
    body = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return Response(body, status, {**HEADERS, **(headers or {})}, kind)


def _file(request: Request, content: bytes, kind: str) -> Response:
    mark = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"cache-control": "no-cache", "etag": mark}
    if request.headers.get("if-none-match") == mark:
        return _answer(b"", 304, headers, kind)
    return _answer(content, 200, headers, kind)


def _to(where: str) -> RedirectResponse:
    return RedirectResponse(where, 303, HEADERS)


def _folder(request: Request) -> str:
    """Return the folder of the page as the browser knows it."""
    return f"{request.scope.get('root_path', '').rstrip('/')}{FOLDER}/"


def _from_elsewhere(request: Request) -> bool:
    """Whether another site made the browser send this."""
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _field(body: bytes, wanted: str) -> str:
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=4)
    except ValueError:
        return ""
    found = fields.get(wanted, [""])
    return found[0].strip() if len(found) == 1 and len(found[0]) <= LONGEST_KEY else ""


def _version(request: Request) -> int | bool:
    """Return the version that is asked for: 0 for none, False for something that is none."""
    asked = request.query_params.get("version", "")
    if not asked:
        return 0
    return (
        int(asked)
        if asked.isascii() and asked.isdigit() and len(asked) < 10 and int(asked)
        else False
    )
