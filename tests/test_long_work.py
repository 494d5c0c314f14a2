"""Long computations hold nobody up: they run outside of transactions, locks and the event loop,
within limits, and decide as they would have inside.
"""

from __future__ import annotations

import threading
from concurrent.futures import wait
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_http import Asked, error

import priorwise as pw
from priorwise.core.seen import Seen
from priorwise.serve import Decider
from priorwise.serve.ahead import CLIENT, PACE, PIECE, Ahead, Pace, Until
from priorwise.serve.choosing import Chooser, Rules, Shares
from priorwise.serve.errors import TooMuch
from priorwise.serve.http.limits import Limits
from priorwise.serve.http.waiting import Few
from priorwise.serve.operations import BRIEF, Operations

ARMS = [f"arm {k}" for k in range(40)]


def correlated() -> Any:
    """A prior with more arms than a transaction chooses among."""
    return pw.GaussianPrior(np.zeros(40), 0.5 * np.eye(40) + 0.5, 1.0, names=ARMS)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that choose."""
    names: list[str] = []
    for name in ("choose", "allocate"):
        method = getattr(Chooser, name)

        def spied(*given: Any, method: Any = method, **options: Any) -> Any:
            names.append(threading.current_thread().name)
            return method(*given, **options)

        monkeypatch.setattr(Chooser, name, spied)
    return names


def played(decider: Any) -> list[Any]:
    out: list[Any] = []
    for _ in range(3):
        made = decider.decide("t")
        out.append(made)
        decider.reward(made.token, 1.0)
    out += [decider.allocate("t", 50), *decider.decide_many(["t", "u", "t"])]
    return out


def test_the_writer_does_not_choose_among_many_arms(
    tmp_path: Path, threads: list[str], seed: int
) -> None:
    options: dict[str, Any] = {"horizon": 50, "seed": seed}
    with Decider(correlated(), pw.ThompsonSampling(), **options) as memory:
        expected = played(memory)
    threads.clear()
    with Decider(
        correlated(), pw.ThompsonSampling(), store=tmp_path / "d.db", **options
    ) as durable:
        assert played(durable) == expected
        assert set(threads) == {threading.current_thread().name}
        assert durable.replay("t") == []


def test_what_is_brief_is_chosen_within_the_transaction(
    tmp_path: Path, threads: list[str], seed: int
) -> None:
    prior = pw.BetaPrior([2, 2], [8, 7])
    with Decider(
        prior, pw.ThompsonSampling(), horizon=9, seed=seed, store=tmp_path / "d.db"
    ) as made:
        made.operations._seconds[1, 2] = 0.0
        made.decide("t")
    assert threads == ["SqliteStore writer"]


def test_the_writer_does_not_choose_what_took_long_lately(
    tmp_path: Path, threads: list[str], seed: int
) -> None:
    prior = pw.GaussianPrior(np.zeros(2), np.eye(2), 1.0)
    rule = pw.KShotThompson(3)  # not compiled
    with Decider(prior, rule, horizon=9, seed=seed, store=tmp_path / "d.db") as made:
        made.decide("t")
        for seconds, writes in ((1.0, False), (0.0, True)):
            made.operations._seconds[1, 2] = seconds
            threads.clear()
            made.decide("t")
            assert (threads == ["SqliteStore writer"]) is writes


class Clock:
    """Takes the place of the module."""

    computed = passed = 0.0

    def thread_time(self) -> float:
        return self.computed

    def perf_counter(self) -> float:
        return self.passed


@pytest.mark.parametrize("computes", [False, True])
def test_a_choice_that_waits_for_other_threads_is_brief(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, computes: bool
) -> None:
    prior, choose = pw.GaussianPrior(np.zeros(2), np.eye(2), 1.0), Chooser.choose
    rule = pw.KShotThompson(3)  # not compiled

    clock = Clock()

    def slow(*given: Any, **options: Any) -> Any:
        clock.passed += 1.0
        clock.computed += float(computes)
        return choose(*given, **options)

    with Decider(prior, rule, horizon=50, seed=seed, store=tmp_path / "d.db") as made:
        monkeypatch.setattr("priorwise.serve.operations.time", clock)
        monkeypatch.setattr(Chooser, "choose", slow)
        made.decide("t")
        assert (made.operations._seconds[1, 2] > BRIEF) is computes


def test_a_task_that_changed_meanwhile_is_computed_again(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    made = Decider(correlated(), pw.ThompsonSampling(), horizon=50, seed=seed)
    same = Decider(correlated(), pw.ThompsonSampling(), horizon=50, seed=seed)
    compute, rounds = Ahead.compute, []

    def late(ahead: Ahead, seconds: float | None = None) -> None:
        compute(ahead, seconds)
        rounds.append(0)
        if len(rounds) == 1:  # somebody else is faster
            rounds.append(made.decide("t"))

    monkeypatch.setattr(Ahead, "compute", late)
    after = made.decide("t")
    assert [rounds[1], after] == [same.decide("t"), same.decide("t")]
    assert made.replay("t") == []


def test_the_service_computes_in_threads_of_its_own(tmp_path: Path, threads: list[str]) -> None:
    for store in (None, tmp_path / "d.db"):
        asked = Asked(store, prior=correlated())
        for path, body in (
            ("/v1/decide", {"task": "t"}),
            ("/v1/decide_many", {"tasks": ["t", "u"], "requests": ["a", "b"]}),
            ("/v1/allocate", {"task": "t", "pulls": 10}),
        ):
            threads.clear()
            assert asked("POST", path, body).status_code == 200
            assert threads, path
            assert all(name.startswith("priorwise-long") for name in threads)
        asked.decider.close()


def test_a_request_that_computes_too_long_is_refused(tmp_path: Path) -> None:
    for store in (None, tmp_path / "d.db"):
        asked = Asked(store, prior=correlated(), limits=Limits(work=-1.0))
        for path, body in (
            ("/v1/decide", {"task": "t"}),
            ("/v1/allocate", {"task": "t", "pulls": 10}),
        ):
            assert "may take" in error(asked("POST", path, body), 422, "wrong_value")
        assert asked.decider.store.names() == []  # nothing is left behind
        asked.decider.close()
    with pytest.raises(TooMuch):
        Until(-1.0).check()


def test_copies_of_a_belief_have_a_limit(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    sizes: list[int] = []
    kind = type(correlated().belief(1))
    take = kind.take

    def spied(belief: Any, index: Any) -> Any:
        sizes.append(len(index))
        return take(belief, index)

    monkeypatch.setattr(kind, "take", spied)
    found = []
    for limit in (64e6, 1e5):
        monkeypatch.setattr("priorwise.serve.choosing.AT_ONCE", limit)
        sizes.clear()
        with Decider(correlated(), pw.ThompsonSampling(), horizon=50, seed=seed) as made:
            found.append((made.decide("t"), made.allocate("t", 20)))
    assert found[0] == found[1]
    assert max(sizes) * 40 * 40 * 8 <= 1e5


def test_the_largest_allocations_are_drawn_from_the_law(seed: int) -> None:
    """Six million pulls of two arms; a false alarm of each line has probability below 1e-9."""
    prior, pulls = pw.BetaPrior([2, 3], [8, 7]), 6_000_000
    with Decider(prior, pw.ThompsonSampling(), horizon=9, seed=seed) as made:
        law = pw.ThompsonSampling().probabilities(prior.belief(1), Seen(1, 9, 2)).probs[0]
        counts = np.array(list(made.allocate("t", pulls).counts.values()))
        assert counts.sum() == pulls
        assert abs(counts[0] - pulls * law[0]) < 6.2 * np.sqrt(pulls * law[0] * law[1])
        assert made.replay("t") == []
    with Decider(prior, pw.ThompsonSampling(), horizon=9, seed=seed, control=("0", 0.25)) as made:
        share = made.allocate("t", pulls).counts["0"] / pulls
        assert abs(share - 0.25) < 6.2 * np.sqrt(0.25 * 0.75 / pulls)
    with (
        Decider(prior, pw.KShotThompson(3), horizon=9, seed=seed) as made,
        pytest.raises(ValueError, match=r"pulls .* 5,000,000"),
    ):
        made.allocate("t", pulls)


def test_what_is_computed_at_once_comes_to_the_writer_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(tmp_path / "d.db", prior=correlated())
    pool = asked.service._long.threads._pool
    submit = pool.submit

    def finished(work: Any) -> Any:  # before the writer hears of it
        future = submit(work)
        wait([future])
        return future

    monkeypatch.setattr(pool, "submit", finished)
    assert asked("POST", "/v1/decide", {"task": "t"}).status_code == 200
    asked.decider.close()


def test_others_do_not_push_out_what_decides(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    built: list[int] = []
    make = pw.ExchangeableGaussianPrior.for_arms
    monkeypatch.setattr(
        pw.ExchangeableGaussianPrior, "for_arms",
        lambda prior, arms, *rest: (built.append(arms), make(prior, arms, *rest))[1],
    )  # fmt: skip
    made = Operations(
        lambda version: pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5),
        Rules(pw.ThompsonSampling(), 9, seed, Shares(), False, None, "leave out"),
    )
    for _ in range(2):
        for arms in (*range(2, 6), *range(33, 90)):
            made.chooser(1, arms)
    assert len(built) == len(set(built)) == 61  # all fit, however many they are
    monkeypatch.setattr("priorwise.serve.operations.ENTRIES", 5 * 40**2)
    for arms in range(34, 60):
        made.chooser(1, 33)
        made.chooser(1, arms)
        kept = [kind[1] for kind in made._choosers]
        assert set(range(2, 6)) < set(kept)
        assert sum(each**2 for each in kept if each > 32) <= 5 * 40**2
    assert [built.count(arms) for arms in (3, 33, 34)] == [1, 1, 2]


def test_a_client_pushes_out_its_own_choosers(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("priorwise.serve.operations.ENTRIES", 3 * 50**2)
    made = Operations(
        lambda version: pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5),
        Rules(pw.ThompsonSampling(), 9, seed, Shares(), False, None, "leave out"),
    )

    def asked(client: str, arms: int) -> None:
        context = copy_context()
        context.run(CLIENT.set, client)
        context.run(made.chooser, 1, arms)

    for arms in (41, 40):
        asked("modest", arms)
    for arms in range(42, 50):
        asked("greedy", arms)
    assert [kind[1] for kind in made._choosers] == [41, 40, 49]
    asked("modest", 50)  # now it has the most
    assert [kind[1] for kind in made._choosers] == [40, 49, 50]


def test_works_of_a_client_are_its_own() -> None:
    few = Few("works", 1, 2)
    assert [few.submit(CLIENT.get, client).result(60) for client in "ab"] == ["a", "b"]
    few.close()


def test_background_work_takes_a_share_of_the_time() -> None:
    """After each piece of computing the thread rests for three times as long."""
    now, rests = [0.0], []
    pace = Pace(0.25, lambda: now[0], rests.append)
    for spent in (PIECE / 2, PIECE / 2, PIECE / 2, 2 * PIECE):
        now[0] += spent
        pace.rest()
    assert rests == pytest.approx([3 * PIECE, 7.5 * PIECE])


def test_exports_of_a_service_rest_between_tasks(seed: int, tmp_path: Path) -> None:
    """A thread with a pace rests at least once a task; the log is the same with and without."""
    rests = []

    class Counted:
        def rest(self) -> None:
            rests.append(None)

    prior = pw.ExchangeableBetaPrior(2.0, 8.0)
    with Decider(prior, pw.ThompsonSampling(), horizon=9, seed=seed) as made:
        for task in range(30):
            made.reward(made.decide(f"t{task}", ["a", "b"]).token, 1.0)
        plain = list(made.tables())
        assert not rests
        token = PACE.set(Counted())  # type: ignore[arg-type]
        try:
            paced = list(made.tables())
        finally:
            PACE.reset(token)
    assert len(rests) >= 30
    assert plain == paced
    few = Few("exports", 1, 1)
    assert isinstance(few.submit(PACE.get, "a").result(60), Pace)
    few.close()
