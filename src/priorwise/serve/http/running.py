"""Starting and stopping the service: warm before the port opens, and done with what it took on
before it ends.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, Literal, final

import numpy as np
import uvicorn
from starlette.types import ASGIApp

from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import Policy
from priorwise.families.registry import families
from priorwise.serve.choosing import LivePrior, dim_of, has_features
from priorwise.serve.decider import Decider
from priorwise.serve.http.limits import Limits
from priorwise.serve.http.logs import Log, take_over
from priorwise.serve.http.metrics import FOLDER
from priorwise.serve.http.protocol import Connection
from priorwise.serve.http.service import Service

GRACE: Final = 8
"""Seconds that requests have to finish once the service is told to stop."""

SWITCHED: Final = 0.0005
"""Seconds that a thread computes before another one may go on. A decision waits about ten times so
long, once after each statement to the store, while a thread computes.
"""


@final
@dataclass(frozen=True)
class Settings:
    """What a process of the service is made from; several processes have the same."""

    prior: LivePrior | None
    policy: Policy
    horizon: int
    seed: int
    store: str | None = None
    propensities: bool = True
    floor: float | Mapping[str, float] = 0.0
    control: tuple[str, float] | None = None
    window: float | None = None
    missing: float | Literal["leave out"] = "leave out"
    open: bool = False
    limits: Limits = field(default_factory=Limits)
    least: str = "info"  # what is logged
    https: bool = False  # whether browsers come by HTTPS, through a proxy
    prefix: str = ""  # before every path, as browsers see them

    def decider(self) -> Decider:
        """Return what decides."""
        return Decider(
            self.prior, self.policy, horizon=self.horizon, seed=self.seed,
            store=self.store, propensities=self.propensities,
            floor=self.floor, control=self.control, window=self.window, missing=self.missing,
        )  # fmt: skip

    def __call__(self) -> Service:
        """Make the application, in the process that it runs in."""
        log = Log(least=self.least)
        take_over(log)
        Connection.limits = self.limits
        _room(self.limits.connections)
        decider = self.decider()
        self._warm(decider)
        prompt()
        log.write("info", "started", process=os.getpid(), open=self.open)
        return Service(
            decider, open=self.open, limits=self.limits, log=log, alone=True, https=self.https,
            prefix=self.prefix,
        )  # fmt: skip

    def _warm(self, decider: Decider) -> None:
        """Decide once in memory, so that all is imported and compiled."""
        families()
        prior = decider.prior()
        arms = decider.operations.arms_of(decider.version)
        context = np.zeros((prior.arms, dim_of(prior))) if has_features(prior) else None
        # a reward of 0, say, need not make sense
        with suppress(ArgumentError), replace(self, prior=prior, store=None).decider() as trial:
            for _ in range(2):
                made = trial.decide("warm", ("a", "b") if arms is None else None, context)
                trial.reward(made.token, 0.0)


def _room(connections: int) -> None:
    """Ask for as many open files as there may be connections, where the system has such a limit."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def prompt() -> None:
    """Let requests wait less for other threads and for the garbage collector of this process."""
    sys.setswitchinterval(SWITCHED)
    gc.collect()
    gc.freeze()  # a full collection, for which all wait, looks only at what comes later


def bound(host: str, port: int) -> socket.socket:
    """Take a port; it answers nobody before the service runs."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(kind, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.set_inheritable(True)
    except BaseException:
        made.close()
        raise
    return made


def configured(app: ASGIApp | Settings, limits: Limits, workers: int = 1) -> uvicorn.Config:
    """Return how the HTTP server runs an application, or several that a factory makes."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, Settings),
        workers=workers,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(limits.keep_alive),
        timeout_graceful_shutdown=GRACE,
        backlog=1024,
    )


@final
class Server(uvicorn.Server):
    """A server that ends well when it is told to."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals to stop as what they are, and not raise them once more afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in taken}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def run(
    settings: Settings,
    port: socket.socket,
    workers: int = 1,
    say: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until told to stop; ``say`` hears the address once it is about to answer."""
    if workers > 1:
        from uvicorn.supervisors.multiprocess import Multiprocess

        take_over(Log(least=settings.least))
        say(_address(port))
        with tempfile.TemporaryDirectory(prefix="priorwise") as folder:
            os.environ[FOLDER] = folder
            Multiprocess(configured(settings, settings.limits, workers), [port]).run()
        return
    service = settings()
    say(_address(port))
    Server(configured(service, settings.limits)).run([port])


def _address(port: socket.socket) -> str:
    host, number = port.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{number}"
