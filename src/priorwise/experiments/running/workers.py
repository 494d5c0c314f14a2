"""Where blocks run: processes on this machine, or a Dask cluster through the same joblib call."""

import os
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Final, final

from priorwise.experiments.experiment import WARM_UP, Arrays, Block, Experiment, WarmsUp
from priorwise.experiments.running import Where
from priorwise.experiments.running.store import Finished, code_stamp
from priorwise.simulate.sizes import at_most_threads, available_threads

SECONDS_BETWEEN_LOOKS: Final = 1.0


class WorkersError(RuntimeError):
    """The processes that compute could not be reached, differ from this one, or died."""


@final
@dataclass(frozen=True)
class Call:
    """A block to run; a value that travels to a worker."""

    experiment: Experiment
    block: Block
    seed: int
    stamp: str  # of the code that asks


def run_block(call: Call) -> tuple[Block, Finished]:
    """Run a block here, if this is the code that was asked for."""
    if code_stamp() != call.stamp:
        raise WorkersError(
            "a worker has other sources or versions of priorwise, numpy, scipy, numba or Python "
            "than this process; install the same on both, and start again"
        )
    from numba.core.event import install_timer

    start = time.perf_counter()
    spent: list[float] = []
    arrays: Arrays = {}
    try:
        # blocks are the parallelism
        with install_timer("numba:compile", spent.append), at_most_threads(1):
            if call.block == WARM_UP and isinstance(call.experiment, WarmsUp):
                call.experiment.warm_up(call.seed)
            else:
                arrays = call.experiment.run(call.block, call.seed)
    except Exception as error:
        which = f"the experiment {call.experiment.name}, seed {call.seed}"
        error.add_note(f"in {call.block} of {which}")
        raise
    return call.block, Finished(arrays, time.perf_counter() - start - sum(spent), sum(spent))


@final
@dataclass(frozen=True)
class Workers:
    """Processes that run blocks, in any order."""

    about: str
    """For people: how many, and where."""
    ahead: str  # how many blocks are handed out before one is done, in joblib's words
    count: int  # how many blocks run at once

    def run(self, calls: Iterable[Call]) -> Generator[tuple[Block, Finished], None, None]:
        """Yield blocks as they finish. The call is the same wherever they run."""
        from joblib import Parallel, delayed

        parallel = Parallel(batch_size=1, pre_dispatch=self.ahead, return_as="generator_unordered")
        with interrupts_waiting():
            running = parallel(delayed(run_block)(call) for call in calls)
        with closing(running), _deaths_explained():
            yield from running


def start_workers(
    where: Where, jobs: int | None, scheduler: str | None
) -> AbstractContextManager[Workers]:
    """Start processes, or connect to a cluster."""
    if where == "local":
        return _local(jobs or available_threads())
    from priorwise.experiments.running.cluster import dask_workers

    return dask_workers(jobs or available_threads(), scheduler)


@contextmanager
def _local(jobs: int) -> Iterator[Workers]:
    from joblib import parallel_config

    about = f"{jobs} processes on this machine" if jobs > 1 else "one process on this machine"
    # One thread in each process: blocks are the parallelism. Arguments are small: no files for
    # them.
    settings = {"inner_max_num_threads": 1, "max_nbytes": None}
    start = {"initializer": _obey_parent, "initargs": (os.getpid(),)}
    with parallel_config("loky", n_jobs=jobs, **settings, **start):
        yield Workers(about, "2 * n_jobs", jobs)


def _obey_parent(parent: int) -> None:
    """Leave interruptions to the parent, and end when it has been killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    leave_interrupts_to_parent()
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def interrupts_waiting() -> Iterator[None]:
    """Let an interruption wait while processes are started, which then never see one: not even
    while they are still importing.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    resource_tracker.ensure_running()  # both unblock signals once they have started
    loky_tracker.ensure_running()
    # inherited by what starts here
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_interrupts_to_parent() -> None:
    """Do nothing at Ctrl-C, which reaches every process of a terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _deaths_explained() -> Iterator[None]:
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        yield
    except BrokenProcessPool as error:
        raise WorkersError(
            "a worker process died, as happens when memory runs out; finished blocks are kept, go "
            "on with fewer jobs"
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        kept = "the Dask cluster gave up, finished blocks are kept"
        raise WorkersError(f"{kept}: {error}") from error
