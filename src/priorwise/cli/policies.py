"""Words for policies: ``ts``, ``sum:8``, ``rhc:10,10,online``, ``kg:10,10,ties=random``."""

import inspect
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from priorwise.core.errors import ArgumentError, shown

if TYPE_CHECKING:
    from priorwise.core.protocols import Policy


@dataclass(frozen=True)
class Word:
    """How a policy is written. Its settings are the parameters of the policy that are not fixed, in
    their order.
    """

    usage: str
    example: str
    meaning: str
    policy: str  # its name in priorwise, which is imported when a policy is made
    fixed: dict[str, Any] = field(default_factory=dict)


WORDS: Final[dict[str, Word]] = {
    "ts": Word(
        "ts", "ts", "Thompson sampling: the best arm of one posterior draw", "ThompsonSampling"
    ),
    "kshot": Word(
        "kshot:K", "kshot:3", "the arm that looks best in any of K draws", "KShotThompson"
    ),
    "sum": Word(
        "sum:K",
        "sum:8",
        "the arm with the largest sum over K draws",
        "PosteriorSampling",
        {"rule": "sum"},
    ),
    "softmax": Word(
        "softmax:K",
        "softmax:4",
        "softmax of the sum over K draws",
        "PosteriorSampling",
        {"rule": "softmax"},
    ),
    "rhc": Word(
        "rhc:K1,K2,ALPHA",
        "rhc:10,10,online",
        "two-step receding horizon; ALPHA is 0 to 1 or online",
        "RecedingHorizon",
    ),
    "kg": Word(
        "kg:K1,K2",
        "kg:10,10",
        "Monte-Carlo knowledge gradient (rhc with ALPHA 1)",
        "KnowledgeGradient",
    ),
    "exact-kg": Word(
        "exact-kg[:ALPHA]",
        "exact-kg:online",
        "knowledge gradient, computed exactly; online by default",
        "ExactKnowledgeGradient",
    ),
    "kg-best": Word(
        "kg-best",
        "kg-best",
        "exact online knowledge gradient of the best number of pulls; for rare events",
        "ExactKnowledgeGradient",
        {"alpha": "online", "pulls": "best"},
    ),
    "greedy": Word("greedy", "greedy", "the largest posterior mean", "Greedy"),
    "bayes-ucb": Word(
        "bayes-ucb",
        "bayes-ucb",
        "the largest posterior quantile, 1 - 1/(h + 1) at pull h",
        "BayesUCB",
    ),
    "top-two": Word(
        "top-two[:SHARE]",
        "top-two:0.5",
        "top-two Thompson sampling",
        "TopTwoThompson",
    ),
    "uniform": Word("uniform", "uniform", "any arm", "Uniform"),
}


def parse_policy(text: str) -> "Policy":
    """Return the policy that a word stands for; an error says what to write instead."""
    name, colon, rest = text.partition(":")
    word = WORDS.get(name)
    if word is None:
        near = get_close_matches(name, WORDS, n=1)
        guess = f"did you mean {near[0]!r}?" if near else ""
        raise ArgumentError(
            "policy",
            f"must be one of {', '.join(each.usage for each in WORDS.values())}",
            got=name,
            cure=guess,
        )
    instead = f"write {word.usage}, for example {word.example}"
    import priorwise as pw

    make = getattr(pw, word.policy)
    every = inspect.signature(make).parameters
    settings = [key for key in every if key not in word.fixed]
    given: dict[str, Any] = {}
    for index, part in enumerate(rest.split(",") if colon else []):
        key, equals, value = (each.strip() for each in part.rpartition("="))
        if not equals:
            if index >= len(settings):
                raise ArgumentError(name, "has fewer settings", got=part, cure=instead)
            key = settings[index]
        if key not in settings:
            has = f"it has {', '.join(settings) or 'none'}"
            raise ArgumentError(name, f"has no setting {shown(key)}", cure=has)
        if key in given:
            raise ArgumentError(key, "is given twice", cure=instead)
        given[key] = _read(value)
    for key in settings:
        if key not in given and every[key].default is inspect.Parameter.empty:
            raise ArgumentError(key, "is missing", cure=instead)
    try:
        policy: Policy = make(**word.fixed, **given)
    except ArgumentError as error:
        error.cure = error.cure or instead
        raise
    return policy


def _read(text: str) -> int | float | str:
    """Read a number, or leave a word as it is; the policy checks it."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
