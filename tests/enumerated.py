"""The exact law of an action, for tests that enumerate."""

from __future__ import annotations

from typing import Any

from priorwise.core.protocols import Seen
from priorwise.core.types import FloatArray
from priorwise.policies.laws import known_law


def exact_probs(policy: Any, belief: Any, seen: Seen) -> FloatArray | None:
    """Probability of each arm, ``(task, arm)``; None where the law is not known exactly."""
    law = known_law(policy, belief, seen)
    return None if law is None or law.source != "exact" else law.probs
