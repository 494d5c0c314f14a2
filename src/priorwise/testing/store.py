"""What every store of live decisions must keep."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families import (
    BetaPrior,
    ExchangeableBetaPrior,
    GaussianPrior,
    LinearGaussianPrior,
)
from priorwise.policies.thompson import ThompsonSampling
from priorwise.serve.choosing import LivePrior
from priorwise.serve.decider import Decider
from priorwise.serve.errors import Conflict, NotFound, Refused, TooLate
from priorwise.serve.folding import Fold
from priorwise.serve.rows import Event, Key, Task, Version
from priorwise.serve.stores.store import Session, Store, Wanted
from priorwise.serve.types import Decide, Record
from priorwise.testing.seeds import Seeded

ARMS = ("red", "blue", "green")
Opens = Callable[[], Store]
Deciders = Callable[..., Decider]  # (prior, settings of a decider)
Makes = Callable[[], LivePrior]
HOSTILE = (
    "x'; DROP TABLE task; --",
    '"?%s{}$1\\',
    "ß 漢字 🎈 \u202e \x7f",
    "\n\t ",
    "n" * 500,
    "🎈" * 500,
)
"""Names that a store must take as they are."""


def beta() -> BetaPrior:
    """Rewards are 0 or 1."""
    return BetaPrior([2.0, 3.0, 2.5], 8.0, names=ARMS)


def gaussian() -> GaussianPrior:
    """Rewards are any numbers."""
    return GaussianPrior([0.0, 0.2, 0.1], 0.5 * np.eye(3) + 0.2, 0.8, names=ARMS)


def linear() -> LinearGaussianPrior:
    """Each decision comes with features."""
    return LinearGaussianPrior(np.zeros(2), np.eye(2), 1.0, np.ones((3, 2)))


def known(session: Session, name: str) -> Task:
    """Return a task that there is."""
    task = session.task(name)
    assert task is not None
    return task


def dump(store: Store, fold: Callable[[int], Fold]) -> list[tuple[object, ...]]:
    """Everything that a store holds of its tasks, to compare."""
    return [
        (
            task.name, task.key, task.version, task.arms, fold(task.version).encode(task.state),
            task.steps, task.events, task.closed, decisions, events,
        )
        for task, decisions, events in sorted(store.rows(), key=lambda row: row[0].name)
    ]  # fmt: skip


class StoreContract(Seeded):
    """Tests of a store; override the fixture ``opened``."""

    @pytest.fixture
    def opened(self) -> Opens:
        """Opens the store under test: each call the same one, with what was put into it before. It
        is empty before the first call.
        """
        raise NotImplementedError("override the fixture `opened` to return what opens the store")

    @pytest.fixture
    def decider(self, opened: Opens, seed: int) -> Iterator[Deciders]:
        """Makes deciders on the store, which are closed at the end."""
        made: list[Decider] = []

        def make(prior: LivePrior | None = None, **options: Any) -> Decider:
            settings = {"horizon": 60, "seed": seed, "propensities": False, **options}
            made.append(Decider(prior, ThompsonSampling(), store=opened(), **settings))
            return made[-1]

        yield make
        for each in made:
            each.close()

    @staticmethod
    def state(decider: Decider, task: str) -> bytes:
        """Bytes of a task's statistics; they are what its log sums up to."""

        def look(session: Session) -> bytes:
            found = known(session, task)
            fold = decider.operations.fold(found.version)
            kept = fold.encode(found.state)
            assert kept == fold.encode(decider.operations.folded(session, found))
            return bytes(kept)

        return decider.store.look(look)

    # -- what was acknowledged stays

    @pytest.mark.parametrize("made", [beta, gaussian], ids=["beta", "gaussian"])
    @pytest.mark.parametrize("propensities", [False, True], ids=["quick", "propensities"])
    def test_everything_survives_reopening(
        self, decider: Deciders, made: Makes, propensities: bool, seed: int
    ) -> None:
        """A decider that is closed and opened again all the time decides as one that runs through,
        and its decisions can be made again bit for bit.
        """
        through = Decider(
            made(), ThompsonSampling(), horizon=60, seed=seed, propensities=propensities
        )
        rng = np.random.default_rng(seed)
        late = []
        for day in range(3):
            one = decider(made() if day == 0 else None, propensities=propensities)
            for pull in range(6):
                for task in ("a", "b"):
                    choice = one.decide(task)
                    assert choice == through.decide(task)
                    late.append((choice.token, float(rng.random() < 0.5)))
                if pull % 3:
                    for token, value in late:
                        assert one.reward(token, value) == through.reward(token, value)
                    late = []
            one.close()
        last = decider(None, propensities=propensities)
        for task in ("a", "b"):
            assert self.state(last, task) == self.state(through, task)
            assert last.replay(task) == []
        assert last.decide("a") == through.decide("a")

    def test_contexts_survive_reopening(self, decider: Deciders, seed: int) -> None:
        """Features are kept to the last bit."""
        rng = np.random.default_rng(seed)
        one = decider(linear())
        for _ in range(8):
            choice = one.decide("a", context=rng.normal(size=(3, 2)))
            one.reward(choice.token, rng.normal())
        before = self.state(one, "a")
        one.close()
        again = decider()
        assert self.state(again, "a") == before
        assert again.replay("a") == []
        assert one.operations.settings == again.operations.settings

    def test_replay_notices_another_decision(self, decider: Deciders) -> None:
        """The control: with the random numbers of another task, the log does not come out."""
        one = decider(beta())
        for _ in range(30):
            one.decide("a")

        def other(session: Session) -> list[int]:
            task = known(session, "a")
            before, task.key = task.key, task.key ^ 1
            try:
                return one.operations.replay(session, "a")
            finally:
                task.key = before

        assert one.replay("a") == []
        assert one.store.look(other)

    def test_names_are_taken_as_they_are(self, decider: Deciders) -> None:
        """Tasks, units and requests may be called anything."""
        one = decider(beta())
        for name in HOSTILE:
            choice = one.decide(name, unit=name, request=name)
            assert one.reward(choice.token, 1.0) == "counted"
            assert one.decide(name, unit=name).repeated
        one.close()
        again = decider()
        assert again.store.names() == list(HOSTILE)
        for name in HOSTILE:
            assert again.decide(name, request=name).step == 1
            assert again.replay(name) == []
            assert again.delete(name) == 1
        for token in ("1.00000000.\x00", "1.00000000.\ud800", "1.00000000." + "n" * 10_000):
            with pytest.raises(NotFound):
                again.reward(token, 1.0)

    # -- repeats

    def test_a_retried_request_gets_the_first_answer(self, decider: Deciders) -> None:
        """Also after reopening, and whatever happened since."""
        one = decider(beta(), propensities=True)
        first = one.decide("a", request="r")
        batch = one.allocate("a", 7, request="s")
        assert one.record("a", "red", 5, 2.0, request="t") == "counted"
        one.close()
        again = decider(propensities=True)
        again.reward(first.token, 1.0)
        assert again.decide("a", request="r") == replace(first, repeated=True)
        assert again.allocate("a", 7, request="s") == replace(batch, repeated=True)
        assert again.record("a", "red", 5, 2.0, request="t") == "repeated"
        with pytest.raises(Conflict):
            again.record("a", "red", 5, 2.0, request="r")
        for used in "st":
            with pytest.raises(Conflict):
                again.decide("a", request=used)
        assert again.store.size().decisions == 2
        assert again.decide("b", request="r").step == 1, "requests are those of a task"

    def test_a_unit_keeps_its_decision(self, decider: Deciders) -> None:
        """In each task, also after reopening; a repeat is not another pull."""
        one = decider(beta(), propensities=True)
        first = {unit: one.decide("a", unit=unit) for unit in "uvw"}
        one.close()
        again = decider(propensities=True)
        for unit, choice in first.items():
            assert again.decide("a", unit=unit) == replace(choice, repeated=True)
        assert again.decide("b", unit="u").task == "b"
        assert [each.steps for each in again.store.tasks()] == [1, 3]

    def test_a_reward_counts_once(self, decider: Deciders) -> None:
        """The same again changes nothing, another one is refused, a correction replaces it."""
        one = decider(gaussian())
        token = one.decide("a").token
        assert one.reward(token, 0.1) == "counted"
        once = self.state(one, "a")
        assert one.reward(token, 0.1) == "repeated"
        with pytest.raises(Conflict):
            one.reward(token, 0.3)
        one.close()
        again = decider()
        assert again.reward(token, 0.1) == "repeated"
        with pytest.raises(Conflict):
            again.reward(token, 0.3)
        assert self.state(again, "a") == once
        assert again.reward(token, 0.3, correct=True) == "corrected"
        assert again.reward(token, 0.3) == "repeated"
        kinds = [each.kind for each in again.store.look(lambda session: session.events("a"))]
        assert kinds == ["reward", "correction"]
        assert self.state(again, "a") != once
        assert again.reward(token, 0.1, correct=True) == "corrected"
        assert self.state(again, "a") == once
        assert again.replay("a") == []

    # -- order

    @pytest.mark.parametrize("made", [beta, gaussian], ids=["beta", "gaussian"])
    def test_the_order_of_rewards_does_not_matter(
        self, decider: Deciders, made: Makes, seed: int
    ) -> None:
        """Late, permuted and repeated rewards add up to what prompt ones do: counts bit for bit,
        real rewards to 1e-12.
        """
        one = decider(made())
        rng = np.random.default_rng(seed)
        arms = rng.choice(ARMS, 40)
        values = rng.normal(size=40) if made is gaussian else (rng.random(40) < 0.4) * 1.0
        for arm, value in zip(arms, values, strict=True):
            one.reward(one.decide("prompt", available=[str(arm)]).token, float(value))
        tokens = [one.decide("late", available=[str(arm)]).token for arm in arms]
        order = [*rng.permutation(40), *rng.permutation(40)]
        said = [one.reward(tokens[each], float(values[each])) for each in order]
        assert said == ["counted"] * 40 + ["repeated"] * 40
        prompt, late = (np.frombuffer(self.state(one, task)) for task in ("prompt", "late"))
        if made is beta:
            np.testing.assert_array_equal(late, prompt)
        else:
            np.testing.assert_allclose(late, prompt, rtol=1e-12, atol=1e-12)
        assert one.replay("late") == one.replay("prompt") == []

    # -- what is refused

    def test_what_is_refused_leaves_nothing(self, decider: Deciders) -> None:
        """Not a task, not an arm, not a number."""
        one = decider(ExchangeableBetaPrior(0.3, 8.0), floor=0.2)
        token = one.decide("a", available=["x", "y"], unit="u", request="r").token
        one.reward(token, 1.0)
        one.decide("closed", available=["x"])
        one.close("closed")
        before = dump(one.store, one.operations.fold)
        refused: list[Callable[[], object]] = [
            lambda: one.decide("new"),
            lambda: one.decide("new", available=[]),
            lambda: one.decide("new", available=["x", "x"]),
            lambda: one.decide("new", available=list("abcdefgh")),  # floors of more than 1
            lambda: one.decide("new", available=["x"], context=[[1.0]]),
            lambda: one.decide("a", available=["z"], context=[[1.0]]),
            lambda: one.decide("a", available=list("abcdefgh")),
            lambda: one.allocate("new", 3, available=list("abcdefgh")),
            lambda: one.allocate("a", 3, available=list("abcdefgh")),
            lambda: one.allocate("a", 3, request="r"),
            lambda: one.decide("closed"),
            lambda: one.reward(token, 0.0),
            lambda: one.reward(token, 0.5, correct=True),
            lambda: one.reward("2" + token[1:], 1.0),
            lambda: one.reward(token + "x", 1.0),
            lambda: one.record("a", "nobody", 2, 1.0),
            lambda: one.record("a", "x", 2, 3.0),
            lambda: one.record("nowhere", "x", 2, 1.0),
            lambda: one.close("nowhere"),
        ]
        for work in refused:
            with pytest.raises(ValueError, match=r"\w"):
                work()
            assert dump(one.store, one.operations.fold) == before
        assert one.replay("a") == []
        assert one.store.names() == ["a", "closed"]

    def test_what_is_refused_does_not_harm_others(self, decider: Deciders) -> None:
        """At the same time, on the same task."""
        one = decider(beta())
        tokens = [one.decide("a").token for _ in range(40)]

        def send(place: int) -> str:
            try:
                return one.reward(tokens[place // 2], 1.0 if place % 2 else -1.0)
            except ValueError:
                return "refused"

        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(send, range(80)))
        assert said == ["refused", "counted"] * 40
        assert np.frombuffer(self.state(one, "a")).sum() == 80.0, "40 pulls, 40 successes"

    def test_an_operation_that_fails_half_way_leaves_nothing(self, decider: Deciders) -> None:
        """Of a durable store: whatever it wrote before."""
        one = decider(beta())
        if not one.store.durable:
            return
        one.decide("a")
        before = dump(one.store, one.operations.fold)

        def work(session: Session) -> None:
            one.operations.decide(session, Decide("a"), 0.0)
            one.operations.decide(session, Decide("b", None, None, "u", "r"), 0.0)
            one.operations.record(session, Record("a", "red", 5, 2.0), 0.0)
            raise KeyError("half way")

        def fail(place: int) -> None:
            with pytest.raises(KeyError, match="half way"):
                one.store.run(work, Wanted(["a", "b"]))

        for whole in (False, True):
            with pytest.raises(KeyError, match="half way"):
                one.store.run(work, Wanted(["a", "b"], whole=whole))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(fail, range(16)))
        assert dump(one.store, one.operations.fold) == before
        assert one.decide("b", unit="u").step == 1

    # -- at the same time

    def test_threads_take_turns(self, decider: Deciders) -> None:
        """Eight threads on one task: some order explains everything."""
        one = decider(gaussian())
        start = threading.Barrier(8)

        def play(thread: int) -> list[int]:
            rng = np.random.default_rng(thread)
            steps = []
            start.wait()
            for pull in range(12):
                choice = one.decide("a", request=f"{thread} {pull}")
                steps.append(choice.step)
                one.reward(choice.token, float(rng.normal()))
                assert one.decide("a", request=f"{thread} {pull}").step == choice.step
                one.decide(f"b {pull}", unit="the same")
            return steps

        with ThreadPoolExecutor(8) as pool:
            steps = sorted(step for each in pool.map(play, range(8)) for step in each)
        assert steps == list(range(1, 97))
        assert one.replay("a") == []
        self.state(one, "a")
        events = one.store.look(lambda session: session.events("a"))
        assert [each.number for each in events] == list(range(1, 97))
        assert sorted(each.step or 0 for each in events) == steps
        assert one.store.size() == (13, 0, 96 + 12, 96)

    def test_one_reward_sent_by_all(self, decider: Deciders) -> None:
        """With other values: one of them counts."""
        one = decider(gaussian())
        token = one.decide("a").token

        def send(value: float) -> str:
            try:
                return str(one.reward(token, value))
            except Conflict:
                return "refused"

        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(send, [0.1, 0.2, 0.3, 0.4] * 8))
        assert said.count("counted") == 1
        assert said.count("repeated") == 7
        (event,) = one.store.look(lambda session: session.events("a"))
        assert [0.1, 0.2, 0.3, 0.4][said.index("counted") % 4] == event.value

    # -- units that are deleted

    @pytest.mark.parametrize("made", [gaussian, linear], ids=["plain", "contexts"])
    def test_a_deleted_unit_leaves_the_others(
        self, decider: Deciders, made: Makes, seed: int
    ) -> None:
        """Its name is gone; decisions about others can still be made again."""
        one = decider(made())
        rng = np.random.default_rng(seed)

        def context() -> FloatArray | None:
            return rng.normal(size=(3, 2)) if made is linear else None

        for pull in range(12):
            unit = f"unit {pull % 4}"
            asked = {"unit": unit, "request": f"{unit} {pull}"}
            for task in "ab":
                choice = one.decide(task, context=context(), **asked)
                if not choice.repeated:
                    one.reward(choice.token, float(rng.normal()))
        before = self.state(one, "a")
        rows = one.store.look(lambda session: session.of_unit("unit 2"))
        assert [(task.name, steps) for task, steps in rows] == [("a", [3]), ("b", [3])]
        assert one.delete("unit 2") == 2
        assert one.delete("unit 2") == 0
        one.close()
        again = decider()
        assert "unit 2" not in str(dump(again.store, again.operations.fold))
        assert "unit 1" in str(dump(again.store, again.operations.fold))
        assert self.state(again, "a") == before
        assert again.replay("a") == []
        assert not again.decide("a", unit="unit 2", context=context()).repeated
        assert again.decide("a", unit="unit 1", context=context()).repeated

    # -- late and missing rewards

    def test_pulls_are_closed_after_their_window(self, decider: Deciders) -> None:
        """With the default that was asked for; and a late reward is told so."""
        now = [0.0]
        one = decider(beta(), window=10.0, missing=0.0, clock=lambda: now[0])
        tokens = []
        for each in range(6):
            now[0] = float(each)
            tokens.append(one.decide(f"task {each % 2}").token)
        one.allocate("task 0", 5)
        one.reward(tokens[1], 1.0)
        store = one.store
        assert sorted(store.outstanding(4.0, 10)) == [("task 0", 1), ("task 0", 2), ("task 1", 2)]
        assert len(store.outstanding(99.0, 2)) == 2
        now[0] = 12.5
        assert one.expire() == 2
        with pytest.raises(TooLate):
            one.reward(tokens[0], 1.0)
        assert store.outstanding(13.0, 10) != []
        now[0] = 13.5
        with pytest.raises(TooLate):
            one.reward(tokens[3], 1.0)
        events = store.look(lambda session: session.events("task 1"))
        assert [(each.kind, each.value) for each in events] == [("reward", 1.0), ("expired", 0.0)]
        assert one.reward(tokens[3], 1.0, correct=True) == "corrected"
        self.state(one, "task 1")
        assert store.outstanding(4.5, 10) == [("task 0", 3)]

    # -- priors, settings, values, keys, lists

    def test_versions(self, decider: Deciders, opened: Opens) -> None:
        """Numbers are unique, whoever proposes at the same time; running tasks keep theirs."""
        one = decider(beta())
        one.decide("old")
        others = [BetaPrior([1.0 + each, 2.0, 2.0], 9.0, names=ARMS) for each in range(16)]
        with ThreadPoolExecutor(8) as pool:
            numbers = list(pool.map(one.propose, others))
        assert sorted(numbers) == list(range(2, 18))
        for number, prior in zip(numbers, others, strict=True):
            assert one.prior(number) == prior
        one.accept(numbers[3])
        one.decline(numbers[4])
        one.close()
        again = decider()
        assert again.version == numbers[3]
        assert again.decide("new").version == numbers[3]
        assert again.decide("old").version == 1
        status = {each.number: each.status for each in again.versions()}
        assert status[numbers[4]] == "declined"
        assert list(status.values()).count("proposed") == 14
        story = {"ß": [1, 2.5, None], "deep": {"a": "b"}}
        assert again.propose(beta(), story) == 18
        assert again.versions()[-1].story == story
        store = opened()
        try:
            with pytest.raises(Conflict):
                store.put_version(Version(1, "{}", "accepted", 0.0, 0.0, {}))
        finally:
            store.close()

    def test_settings_values_and_keys(self, opened: Opens) -> None:
        """What is put is found again."""
        store = opened()
        assert store.add_settings("one") == 1
        assert store.add_settings("two") == 2
        assert store.add_settings("one") == 1
        assert store.value("x") is None
        store.put_value("x", "1")
        store.put_value("x", "ß")
        key = Key("who", "abc", ("read", "admin"), 1.5)
        store.put_key(key)
        store.put_key(Key("another", "def", (), 2.5, None, 10.0))
        store.put_key(key._replace(ended=3.5))
        store.close()
        again = opened()
        try:
            assert again.settings() == ["one", "two"]
            assert again.value("x") == "ß"
            assert again.keys() == [
                Key("another", "def", (), 2.5, None, 10.0),
                key._replace(ended=3.5),
            ]
        finally:
            again.close()

    def test_lists_and_sizes(self, decider: Deciders) -> None:
        """Newest first, page by page."""
        one = decider(beta())
        store = one.store
        assert store.size() == (0, 0, 0, 0)
        names = [f"task {each}" for each in range(7)]
        for name in names:
            choice = one.decide(name)
        one.reward(choice.token, 1.0)
        one.reward(choice.token, 0.0, correct=True)
        one.record("task 0", "red", 3, 1.0)
        one.allocate("task 0", 4)
        for name in names[:3]:
            one.close(name)
        assert store.size() == (4, 3, 8, 2)
        assert store.names() == names
        assert store.names(closed=True) == names[:3]
        assert [each.name for each in store.tasks()] == names[::-1]
        assert [each.name for each in store.tasks(closed=False)] == names[:2:-1]
        assert [each.name for each in store.tasks(most=2)] == names[:4:-1]
        assert [each.name for each in store.tasks(most=2, after="task 5")] == ["task 4", "task 3"]
        assert [each.name for each in store.tasks(closed=True, after="task 2")] == names[1::-1]
        assert store.tasks(after="nobody") == []
        newest = store.tasks(most=1)[0]
        assert newest[:5] == ("task 6", 1, ARMS, 1, 2)
        assert (newest.closed, store.tasks(closed=True)[0].closed is None) == (None, False)

    def test_arms_of_its_own(self, decider: Deciders) -> None:
        """A task may have its own arms, and more of them later."""
        one = decider(ExchangeableBetaPrior(0.3, 8.0))
        for pull in range(9):
            names = ["x", "y", "ß \N{SNOWMAN}'"][: 1 + pull // 3]
            choice = one.decide("a", available=names)
            assert one.reward(choice.token, float(pull % 2)) == "counted"
        one.close()
        again = decider()
        assert again.store.tasks()[0].arms == ("x", "y", "ß \N{SNOWMAN}'")
        assert again.replay("a") == []
        again.reward(again.decide("a").token, 1.0)
        self.state(again, "a")

    def test_too_much_to_count_is_refused(self, decider: Deciders) -> None:
        """And harms nobody."""
        one = decider(beta())
        one.decide("a")
        with pytest.raises(ArgumentError) as caught:
            one.record("a", "red", 10**30, 1.0)
        assert caught.value.argument == "pulls"
        with pytest.raises(Refused):
            one.reward("999999999999999999.00000000.a", 1.0)
        assert one.decide("a").step == 2

    def test_nothing_waits_behind_one_that_looks(self, decider: Deciders) -> None:
        """A durable store takes rewards while somebody reads, who sees what held at first."""
        one = decider(beta())
        token = one.decide("a").token
        if not one.store.durable:
            return

        def look(session: Session) -> list[Event]:
            assert session.events("a") == []
            assert one.reward(token, 1.0) == "counted"
            return list(session.events("a"))

        assert one.store.look(look) == []
        assert one.reward(token, 1.0) == "repeated"
