"""One table of operations: deciders in any form do the same, on every store."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from serving import prior, started

import priorwise as pw
from priorwise.core.errors import ArgumentError
from priorwise.serve import AsyncDecider, Client, Conflict, Decider, Learning, NotFound
from priorwise.serve.summary import DRAWS, Stopping
from priorwise.serve.table import TABLE, Operation
from priorwise.serve.values import CLOSED_AT_FIT, EARLIER, value_of

NAMES = {"close_task": "close", "delete_unit": "delete", "log": "export"}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return None if request.param == "memory" else tmp_path / "decisions.db"


def decider(store: Any, seed: int, **options: Any) -> Decider:
    rule = pw.ThompsonSampling()
    return Decider(prior(), rule, horizon=50, seed=seed, store=store, **options)


@pytest.mark.parametrize("name", TABLE)
def test_every_operation_is_a_method(name: str) -> None:
    method = NAMES.get(name, name)
    assert hasattr(Client, method)
    for kind in (Decider, AsyncDecider):
        assert hasattr(kind, {"priors": "versions"}.get(method, method))
    if isinstance(TABLE[name], Operation) and name not in NAMES:
        fields = [*inspect.signature(getattr(Decider, name)).parameters][1:]
        assert tuple(fields) == TABLE[name].request.__struct_fields__


def test_an_async_decider_decides_as_a_decider(store: Any, seed: int) -> None:
    alone = decider(None, seed)

    async def play() -> list[Any]:
        async with AsyncDecider(decider(store, seed)) as live:
            made = await asyncio.gather(*(live.decide(f"t{number % 4}") for number in range(12)))
            made.sort(key=lambda each: (each.step, each.task))  # one of a task may overtake
            said = await live.rewards([(each.token, 1.0) for each in made])
            assert said == ["counted"] * 12
            assert await live.reward(made[0].token, 1.0) == "repeated"
            with pytest.raises(Conflict):
                await live.reward(made[0].token, 0.0)
            many = await live.decide_many(["t0", "new"])
            counts = (await live.allocate("t1", 9)).counts
            assert (await live.summary("t0")).decided == 4
            assert await live.replay("t1") == []
            assert (await live.close("t0"), await live.close("t0")) == (True, False)
            assert (await live.tasks(closed=True)).tasks[0].task == "t0"
            return [*made, *many, counts]

    made = asyncio.run(play())
    expected: list[Any] = [alone.decide(f"t{number % 4}") for number in range(12)]
    alone.rewards([(each.token, 1.0) for each in expected])
    expected += [*alone.decide_many(["t0", "new"]), alone.allocate("t1", 9).counts]
    assert made == expected


def test_what_long_decisions_compute_does_not_block_the_loop(seed: int) -> None:
    names = [f"arm {k}" for k in range(40)]
    wide = pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5)
    rule = pw.ThompsonSampling()

    async def play() -> list[str]:
        live = AsyncDecider(Decider(wide, rule, horizon=9, seed=seed, propensities=False))
        made = await asyncio.gather(*(live.decide(f"t{k}", names) for k in range(3)))
        return [each.arm for each in made]

    alone = Decider(wide, rule, horizon=9, seed=seed, propensities=False)
    assert asyncio.run(play()) == [alone.decide(f"t{k}", names).arm for k in range(3)]


def test_tasks_that_are_closed_teach_once_that_is_kept(
    store: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a coroutine closes them."""
    seen: list[bool] = []

    def spied(made: Decider) -> None:
        seen.append(made.store.names(closed=True) == ["t"])

    monkeypatch.setattr(Decider, "learn_if_due", spied)

    async def close() -> None:
        async with AsyncDecider(decider(store, seed, learn=Learning(every=20))) as live:
            await live.decide("t")
            assert await live.close("t") is True
            assert await live.close("t") is False

    asyncio.run(close())
    assert seen == [True]


def test_rewards_have_an_outcome_each(store: Any, seed: int) -> None:
    with decider(store, seed) as made:
        first, second = made.decide("t").token, made.decide("t").token
        found = made.rewards([(first, 1.0), ("x", 1.0), (second, 7.0), (first, 1.0), (first, 0.0)])
        assert [found[0], found[3]] == ["counted", "repeated"]
        assert isinstance(found[1], NotFound)
        assert isinstance(found[2], ArgumentError)
        assert found[2].argument == "value"
        assert isinstance(found[4], Conflict)
        assert made.rewards([(first, 0.0)], correct=True) == ["corrected"]
        assert made.replay("t") == []


def test_values_are_found_by_their_earlier_names(store: Any, seed: int) -> None:
    with decider(store, seed, tolerance=0.25) as made:
        made.store.put_value(EARLIER[CLOSED_AT_FIT], "7")
        assert value_of(made.store, CLOSED_AT_FIT) == "7"
        made.store.put_value(CLOSED_AT_FIT, "8")
        assert value_of(made.store, CLOSED_AT_FIT) == "8"
        made.decide("t")
        kept = Stopping.of(made.summary("t").stopping.to_json())  # type: ignore[union-attr]
        settings = made.operations.settings
    with decider(None, seed, tolerance=0.25) as other:
        other.decide("t")
        other.store.put_value(
            f"stopping of settings {settings}, prior 1, arms 3, tolerance 0.25, draws {DRAWS}",
            kept.to_json().replace('"every_pull": true', '"every_pull": false'),
        )
        stopping = other.summary("t").stopping
        assert stopping is not None
        assert stopping.every_pull is not kept.every_pull


@pytest.mark.slow
def test_a_client_has_what_a_decider_has(tmp_path: Path, seed: int) -> None:
    service = started(tmp_path)
    with Client(service.url, service.keys["admin"]) as client:
        token = client.decide("t").token
        assert client.reward(token, 1.0) == "counted"
        assert client.replay("t") == []
        assert client.version == 1
        assert client.prior().to_json() == prior().to_json()
        better = pw.BetaPrior([3.0, 2.0, 3.0], [8.0, 7.0, 9.0], names=["red", "blue", "green"])
        version = client.propose(better, {"why": "a test"})
        assert client.accept(version).status == "accepted"
        assert client.version == version == 2
        assert client.prior(2).to_json() == better.to_json()
        assert client.priors().priors[1].story == {"why": "a test"}
        assert client.replace_prior(prior()) == 3
        assert client.decline(2).status == "declined"
        assert [row.task for row in client.tasks(closed=False, limit=5).tasks] == ["t"]
        assert not client.alarm().raised
        with pytest.raises(Conflict, match="20 closed tasks"):
            client.refit(seed=seed)
        assert pq.read_table(client.export(tmp_path / "log.parquet")).num_rows == 1
        assert pq.read_table(client.export(tmp_path / "no.parquet", closed=True)).num_rows == 0
        with pytest.raises(NotFound):
            client.prior(9)
    assert service.stop() == 0
