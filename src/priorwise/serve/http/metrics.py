"""Counts and times in the text format of Prometheus."""

from __future__ import annotations

import re
import secrets
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, final

import msgspec

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, upper ends of the histogram's bins."""
_SPECIAL: Final = re.compile(r'[\\"\n]')
_ESCAPED: Final = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


def label(value: str) -> str:
    """Write the value of a label so that it ends where it should."""
    return _SPECIAL.sub(lambda found: _ESCAPED[found[0]], value)


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample."""
    inside = ",".join(f'{key}="{label(each)}"' for key, each in labels.items())
    return f"{name}{f'{{{inside}}}' if inside else ''} {value:.17g}"


def block(name: str, kind: str, text: str, lines: Iterable[str]) -> list[str]:
    """Samples of one name under their heading."""
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines]


@final
class Together:
    """The counts of several processes, which write theirs to files in a folder.

    All of them answer with the sum of these files, so that a counter never goes down, whichever
    process is asked. The file of a process that ended stays.
    """

    def __init__(self, folder: str, own: Metrics) -> None:
        """Choose a file."""
        self._folder, self._own = Path(folder), own
        self._file = self._folder / f"{secrets.token_hex(8)}.json"
        self._lock = threading.Lock()

    def write(self) -> None:
        """Write the counts of this process."""
        with self._lock:
            new = self._file.with_suffix(".new")
            new.write_bytes(self._own.content())
            new.replace(self._file)

    def total(self) -> Metrics:
        """Return the counts of all, up to what each wrote last."""
        self.write()
        made = Metrics()
        for each in self._folder.glob("*.json"):
            made.add(each.read_bytes())
        return made


@final
class Metrics:
    """What a process has done since it started. Used by the event loop alone."""

    def __init__(self) -> None:
        """Start from nothing."""
        self.requests: dict[tuple[str, str, int], int] = {}
        self.times: dict[str, list[float]] = {}  # counts per bin, those beyond, and the sum
        self.decisions = 0
        self.rewards: dict[str, int] = {}
        self.batches = [0, 0]  # answers of the store, and what they answered
        self.expired = 0
        self.bugs = 0

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        kind = (method, route, status)
        self.requests[kind] = self.requests.get(kind, 0) + 1
        times = self.times.get(route)
        if times is None:
            times = self.times[route] = [0.0] * (len(BOUNDS) + 2)
        times[bisect_left(BOUNDS, seconds)] += 1
        times[-1] += seconds

    def rewarded(self, outcome: str, count: int = 1) -> None:
        """Count rewards by what became of them."""
        self.rewards[outcome] = self.rewards.get(outcome, 0) + count

    def committed(self, count: int) -> None:
        """Count operations that the store answered at once."""
        self.batches[0] += 1
        self.batches[1] += count

    def content(self) -> bytes:
        """Return all counts as JSON."""
        return msgspec.json.encode(
            {
                "requests": [[*kind, count] for kind, count in self.requests.items()],
                "times": self.times, "decisions": self.decisions, "rewards": self.rewards,
                "batches": self.batches, "expired": self.expired, "bugs": self.bugs,
            }
        )  # fmt: skip

    def add(self, content: bytes) -> None:
        """Add the counts of another process."""
        given = msgspec.json.decode(content)
        for method, route, status, count in given["requests"]:
            kind = (method, route, status)
            self.requests[kind] = self.requests.get(kind, 0) + count
        for route, times in given["times"].items():
            mine = self.times.get(route, [0.0] * len(times))
            self.times[route] = [a + b for a, b in zip(mine, times, strict=True)]
        for outcome, count in given["rewards"].items():
            self.rewarded(outcome, count)
        self.batches = [a + b for a, b in zip(self.batches, given["batches"], strict=True)]
        self.decisions += given["decisions"]
        self.expired += given["expired"]
        self.bugs += given["bugs"]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it, with values that were looked up now: ``{name: (help, value)}``."""
        lines = block(
            "priorwise_requests_total", "counter", "Requests by route and status.",
            (
                line(
                    "priorwise_requests_total",
                    {"method": method, "route": route, "status": str(status)},
                    count,
                )
                for (method, route, status), count in sorted(self.requests.items())
            ),
        )  # fmt: skip
        lines += block(
            "priorwise_request_seconds", "histogram", "Time to answer, by route.", self._bins()
        )
        lines += block(
            "priorwise_decisions_total", "counter", "Decisions, those made again included.",
            [line("priorwise_decisions_total", {}, self.decisions)],
        )  # fmt: skip
        lines += block(
            "priorwise_rewards_total", "counter", "Rewards by what became of them.",
            (
                line("priorwise_rewards_total", {"outcome": outcome}, count)
                for outcome, count in sorted(self.rewards.items())
            ),
        )  # fmt: skip
        lines += block(
            "priorwise_store_batch", "summary", "Operations that the store answered at once.",
            [
                line("priorwise_store_batch_sum", {}, self.batches[1]),
                line("priorwise_store_batch_count", {}, self.batches[0]),
            ],
        )  # fmt: skip
        lines += block(
            "priorwise_expired_total", "counter", "Pulls closed as their rewards did not come.",
            [line("priorwise_expired_total", {}, self.expired)],
        )  # fmt: skip
        lines += block(
            "priorwise_bugs_total", "counter", "Requests that ended in an error of our own.",
            [line("priorwise_bugs_total", {}, self.bugs)],
        )  # fmt: skip
        for name, (text, value) in gauges.items():
            lines += block(name, "gauge", text, [line(name, {}, value)])
        return "\n".join([*lines, ""])

    def _bins(self) -> Iterable[str]:
        name = "priorwise_request_seconds"
        for route, times in sorted(self.times.items()):
            total = 0.0
            for bound, count in zip((*BOUNDS, None), times, strict=False):
                total += count
                most = "+Inf" if bound is None else f"{bound:g}"
                yield line(f"{name}_bucket", {"route": route, "le": most}, total)
            yield line(f"{name}_sum", {"route": route}, times[-1])
            yield line(f"{name}_count", {"route": route}, total)
