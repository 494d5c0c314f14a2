"""Words for policies: ``ts``, ``sum:8``, ``rhc:10,10,online``, ``kg:10,10,ties=random``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from priorwise.core.errors import shown

if TYPE_CHECKING:
    from priorwise.core.protocols import Policy


Settings = dict[str, Callable[[str], Any]]


def _reader(read: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            raise ValueError(f"must be {what}, got {shown(text)}") from None

    return checked


_integer: Final = _reader(int, "an integer")
_number: Final = _reader(float, "a number")
_alpha: Final = _reader(
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
_TIES: Final[Settings] = {"ties": str, "when_certain": str}
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
        guess = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(each.usage for each in WORDS.values())
        raise ValueError(f"no policy is called {shown(name)}{guess or '.'} Use one of: {known}")
    instead = f"write {word.usage}, for example {word.example}"
    given: dict[str, Any] = {}
    for index, part in enumerate(rest.split(",") if colon else []):
        key, equals, value = (each.strip() for each in part.rpartition("="))
        if not equals:
            if index >= len(word.settings):
                raise ValueError(f"too many settings; {instead}")
            key = list(word.settings)[index]
        if key not in word.settings:
            raise ValueError(
                f"{name} has no setting {shown(key)}; it has {', '.join(word.settings) or 'none'}"
            )
        if key in given:
            raise ValueError(f"{key} is given twice; {instead}")
        try:
            given[key] = word.settings[key](value)
        except ValueError as error:
            raise ValueError(f"{key} {error}; {instead}") from None
    if missing := [key for key in list(word.settings)[: word.required] if key not in given]:
        raise ValueError(f"{missing[0]} is missing; {instead}")
    import priorwise as pw

    policy: Policy = getattr(pw, word.policy)(**word.fixed, **given)
    return policy
