"""The theory, measured: the ladder over a grid of misspecifications, estimators against the number
of tasks, the lower bound.
"""

from __future__ import annotations

from typing import Final

from priorwise.core.protocols import Policy
from priorwise.policies.receding_horizon import KnowledgeGradient
from priorwise.policies.sampling import KShotThompson, ThompsonSampling

# the ladder, on the Gaussian problem of the paper with the mean of arm 1 raised
SHIFTS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 1.0)
POLICIES: Final[dict[str, Policy]] = {
    "Thompson sampling": ThompsonSampling(),
    "2-shot Thompson sampling": KShotThompson(2),
    "knowledge gradient, k = 2": KnowledgeGradient(2, 2),
}
LADDER_TASKS: Final = 200_000
LADDER_HISTORIES: Final = {
    "Thompson sampling": 500,
    "2-shot Thompson sampling": 250,
    "knowledge gradient, k = 2": 50,
}

# estimators, on the same problem
TASKS: Final = (100, 300, 1000, 3000, 10_000)
HORIZON: Final = 10

# the (N + 1)-arm instance
PULLS: Final = (5, 10, 20, 40, 80)
ARMS: Final = 2000
EXPECTED: Final = 0.04  # k H eps
DELTA: Final = 0.01
GAP_TASKS: Final = 20_000
