"""One estimate of memory and of work, so that absurd sizes are refused by name before anything
starts.

Memory is compared with what this machine (or its container) has. Work is counted in posterior
draws: a pull of Thompson sampling takes one, other policies say in ``draws_per_pull(arms)`` how
many theirs take; at most :data:`MOST_DRAWS` are run by one call. Both limits can be set:
``PRIORWISE_MEMORY_GB=64`` and ``PRIORWISE_MOST_DRAWS=1e16`` in the environment.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from priorwise.core.errors import ArgumentError

MOST_DRAWS: Final = 1e14
"""Draws that one call may take, unless ``PRIORWISE_MOST_DRAWS`` says otherwise: weeks on one
processor.
"""

SECONDS_PER_DRAW: Final = 2e-8
"""What a draw of a few arms takes at least, in compiled code on one processor."""

NUMBERED: Final = 1 << 32
"""Steps, draws and requests that random numbers can tell apart; their counters have 32 bits
each.
"""

ARRAYS: Final = 4  # arrays of the size of a request that are alive at once while NumPy answers it
YEAR: Final = 365.25 * 86400.0


def check_memory(argument: str, size: int | str, needed: float, cure: str) -> None:
    """Refuse an argument of a ``size`` that needs more bytes than there are; ``cure`` says what to
    lower.
    """
    limit = memory()
    if needed > limit:
        gigabytes = f"{amount(needed / 1e9)} GB, and this machine has {amount(limit / 1e9)}"
        raise ArgumentError(
            argument,
            f"of {size if isinstance(size, str) else amount(size)} needs {gigabytes}",
            cure=f"{cure} (PRIORWISE_MEMORY_GB sets another limit)",
        )


def check_work(argument: str, size: int | str, draws: float, cure: str) -> None:
    """Refuse an argument of a ``size`` that takes more posterior draws than anybody would wait for:
    pulls times :func:`draws_per_pull`.
    """
    limit = _setting("PRIORWISE_MOST_DRAWS", MOST_DRAWS)
    if draws > limit:
        time = _time(draws * SECONDS_PER_DRAW)
        raise ArgumentError(
            argument,
            f"of {size if isinstance(size, str) else amount(size)} takes about {amount(draws)} "
            f"posterior draws, {time} or more on one processor; a call may take {amount(limit)}",
            cure=f"{cure} (PRIORWISE_MOST_DRAWS sets another limit)",
        )


def check_draws(name: str, value: int) -> None:
    """Refuse more draws for one pull than random numbers can tell apart."""
    check_numbered(name, value, ", the most draws that a pull may take")


def check_numbered(name: str, value: int, why: str = "") -> None:
    """Refuse more steps or draws than random numbers can tell apart."""
    if value >= NUMBERED:
        raise ArgumentError(name, f"must be below 2**32{why}", got=value)


def draws_per_pull(policy: Any, arms: int) -> int:
    """Posterior draws that a policy takes for one pull: its ``draws_per_pull(arms)``, or 1 if it
    does not say.
    """
    draws: Callable[[int], int] | None = getattr(policy, "draws_per_pull", None)
    return int(draws(arms)) if callable(draws) else 1


def drawn_at_once(policy: Any) -> int:
    """Posterior draws that a policy asks for in one request: its ``drawn_at_once``, or 1 if it does
    not say.
    """
    return int(getattr(policy, "drawn_at_once", 1))


def memory() -> float:
    """Bytes that this process may take: ``PRIORWISE_MEMORY_GB``, or what the machine or its
    container has.
    """
    gigabytes = _setting("PRIORWISE_MEMORY_GB", 0.0)
    return gigabytes * 1e9 if gigabytes else _installed()


@cache
def _installed() -> float:
    limits = [float("inf")]
    if hasattr(os, "sysconf"):
        limits.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):
        # of a container
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(limits)


def _setting(name: str, default: float) -> float:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0.0:
        raise ArgumentError(name, "must be a positive number, as an environment variable", got=text)
    return value


def amount(value: float) -> str:
    """Return a size as errors show it: whole up to a million million, then in powers of ten."""
    if isinstance(value, int):
        return f"{value:,}" if value < 10**12 else f"{as_float(value):.1e}"
    return f"{value:.1e}" if value >= 1e7 else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def as_float(value: int) -> float:
    """Return a count as a float, however large."""
    return float(min(value, 10**300))


def _time(seconds: float) -> str:
    if seconds >= YEAR:
        return f"{amount(seconds / YEAR)} years"
    if seconds >= 86400.0:
        return f"{amount(seconds / 86400.0)} days"
    return f"{amount(seconds / 3600.0)} hours"
