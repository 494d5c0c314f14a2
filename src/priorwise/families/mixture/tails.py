"""What is known of the diameter under a mixture.

With ``X`` the diameter, ``E(X - q)_+ = sum_k w_k E_k(X - q)_+``. Its tail expectation is ``min_q q
+ E(X - q)_+ / p``, exact if those sums are. Conditions add up too: the largest share p of all tasks
holds at most the share ``min(1, p / w_k)`` of the tasks of component k, so

    Psi(p) <= sum_k min(1, w_k / p) Psi_k(min(1, p / w_k)).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.registry import family_for, has_part
from priorwise.theory.conditions import Bounded, TailCondition, level, smallest
from priorwise.theory.diameters import DiameterLaw, ExcessLaw, FiniteLaw, MixedLaw


@final
@dataclass(frozen=True)
class MixedTails:
    """Conditions of the components, with their probabilities."""

    parts: tuple[tuple[TailCondition, ...], ...]
    probs: tuple[float, ...]

    @property
    def name(self) -> str:
        """How the condition is asked for."""
        return "mixture"

    @property
    def assumption(self) -> str:
        """The condition in words."""
        return "the tails of each component"

    def tail(self, p: float) -> float:
        """``sum_k min(1, w_k / p) Psi_k(min(1, p / w_k))``; at 0 the largest of the components."""
        p = level(p)
        if p == 0.0:
            return max(smallest(part, 0.0)[0] for part in self.parts)
        return sum(
            min(1.0, w / p) * smallest(part, min(1.0, p / w))[0]
            for part, w in zip(self.parts, self.probs, strict=True)
        )


def tail_conditions(prior: MixturePrior) -> tuple[TailCondition, ...]:
    """Bounded if all components are; and what the conditions of the components add up to."""
    largest, parts = largest_diameter(prior), _asked(prior, "tail_conditions")
    bounded = () if largest is None or largest == np.inf else (Bounded(largest),)
    if parts is None or not all(parts):
        return bounded
    return (*bounded, MixedTails(tuple(map(tuple, parts)), tuple(_probs(prior))))


def largest_diameter(prior: MixturePrior) -> float | None:
    """Essential supremum of the diameter; None where some component's is not known."""
    largest = _asked(prior, "largest_diameter")
    return None if largest is None else float(max(largest))


def diameter(prior: MixturePrior) -> DiameterLaw | None:
    """Law of the diameter, a mixture of those of the components; None where some is not known."""
    laws, probs = _asked(prior, "diameter"), _probs(prior)
    if laws is None:
        return None
    if all(isinstance(law, FiniteLaw) for law in laws):
        values = np.concatenate([law.values for law in laws])
        return FiniteLaw.of(
            values, np.concatenate([w * law.probs for w, law in zip(probs, laws, strict=True)])
        )
    if not all(isinstance(law, ExcessLaw) for law in laws):
        return None
    largest = max(law.tail(0.0).value for law in laws)
    return MixedLaw(tuple(laws), tuple(probs), largest, tail_conditions(prior))


def _possible(prior: MixturePrior) -> Iterator[tuple[Any, float]]:
    total = float(prior.probs.sum())
    pairs = zip(prior.components, prior.probs.tolist(), strict=True)
    return ((part, p / total) for part, p in pairs if p > 0.0)


def _probs(prior: MixturePrior) -> list[float]:
    return [p for _, p in _possible(prior)]


def _asked(prior: MixturePrior, name: str) -> list[Any] | None:
    """What the components that are possible know; None where one does not."""
    answers = []
    for part, _ in _possible(prior):
        if not has_part(part, name):
            return None
        answers.append(getattr(family_for(part, "a mixture"), name)(part))
    return None if any(answer is None for answer in answers) else answers
