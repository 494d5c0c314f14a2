"""The page that watches live decisions, without a browser: who may see it, what it does with names
that attack it, that tables are what pictures show, and that its estimates are right.

Estimates are averages over independent runs; they must lie within 5 standard errors (false alarm
6e-7 each), and a nearby wrong one must not.
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import numpy as np
import page_demo as demo
import pytest
from matplotlib.figure import Figure
from msgspec.structs import replace

import priorwise as pw
from priorwise.advise.choices import Ratio
from priorwise.figures import live
from priorwise.serve.http.limits import SLOW, SPAN, TRIES, Tries
from priorwise.serve.page.data import Watch, health_of
from priorwise.serve.page.session import COOKIE, READ, Sessions
from priorwise.serve.page.trails import Laws, Trail, judged, rewards_of, uniform_estimate
from priorwise.serve.page.views import as_csv, span
from priorwise.testing.seeds import base_seed

pytest.importorskip("starlette", reason="the page needs starlette")
httpx = pytest.importorskip("httpx", reason="these tests ask for pages with httpx")

from starlette.applications import Starlette  # noqa: E402

from priorwise.serve.page.app import FOLDER, POLICY, THREADS, routes  # noqa: E402

ARMS = ["red", "blue", "green", "grey"]
EQUAL = 0.5 * np.eye(4) + 0.5
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</title><svg onload=alert(1)>",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe מחיר العربية",
    "long " * 100,
    "a/b?c=d&e=f#g%00%2e%2e\\..\\../",
    "=HYPERLINK(1)",
    "{{7*7}} ${7*7} $x_1$ \N{BELL}\x1b[31m\r\nset-cookie: a=b",
    "-->]]>&lt;&amp; --",
    "漢字 🙂 ﷽",
]


class Service:
    """The smallest one: a key for each scope."""

    open = False

    def __init__(self, decider: Any) -> None:
        self.decider = decider
        self.revoked: set[str] = set()

    def bug(self, error: BaseException, route: str = "") -> None:
        raise error

    def scope_of(self, key: str) -> set[str] | None:
        keys = {"reading": {"read"}, "deciding": {"decide", "reward"}, "all": {"admin"}}
        return None if key in self.revoked else keys.get(key)

    def key_id(self, key: str) -> str:
        return f"id-{key}"

    def key_reads(self, name: str) -> bool:
        return self.scope_of(name.removeprefix("id-")) is not None

    def counters(self) -> dict[str, int]:
        return {"repeated rewards": 7}


class Visitor:
    """Asks an application for pages, and keeps cookies."""

    def __init__(self, app: Any, base: str) -> None:
        self.app, self.base, self.cookies = app, base, httpx.Cookies()

    def get(self, path: str, **how: Any) -> Any:
        return self._ask("GET", path, **how)

    def post(self, path: str, **how: Any) -> Any:
        return self._ask("POST", path, **how)

    def _ask(self, method: str, path: str, **how: Any) -> Any:
        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=self.base, cookies=self.cookies
            ) as session:
                answer = await session.request(method, path, **how)
                self.cookies = session.cookies
                return answer

        return asyncio.run(ask())


def client(service: Any, *, key: str | None = "reading", https: bool = False) -> Visitor:
    app = Starlette(routes=routes(service, fresh=-1.0))
    made = Visitor(app, f"http{'s' if https else ''}://testserver")
    if key is not None:
        assert made.post(f"{FOLDER}/login", data={"key": key}).status_code == 303
    return made


def started(prior: Any = None, **options: Any) -> Any:
    prior = pw.BetaPrior([2, 3, 1, 1], [8, 8, 9, 4], names=ARMS) if prior is None else prior
    how = {"horizon": 12, "seed": base_seed(), "clock": demo.Clock(), **options}
    return pw.serve.Decider(prior, pw.ThompsonSampling(), **how)


def played(decider: Any, task: str = "a task", pulls: int = 8, **how: Any) -> Any:
    for number in range(pulls):
        token = decider.decide(task, **how).token
        if number % 4 != 3:
            decider.reward(token, float(number % 2))
    return decider


@pytest.fixture(scope="module")
def day() -> Any:
    clock = demo.Clock()
    decider = demo.example_decider(base_seed() + 1, clock=clock)
    demo.play(decider, seed=base_seed() + 2, clock=clock, visitors=900, campaigns=16)
    return decider


# -- who may see it

GUARDED = {
    "/": 303,
    "/task": 303,
    "/prior": 303,
    "/overview.part": 401,
    "/task.part": 401,
    "/prior.part": 401,
    "/picture.svg": 401,
    "/table.csv": 401,
}
ANYBODY = {
    ("GET", "root"),
    ("GET", ""),
    ("GET", "/login"),
    ("GET", "/style.css"),
    ("GET", "/live.js"),
}
POSTED = {("POST", "/login"), ("POST", "/logout")}


def test_every_address_is_known_to_be_guarded_or_not() -> None:
    found = {
        (method, route.path.removeprefix(FOLDER) if route.path != "/" else "root")
        for route in routes(Service(started()))
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert found == {("GET", each) for each in GUARDED} | ANYBODY | POSTED


QUERY = "?" + urlencode({"of": "task", "name": "a task", "kind": "posterior", "part": "arms"})


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("cookie", ["", "x", "9999999999~n~~" + "0" * 64, "~~~", "é~1~2~3", "old"])
def test_nothing_is_shown_without_a_session(path: str, cookie: str) -> None:
    service = Service(played(started()))
    visitor = client(service, key=None)
    if cookie == "old":
        other = Service(started())  # another service, another secret
        cookie = Sessions(other).opened("reading") or ""
    headers = {"cookie": f"{COOKIE}={cookie}".encode()} if cookie else {}
    answer = visitor.get(f"{FOLDER}{path}{QUERY}", headers=headers)
    assert answer.status_code == GUARDED[path]
    assert "red" not in answer.text
    if answer.status_code == 303:
        assert answer.headers["location"] == "login"
    # and with one it is there
    inside = client(service)
    assert inside.get(f"{FOLDER}{path}{QUERY}").status_code == 200


def test_log_in_log_out_and_scopes() -> None:
    service = Service(played(started()))
    for wrong in ("", "nothing", "deciding", "x" * 501, "reading\x00", "réading"):
        answer = client(service, key=None).post(f"{FOLDER}/login", data={"key": wrong})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), wrong
    for right in ("reading", "all"):
        visitor = client(service, key=right)
        assert visitor.get(f"{FOLDER}/").status_code == 200
        kept = visitor.cookies[COOKIE]
        assert right not in kept.split("~")[1]
        answer = visitor.post(f"{FOLDER}/logout")
        assert answer.status_code == 303
        assert visitor.get(f"{FOLDER}/").status_code == 303
        # a copy of the cookie is over, too
        again = visitor.get(f"{FOLDER}/", headers={"cookie": f"{COOKIE}={kept}"})
        assert again.status_code == 303


def test_the_cookie_is_for_this_page_alone() -> None:
    service = Service(started())
    for https in (False, True):
        visitor = client(service, key=None, https=https)
        header = visitor.post(f"{FOLDER}/login", data={"key": "reading"}).headers["set-cookie"]
        parts = {part.strip().lower() for part in header.split(";")}
        assert {"httponly", "samesite=strict", f"path={FOLDER}/"} <= parts
        assert ("secure" in parts) == https
        assert "reading" not in header.split("~")[0]


def test_sessions_end_and_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(started())
    one, other = Sessions(service), Sessions(service)  # two processes on one store
    cookie = one.opened("reading")
    assert cookie is not None
    assert one.holds(cookie)
    assert other.holds(cookie)
    forged = cookie.replace(cookie.split("~")[0], "9999999999")
    assert not one.holds(forged)
    assert not one.holds(cookie[:-1] + ("0" if cookie[-1] != "0" else "1"))
    # a secret that another process put later
    service.decider.store.put_value("secret of the page's sessions", "ab" * 32)
    newer = Sessions(service).opened("reading")
    one._read -= READ
    assert one.holds(newer)
    service.revoked.add("reading")
    assert not one.holds(newer)
    service.revoked.clear()
    now = __import__("time").time()
    monkeypatch.setattr("priorwise.serve.page.session.time.time", lambda: now + 9 * 3600)
    assert not one.holds(newer)


def test_wrong_keys_are_slowed_down_and_right_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    tries = Tries(lambda: now)
    assert [tries.wrong("a") for _ in range(TRIES)] == [0.0] * TRIES
    assert tries.wrong("a") == SLOW
    assert tries.wrong("b") == 0.0
    now = SPAN + 1.0
    assert tries.wrong("a") == 0.0

    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("priorwise.serve.page.app.asyncio.sleep", sleep)
    visitor = client(Service(started()), key=None)
    codes = [
        visitor.post(f"{FOLDER}/login", data={"key": "wrong"}).status_code for _ in range(TRIES + 1)
    ]
    assert codes == [403] * (TRIES + 1)
    assert [each for each in slept if each] == [SLOW]
    assert visitor.post(f"{FOLDER}/login", data={"key": "reading"}).status_code == 303
    assert [each for each in slept if each] == [SLOW]


def test_forms_are_taken_from_the_page_alone() -> None:
    visitor = client(Service(started()), key=None)
    for site in ("cross-site", "same-site"):
        answer = visitor.post(
            f"{FOLDER}/login", data={"key": "reading"}, headers={"sec-fetch-site": site}
        )
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    huge = visitor.post(f"{FOLDER}/login", content=b"key=" + b"x" * 100_000)
    assert huge.status_code == 413


def test_a_service_without_keys_needs_none() -> None:
    service = Service(played(started()))
    service.open = True  # type: ignore[attr-defined]
    visitor = client(service, key=None)
    page = visitor.get(f"{FOLDER}/")
    assert page.status_code == 200
    assert "Log out" not in page.text


def test_the_service_itself_has_the_page(tmp_path: Any) -> None:
    """On SQLite, with real keys: one that reads, and ends."""
    pytest.importorskip("msgspec")
    from priorwise.serve.http import keys
    from priorwise.serve.http.service import Service as Real

    decider = played(started(store=tmp_path / "tasks.db"))
    reading, deciding = (keys.add(decider.store, name, [name]) for name in ("read", "decide"))
    service = Real(decider)
    visitor = Visitor(service, "http://testserver")
    assert visitor.get("/").headers["location"] == "watch/"
    assert visitor.get(f"{FOLDER}/").headers["location"] == "login"
    assert visitor.post(f"{FOLDER}/login", data={"key": deciding}).status_code == 403
    assert visitor.post(f"{FOLDER}/login", data={"key": reading}).status_code == 303
    for path in ("/", "/prior", "/task?name=a+task", f"/picture.svg{QUERY}", f"/table.csv{QUERY}"):
        answer = visitor.get(f"{FOLDER}{path}")
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert policy == POLICY or "svg" in path
        assert reading.split("_")[-1] not in str(visitor.cookies)
    keys.revoke(decider.store, "read")
    service.keys.refresh()
    assert visitor.get(f"{FOLDER}/").status_code == 303
    decider.close()


def test_wrong_cookies_do_not_read_the_store_each(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(played(started()))
    read: list[str] = []
    value = service.decider.store.value
    monkeypatch.setattr(
        service.decider.store, "value", lambda name: (read.append(name), value(name))[1]
    )
    sessions = Sessions(service)
    good = sessions.opened("reading")
    assert good is not None
    read.clear()
    assert not any(sessions.holds(f"9999999999~{number}~x~y") for number in range(20))
    assert (sessions.holds(good), read) == (True, [])
    sessions._read -= READ  # after a while once more: another process may have changed it
    assert not any(sessions.holds(f"9999999999~{number}~x~y") for number in range(20))
    assert len(read) == 1


def test_few_pages_are_worked_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    service, lock = Service(played(started())), threading.Lock()
    working: list[int] = [0, 0]  # now, and at most

    def slow(*_: Any) -> None:
        with lock:
            working[0] += 1
            working[1] = max(working)
        time.sleep(0.02)
        with lock:
            working[0] -= 1

    monkeypatch.setattr(Watch, "task", slow)
    visitor = client(service)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: visitor.get(f"{FOLDER}/task?name=x"), range(12)))
    assert {each.status_code for each in answers} == {404}
    assert 1 <= working[1] <= THREADS


def test_errors_are_told_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(played(started()))
    told: list[Any] = []
    service.bug = lambda error, route: told.append((str(error), route))  # type: ignore[attr-defined]
    visitor = client(service)

    def broken(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(Watch, "task", broken)
    error: Exception = RuntimeError("secret detail")
    answer = visitor.get(f"{FOLDER}/task?name=a+task")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert told == [("secret detail", "page")]
    error = pw.serve.Unavailable("the disk is full")
    assert visitor.get(f"{FOLDER}/task?name=a+task").status_code == 503


# -- what browsers get


class Elements(HTMLParser):
    """Elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def pages_of(visitor: Visitor, tasks: list[str]) -> list[tuple[str, Any]]:
    paths = ["/", "/overview.part", "/prior", "/prior.part", "/task", "/?q=%3Cb%3E"]
    paths += ["/overview.part?part=tasks", "/overview.part?part=health", "/prior?version=x"]
    for name in tasks:
        query = urlencode({"name": name})
        paths += [f"/task?{query}", f"/task.part?{query}", f"/?{urlencode({'q': name})}"]
        paths.append(f"/?{urlencode({'after': name})}")
    return [(path, visitor.get(f"{FOLDER}{path}")) for path in paths]


@pytest.mark.slow
def test_hostile_names_are_only_names() -> None:
    prior = pw.ExchangeableBetaPrior(2.0, 3.0)
    decider = started(prior, horizon=6)
    names = [name[:500] for name in HOSTILE]
    for task in names:
        for _ in range(4):
            decision = decider.decide(task, available=names, unit=task)
            decider.reward(decision.token, 1.0)
    decider.propose(prior, {HOSTILE[0]: HOSTILE[1], "tasks": 3})
    visitor = client(Service(decider))
    for path, answer in pages_of(visitor, names):
        page = Elements(answer.text)
        kinds = {kind for kind, _ in page.found}
        assert not kinds & {"svg", "iframe", "object", "b"} - {"b"}, path
        for kind, given in page.found:
            assert not any(each.startswith("on") or each == "style" for each in given), path
            if kind == "script":
                assert given.get("src") == "live.js", path
            if kind == "img":
                assert str(given["src"]).startswith("picture.svg?"), path
            if kind in ("a", "form"):
                where = str(given.get("href", given.get("action")))
                assert re.match(r"(\./|task|prior|table\.csv|#content|login|logout)", where), where
    # they are told as they are
    one = visitor.get(f"{FOLDER}/task", params={"name": HOSTILE[0]})
    assert HOSTILE[0] in "".join(Elements(one.text).texts)
    for name in names:
        answer = visitor.get(f"{FOLDER}/task.part", params={"name": name})
        assert answer.status_code == 200
        links = [dict(g)["src"] for kind, g in Elements(answer.text).found if kind == "img"]
        for place in links:
            picture = visitor.get(f"{FOLDER}/{place}")
            assert picture.headers["content-type"].startswith("image/svg+xml")
            assert b"<script" not in picture.content
            __import__("xml.dom.minidom").dom.minidom.parseString(picture.content)
        query = {"of": "task", "name": name, "kind": "best", "part": "arms"}
        answer = visitor.get(f"{FOLDER}/table.csv", params=query)
        assert answer.headers["content-disposition"].startswith("attachment; ")
        assert "\n" not in answer.headers["content-disposition"]
        rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
        assert {row["arm"].removeprefix("'") for row in rows} == set(names)
        assert all(not row["arm"].startswith("=") for row in rows)


def test_every_answer_has_the_policy_and_nothing_inline() -> None:
    visitor = client(Service(played(started())))
    answers = pages_of(visitor, ["a task"])
    answers.append(("/login", client(Service(started()), key=None).get(f"{FOLDER}/login")))
    answers += [(each, visitor.get(f"{FOLDER}{each}")) for each in ("/style.css", "/live.js")]
    answers.append(("/table.csv", visitor.get(f"{FOLDER}/table.csv{QUERY}")))
    for path, answer in answers:
        assert answer.headers["content-security-policy"] == POLICY, path
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.headers["content-type"].startswith("text/html"):
            assert "<style" not in answer.text
            assert "style=" not in answer.text
            assert not re.search(r"https?://|//[a-z]", answer.text), path
    whole = [
        a.text for path, a in answers if path in ("/", "/prior", "/login", "/task?name=a+task")
    ]
    for text in whole:
        page = Elements(text)
        assert [kind for kind, _ in page.found].count("h1") == 1
        assert re.search(r"<title>[^<]+ · priorwise</title>", text)
        assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in (
            page.found
        )
        for kind, given in page.found:
            if kind == "th":
                assert given.get("scope") in ("col", "row")
            if kind == "img":
                assert given["alt"]
            if kind in ("input", "select") and "hidden" not in given:
                assert f'<label for="{given["id"]}">' in text
    for name in ("style.css", "live.js"):
        first = visitor.get(f"{FOLDER}/{name}")
        mark = {"if-none-match": first.headers["etag"]}
        assert visitor.get(f"{FOLDER}/{name}", headers=mark).status_code == 304
        assert "http:" not in first.text
        assert "https:" not in first.text


def test_what_is_not_there() -> None:
    visitor = client(Service(played(started())))
    for path in (
        "/task", "/task?name=other", "/task.part?name=other", "/prior?version=9",
        "/prior?version=-1", "/prior?version=x", "/prior?version=00", "/picture.svg",
        "/picture.svg?of=task&name=other&kind=best", "/picture.svg?of=overview&kind=zzz",
        "/table.csv?of=task&name=a+task&kind=best&part=zzz", "/table.csv?of=zzz", "/other",
        f"/task?name={'x' * 3000}", "/task?name=%ff%fe",
    ):  # fmt: skip
        assert visitor.get(f"{FOLDER}{path}").status_code == 404, path
    assert visitor.get(FOLDER).headers["location"] == "watch/"
    assert visitor.post(f"{FOLDER}/").status_code == 405


def test_tasks_are_searched_and_paged() -> None:
    decider = started(horizon=3)
    for number in range(45):
        decider.decide(f"Task {number:02d}")
    for number in range(5):
        decider.close(f"Task {number:02d}")
    visitor = client(Service(decider))

    def names(query: dict[str, str]) -> tuple[list[str], str | None]:
        text = visitor.get(f"{FOLDER}/overview.part", params={"part": "tasks", **query}).text
        older = re.search(r'after=([^"&]+)">Older', text.replace("&amp;", "&"))
        found = re.findall(r'<bdi class="name">(Task \d\d)</bdi>', text)
        return found, older[1].replace("+", " ") if older else None

    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        found, after = names({"after": after})
        seen += found
    assert seen == [f"Task {number:02d}" for number in reversed(range(45))]
    assert names({"q": "task 1"})[0] == [f"Task {number}" for number in range(19, 9, -1)]
    assert names({"state": "closed"})[0] == [f"Task {number:02d}" for number in range(4, -1, -1)]
    assert names({"state": "live", "q": "03"}) == ([], None)


# -- every family and way to play

CASES = {
    "beta": (pw.BetaPrior([2, 3], [8, 8]), {}),
    "gaussian": (pw.GaussianPrior([0.5, 0.0, 0.1, 0.2], EQUAL, names=ARMS), {"floor": 0.05}),
    "logit-normal": (pw.LogitNormalPrior([-2.0, -2.0], 0.5 * np.eye(2)), {}),
    "normal-gamma": (pw.NormalGammaPrior(np.zeros(3), 1.0, 3.0, 2.0), {"control": ("1", 0.2)}),
    "finite": (pw.FinitePrior(0.2 + 0.5 * np.eye(3), [1 / 3] * 3, noise="bernoulli"), {}),
    "own arms": (pw.ExchangeableBetaPrior(2.0, 3.0), {}),
    "without propensities": (pw.BetaPrior([2, 3], [8, 8]), {"propensities": False}),
    "window": (pw.BetaPrior([2, 3], [8, 8]), {"window": 5.0}),
    "default": (pw.BetaPrior([2, 3], [8, 8]), {"window": 5.0, "missing": 0.0}),
    "contexts": (
        pw.LinearGaussianPrior([0.0, 1.0], np.eye(2), contexts=pw.SphereContexts(3)), {}
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_family_has_its_pages(case: str) -> None:
    prior, options = CASES[case]
    decider = started(prior, horizon=6, **options)
    how: dict[str, Any] = {}
    if case == "own arms":
        how["available"] = ["x", "y", "z"]
    if case == "contexts":
        how["context"] = np.ones((3, 2)).tolist()
    for number in range(12):
        played(decider, f"task {number}", 5, **how)
        if number > 1:
            decider.close(f"task {number}")
    if case == "own arms":
        decider.decide("task 0", available=["x", "new"])
    decider.clock.now += 10.0
    decider.expire()
    visitor = client(Service(decider))
    for path in ("/", "/prior", "/task?name=task+0", "/task?name=task+5"):
        answer = visitor.get(f"{FOLDER}{path}")
        assert answer.status_code == 200, path
        found = [given for kind, given in Elements(answer.text).found if kind in ("img", "source")]
        assert found
        for given in found:
            place = given.get("src") or given.get("srcset")
            assert visitor.get(f"{FOLDER}/{place}").status_code == 200, place
        links = [g["href"] for kind, g in Elements(answer.text).found if kind == "a"]
        tables = [each for each in links if each and each.startswith("table.csv")]
        assert tables
        for each in tables:
            assert visitor.get(f"{FOLDER}/{each}").text.count("\n") > 1


def test_batches_and_records_have_a_page() -> None:
    decider = started()
    made = decider.allocate("batch", 10)
    for arm, pulls in made.counts.items():
        if pulls:
            decider.record("batch", arm, pulls, 0.0)
    visitor = client(Service(decider))
    query = {"of": "task", "name": "batch", "kind": "allocation", "part": "allocation"}
    rows = list(csv.DictReader(visitor.get(f"{FOLDER}/table.csv", params=query).text.splitlines()))
    assert {row["arm"]: float(row["pulls"]) for row in rows[-4:]} == made.counts
    assert "decided in batches" in visitor.get(f"{FOLDER}/").text


def test_an_empty_service_has_a_page() -> None:
    visitor = client(Service(started()))
    for path, answer in pages_of(visitor, []):
        assert answer.status_code == (404 if path in ("/task", "/prior?version=x") else 200), path
    assert "There is no task yet" in visitor.get(f"{FOLDER}/").text


def test_the_page_changes_when_something_happens() -> None:
    decider = played(started())
    decider.summary("a task")  # the first one takes a while, and the page says so
    visitor = client(Service(decider))
    paths = ("/overview.part", "/overview.part?part=tasks", "/task.part?name=a+task")
    before = [visitor.get(f"{FOLDER}{path}").text for path in paths]
    assert before == [visitor.get(f"{FOLDER}{path}").text for path in paths]
    token = decider.decide("a task").token
    decider.reward(token, 1.0)
    after = [visitor.get(f"{FOLDER}{path}").text for path in paths]
    assert all(a != b for a, b in zip(after, before, strict=True))


def test_a_large_log_is_read_in_several_looks() -> None:
    decider = started()
    for number in range(5):
        played(decider, f"task {number}")
    watch = Watch(Service(decider), fresh=-1.0, budget=-1.0)
    assert watch.overview().tasks_read == 0
    watch.budget = 60.0
    assert watch.overview().tasks_read == 5
    watch.budget = -1.0  # what was read before is kept up to date all the same
    decider.decide("task 0")
    view = watch.overview()
    assert (view.tasks_read, view.decisions_read, view.decisions) == (5, 41, 41)


# -- tables are what pictures show


def csv_of(visitor: Visitor, **query: str) -> dict[str, list[Any]]:
    text = visitor.get(f"{FOLDER}/table.csv", params=query).text
    rows = list(csv.DictReader(io.StringIO(text)))
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(values: list[Any]) -> Any:
    return np.array([float(each) for each in values])


def drawn_by(visitor: Visitor, drawn: list[Figure], **query: str) -> Figure:
    drawn.clear()
    assert visitor.get(f"{FOLDER}/picture.svg", params=query).status_code == 200
    assert len(drawn) == 1
    return drawn[0]


@pytest.mark.slow
def test_tables_are_what_pictures_show(day: Any, drawn: list[Figure]) -> None:
    visitor = client(Service(day))
    task = {"of": "task", "name": "campaign 09"}
    # the first summary of a prior takes a while; wait for it, so that all tell of one state
    day.summary("campaign 09")

    axes = drawn_by(visitor, drawn, **task, kind="posterior").axes[0]
    arms = csv_of(visitor, **task, kind="posterior", part="arms")
    hills = csv_of(visitor, **task, kind="posterior", part="densities")
    mean = numbers(arms["mean"])
    order = np.argsort(-mean, kind="stable")
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert np.array_equal(dots, mean[order])
    spans = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert np.array_equal([s[0] for s in spans], numbers(arms["low"])[order])
    assert np.array_equal([s[1] for s in spans], numbers(arms["high"])[order])
    curves = [line for line in axes.lines if len(line.get_xdata()) > 10]
    best = arms["arm"][order[0]]
    mine = [at for at, arm in enumerate(hills["arm"]) if arm == best]
    assert np.array_equal(curves[0].get_xdata(), numbers([hills["value"][at] for at in mine]))
    # densities have area one, but for the tails
    for arm in arms["arm"]:
        rows = [at for at, each in enumerate(hills["arm"]) if each == arm]
        x, y = (numbers([hills[c][at] for at in rows]) for c in ("value", "density"))
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.02)

    left, right = drawn_by(visitor, drawn, **task, kind="best").axes
    arms = csv_of(visitor, **task, kind="best", part="arms")
    order = np.argsort(-numbers(arms["prob_best"]), kind="stable")
    for panel, column in ((left, "prob_best"), (right, "expected_loss")):
        widths = [bar.get_width() for bar in panel.patches]
        assert np.array_equal(widths, numbers(arms[column])[order])

    axes = drawn_by(visitor, drawn, **task, kind="allocation").axes[0]
    table = csv_of(visitor, **task, kind="allocation", part="allocation")
    ends = {label.split()[0]: int(label.split()[-1]) for label in
            (each.get_text() for each in axes.texts)}  # fmt: skip
    last = dict(zip(table["arm"], numbers(table["pulls"]), strict=True))
    assert ends == {arm.split()[0]: int(pulls) for arm, pulls in last.items()}
    decisions = day.store.look(lambda session: session.decisions("campaign 09"))
    assert sum(last.values()) == len(decisions)

    over = {"of": "overview"}
    axes = drawn_by(visitor, drawn, **over, kind="earned").axes[0]
    table = csv_of(visitor, **over, kind="earned", part="earned")
    assert np.array_equal(axes.lines[0].get_ydata(), numbers(table["earned"]))
    assert np.array_equal(axes.lines[1].get_ydata(), numbers(table["uniform"]))
    axes = drawn_by(visitor, drawn, **over, kind="chosen").axes[0]
    table = csv_of(visitor, **over, kind="chosen", part="chosen")
    off = numbers(table["chosen"]) - numbers(table["expected"])
    shown = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert sorted(shown) == pytest.approx(sorted(off))

    drawn_by(visitor, drawn, of="prior", kind="prior")
    table = csv_of(visitor, of="prior", kind="prior", part="prior")
    dots = [line.get_xdata()[0] for line in drawn[0].axes[0].lines if line.get_marker() == "o"]
    assert np.array_equal(dots, numbers(table["mean"]))


def test_pictures_are_drawn_once_and_have_dark_twins(day: Any, drawn: list[Figure]) -> None:
    visitor = client(Service(day))
    for query in (
        {"of": "task", "name": "campaign 09", "kind": "posterior"},
        {"of": "task", "name": "campaign 09", "kind": "best"},
        {"of": "task", "name": "campaign 09", "kind": "allocation"},
        {"of": "overview", "kind": "earned"},
        {"of": "overview", "kind": "rewarded"},
    ):
        drawn.clear()
        plain = visitor.get(f"{FOLDER}/picture.svg", params=query).content
        assert plain == visitor.get(f"{FOLDER}/picture.svg", params=query).content
        night = visitor.get(f"{FOLDER}/picture.svg", params={**query, "dark": "1"}).content
        assert len(drawn) <= 1, "drawn again"
        assert live.INK.encode() in plain
        assert live.INK.encode() not in night
        assert night == live.dark(plain)
        small = visitor.get(f"{FOLDER}/picture.svg", params={**query, "narrow": "1"}).content
        assert float(re.search(rb'width="([\d.]+)pt"', small)[1]) == pytest.approx(live.NARROW * 72)  # type: ignore[index]
    assert live.dark(b"fill: #123456") is None


def test_long_and_equal_labels_stay_apart() -> None:
    names = ["the same beginning and then " + "x" * 40, "the same beginning and then y" + "x" * 39]
    assert len(set(live.labels_of(names, live.NARROW))) == 2
    assert max(map(len, live.labels_of(names, live.WIDE))) < 30


def test_tables_are_safe_for_spreadsheets() -> None:
    rows = as_csv({"a": ["=1+1", "-x", "plain", 'q"u,o'], "b": [-1.5, np.float64(0.1), None, 3]})
    assert list(csv.reader(io.StringIO(rows.decode()))) == [
        ["a", "b"], ["'=1+1", "-1.5"], ["'-x", "0.1"], ["plain", ""], ['q"u,o', "3"],
    ]  # fmt: skip
    assert [span(each) for each in (0.5, 90.0, 600.0, 9000.0, 2e5)] == [
        "0.5 s", "90 s", "10 min", "2.5 h", "2.31 d",
    ]  # fmt: skip


# -- estimates

MEANS = np.array([0.15, 0.4, 0.8])
PULLS = 40


def run_of(number: int, *, floor: float = 0.06, lost: Any = None) -> tuple[Trail, Any, Any]:
    """Play one task whose arms have known means; ``lost(arm, rng)`` says whose rewards do not
    come.
    """
    seed = base_seed() * 10_007 + number
    decider = pw.serve.Decider(
        pw.BetaPrior([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]), pw.ThompsonSampling(), horizon=PULLS,
        seed=seed, floor=floor, clock=demo.Clock(),
    )  # fmt: skip
    rng = np.random.default_rng(seed + 5)
    waiting: list[tuple[str, float]] = []
    for _ in range(PULLS):
        decision = decider.decide("t")
        value = float(rng.uniform() < MEANS[int(decision.arm)])
        if lost is None or not lost(int(decision.arm), rng):
            waiting.append((decision.token, value))
        while waiting and rng.uniform() < 0.7:  # some come late, in another order
            decider.reward(*waiting.pop(int(rng.integers(len(waiting)))))
    for each in waiting:
        decider.reward(*each)
    task, decisions, events = next(iter(decider.store.rows()))
    trail = Trail("t")
    trail.extend(decider.operations, task, decisions, events)
    return trail, rewards_of(trail, events), decider


@pytest.fixture(scope="module")
def runs() -> list[tuple[Trail, Any]]:
    return [run_of(number)[:2] for number in range(150)]


def naive(trail: Trail) -> Trail:
    """Wrong: all propensities as if arms had been chosen uniformly."""
    rows = [replace(row, propensity=1.0 / 3.0) for row in trail.rows]
    laws = [Laws(law.probs, law.there, np.zeros_like(law.means)) for law in trail.laws]
    return Trail(trail.task, trail.arms, rows, laws)


def plain(trail: Trail) -> Trail:
    """Right as well: without posterior means, only noisier."""
    laws = [Laws(law.probs, law.there, np.zeros_like(law.means)) for law in trail.laws]
    return Trail(trail.task, trail.arms, trail.rows, laws)


def off_by(pairs: list[tuple[Trail, Any]], change: Any = None) -> tuple[float, float, float]:
    """Return standard errors that estimates are off, their variance, and what they say it is."""
    found = [
        uniform_estimate([(trail if change is None else change(trail), rewards)])
        for trail, rewards in pairs
    ]
    totals = np.array([each.estimate for each in found])
    error = totals.std(ddof=1) / np.sqrt(len(totals))
    said = float(np.mean([each.std_error**2 for each in found]))
    return float((totals.mean() - PULLS * MEANS.mean()) / error), float(totals.var(ddof=1)), said


@pytest.mark.slow
def test_the_reward_of_uniform_allocation_is_unbiased(runs: list[tuple[Trail, Any]]) -> None:
    off, variance, said = off_by(runs)
    assert abs(off) < 5.0
    assert 0.6 < said / variance < 1.6  # chi-square on 149, and heavy tails
    off_plain, variance_plain, _ = off_by(runs, plain)
    assert abs(off_plain) < 5.0
    assert variance < variance_plain
    # control: Thompson sampling plays good arms more often, which weights have to undo
    assert abs(off_by(runs, naive)[0]) > 5.0
    # all tasks together
    whole = uniform_estimate(runs)
    truth = len(runs) * PULLS * MEANS.mean()
    assert abs(whole.estimate - truth) < 5.0 * whole.std_error
    assert whole.total > truth
    sums = whole.table()
    assert sums["earned"][-1] == whole.total
    assert sums["uniform"][-1] == pytest.approx(whole.estimate)
    assert sums["std_error"][-1] == pytest.approx(whole.std_error)


def ratio_of(pairs: list[tuple[Trail, Any]], *, rewarded: bool = False) -> Ratio:
    ratio = Ratio()
    for trail, rewards in pairs:
        counted = rewards.came if rewarded else np.ones(len(trail.rows), dtype=bool)
        ratio = judged(ratio, trail, counted, shared=True)
    return ratio


@pytest.mark.slow
def test_sample_ratios_of_healthy_tasks_raise_no_alarm(runs: list[tuple[Trail, Any]]) -> None:
    ratio = ratio_of(runs)
    assert not ratio.doubtful
    assert ratio.chosen.sum() == ratio.decisions == pytest.approx(ratio.expected.sum())
    assert "as often as their propensities say" in ratio.verdict()
    halves = [
        ratio_of(
            [(t, r._replace(came=r.came & (np.arange(len(r.came)) % 2 == k))) for t, r in runs],
            rewarded=True,
        )
        for k in (0, 1)
    ]
    assert halves[0].decisions + halves[1].decisions == ratio_of(runs, rewarded=True).decisions


def test_sample_ratios_may_be_looked_at_after_every_decision() -> None:
    """100 healthy logs, 3,000 decisions, a look at every 50th: by Ville's inequality at most 5%
    ever show p < 0.05. More than 15 happen with probability 4e-5. Controls: a fixed-size test that
    is looked at as often doubts far more; and logs that prefer one arm are all found.
    """
    rng = np.random.default_rng(base_seed() + 31)

    def alarms(p: np.ndarray, tilt: float) -> tuple[bool, bool]:
        drawn = p * np.exp(tilt * (np.arange(p.shape[1]) == 0))
        drawn /= drawn.sum(axis=1, keepdims=True)
        arm = (drawn.cumsum(axis=1) < rng.uniform(size=(len(p), 1))).sum(axis=1)
        ratio, anytime, fixed = Ratio(), False, False
        for start in range(0, len(p), 50):
            part = slice(start, start + 50)
            ratio = ratio.add(("a", "b", "c"), p[part], np.minimum(arm[part], 2))
            anytime |= ratio.p_value < 0.05
            fixed |= bool(np.abs(ratio.deviations[0]) > 1.96)
        return anytime, fixed

    healthy = np.array([alarms(rng.dirichlet(np.ones(3), 3000), 0.0) for _ in range(100)])
    assert healthy[:, 0].sum() <= 15
    assert healthy[:, 1].sum() > 15
    wrong = np.array([alarms(rng.dirichlet(np.ones(3), 3000), 0.3) for _ in range(20)])
    assert wrong[:, 0].all()


@pytest.mark.slow
def test_lost_rewards_of_one_arm_are_noticed() -> None:
    found = [
        run_of(number, lost=lambda arm, rng: arm == 2 and rng.uniform() < 0.4)[:2]
        for number in range(60)
    ]
    assert not ratio_of(found).doubtful
    rewarded = ratio_of(found, rewarded=True)
    assert rewarded.doubtful
    assert "Something is wrong: 2 is rewarded" in rewarded.verdict("rewarded")
    # control: rewards that are lost whatever the arm
    some = [run_of(number, lost=lambda arm, rng: rng.uniform() < 0.4)[:2] for number in range(60)]
    assert not ratio_of(some, rewarded=True).doubtful


@pytest.mark.parametrize(
    "options",
    [{}, {"floor": 0.1}, {"floor": {"red": 0.3}}, {"control": ("blue", 0.25), "floor": 0.05}],
    ids=["none", "floor", "one floor", "control"],
)
def test_laws_are_those_that_were_drawn_from(options: Any) -> None:
    decider = started(**options, horizon=30)
    rng = np.random.default_rng(base_seed())
    tokens = []
    for step in range(24):
        some = ["red", "blue", "grey"] if step % 3 == 1 else ["blue"] if step == 5 else None
        tokens.append(decider.decide("t", available=some).token)
        if step % 2:
            decider.reward(tokens[-1], float(rng.uniform() < 0.4))
    before = decider.store.value("x")
    assert before is None
    decider.reward(tokens[1], 1.0 - decider.store.settled("t", 2).value, correct=True)
    for _ in range(4):
        decider.decide("t")
    task, decisions, events = next(iter(decider.store.rows()))
    trail = Trail("t")
    trail.extend(decider.operations, task, decisions[:10], events)  # in two goes
    trail.extend(decider.operations, task, decisions, events)
    assert len(trail.rows) == 28
    start = 0
    for law in trail.laws:
        assert law.probs is not None
        for row, probs in zip(trail.rows[start:], law.probs, strict=False):
            assert probs[row.arm] == pytest.approx(row.propensity, abs=1e-6)
            assert probs.sum() == pytest.approx(1.0)
            assert row.mask is None or not probs[[c == "0" for c in row.mask]].any()
        start += len(law.there)


def test_decisions_of_other_settings_are_not_judged() -> None:
    decider = played(started())
    task, decisions, events = next(iter(decider.store.rows()))
    other = [replace(row, settings=row.settings + 1) for row in decisions]
    trail = Trail("t")
    trail.extend(decider.operations, task, other, events)
    ratio = ratio_of([(trail, rewards_of(trail, events))])
    assert ratio.decisions == 0
    assert ratio.p_value == 1.0
    assert not ratio.doubtful
    assert uniform_estimate([(trail, rewards_of(trail, events))]).decisions == 6


def test_health_counts_what_happened() -> None:
    decider = started(window=100.0, horizon=30)
    clock = decider.clock
    tokens = [decider.decide("t").token for _ in range(6)]
    for wait, token in zip((1.0, 2.0, 7.0), tokens, strict=False):
        clock.now += wait
        decider.reward(token, 1.0)
    decider.reward(tokens[0], 0.0, correct=True)
    clock.now += 200.0
    decider.expire(most=2)
    watch = Watch(Service(decider), fresh=-1.0)
    told = watch.overview().health
    values = dict(zip(told["what"], told["value"], strict=True))
    assert values["rewards that came"] == 3
    assert values["half of them within"] == 3.0
    assert values["the latest after"] == 10.0
    assert values["outstanding"] == 1
    assert values["the oldest outstanding since"] == 210.0
    assert values["closed because none came in time"] == 2
    assert values["corrected"] == 1
    assert values["repeated rewards (since this process started)"] == 7
    assert health_of([], 0.0, None)["what"][0] == "rewards that came"


# -- a day of traffic


def test_a_day_of_traffic_can_be_played_again() -> None:
    def one(seed: int) -> Any:
        clock = demo.Clock()
        decider = demo.example_decider(base_seed(), clock=clock)
        done = demo.play(decider, seed=seed, clock=clock, visitors=150, campaigns=6)
        log = [(t.name, d, e) for t, d, e in decider.store.rows()]
        return done, log, [decider.replay(name) for name, _, _ in log]

    first, again, other = one(base_seed()), one(base_seed()), one(base_seed() + 1)
    assert first == again
    assert first[1] != other[1]
    assert first[0].decisions == 150
    assert first[0].rewards + first[0].lost <= 150
    assert all(not differ for differ in first[2])


def test_a_day_has_something_to_show(day: Any) -> None:
    view = Watch(Service(day), fresh=-1.0).overview()
    assert view.open > 0
    assert view.closed >= 9
    assert view.decisions == 900
    assert not view.chosen.doubtful
    assert set(view.shown) == {"earned", "chosen", "rewarded"}
