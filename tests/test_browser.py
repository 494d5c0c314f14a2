"""The page that watches live decisions, in a real browser: Debian's Chromium through Playwright.

``PRIORWISE_SCREENSHOTS=folder`` keeps what it looked like.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import page_demo as demo
import pytest

import priorwise as pw
from priorwise.serve.page.app import routes
from priorwise.testing.seeds import base_seed

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
LOUD = (
    "NO BROWSER: the page was NOT tested in one. apt-get install chromium, and pip install "
    "playwright starlette uvicorn"
)
if CHROMIUM is None:
    print(f"\n*** {LOUD} ***\n", flush=True)
    pytest.skip(LOUD, allow_module_level=True)
for needed in ("playwright", "starlette", "uvicorn"):
    pytest.importorskip(needed, reason=LOUD)

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
KEY = "pw_1234_a-key-to-read"
HOSTILE = '<script>document.title="owned"</script> "quoted" \N{RIGHT-TO-LEFT OVERRIDE}' + "x" * 400


class Service:
    open = False

    def __init__(self, decider: Any) -> None:
        self.decider = decider

    def bug(self, error: BaseException, route: str = "") -> None:
        raise error

    def scope_of(self, key: str) -> set[str] | None:
        return {"read"} if key == KEY else None

    def key_id(self, key: str) -> str:
        return "reader"

    def key_reads(self, name: str) -> bool:
        return name == "reader"

    def counters(self) -> dict[str, int]:
        return {"repeated rewards": 12}


class Running:
    """A service that answers on a port of this machine, and can be cut off."""

    def __init__(self) -> None:
        import uvicorn
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse

        clock = demo.Clock()
        self.decider = demo.example_decider(base_seed() + 1, clock=clock)
        demo.play(self.decider, seed=base_seed() + 2, clock=clock, visitors=1200, campaigns=24)
        decision = self.decider.decide(HOSTILE)
        self.decider.reward(decision.token, 1.0)
        better = pw.BetaPrior([2.1, 3.2, 2.4, 4.1], [18, 17, 20, 16], names=demo.ARMS)
        self.decider.propose(better, {"tasks": 14, "pulls": 900, "backtest": "0.19 ± 0.01 a pull"})
        self.decider.summary("campaign 20")  # the first one takes a while
        self.cut = False
        inner = Starlette(routes=routes(Service(self.decider)))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if self.cut and scope["type"] == "http":
                await PlainTextResponse("gone", 503)(scope, receive, send)
            else:
                await inner(scope, receive, send)

        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.home = f"http://127.0.0.1:{self.socket.getsockname()[1]}/watch/"
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True
        )
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    made = Running()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """One reader, with everything that goes wrong."""

    def __init__(self, browser: Any, home: str, **how: Any) -> None:
        how = {"viewport": DESK, "locale": "en-GB", **how}
        self.context = browser.new_context(**how)
        self.page = self.context.new_page()
        self.home, self.wrong = home, list[str]()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.home.removesuffix("/"), "data:")):
            self.wrong.append(f"a request to {request.url}")

    def log_in(self) -> Any:
        self.page.goto(self.home)
        assert self.page.url.endswith("/watch/login")
        self.page.get_by_label("Key with the scope read").fill(KEY)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(self.home)
        return self.page

    def go(self, where: str) -> Any:
        self.page.goto(self.home + where)
        self.page.wait_for_load_state("networkidle")
        return self.page


@pytest.fixture
def visit(chromium: Any, running: Running) -> Iterator[Any]:
    visits: list[Visit] = []

    def start(**how: Any) -> Visit:
        visits.append(Visit(chromium, running.home, **how))
        return visits[-1]

    yield start
    for each in visits:
        each.context.close()


def kept(page: Any, name: str) -> None:
    folder = os.environ.get("PRIORWISE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def loaded(page: Any) -> int:
    """Number of pictures, all of which must be there."""
    page.wait_for_function("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    return int(page.evaluate("document.images.length"))


def test_log_in_and_out(visit: Any) -> None:
    reader = visit()
    page = reader.page
    page.goto(reader.home)
    page.get_by_label("Key with the scope read").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text() == "This is no key with the scope read."
    reader.wrong.clear()  # the browser notes the 403 that it was told
    reader.log_in()
    assert page.title() == "Overview · priorwise"
    assert page.evaluate("document.cookie") == ""  # scripts cannot read the session
    (cookie,) = reader.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto(reader.home)
    assert page.url.endswith("/login")
    assert reader.wrong == []


def test_from_the_overview_to_a_task_to_its_prior(visit: Any) -> None:
    reader = visit()
    page = reader.log_in()
    page.wait_for_load_state("networkidle")
    assert loaded(page) == 3
    assert "would have earned" in page.get_by_role("region", name="Reward").inner_text()
    page.get_by_label("Name contains").fill("campaign 2")
    page.get_by_role("button", name="Search").click()
    page.wait_for_load_state("networkidle")
    assert page.locator("#tasks ~ div tbody tr").count() == 5
    page.get_by_role("link", name="campaign 20").click()
    page.wait_for_load_state("networkidle")
    assert page.get_by_role("heading", level=1).inner_text() == "campaign 20"
    assert loaded(page) == 3
    assert "leads" in page.locator(".advice").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("link", name="densities (CSV)").click()
    assert saved.value.suggested_filename == "task campaign 20 densities.csv"
    page.get_by_role("link", name="prior version 1").click()
    page.wait_for_load_state("networkidle")
    assert page.title() == "Prior · priorwise"
    assert loaded(page) == 2
    page.get_by_role("link", name="Version 2").click()
    page.wait_for_load_state("networkidle")
    assert "0.19 ± 0.01 a pull" in page.locator("main").inner_text()
    assert reader.wrong == []


def test_what_happens_is_shown_while_one_looks(visit: Any, running: Running) -> None:
    reader = visit()
    page = reader.log_in()
    page.wait_for_load_state("networkidle")
    running.decider.decide("made while you look")
    page.get_by_role("link", name="made while you look").wait_for(timeout=20_000)
    reader.go("task?name=made+while+you+look")
    before = page.locator("#latest ~ table tbody tr").count()
    picture = page.locator("figure img").first.get_attribute("src")
    running.decider.reward(running.decider.decide("made while you look").token, 1.0)
    page.locator("#latest ~ table tbody tr").nth(before).wait_for(timeout=20_000)
    assert page.locator("figure img").first.get_attribute("src") != picture
    page.wait_for_load_state("networkidle")
    loaded(page)
    assert "last at" in page.get_by_role("status").inner_text()
    assert reader.wrong == []
    # cut off: it says so, and that it is back
    running.cut = True
    try:
        page.get_by_text("Connection lost").wait_for(timeout=20_000)
    finally:
        running.cut = False
    page.get_by_text("last at").wait_for(timeout=20_000)
    # nobody looks: nothing is asked
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})"
    )
    time.sleep(0.5)
    asked.clear()
    time.sleep(5.0)
    assert asked == []


def test_a_session_that_ended_leads_to_log_in(visit: Any) -> None:
    reader = visit()
    page = reader.log_in()
    reader.context.clear_cookies()
    page.wait_for_url("**/login", timeout=20_000)


PAGES = {"overview": "", "task": "task?name=campaign+20", "prior": "prior"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_it_fits_and_can_be_read(visit: Any, scheme: str, size: str) -> None:
    view = PHONE if size == "phone" else DESK
    reader = visit(viewport=view, color_scheme=scheme)
    page = reader.log_in()
    for name, where in PAGES.items():
        reader.go(where)
        kept(page, f"{name}_{scheme}_{size}")
        assert loaded(page)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= view["width"], name
        ground, ink = page.evaluate(
            "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
        )
        light = [sum(int(n) for n in each[4:-1].split(",")) for each in (ground, ink)]
        assert (light[0] < light[1]) == (scheme == "dark")
        shown = page.evaluate("[...document.images].map(i => i.currentSrc)")
        assert all(("dark=1" in each) == (scheme == "dark") for each in shown)
        assert all(("narrow=1" in each) == (size == "phone") for each in shown)
        # letters of a picture are as large as those of the page, or nearly
        scale = page.evaluate("[...document.images].map(i => i.clientWidth / i.naturalWidth)")
        assert min(scale) > 0.8
    assert reader.wrong == []


def test_hostile_names_do_nothing(visit: Any) -> None:
    from urllib.parse import quote

    reader = visit(viewport=PHONE)
    page = reader.log_in()
    page.wait_for_load_state("networkidle")
    assert page.title() == "Overview · priorwise"
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    reader.go(f"task?name={quote(HOSTILE)}")
    kept(page, "hostile_phone")
    assert "owned" not in page.title() or page.title().startswith("<script>")
    assert page.get_by_role("heading", level=1).inner_text().startswith("<script>")
    assert page.locator("script").count() == 1
    assert loaded(page) == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert reader.wrong == []


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit: Any) -> None:
    page = visit().log_in()
    page.wait_for_load_state("networkidle")
    seen = []
    for _ in range(9):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "((e, s) => [e.textContent.trim() || e.id, s.outlineStyle,"
                " parseFloat(s.outlineWidth)])"
                "(document.activeElement, getComputedStyle(document.activeElement))"
            )
        )
    names = [each[0] for each in seen]
    assert names[:4] == ["Skip to the content", "Overview", "Prior", "Log out"]
    assert "q" in names
    assert all(style != "none" and width >= 2 for name, style, width in seen[1:])


def test_the_policy_stops_what_should_not_run(visit: Any) -> None:
    """Control: the browser does enforce it."""
    reader = visit()
    page = reader.log_in()
    page.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.owned = 1';"
        " document.body.append(s) })()"
    )
    assert page.evaluate("window.owned") is None
    assert any("Content Security Policy" in each for each in reader.wrong)
