"""One of two services on one PostgreSQL is killed under load, again and again: nothing that was
acknowledged over HTTP is lost or counted twice, and what is left decides as if nothing had been.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kill_decider import HORIZON, check, prior
from servers import database, postgres
from serving import Running, started

from priorwise.serve import Client, Conflict, Unavailable


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


class Load:
    """Threads that decide and send rewards until the service is gone or they are told to stop."""

    def __init__(self, logs: list[list[Any]], seed: int) -> None:
        self.logs, self.seed = logs, seed
        self.over = threading.Event()
        self.threads: list[threading.Thread] = []

    def start(self, service: Running, name: str, threads: int = 3) -> None:
        for number in range(threads):
            thread = threading.Thread(target=self._kept, args=(service.url, name, number))
            thread.start()
            self.threads.append(thread)

    def stop(self) -> None:
        self.over.set()
        for each in self.threads:
            each.join()

    def _kept(self, url: str, name: str, thread: int) -> None:
        with Client(url, retries=0, timeout=30.0) as client:
            try:
                self._play(client, name, thread)
            except Unavailable:
                return  # it was killed
            except BaseException as error:
                self.logs.append(["error", repr(error)])
                raise

    def _play(self, client: Client, name: str, thread: int) -> None:
        rng = np.random.default_rng([self.seed, thread, *name.encode()])
        for pull in range(1_000_000):
            if self.over.is_set():
                return
            task, request = f"task {rng.integers(4)}", f"{name} {thread} {pull}"
            made = client.decide(task, request=request)
            self.logs.append(["decided", task, made.step, made.arm, request])
            for value in (float(rng.normal()),) * (1 + (rng.random() < 0.3)):
                self._reward(client, made.token, value)
            if rng.random() < 0.2:
                self._reward(client, made.token, value + 1.0)

    def _reward(self, client: Client, token: str, value: float) -> None:
        self.logs.append(["sent", token, value])
        try:
            self.logs.append(["acknowledged", token, value, client.reward(token, value)])
        except Conflict:
            self.logs.append(["refused", token, value])


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(10, marks=pytest.mark.slow, id="some"),
        pytest.param(50, marks=pytest.mark.soak, id="many"),
    ],
)
def test_one_of_two_services_killed_on_postgresql(
    server: str, tmp_path: Path, seed: int, rounds: int
) -> None:
    random.seed(seed)
    url, logs = database(server), []  # type: ignore[var-annotated]
    count = 0

    def service() -> Running:
        nonlocal count
        count += 1
        return started(
            tmp_path, "--open", "--no-propensities", "--quiet", store=url, name=f"{count}",
            with_prior=prior(), horizon=HORIZON, seed=seed,
        )  # fmt: skip

    pair = [service(), service()]
    try:
        for number in range(rounds):
            load = Load(logs, seed)
            for place, each in enumerate(pair):
                load.start(each, f"round {number} service {place}")
            threading.Event().wait(random.uniform(0.0, 0.8))
            pair.pop(random.randrange(2)).kill()
            threading.Event().wait(0.1)
            load.stop()
            found = check(url, logs, seed)
            pair.append(service())
        print(f"{rounds} kills, {found} acknowledged rewards")
        assert found > 10 * rounds
    finally:
        codes = [each.stop() for each in pair]
    assert codes == [0, 0]
    bugs = [line for path in tmp_path.glob("*.log") for line in path.read_text().splitlines()
            if '"event":"bug"' in line]  # fmt: skip
    assert not bugs
