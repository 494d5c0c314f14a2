"""Policies that ``recommend`` tries: from a plain A/B test to exact look-ahead."""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.advise.durations import seconds_of_task
from priorwise.core import argument_checks
from priorwise.core.estimates import percent
from priorwise.core.protocols import Policy
from priorwise.core.streams import Streams
from priorwise.families.registry import family_for, has_part
from priorwise.policies.bayes_ucb import BayesUCB
from priorwise.policies.exact_knowledge_gradient import ExactKnowledgeGradient
from priorwise.policies.greedy import Greedy
from priorwise.policies.posterior_sampling import PosteriorSampling
from priorwise.policies.thompson import ThompsonSampling
from priorwise.policies.uniform import Uniform
from priorwise.policies.uniform_then import UniformThen
from priorwise.simulate.steps import environments

UNIFORM: Final = "uniform"
THOMPSON: Final = "ts"
ALWAYS: Final = (UNIFORM, THOMPSON)
"""Tried however long they take: what others are compared with."""
AB_SHARES: Final = (0.2, 0.5)
"""Shares of the pulls that A/B tests spend on every arm alike."""
MOST_SECONDS: Final = 0.06
"""Of one processor for a task: slower policies are not tried."""

MEANINGS: Final = {
    UNIFORM: "any arm, at random",
    THOMPSON: "Thompson sampling: the best arm of one draw from what is believed",
    "sum:8": "the arm with the largest sum over 8 draws from what is believed",
    "greedy": "always the arm that is believed to be best",
    "bayes-ucb": "the arm with the largest upper bound of what is believed",
    "exact-kg": "the arm whose next reward, with what it teaches, is worth most",
    "kg-best": "the arm that is worth most if it is pulled for a while, with what that teaches",
}


@final
@dataclass(frozen=True)
class Candidate:
    """A policy and the prior it believes; ``learned`` says whether that is the fitted one, and
    ``seconds`` about how long it takes for a task.
    """

    policy: Policy
    believed: Any
    meaning: str
    learned: bool
    seconds: float


def ab_test(share: float) -> str:
    """Name of an A/B test that spends so much of its pulls on every arm alike."""
    return f"A/B test, {percent(share, 0)}"


def is_ab_test(name: str) -> bool:
    """Whether a name is that of an A/B test."""
    return name.startswith("A/B test")


def candidates(
    learned: Any, horizon: int, batch: int, masked: bool
) -> tuple[dict[str, Candidate], dict[str, str]]:
    """Return the policies to try, by name, and why others are left out.

    A/B tests believe the family's vague prior: they know nothing of past tasks.
    """
    vague = family_for(learned, "recommend").blank(learned) if has_part(learned, "blank") else None
    tried: dict[str, tuple[Any, Any]] = {UNIFORM: (Uniform(), learned)}
    for share in AB_SHARES:
        rounds = round(share * horizon)
        if 0 < rounds < horizon:
            plain = UniformThen(rounds, Greedy()), learned if vague is None else vague
            tried[ab_test(share)] = plain
    tried |= {
        THOMPSON: (ThompsonSampling(), learned),
        "sum:8": (PosteriorSampling(8, "sum"), learned),
        "greedy": (Greedy(), learned),
        "bayes-ucb": (BayesUCB(), learned),
        "exact-kg": (ExactKnowledgeGradient("online"), learned),
        "kg-best": (ExactKnowledgeGradient("online", pulls="best"), learned),
    }
    found: dict[str, Candidate] = {}
    left_out: dict[str, str] = {}
    first = Streams(0, np.zeros(1, dtype=np.uint64))
    if environments(learned, first).start(first.world(0)) is not None:
        del tried["kg-best"]
        left_out["kg-best"] = "it needs pulls that all show the same, and there are contexts"
    for name, (policy, believed) in tried.items():
        try:
            argument_checks.playing(policy, believed)
        except TypeError:
            left_out[name] = "the family's belief does not offer what it needs"
            continue
        seconds = seconds_of_task(learned, believed, policy, horizon, batch, masked=masked)
        if seconds > MOST_SECONDS and name not in ALWAYS:
            often = -(-horizon // batch)
            left_out[name] = f"too slow for {often:,} decisions in a task; larger batches help"
            continue
        knows = believed is learned and name != UNIFORM
        found[name] = Candidate(policy, believed, _meaning(name), knows, seconds)
    return found, left_out


def _meaning(name: str) -> str:
    if is_ab_test(name):
        share = name.removeprefix("A/B test, ")
        return f"any arm for the first {share} of the pulls, then the one with the best results"
    return MEANINGS[name]
