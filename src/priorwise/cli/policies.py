"""Words for policies: ``ts``, ``sum:8``, ``rhc:10,10,online``, ``kg:10,10,ties=random``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from priorwise.core.errors import ArgumentError, shown

if TYPE_CHECKING:
    from priorwise.core.protocols import Policy


class Setting(NamedTuple):
    """How to read a setting, and what it must be."""

    read: Callable[[str], Any]
    what: str


Settings = dict[str, Setting]

_integer: Final = Setting(int, "an integer")
_number: Final = Setting(float, "a number")
_word: Final = Setting(str, "a word")
_alpha: Final = Setting(
    lambda text: text if text == "online" else float(text), "'online' or a number from 0 to 1"
)


@dataclass(frozen=True)
class Word:
    """How a policy is written: ``usage``, with its settings in order, the first ``required`` of
    which must be there.
    """

    usage: str
    example: str
    meaning: str
    policy: str  # its name in priorwise, which is imported when a policy is made
    settings: Settings = field(default_factory=dict)
    required: int = 0
    fixed: dict[str, Any] = field(default_factory=dict)


_K: Final[Settings] = {"k": _integer}
_KK: Final[Settings] = {"k1": _integer, "k2": _integer}
_TIES: Final[Settings] = {"ties": _word, "when_certain": _word}
_BY_RULE: Final = ("PosteriorSampling", _K, 1)

WORDS: Final[dict[str, Word]] = {
    "ts": Word(
        "ts", "ts", "Thompson sampling: the best arm of one posterior draw", "ThompsonSampling"
    ),
    "kshot": Word(
        "kshot:K", "kshot:3", "the arm that looks best in any of K draws", "KShotThompson", _K, 1
    ),
    "sum": Word(
        "sum:K", "sum:8", "the arm with the largest sum over K draws", *_BY_RULE, {"rule": "sum"}
    ),
    "softmax": Word(
        "softmax:K", "softmax:4", "softmax of the sum over K draws", *_BY_RULE, {"rule": "softmax"}
    ),
    "rhc": Word(
        "rhc:K1,K2,ALPHA",
        "rhc:10,10,online",
        "two-step receding horizon; ALPHA is 0 to 1 or online",
        "RecedingHorizon",
        {**_KK, "alpha": _alpha, **_TIES},
        3,
    ),
    "kg": Word(
        "kg:K1,K2",
        "kg:10,10",
        "Monte-Carlo knowledge gradient (rhc with ALPHA 1)",
        "KnowledgeGradient",
        {**_KK, **_TIES},
        2,
    ),
    "exact-kg": Word(
        "exact-kg[:ALPHA]",
        "exact-kg:online",
        "knowledge gradient, computed exactly; online by default",
        "ExactKnowledgeGradient",
        {"alpha": _alpha},
    ),
    "kg-best": Word(
        "kg-best",
        "kg-best",
        "exact online knowledge gradient of the best number of pulls; for rare events",
        "ExactKnowledgeGradient",
        fixed={"pulls": "best"},
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
        {"share": _number},
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
    given: dict[str, Any] = {}
    for index, part in enumerate(rest.split(",") if colon else []):
        key, equals, value = (each.strip() for each in part.rpartition("="))
        if not equals:
            if index >= len(word.settings):
                raise ArgumentError(name, "has fewer settings", got=part, cure=instead)
            key = list(word.settings)[index]
        if key not in word.settings:
            raise ArgumentError(
                name,
                f"has no setting {shown(key)}",
                cure=f"it has {', '.join(word.settings) or 'none'}",
            )
        if key in given:
            raise ArgumentError(key, "is given twice", cure=instead)
        read, what = word.settings[key]
        try:
            given[key] = read(value)
        except ValueError:
            raise ArgumentError(key, f"must be {what}", got=value, cure=instead) from None
    if missing := [key for key in list(word.settings)[: word.required] if key not in given]:
        raise ArgumentError(missing[0], "is missing", cure=instead)
    import priorwise as pw

    policy: Policy = getattr(pw, word.policy)(**word.fixed, **given)
    return policy
