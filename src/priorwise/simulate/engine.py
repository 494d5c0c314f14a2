"""Which loop runs a block of tasks, and how blocks are spread over threads."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from priorwise.core.progress import running
from priorwise.core.protocols import Policy, Prior, Seen
from priorwise.core.runs import Block
from priorwise.core.streams import Purpose, Streams
from priorwise.core.tiles import LANES, CompiledPolicy, CompiledPrior, FamilyTiles
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.simulate.loop import run_numpy

Engine = Literal["auto", "compiled", "numpy"]

COMPILED_BLOCK = 256 * LANES
NUMPY_BLOCK = 32 * LANES
PULLS_PER_BLOCK = 1 << 18
NUMPY_ENTRIES = 1 << 23  # numbers in the beliefs of a block, which NumPy copies at every step


@dataclass(frozen=True)
class Plan:
    """How to run one policy on blocks of tasks."""

    engine: str  # "compiled" or "numpy"
    run: Callable[..., Block]


@runtime_checkable
class FollowsFirstPulls(Protocol):
    """A prior that consecutive tasks hold, each its own: it follows from the first pulls of the
    tasks before, which must not read it.
    """

    before: Prior
    """What first pulls, which do not read it, are played with."""

    def belief(self, tasks: int) -> Any:
        """Return a belief that refuses to be read."""
        ...

    def given_first_pulls(self, actions: IntArray, rewards: FloatArray) -> Prior:
        """Return what the tasks hold, one first pull each, in order."""
        ...


def plan(
    prior: Prior, believed: Prior, policy: Policy, horizon: int, *, masked: bool, engine: Engine
) -> Plan:
    """Take the compiled loop if prior, believed prior and policy all provide tile functions, the
    NumPy loop otherwise.
    """
    _check_engine(engine)
    if isinstance(believed, FollowsFirstPulls):
        return _after_first_pulls(prior, believed, policy, horizon, masked=masked, engine=engine)
    if engine != "numpy":
        tiled = policy if isinstance(policy, CompiledPolicy) else None
        uses = frozenset() if tiled is None else tiled.uses
        belief = _tiles(believed, horizon, uses)
        environment = belief if believed is prior else _tiles(prior, horizon, frozenset())
        rule = tiled.tiles(belief, horizon, masked) if belief and tiled else None
        if environment and environment.first_rows is None and belief and rule:
            from priorwise.kernels.loop import run_compiled

            return Plan("compiled", _bind(run_compiled, environment, belief, rule))
        if engine == "compiled":
            role, value = (
                ("policy", policy)
                if environment and belief
                else ("prior", believed if environment else prior)
            )
            raise ValueError(
                f"no compiled loop: the {role} {type(value).__name__} has no tile functions; use "
                "engine='auto' or 'numpy'"
            )
    return Plan("numpy", _bind(run_numpy, prior, believed, policy))


def _after_first_pulls(
    prior: Prior,
    believed: FollowsFirstPulls,
    policy: Policy,
    horizon: int,
    *,
    masked: bool,
    engine: Engine,
) -> Plan:
    """Play the first pulls of a block by themselves, then everything with the prior that follows
    from them.
    """
    # refused here if it reads the belief
    seen, rng = Seen(1, horizon, prior.arms), Streams(0, np.zeros(1, np.uint64))
    policy.act(believed.belief(1), seen, rng.at(Purpose.POLICY, 1))

    def planned(held: Prior, pulls: int) -> Plan:
        return plan(prior, held, policy, pulls, masked=masked, engine=engine)

    def run(**block: Any) -> Block:
        first = planned(believed.before, 1).run(**block | {"horizon": 1, "keep": True}).columns
        assert first is not None
        held = believed.given_first_pulls(first.actions[0], first.rewards[0])
        return planned(held, horizon).run(**block)

    return Plan(planned(believed.before, horizon).engine, run)


def _tiles(prior: Prior, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
    return prior.tiles(horizon, uses) if isinstance(prior, CompiledPrior) else None


class Clock:
    """Plans that measure how long each policy's first block takes."""

    def __init__(self, plans: dict[str, Plan]) -> None:
        """Wrap the plans; nothing else about them changes."""
        self._spent = dict.fromkeys(plans, 0.0)
        self._engines = {name: each.engine for name, each in plans.items()}
        self.plans = {
            name: Plan(each.engine, self._timed(name, each.run)) for name, each in plans.items()
        }

    def _timed(self, name: str, run: Callable[..., Block]) -> Callable[..., Block]:
        def timed(**block: Any) -> Block:
            begun = time.perf_counter()
            done = run(**block)
            if block["first"] == 0:
                self._spent[name] = running(begun)
            return done

        return timed

    def first_block(self, block: int) -> int:
        """Tasks that tell how long a block takes: one tile of the compiled loop; in NumPy few tasks
        take as long as many.
        """
        return block if "numpy" in self._engines.values() else min(block, LANES)

    @property
    def slowest(self) -> str:
        """The policy that took longest."""
        return max(self._spent, key=self._spent.__getitem__)

    def share(self, name: str) -> float:
        """Its share of the time."""
        return self._spent[name] / max(sum(self._spent.values()), 1e-300)

    def left(self, done: int, tasks: int, threads: int) -> float:
        """Seconds that the other tasks will take, after the first ones; only compiled blocks run in
        threads.
        """
        spread = {"compiled": threads, "numpy": 1}
        return (
            sum(spent / spread[self._engines[name]] for name, spent in self._spent.items())
            * (tasks - done)
            / done
        )


def _check_engine(engine: Any) -> None:
    if engine not in get_args(Engine):
        raise ValueError(f"engine must be one of {', '.join(get_args(Engine))}, got {engine!r}")


def run_held(
    prior: Prior,
    held: Sequence[Prior],
    policy: Policy,
    *,
    seed: int,
    first: int,
    tasks: int,
    horizon: int,
    begins: Sequence[int],
    engine: Engine = "auto",
) -> list[FloatArray]:
    """Total rewards of one policy that holds each of several priors, from each one's first task
    ``first + begin`` on.

    Each is, bit for bit, what a run by itself gives. In the compiled loop, priors of one family
    share what does not depend on them: environments, signals, and the policy's normals.
    """
    _check_engine(engine)
    if len(held) != len(begins):
        raise ValueError(
            f"begins must have one entry for each held prior, {len(held)}, got {len(begins)}"
        )
    if len(held) > 1 and engine != "numpy" and isinstance(policy, CompiledPolicy):
        from priorwise.kernels.loop import run_alike, run_beliefs

        environment = _tiles(prior, horizon, frozenset())
        beliefs = [_tiles(each, horizon, policy.uses) for each in held]
        alike = [
            each
            for each in beliefs
            if each is not None and beliefs[0] is not None and run_alike(beliefs[0], each)
        ]
        rule = (
            policy.tiles(alike[0], horizon, False)
            if environment and len(alike) == len(held)
            else None
        )
        if environment and environment.first_rows is None and rule:
            begin = min(begins)
            block = {
                "seed": seed,
                "first": first + begin,
                "tasks": tasks - begin,
                "horizon": horizon,
            }
            totals = run_beliefs(
                environment, alike, rule, begins=[each - begin for each in begins], **block
            )
            return [row[each - begin :] for row, each in zip(totals, begins, strict=True)]
    out = []
    for each, begin in zip(held, begins, strict=True):
        chosen = plan(prior, each, policy, horizon, masked=False, engine=engine)
        block = {"seed": seed, "first": first + begin, "tasks": tasks - begin, "horizon": horizon}
        out.append(chosen.run(**block, available=None, keep=False).totals)
    return out


def _bind(function: Callable[..., Block], *roles: Any) -> Callable[..., Block]:
    return lambda **block: function(*roles, **block)


def entries(believed: Prior) -> int:
    """Numbers that the belief about one task may hold: those of its arrays, or of its prior's, or
    one for each pair of arms.
    """
    arrays = [
        sum(value.size for value in vars(each).values() if isinstance(value, np.ndarray))
        for each in (believed, believed.belief(1))
        if hasattr(each, "__dict__")
    ]
    return max(believed.arms**2, *arrays, 1)


def block_size(horizon: int, largest_belief: int, engines: set[str]) -> int:
    """Tasks in a block: whole tiles, fewer where tasks are long or, in NumPy, where beliefs are
    large.
    """
    largest = (
        min(NUMPY_BLOCK, NUMPY_ENTRIES // largest_belief) if "numpy" in engines else COMPILED_BLOCK
    )
    return max(LANES, min(largest, PULLS_PER_BLOCK // horizon) // LANES * LANES)


_most_threads: ContextVar[int | None] = ContextVar("most_threads", default=None)


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Let simulations inside use so many threads unless they are told otherwise; for workers that
    share a machine.
    """
    token = _most_threads.set(count)
    try:
        yield
    finally:
        _most_threads.reset(token)


def available_threads() -> int:
    """Processors this process may use, and is allowed to here."""
    processors = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(processors, _most_threads.get() or processors)


def run_blocks(
    plans: dict[str, Plan],
    *,
    seed: int,
    tasks: int,
    horizon: int,
    available: BoolArray | None,
    keep: bool,
    threads: int,
    block: int,
    first: int | None = None,
) -> Iterator[dict[str, Block]]:
    """Yield each block by policy, in the order of the tasks; the first one may have fewer, to see
    how long it takes.

    Compiled blocks run in ``threads`` threads, ahead of those in NumPy, which run here one after
    the other: a user's policy need not be safe to call from several threads.
    """
    begin = block if first is None else first
    compiled = {name: each for name, each in plans.items() if each.engine == "compiled"}
    literal = {name: each for name, each in plans.items() if each.engine == "numpy"}

    def run(chosen: dict[str, Plan], first: int) -> dict[str, Block]:
        count = min(begin if first == 0 else block, tasks - first)
        mask = None if available is None else available[first : first + count]
        arguments = {
            "seed": seed,
            "first": first,
            "tasks": count,
            "horizon": horizon,
            "available": mask,
            "keep": keep,
        }
        return {name: each.run(**arguments) for name, each in chosen.items()}

    starts = [0, *range(begin, tasks, block)]
    if threads == 1 or not compiled or len(starts) == 1:
        for first in starts:
            yield run(plans, first)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[int, Future[dict[str, Block]]]] = deque()
        try:
            for first in starts:
                waiting.append((first, pool.submit(run, compiled, first)))
                if len(waiting) > threads:
                    begun, future = waiting.popleft()
                    yield future.result() | run(literal, begun)
            for begun, future in waiting:
                yield future.result() | run(literal, begun)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
