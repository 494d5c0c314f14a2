"""Counts and times for Prometheus.

With several worker processes, the environment names a folder in which each keeps its values, and
every one of them answers with the sum.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from typing import Final, final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Summary,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from priorwise.serve.types import Allocation, Answer, Decision, Decisions, Rewarded

disable_created_metrics()  # type: ignore[no-untyped-call]

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Variable of the environment that names the folder of several processes."""
TRIES: Final = 20
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, upper ends of the histogram's bins."""


@final
class Metrics:
    """What a process has done since it started."""

    def __init__(self) -> None:
        """Start from nothing."""
        own = self.registry = CollectorRegistry()
        self._kinds: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._requests = Counter(
            "priorwise_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=own,
        )
        self._seconds = Histogram(
            "priorwise_request_seconds",
            "Time to answer, by route.",
            ["route"],
            registry=own,
            buckets=BOUNDS,
        )
        self._decisions = Counter(
            "priorwise_decisions", "Decisions, those made again included.", registry=own
        )
        self._rewards = Counter(
            "priorwise_rewards", "Rewards by what became of them.", ["outcome"], registry=own
        )
        batches = Summary(
            "priorwise_store_batch", "Operations that the store answered at once.", registry=own
        )
        self.committed = batches.observe
        expired = Counter(
            "priorwise_expired", "Pulls closed as their rewards did not come.", registry=own
        )
        self.expired = expired.inc
        bugs = Counter(
            "priorwise_bugs", "Requests that ended in an error of our own.", registry=own
        )
        self.bug = bugs.inc

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        kind = (method, route, status)
        if kind not in self._kinds:  # finding them by their labels takes as long as counting
            counter = self._requests.labels(method, route, status)
            self._kinds[kind] = counter, self._seconds.labels(route)
        counter, times = self._kinds[kind]
        counter.inc()
        times.observe(seconds)

    def count(self, answer: Answer) -> None:
        """Count decisions and rewards."""
        if isinstance(answer, (Decision, Allocation)):
            self._decisions.inc()
        elif isinstance(answer, Decisions):
            self._decisions.inc(len(answer.decisions))
        elif isinstance(answer, Rewarded):
            self.rewarded(answer.outcome)

    def rewarded(self, outcome: str | None) -> None:
        """Count a reward by what became of it."""
        self._rewards.labels(outcome or "refused").inc()

    def value(self, name: str, **labels: str) -> float:
        """Return a value of this process."""
        return self.registry.get_sample_value(f"priorwise_{name}", labels) or 0.0

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Return all of it, with values that were looked up now: ``{name: (help, value)}``."""
        now = CollectorRegistry()
        for name, (text, value) in gauges.items():
            Gauge(f"priorwise_{name}", text, registry=now, multiprocess_mode="mostrecent").set(
                value
            )
        every = self.registry
        if folder := os.environ.get(FOLDER):
            every = CollectorRegistry()
            MultiProcessCollector(every, folder)  # type: ignore[no-untyped-call]
            return _read(every)
        return generate_latest(every) + generate_latest(now)


def _read(registry: CollectorRegistry) -> bytes:
    """Read the values of all processes; once more if one has just created its file, still empty."""
    for _ in range(TRIES - 1):
        try:
            return generate_latest(registry)
        except struct.error:
            time.sleep(0.01)
    return generate_latest(registry)
