"""Several candidates scored on the same items: means, paired differences, and a table of them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from priorwise.core.errors import shown
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray


@dataclass(frozen=True, eq=False)
class Paired(Tabular):
    """Scores of several candidates on the same items, ``(item,)`` each: differences are paired."""

    candidate: ClassVar[str] = "candidate"
    """What is compared, and what its score is, as tables call them."""
    score: ClassVar[str] = "score"

    scores: dict[str, FloatArray]

    def estimate(self, name: str) -> Estimate:
        """Mean score with its standard error."""
        return mean_estimate(self.scores[self._known(name)])

    def difference(self, first: str, second: str) -> Estimate:
        """Mean of the score of ``first`` minus that of ``second``, with the standard error of the
        paired difference.
        """
        a, b = self.scores[self._known(first)], self.scores[self._known(second)]
        with np.errstate(invalid="ignore"):
            return mean_estimate(np.where(a == b, 0.0, a - b))

    @property
    def best(self) -> str:
        """Name of the candidate with the largest mean score."""
        return max(self.scores, key=lambda name: self.estimate(name).mean)

    def table(self) -> Table:
        """Columns by name, a row for each candidate; ``minus_best`` is a paired difference."""
        own = [self.estimate(name) for name in self.scores]
        gaps = [self.difference(name, self.best) for name in self.scores]
        return {
            self.candidate: list(self.scores),
            self.score.replace(" ", "_"): [each.mean for each in own],
            "std_error": [each.std_error for each in own],
            "minus_best": [each.mean for each in gaps],
            "minus_best_std_error": [each.std_error for each in gaps],
        }

    def __str__(self) -> str:
        """Return a table: each candidate's score, and its difference from the best."""
        width, best = max(len(name) for name in self.scores), self.best
        lines = [f"{'':{width}}  {self.score:>20}  {'minus ' + best:>22}"]
        for name in sorted(self.scores, key=lambda each: -self.estimate(each).mean):
            gap = "" if name == best else str(self.difference(name, best))
            lines.append(f"{name:{width}}  {self.estimate(name)!s:>20}  {gap:>22}".rstrip())
        return "\n".join(lines)

    def _known(self, name: str) -> str:
        if not isinstance(name, str) or name not in self.scores:
            known = ", ".join(self.scores)
            raise KeyError(f"no {shown(name)} in this comparison; there are {known}")
        return name
