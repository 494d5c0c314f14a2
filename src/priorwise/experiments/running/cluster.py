"""Blocks on a Dask cluster. Imported only when one is asked for."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final, final

from joblib import parallel_config
from joblib._dask import DaskDistributedBackend

from priorwise.experiments.running import workers
from priorwise.experiments.running.workers import Workers, WorkersError

SECONDS_TO_CONNECT: Final = 10.0


@final
class Backend(DaskDistributedBackend):  # type: ignore[misc]  # joblib has no types
    """Joblib's backend, which by itself waits for ever for a block that the cluster has given up.

    And with a single thread in the cluster joblib would run the blocks in this process: one worker
    may be all there is, or the first to be there.
    """

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Threads of the cluster, and never the 1 that joblib takes for no cluster at all."""
        return max(2, int(super().effective_n_jobs(n_jobs)))

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None
    ) -> Future[Any]:
        """Submit a batch, and report it also when all workers that tried it died."""

        def report(done: Future[Any]) -> None:
            error = done.exception()
            if error is not None and callback is not None:
                callback(error)

        future: Future[Any] = super().submit(func, callback)
        future.add_done_callback(report)
        return future


@contextmanager
def dask_workers(jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """Connect to the cluster, or start one of ``jobs`` worker processes on this machine."""
    try:
        from distributed import Client
    except ImportError:
        raise WorkersError(
            "Dask is not installed; pip install 'priorwise[dask]', or '.[dask]' in a checkout"
        ) from None
    here: dict[str, Any] = {
        "n_workers": jobs,
        "threads_per_worker": 1,
        "silence_logs": logging.ERROR,
    }
    client: Any  # its answers may also be futures
    try:
        if scheduler:
            client = Client(scheduler, timeout=SECONDS_TO_CONNECT)
        else:
            with workers.interrupts_waiting():
                client = Client(dashboard_address="127.0.0.1:0", **here)
    except (OSError, ValueError) as error:
        raise WorkersError(f"no Dask scheduler answers at {scheduler}") from error
    with client, parallel_config(Backend(client=client)):
        try:
            client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
        except TimeoutError:
            start = f"dask worker {client.scheduler.address}"
            raise WorkersError(f"no worker is connected; start one: {start}") from None
        if scheduler is None:
            client.run(workers.leave_interrupts_to_parent)
        threads = sum(client.ncores().values())
        which = f"the Dask cluster at {scheduler}" if scheduler else "a local Dask cluster"
        yield Workers(f"{threads} threads of {which}", "all", threads)
