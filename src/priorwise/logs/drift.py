"""Does the prior change over time? Evidence against one prior for all tasks of a log.

The tasks are cut into parts by their time. Each part after the first is predicted by priors learned
from the parts just before it, and all of them together by the one prior that fits them best:

    E = prod_k p(part k | prior learned just before it) / max_prior prod_k p(part k | prior).

If tasks are independent draws of one prior of the fitted family and structure, the best of these
is at least as likely as the true one, so that E has a mean of at most 1 and reaches ``1 / LEVEL``
in at most that share of logs (Markov), however arms were chosen: "universal inference" (Wasserman,
Ramdas and Balakrishnan 2020). The evidence is the average of two such E, for a short and a longer
memory.

No such promise holds where the true prior is outside the family or structure, which was mostly
chosen on the same log, where tasks depend on each other, or where the likelihood is approximate: a
prior that is wrong throughout may fit some parts better than others without any change.
"""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.family import for_arms
from priorwise.core.frames import Table, Tabular
from priorwise.core.protocols import Seen
from priorwise.core.types import IntArray
from priorwise.meta.evidence.likelihood import log_marginal_likelihood

LEVEL: Final = 0.01
"""How often a log with one prior of the fitted family is said to drift, at most."""
PARTS: Final = 8
LEAST: Final = 25
"""Tasks of a part."""
MEMORIES: Final = (1, 3)
"""Parts from which the next one is predicted."""


@final
@dataclass(frozen=True)
class Drift(Tabular):
    """Evidence that the prior changes over time: its logarithm, and the average mean reward of the
    arms under priors fitted to each part of the log.
    """

    log_evidence: float
    means: tuple[float, ...]  # (part,)

    @property
    def raised(self) -> bool:
        """Whether the evidence is that of at most one log in a hundred without a change, if tasks
        are independent draws of the fitted family.
        """
        return bool(self.log_evidence >= -np.log(LEVEL))

    @property
    def verdict(self) -> str:
        """What to think of it, in words."""
        ends = f"{self.means[0]:.3g} in the first part of the log, {self.means[-1]:.3g} in the last"
        if not self.raised:
            return (
                f"No sign that the prior changes over time (average arm: {ends}; a change must be "
                "clear to be seen)."
            )
        return (
            f"The prior changes over time (average arm: {ends}): tasks are predicted better by "
            "those just before them than by all. (One log in a hundred says so without a change, "
            "at most, if the family fits and tasks are independent; else maybe more.) Learn from "
            "late tasks only, with since=, or let old ones fade, with half_life=."
        )

    def table(self) -> Table:
        """Columns by name, one row for each part of the log."""
        return {"part": list(range(1, len(self.means) + 1)), "mean": list(self.means)}

    def __str__(self) -> str:
        """The verdict."""
        return self.verdict


def drift_of(estimator: Any, fit: Any, starts: NDArray[Any]) -> Drift | None:
    """Weigh whether tasks that began at ``starts`` follow one prior; None where there are too few,
    or a part does not tell a prior.
    """
    data = fit.statistics
    parts = min(PARTS, data.tasks // LEAST)
    if parts < 3:
        return None
    pieces = np.array_split(np.argsort(starts, kind="stable"), parts)
    try:
        single = [estimator.fit(data.take(np.sort(piece))) for piece in pieces]
        best = max(
            _score(each, data, np.concatenate(pieces[1:]))
            for each in (fit, estimator.fit(data.take(np.sort(np.concatenate(pieces[1:])))))
        )
        found = []
        for memory in MEMORIES:
            total = 0.0
            for k in range(1, parts):
                before = pieces[max(0, k - memory) : k]
                recent = single[k - 1]
                if len(before) > 1:
                    recent = estimator.fit(data.take(np.sort(np.concatenate(before))))
                total += _score(recent, data, pieces[k])
            found.append(total - best)
    except ValueError:  # a part without a repeated pull does not tell the noise, say
        return None
    evidence = float(np.logaddexp.reduce(found) - np.log(len(found)))
    return Drift(evidence, tuple(_mean(each) for each in single))


def _score(fit: Any, data: Any, tasks: IntArray) -> float:
    return float(log_marginal_likelihood(fit.prior, data.take(np.sort(tasks))).sum())


def _mean(fit: Any) -> float:
    # of average tasks, where it depends on features
    whole = for_arms(getattr(fit.prior, "base", fit.prior), fit.statistics.arms)
    return float(np.mean(whole.belief(1).mean(Seen(1, 1, whole.arms))))
