"""The law of a policy's action, computed from what its belief offers.

Where the posterior has finitely many points, a rule that does not look at the order of its k draws
sees only which points were drawn how often, a multiset with multinomial probability

    Pr[m_1, ..., m_S] = k! / (m_1! ... m_S!) p_1^m_1 ... p_S^m_S.

What it plays on a multiset does not depend on the posterior, so it is worked out once for all
tasks. A rule of the user's may look at the order, and is asked about every sequence of k points.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from priorwise.core import validation
from priorwise.core.choosing import level
from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import ScoredPolicy, offers
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.theory import enumeration
from priorwise.theory.action_laws import (
    WORDS,
    ActionLaw,
    ArgmaxBelief,
    MixedBelief,
    ProbablePolicy,
    Source,
    tied_law,
)

BLOCK: Final = 1 << 22  # probabilities kept at a time
DRAWS: Final = 4096  # decisions from which a law is sampled
DrawnRule = Callable[[FloatArray, Seen], FloatArray]
"""Probability of each arm, ``(outcome, arm)``, for drawn values ``(outcome, draw, arm)``."""


def known_law(policy: Any, belief: Any, seen: Seen) -> ActionLaw | None:
    """Return the law of anyone's policy: what its ``probabilities`` says, or the uniform law on its
    largest ``scores``; None where it has to be sampled.
    """
    if isinstance(policy, ProbablePolicy):
        return policy.probabilities(belief, seen)
    scored = isinstance(policy, ScoredPolicy)
    return ActionLaw(tied_law(policy.scores(belief, seen))) if scored else None


def action_law(
    policy: Any, belief: Any, seen: Seen, rng: Stream, *, draws: int = DRAWS
) -> ActionLaw:
    """Return the law of anyone's action with its error: as it is known, otherwise from ``draws``
    decisions on a stream, which must not be one that decides.

    Examples
    --------
    >>> import priorwise as pw
    >>> from priorwise.core.streams import Purpose, Streams
    >>> belief, seen = pw.BetaPrior([2, 1], [1, 1]).belief(1), Seen(step=1, horizon=1, arms=2)
    >>> rng = Streams(0, np.zeros(1, dtype=np.uint64)).at(Purpose.WORLD, 1)
    >>> action_law(pw.ThompsonSampling(), belief, seen, rng).probs.round(3)
    array([[0.667, 0.333]])

    """
    law = known_law(policy, belief, seen)
    if law is not None:
        return law
    draws = validation.count("draws", draws)
    counts, rows = np.zeros((rng.tasks, seen.arms)), np.arange(rng.tasks)
    for _ in range(draws):
        counts[rows, policy.act(belief, seen, rng)] += 1.0
    # the standard error allows for arms that were not chosen by chance
    near = (counts + 1.0) / (draws + 2.0)
    return ActionLaw(counts / draws, "sampling", np.sqrt(near * (1.0 - near) / draws))


def tasks_of(belief: Any) -> int:
    """Number of tasks, as the belief says or its arrays show."""
    if hasattr(belief, "tasks"):
        return int(belief.tasks)
    return len(next(each for each in vars(belief).values() if isinstance(each, np.ndarray)))


def sampling_law(draws: int, rule: str | DrawnRule, belief: Any, seen: Seen) -> ActionLaw | None:
    """Law of a rule on posterior draws: the largest value (``"max"``), the largest sum (``"sum"``),
    ``"softmax"`` or a function.

    By enumeration for a posterior on finitely many points; for one draw from a mixture the sum over
    its components; for others what they know of the largest of several draws, or of their mean.
    """
    if offers(belief, enumeration.EnumerableBelief):
        if callable(rule):
            return drawn_law(rule, draws, belief, seen, ordered=True)
        return drawn_law(_RULES[rule], draws, belief, seen)
    if draws == 1 and offers(belief, MixedBelief):
        return _mixed_law(rule, belief, seen)
    if rule in ("max", "sum") and offers(belief, ArgmaxBelief):
        law: ActionLaw | None = belief.argmax_law(draws, "mean" if rule == "sum" else "max", seen)
        return law
    return None


def _mixed_law(rule: str | DrawnRule, belief: Any, seen: Seen) -> ActionLaw | None:
    """Law of a rule on one draw from a mixture, ``sum_k w_k law_k``."""
    probs, error = np.zeros(()), np.zeros(())
    source: Source = "exact"
    for weight, part in belief.mixed(seen):
        law = sampling_law(1, rule, part, seen)
        if law is None:
            return None
        probs = probs + weight[:, None] * law.probs
        error = error + weight[:, None] * law.error
        source = max(source, law.source, key=list(WORDS).index)
    return ActionLaw(np.asarray(probs), source, 0.0 if source == "exact" else error)


def drawn_law(
    rule: DrawnRule, draws: int, belief: Any, seen: Seen, *, ordered: bool = False
) -> ActionLaw | None:
    """Exact law of any rule on ``draws`` draws of finitely many points, or None if the outcomes are
    too many.

    ``rule`` maps values ``(outcome, draw, arm)``, with -inf for arms that are not available, and
    ``seen`` to the probability of each arm, ``(outcome, arm)``. A rule that looks at the order of
    the draws must be called with ``ordered=True``.
    """
    hides = offers(belief, enumeration.HiddenStateBelief)

    def played(tasks: IntArray, seen: Seen, outcomes: IntArray) -> FloatArray:
        every = belief.take(tasks).point_values(seen) if hides else belief.points(seen)[None]
        asked = repeated(seen, len(tasks), len(outcomes))
        values = asked.masked(every[:, outcomes].reshape(-1, draws, seen.arms))
        return np.asarray(rule(values, asked), dtype=np.float64)

    return _outcome_law(played, draws, belief, seen, ordered=ordered)


def environment_law(
    rule: Callable[[Any, Seen], FloatArray], draws: int, belief: Any, seen: Seen
) -> ActionLaw | None:
    """Exact law of a rule on ``draws`` drawn environments, which is asked about every sequence of
    finitely many points; None if these are too many.
    """

    def played(tasks: IntArray, seen: Seen, outcomes: IntArray) -> FloatArray:
        asked = repeated(seen, len(tasks), len(outcomes))
        several = belief.take(np.repeat(tasks, len(outcomes)))
        drawn = several.environments(np.tile(outcomes, (len(tasks), 1)), asked)
        law = rule(drawn, asked)
        check_law(law, len(tasks) * len(outcomes), asked)
        return law

    return _outcome_law(played, draws, belief, seen, ordered=True)


def _outcome_law(
    played: Callable[[IntArray, Seen, IntArray], FloatArray],
    draws: int,
    belief: Any,
    seen: Seen,
    *,
    ordered: bool,
) -> ActionLaw | None:
    """Law of an action given which points were drawn, which ``played(tasks, seen, outcomes)``
    returns for some tasks and all outcomes, ``(task and outcome, arm)``.

    Tasks that see the same share it, unless they hide a state.
    """
    weights = belief.probabilities()
    points = weights.shape[1]
    count = points**draws if ordered else enumeration.multiset_count(points, draws)
    if count > enumeration.MOST_OUTCOMES:
        return None
    listed = enumeration.sequences if ordered else enumeration.multisets
    outcomes, log_orders = listed(points, draws)
    out = np.empty((len(weights), seen.arms))
    step = max(1, BLOCK // count)
    hides = offers(belief, enumeration.HiddenStateBelief)
    sights = [] if hides else enumeration.by_sight(seen, len(weights))
    if hides:
        blocks = np.split(np.arange(len(weights)), range(step, len(weights), step))
        sights = [(seen.take(rows), rows) for rows in blocks]
    for sight, tasks in sights:
        asked = tasks if hides else tasks[:1]
        law = played(asked, sight, outcomes)
        check_rule(law, len(asked) * count, seen)
        law = (law / law.sum(axis=1, keepdims=True)).reshape(len(asked), count, -1)
        for start in range(0, len(tasks), step):
            part = tasks[start : start + step]
            odds = enumeration.outcome_probabilities(weights[part], outcomes, log_orders)
            out[part] = np.einsum("to,toa->ta" if hides else "to,xoa->ta", odds, law)
    return ActionLaw(out / out.sum(axis=1, keepdims=True))  # the sum is 1 but for rounding


def repeated(seen: Seen, tasks: int, times: int) -> Seen:
    """What is known of each task, so many times in a row."""
    if seen.mask is None and seen.signal is None:
        return seen  # nothing that belongs to a task but steps, which named rules do not read
    return seen.take(np.repeat(np.arange(tasks), times))


def check_rule(law: FloatArray, count: int, seen: Seen) -> None:
    """Raise an error if a user's rule does not return a distribution over arms for each of
    ``count`` tasks.
    """
    if law.shape != (count, seen.arms):
        raise ArgumentError(
            "rule",
            f"must return one probability for each task and arm, shape {(count, seen.arms)}",
            got=law.shape,
        )
    if not np.isfinite(law).all() or law.min() < 0.0 or np.abs(law.sum(axis=1) - 1.0).max() > 1e-6:
        raise ArgumentError(
            "rule",
            "must return probabilities that sum to 1 for each task",
            cure=f"not at step {seen.step}",
        )


def check_law(law: FloatArray, tasks: int, seen: Seen) -> None:
    """Raise an error for what is not a law on the available arms for each task."""
    check_rule(law, tasks, seen)
    if seen.mask is not None and law[~seen.mask].any():
        raise ArgumentError("rule", "must give probability 0 to arms not available (of value -inf)")


def _softmax(values: FloatArray, seen: Seen) -> FloatArray:
    total = values.sum(axis=1)
    weights = np.exp(total - total.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


_RULES: Final[dict[str, DrawnRule]] = {
    "max": lambda values, _: tied_law(values.max(axis=1)),
    "sum": lambda values, _: tied_law(level(values.sum(axis=1), np.abs(values).sum(axis=1))),
    "softmax": _softmax,
}
