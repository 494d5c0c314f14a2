"""What a simulation takes, before it starts: posterior draws, and the bytes of its blocks and of
what is kept.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from priorwise.core import sizes, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.tiles import LANES

COMPILED_BLOCK: Final = 256 * LANES
NUMPY_BLOCK: Final = 32 * LANES
PULLS_PER_BLOCK: Final = 1 << 18
NUMPY_ENTRIES: Final = 1 << 23  # numbers in a block's beliefs, which NumPy copies at every step
MOST_THREADS: Final = 4096

KEPT_BYTES: Final = 28
"""Of a kept pull: its action and reward, while blocks are gathered and once more in the result."""


def check_run(
    prior: Any,
    policies: Iterable[Any],
    *,
    horizon: int,
    tasks: int,
    keep: bool = False,
    times: int = 1,
    named: str = "tasks",
    times_named: str = "",
) -> None:
    """Raise an error for a simulation of absurd size, by the names of its arguments.

    Parameters
    ----------
    prior
        The law of the tasks; its number of arms matters to policies that look at each.
    policies
        The policies to run, each on all the tasks.
    horizon, tasks, keep
        As in :func:`~priorwise.simulate.run.simulate`.
    times
        How often all that is run: replicates, plausible priors. It multiplies the work and not the
        memory.
    named, times_named
        What the caller calls ``tasks`` and ``times``.

    """
    sizes.check_numbered("horizon", horizon)
    run, arms = list(policies), int(prior.arms)
    size = f"{sizes.amount(tasks)} with {sizes.amount(horizon)} pulls"
    argument, work, cure = named, size, f"lower {named} or horizon"
    if times_named:
        argument, work = times_named, f"{sizes.amount(times)} for {named} of {size}"
        cure = f"lower {times_named}, {named} or horizon"
    draws = [sizes.draws_per_pull(policy, arms) for policy in run]
    if max(draws) > 1:
        costly = run[draws.index(max(draws))]
        work, cure = f"{work} of {costly}", f"{cure}, or the draws of the policy"
    pulls = sizes.as_float(times) * sizes.as_float(tasks) * horizon
    sizes.check_work(argument, work, pulls * sum(draws), cure)
    # means and squares of rewards and regrets, of one tile and of all
    reports = 64.0 * (horizon + 1) * len(run)
    sizes.check_memory("horizon", horizon, reports, "lower horizon")
    if keep:
        entries = 16.0 * getattr(prior, "dim", 0)
        kept = (KEPT_BYTES + entries) * sizes.as_float(tasks) * horizon * len(run)
        cure = f"lower {named} or horizon, or leave keep out"
        sizes.check_memory(named, f"{size}, kept,", kept, cure)


def check_block(
    prior: Any, policies: Sequence[Any], *, horizon: int, block: int, belief: int, blocks: int
) -> None:
    """Raise an error for blocks that do not fit: ``belief`` numbers about each of ``block`` tasks,
    ``blocks`` of them at once. ``policies`` are those that run in NumPy.
    """
    rows = 32.0 * horizon / LANES + 32.0 * prior.arms * getattr(prior, "dim", 1)
    if policies:
        rows = 20.0 * horizon + 24.0 * belief
    size = f"{sizes.amount(block)} for {sizes.amount(prior.arms)} arms"
    pulls = f"{size} and {sizes.amount(horizon)} pulls"
    sizes.check_memory("block", pulls, rows * block * blocks, "lower block, horizon or arms")
    cure = "ask for fewer draws, or lower block"
    for policy in policies:
        drawn = 8.0 * sizes.ARRAYS * sizes.drawn_at_once(policy)
        sizes.check_memory("block", f"{size} of {policy}", drawn * prior.arms * block, cure)


def entries(believed: Any, belief: Any) -> int:
    """Numbers that a belief about one task may hold: those of its arrays, or of its prior's, or
    one for each pair of arms.
    """
    most = max(believed.arms**2, 1)
    for each in (believed, belief):
        arrays = vars(each).values() if hasattr(each, "__dict__") else ()
        most = max(most, sum(value.size for value in arrays if isinstance(value, np.ndarray)))
    return most


def block_size(horizon: int, largest_belief: int, engines: set[str]) -> int:
    """Tasks in a block: whole tiles, fewer where tasks are long or, in NumPy, where beliefs are
    large.
    """
    largest = COMPILED_BLOCK
    if "numpy" in engines:
        largest = min(NUMPY_BLOCK, NUMPY_ENTRIES // largest_belief)
    return max(LANES, min(largest, PULLS_PER_BLOCK // horizon) // LANES * LANES)


_most_threads: ContextVar[int | None] = ContextVar("most_threads", default=None)


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Let simulations inside use so many threads by default; for workers that share a machine."""
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


def threads_of(threads: int | None) -> int:
    """Threads that a run takes: those asked for, or all that are available."""
    count = available_threads() if threads is None else validation.count("threads", threads)
    if count > MOST_THREADS:
        raise ArgumentError("threads", f"must be at most {MOST_THREADS:,}", got=count)
    return count
