"""Blocks of tasks, spread over threads, and how long they take."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from priorwise.core.progress import running
from priorwise.core.tiles import LANES
from priorwise.core.trajectories import Block
from priorwise.simulate.engine import Runner

P = TypeVar("P")
R = TypeVar("R")


class _Worker(threading.local):
    """Whether the work of this thread is to stop."""

    stop = threading.Event()


_worker = _Worker()


def run_blocks(
    runners: dict[str, Runner], parts: list[dict[str, Any]], threads: int
) -> Iterator[dict[str, Block]]:
    """Yield each block by policy, in the order of the tasks.

    Compiled blocks run in ``threads`` threads, ahead of those in NumPy, which run here one after
    the other: a user's policy need not be safe to call from several threads.
    """
    compiled = {name: each for name, each in runners.items() if each.engine == "compiled"}
    literal = {name: each for name, each in runners.items() if each.engine == "numpy"}
    if threads == 1 or not compiled or len(parts) == 1:
        for part in parts:
            blocks: dict[str, Block] = {}
            for name, each in runners.items():
                if _worker.stop.is_set():
                    raise CancelledError  # nobody reads the result
                blocks[name] = each.run(**part)
            yield blocks
        return
    ahead = in_order(lambda part: next(run_blocks(compiled, [part], 1)), parts, threads)
    for part, block in zip(parts, ahead, strict=True):
        yield block | next(run_blocks(literal, [part], 1))


def in_order(work: Callable[[P], R], parts: Iterable[P], threads: int) -> Iterator[R]:
    """Do the work of each part in a pool of threads, and yield results in the order of the parts.

    At most one part more than there are threads waits, so results do not pile up. One thread is
    this one. After an error or Ctrl-C, each thread stops once its policy has played its block.
    """
    if threads == 1:
        yield from map(work, parts)
        return
    stop = threading.Event()
    with ThreadPoolExecutor(
        threads, initializer=_worker.__setattr__, initargs=("stop", stop)
    ) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for part in parts:
                waiting.append(pool.submit(work, part))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


class Clock:
    """Runners that measure how long each policy's first block takes."""

    def __init__(self, runners: dict[str, Runner]) -> None:
        """Wrap the runners; nothing else about them changes."""
        self._spent = dict.fromkeys(runners, 0.0)
        self._engines = {name: each.engine for name, each in runners.items()}
        self.runners = {
            name: Runner(each.engine, self._timed(name, each.run)) for name, each in runners.items()
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
        """Tasks that show how long a block takes: one tile of the compiled loop; in NumPy few tasks
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
        first = sum(spent / spread[self._engines[name]] for name, spent in self._spent.items())
        return first * (tasks - done) / done
