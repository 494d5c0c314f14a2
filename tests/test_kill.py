"""Processes are killed at random moments: nothing that was acknowledged is lost or counted twice,
and a fresh process decides as the killed one would have.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kill_decider import Nursery, check, decider
from servers import database, postgres

SOME = pytest.param(10, marks=pytest.mark.slow, id="some")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(tmp_path)
    yield made
    made.close()


def kills_on_a_file(nursery: Nursery, folder: Path, seed: int, rounds: int) -> int:
    """Kill the only process, again and again; how many rewards were acknowledged."""
    random.seed(seed)
    store, found = folder / "store.db", [0]
    for number in range(rounds):
        if number % 10 == 0:  # a new file, so that some die while they make it
            for path in folder.iterdir():
                path.unlink()
            found.append(0)
        child = nursery.start(store, seed=seed, tasks=4, threads=3)
        if number % 5:  # the others may die before they have done anything
            nursery.acknowledged()
        time.sleep(random.uniform(0.0, 0.4 if number % 5 else 0.1))
        nursery.kill(child)
        found[-1] = check(store, nursery.logs(), seed)
    return sum(found)


def kills_on_a_server(nursery: Nursery, url: str, seed: int, rounds: int) -> int:
    """Kill one of two processes, again and again, while the other goes on."""
    random.seed(seed)
    found = 0
    for number in range(rounds):
        pair = [nursery.start(url, seed=seed, tasks=8, threads=6) for _ in range(2)]
        if number % 5:
            nursery.acknowledged()
        time.sleep(random.uniform(0.0, 0.4))
        nursery.kill(pair.pop(random.randrange(2)))
        time.sleep(0.1)
        nursery.stop(pair[0])
        found = check(url, nursery.logs(), seed)
    return found


@pytest.mark.parametrize("rounds", [SOME, pytest.param(200, marks=pytest.mark.soak, id="many")])
def test_a_process_killed_on_sqlite(
    nursery: Nursery, tmp_path: Path, seed: int, rounds: int
) -> None:
    found = kills_on_a_file(nursery, tmp_path, seed, rounds)
    print(f"{rounds} kills, {found} acknowledged rewards")
    assert found > rounds // 2


@pytest.mark.parametrize("rounds", [SOME, pytest.param(50, marks=pytest.mark.soak, id="many")])
def test_one_of_two_processes_killed_on_postgresql(
    nursery: Nursery, server: str, seed: int, rounds: int
) -> None:
    found = kills_on_a_server(nursery, database(server), seed, rounds)
    print(f"{rounds} kills, {found} acknowledged rewards")
    assert found > rounds // 2


@pytest.mark.slow
@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_two_processes_on_one_task(
    nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest, seed: int, where: str
) -> None:
    """Some order explains everything that the two of them were told."""
    store = (
        tmp_path / "store.db" if where == "sqlite" else database(request.getfixturevalue("server"))
    )
    pair = [nursery.start(store, seed=seed, tasks=1, threads=2, pulls=40) for _ in range(2)]
    assert [nursery.wait(each) for each in pair] == [0, 0]
    assert check(store, nursery.logs(), seed) > 80


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        "DELETE FROM event WHERE number = (SELECT max(number) FROM event)",
        "UPDATE event SET value = value + 1e-9 WHERE number = 3",
        "UPDATE task SET state = zeroblob(length(state))",
        "DELETE FROM decision WHERE step = 2",
        "UPDATE decision SET arm = (arm + 1) % 3 WHERE step = 4",
        "UPDATE event SET step = 1 WHERE number = 3",
    ],
)
def test_the_check_sees_what_it_looks_for(
    nursery: Nursery, tmp_path: Path, seed: int, wrong: str
) -> None:
    store = tmp_path / "store.db"
    child = nursery.start(store, seed=seed, tasks=2, threads=1, pulls=20)
    assert nursery.wait(child) == 0
    assert check(store, nursery.logs(), seed) > 0
    decider(store, seed).close()
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute(wrong)
    with pytest.raises((AssertionError, KeyError)):
        check(store, nursery.logs(), seed)
