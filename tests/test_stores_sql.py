"""What only databases can do wrong: files, schemas, lost connections, and many at once."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import database, debian, debian_postgres, postgres

import priorwise as pw
from priorwise.serve import Decider, Unavailable
from priorwise.serve.ahead import CLIENT
from priorwise.serve.rows import Decided, Key
from priorwise.serve.stores import postgres as in_postgres
from priorwise.serve.stores import schema
from priorwise.serve.stores import sqlite as in_sqlite
from priorwise.serve.stores.link import CURRENT
from priorwise.serve.stores.postgres import PostgresStore
from priorwise.serve.stores.sql import MOST, SqlStore
from priorwise.serve.stores.sqlite import SqliteStore
from priorwise.serve.stores.store import Wanted
from priorwise.serve.types import Decide
from priorwise.testing import base_seed

HERE = Path(__file__).parent
PRIOR = pw.BetaPrior([2.0, 3.0], 8.0, names=["red", "blue"])

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: Any, tmp_path: Path) -> Callable[[], Any]:
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "store.db")
    url = database(request.getfixturevalue("server"))
    return lambda: PostgresStore(url)


def decider(store: Any, prior: Any = PRIOR, **options: Any) -> Decider:
    settings = {"horizon": 50, "seed": base_seed(), "propensities": False, **options}
    return Decider(prior, pw.ThompsonSampling(), store=store, **settings)


# -- schemas


def make(path: Path, number: int = 1) -> None:
    connection = sqlite3.connect(path)
    connection.executescript((HERE / f"schema_{number}_sqlite.sql").read_text())
    connection.close()


def make_in(url: str, number: int = 1) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((HERE / f"schema_{number}_postgres.sql").read_bytes())


def test_a_store_of_the_first_schema_is_brought_up_to_date(
    tmp_path: Path, server: str, opened: Any, request: Any
) -> None:
    if "sqlite" in request.node.name:
        make(tmp_path / "store.db")
    else:
        make_in(opened.__closure__[0].cell_contents)
    for _ in range(2):
        store = opened()
        assert store.size() == (1, 1, 6, 5)
        known = json.loads(store.settings()[0])
        one = decider(store, None, seed=known["seed"], propensities=True)
        assert one.replay("clicks") == one.replay("batch") == []
        assert one.decide("clicks", request="r2").step == 3
        assert [each.name for each in store.tasks()] == ["batch", "clicks"]
        store.put_key(Key("who", "abc", ("read",), 1.0))
        assert store.keys()[0].name == "who"
        one.close()


def test_a_store_of_the_second_schema_keeps_its_prior(
    tmp_path: Path, server: str, opened: Any, request: Any, seed: int
) -> None:
    if "sqlite" in request.node.name:
        make(tmp_path / "store.db", 2)
    else:
        make_in(opened.__closure__[0].cell_contents, 2)
    start = threading.Barrier(4)

    def open_at_once() -> Any:
        start.wait()
        return opened()

    with ThreadPoolExecutor(4) as pool:
        stores = [each.result() for each in [pool.submit(open_at_once) for _ in range(4)]]
    one, other, *rest = (
        decider(store, None, seed=seed, propensities=True, clock=lambda: 0.0) for store in stores
    )
    assert [each.version for each in (one, other, *rest)] == [2] * 4
    # 2 was accepted after 3, and the clock stepped back before: all of that was kept
    accepted = [each.accepted for each in one.versions()]
    assert accepted[1] > accepted[2] == 1010.0
    assert one.replay("old") == one.replay("new") == []
    for version in (4, 3, 1, 2):
        one.accept(version)
        assert one.version == other.version == other.decide(f"after {version}").version == version
    assert one.versions()[3].accepted == 0.0  # what the clock showed
    for each in (one, other, *rest):
        each.close()


def test_two_accept_at_once(opened: Any) -> None:
    one, *others = (decider(opened(), clock=lambda: 5.0) for _ in range(4))
    numbers = [
        one.propose(pw.BetaPrior([2.0, 4.0 + k], 8.0, names=["red", "blue"])) for k in range(8)
    ]
    with ThreadPoolExecutor(4) as pool:
        for work in [
            pool.submit(each.accept, number) for number in numbers for each in (one, *others)
        ]:
            work.result()
    with one.store._reading() as link:
        rows = link.query("SELECT acceptance FROM prior")
        last = link.query("SELECT number FROM prior ORDER BY acceptance DESC")[0][0]
    # nobody ties: each start on the empty store may count, and each acceptance does
    assert len({number for (number,) in rows}) == len(rows) == 9
    assert max(rows) >= (1 + 8 * 4,)
    for each in (one, *others):
        assert each.version == last
        each.close()


def test_clients_take_turns_in_the_writer(opened: Any) -> None:
    """Nobody waits for all that another client has sent before, or for a large request of it."""
    store, done, go = opened(), [], threading.Event()

    def submitted(client: str, number: int, tasks: int = 1) -> Any:
        def work(session: Any) -> None:
            done.append((client, number))

        context = copy_context()
        context.run(CLIENT.set, client)
        names = [f"{client} {number} {task}" for task in range(tasks)]
        return context.run(store.submit, work, Wanted(names))

    first = store.submit(lambda session: go.wait(60))
    works = [submitted("a", number) for number in range(3 * MOST)]
    works += [submitted("b", number, MOST) for number in range(3)]
    works += [submitted("c", number) for number in range(2)]
    go.set()
    for each in (first, *works):
        each.result(60)
    store.close()
    assert {("c", 0), ("c", 1)} < set(done[: MOST + 3])
    assert max(done.index(("c", number)) for number in range(2)) < done.index(("b", 2))
    for client in "abc":  # in order
        numbers = [number for who, number in done if who == client]
        assert numbers == sorted(numbers)


def test_a_later_schema_is_refused(tmp_path: Path, server: str) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.NEWEST + 1}")
    connection.close()
    with pytest.raises(ValueError, match="later version of priorwise"):
        SqliteStore(path)
    url = database(server)
    PostgresStore(url).close()
    with psycopg.connect(url, autocommit=True) as there:
        there.execute("UPDATE priorwise.about SET version = 1000")
    with pytest.raises(ValueError, match="later version of priorwise"):
        PostgresStore(url)


def test_a_step_that_fails_changes_nothing(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, url = tmp_path / "store.db", database(server)
    make(path)
    make_in(url)
    good = schema.FILLED
    bad = {**good, 2: good[2].replace("UPDATE task SET", "UPDATE nothing SET")}
    monkeypatch.setattr(schema, "FILLED", bad)
    with pytest.raises(Unavailable, match="nothing"):
        SqliteStore(path)
    with pytest.raises(Unavailable, match="nothing"):
        PostgresStore(url)
    monkeypatch.setattr(schema, "FILLED", good)
    for store in (SqliteStore(path), PostgresStore(url)):
        assert store.size() == (1, 1, 6, 5)
        store.close()


def test_many_may_open_a_new_store_at_once(opened: Any, tmp_path: Path) -> None:
    start = threading.Barrier(6)

    def one(_: int) -> Any:
        start.wait()
        return opened()

    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(one, range(6)))
    deciders = [decider(each) for each in stores]
    assert [each.version for each in deciders] == [1] * 6
    assert {each.operations.settings for each in deciders} == {1}
    for each in deciders:
        each.close()
    assert {path.name for path in tmp_path.iterdir()} <= {"store.db"}


# -- files


def test_a_file_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "ß ?#%.db"
    one = decider(str(path))
    one.decide("a")
    for each in tmp_path.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    one.close()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("dear diary, " * 100)
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE task (x)")
    connection.close()
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(in_sqlite.MAGIC + b"\x07" * 5000)
    for path, says in (
        (text, "notes.txt' is no SQLite database"),
        (other, "other.db' is an SQLite database of another program"),
        (damaged, "damaged.db' is damaged"),
    ):
        before = path.read_bytes()
        with pytest.raises(ValueError, match=says):
            SqliteStore(path)
        assert path.read_bytes() == before
    with pytest.raises(IsADirectoryError):
        SqliteStore(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        SqliteStore(tmp_path / "nowhere" / "store.db")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "damaged.db",
        "notes.txt",
        "other.db",
    ]


def test_a_file_appears_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "TABLES", (*schema.TABLES, schema.TASK))
    with pytest.raises(Unavailable):
        SqliteStore(tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    for _ in range(2):
        one = decider(path)
        one.decide("a")
        one.close()


def test_a_file_that_is_taken_away(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    (tmp_path / "store.db").unlink()
    with pytest.raises(Unavailable, match="deleted"):
        store.versions()
    store.close()


# -- many at once


def held(store: SqlStore, work: Callable[[], Any]) -> Any:
    """Do something while the thread that writes is busy."""
    free, busy = threading.Event(), threading.Event()

    def wait(session: Any) -> None:
        busy.set()
        free.wait(30)

    waiting = store.submit(wait)
    busy.wait(30)
    try:
        return work()
    finally:
        free.set()
        waiting.result()


def test_operations_that_wait_share_a_commit(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = decider(opened())
    link = type(one.store._writing())
    commits = []
    write = link.write
    monkeypatch.setattr(
        link, "write", lambda self, changes: (commits.append(changes), write(self, changes))[1]
    )
    operations, store = one.operations, one.store

    def decide(name: str) -> Any:
        return store.submit(
            lambda session: operations.decide(session, Decide(name), 0.0), Wanted([name])
        )

    futures = held(store, lambda: [decide(f"task {each % 7}") for each in range(50)])
    assert sorted((each.result().task, each.result().step) for each in futures) == sorted(
        (f"task {each % 7}", 1 + each // 7) for each in range(50)
    )
    assert [len(each.decisions) for each in commits] == [50]
    for each in range(7):
        assert one.replay(f"task {each}") == []
    one.close()


def test_what_cannot_be_written_fails_alone(opened: Any) -> None:
    one = decider(opened())
    store, operations = one.store, one.operations

    def poison(session: Any) -> None:
        task = session.task("a") or operations.opened("a", None, session.version, 0.0)
        session.add_decided(task, Decided(10**30, 0, 2, 0, 0.0, 1))

    def decide(session: Any) -> Any:
        return operations.decide(session, Decide("a"), 0.0)

    def queue() -> list[Any]:
        works = [decide, poison, decide, decide]
        return [store.submit(work, Wanted(["a"])) for work in works]

    first, bad, *others = held(store, queue)
    assert [each.result().step for each in (first, *others)] == [1, 2, 3]
    with pytest.raises(Unavailable):
        bad.result()
    assert one.replay("a") == []
    one.close()


def test_what_is_given_up_is_not_done(opened: Any) -> None:
    one = decider(opened())
    store, operations = one.store, one.operations

    def decide(session: Any) -> Any:
        return operations.decide(session, Decide("a"), 0.0)

    def queue() -> Any:
        given_up = store.submit(decide, Wanted(["a"]))
        assert given_up.cancel()
        return store.submit(decide, Wanted(["a"]))

    assert held(store, queue).result().step == 1
    one.close()


def test_a_closed_store_is_unavailable(opened: Any) -> None:
    one = decider(opened())
    one.decide("a")
    waiting = held(one.store, lambda: one.store.submit(lambda session: session.version))
    one.close()
    one.close()
    assert waiting.result() == 1, "what was begun is finished"
    for work in (lambda: one.decide("a"), lambda: one.replay("a"), one.store.size):
        with pytest.raises(Unavailable, match="closed"):
            work()


def test_a_store_is_of_the_process_that_opened_it(opened: Any) -> None:
    one = decider(opened())
    one.store._process += 1  # as after a fork
    for work in (lambda: one.decide("a"), lambda: one.replay("a")):
        with pytest.raises(Unavailable, match="another process"):
            work()
    one.store._process -= 1
    one.close()


def test_an_operation_does_not_start_another(opened: Any) -> None:
    one = decider(opened())
    with pytest.raises(RuntimeError, match="must not start another"):
        one.store.run(lambda session: one.decide("a"))
    with pytest.raises(RuntimeError, match="must not write"):
        one.store.look(lambda session: one.operations.decide(session, Decide("a"), 0.0))
    one.close()


def test_stores_that_open_the_same_tasks_at_once(opened: Any) -> None:
    """Two connections, tasks in opposite orders, new ones and old ones: no deadlock, and some order
    explains everything.
    """
    both = [decider(opened()) for _ in range(2)]
    start = threading.Barrier(2)

    def play(which: int) -> None:
        one = both[which]
        for day in range(15):
            names = [f"{day} {each}" for each in range(8)]
            old = [f"{before} {each}" for before in range(day) for each in range(2)]
            start.wait()
            made = one.decide_many((names + old)[:: 1 if which else -1])
            for each in made:
                one.reward(each.token, float(which))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(play, range(2)))
    one = both[0]
    assert one.store.size().open == 15 * 8
    for name in one.store.names():
        assert one.replay(name) == []
    for task, decisions, events in one.store.rows():
        assert [each.step for each in decisions] == list(range(1, task.steps + 1))
        assert [each.number for each in events] == list(range(1, task.events + 1))
    for each in both:
        each.close()


# -- what goes wrong


def test_a_file_that_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_sqlite, "PATIENCE", 0.1)
    one = decider(tmp_path / "store.db")
    token = one.decide("a").token
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        one.reward(token, 1.0)
    assert one.replay("a") == []
    other.execute("ROLLBACK")
    other.close()
    assert one.reward(token, 1.0) == "counted"
    one.close()


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """All that waited are told, nothing of it stays, and it goes on when there is room."""
    one = decider(tmp_path / "store.db")
    token = one.decide("a").token
    connection = one.store._writing()._connection
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    big = "x" * 490

    def flood(place: int) -> str:
        try:
            one.decide(f"{place} {big}", unit=big)
        except Unavailable as error:
            return "full" if "full" in str(error) else str(error)
        return "decided"

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(flood, range(64)))
    assert set(said) == {"decided", "full"} or set(said) == {"full"}
    assert one.store.size().open == 1 + said.count("decided")
    connection.execute("PRAGMA max_page_count = 1000000")
    assert one.reward(token, 1.0) == "counted"
    assert one.replay("a") == []
    one.close()


def test_a_lost_connection_is_made_again(server: str) -> None:
    url = database(server)
    one = decider(PostgresStore(url))
    token = one.decide("a").token
    assert one.replay("a") == []
    with psycopg.connect(url, autocommit=True) as there:
        for _ in range(3):
            there.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'priorwise' AND datname = current_database()"
            )
            with pytest.raises(Unavailable):
                one.reward(token, 1.0)
            with pytest.raises(Unavailable):
                one.replay("a")
            assert one.reward(token, 1.0) in ("counted", "repeated")
            assert one.replay("a") == []
    assert one.store.size() == (1, 0, 1, 1)
    one.close()


def test_a_row_that_somebody_holds(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_postgres, "SETTINGS", in_postgres.SETTINGS.replace("'10s'", "'200ms'"))
    url = database(server)
    one = decider(PostgresStore(url))
    token = one.decide("a").token
    with psycopg.connect(url) as there:
        there.execute("SELECT * FROM priorwise.task FOR UPDATE")
        with pytest.raises(Unavailable, match="lock timeout"):
            one.reward(token, 1.0)
        there.rollback()
    assert one.reward(token, 1.0) == "counted"
    one.close()


def test_a_password_is_not_told(server: str) -> None:
    for url in ("postgresql://me:topsecret@127.0.0.1:1/x", "postgresql://me:topsecret@:bad:/x"):
        with pytest.raises((Unavailable, ValueError)) as caught:
            PostgresStore(url)
        assert "topsecret" not in str(caught.value)


def test_tables_lie_in_a_schema_of_their_own(server: str) -> None:
    url = database(server)
    decider(PostgresStore(url)).close()
    with psycopg.connect(url) as there:
        found = there.execute(
            "SELECT DISTINCT schemaname FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
    assert found == [("priorwise",)]


def test_a_commit_waits_for_the_disk(tmp_path: Path, server: str) -> None:
    store = SqliteStore(tmp_path / "store.db")
    assert store._write(lambda link: link.query("PRAGMA synchronous")) == [(2,)]
    assert store._write(lambda link: link.query("PRAGMA journal_mode")) == [("wal",)]
    store.close()
    url = database(server)
    with psycopg.connect(url, autocommit=True) as there:
        name = there.info.dbname
        there.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    kept = PostgresStore(url)
    assert kept._write(lambda link: link.query("SHOW synchronous_commit")) == [("on",)]
    kept.close()


@pytest.mark.skipif(debian() is None, reason="Debian's PostgreSQL is not installed")
def test_a_server_with_its_defaults_compiles_no_statement() -> None:
    """Debian's server compiles what its planner takes for expensive (``jit = on``)."""
    with debian_postgres() as server:
        url = database(server)
        PostgresStore(url).close()
        plans = {}
        for reading in (False, True):
            link = in_postgres._Link(url, reading=reading)
            for jit in ("as we set it", "on"):
                if jit == "on":
                    link.execute("SET jit = on")
                    assert link.query("SELECT pg_jit_available()") == [(True,)]
                rows = link.query(f"EXPLAIN ANALYZE {CURRENT}")
                plans[reading, jit] = "\n".join(line for (line,) in rows)
            link.close()
        assert "JIT:" in plans[False, "on"]  # what there was to mend
        assert not any("JIT:" in plan for (_, jit), plan in plans.items() if jit != "on")
        with decider(PostgresStore(url)) as made:
            assert made.reward(made.decide("t").token, 1.0) == "counted"
