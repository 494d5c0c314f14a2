"""What to say where compiled code finds no room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from priorwise.core.tiles import LANES, FamilyTiles


@contextmanager
def room_for(environment: FamilyTiles, belief: FamilyTiles, horizon: int) -> Iterator[None]:
    """Let a failed allocation of the loop or of a tile function say what its arrays grow with."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"compiled code found no room for its arrays: arms={environment.arms:,}, "
            f"horizon={horizon:,}, a belief of "
            f"{belief.belief_rows + belief.scratch_rows:,} numbers about each of {LANES} tasks, "
            "and what the policy's draws take; "
            "lower the arms, the horizon, the draws of the policy or the threads"
        ) from error
