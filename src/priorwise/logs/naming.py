"""Which column names look like which role of a log: common names, and common words inside names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from priorwise.core.errors import ArgumentError, option

GUESSES: Final = {
    "task": ("task", "test", "test_id", "task_id", "experiment", "campaign", "episode", "visitor"),
    "action": ("action", "arm", "variant", "headline", "option", "choice", "treatment"),
    "reward": ("reward", "clicks", "click", "conversions", "converted", "outcome", "value", "y"),
    "pulls": ("pulls", "impressions", "showings", "trials", "n", "visitors", "sends"),
    "squares": ("squares", "reward_squares", "sum_of_squares"),
    "rate": ("rate", "ctr", "click_rate", "conversion_rate"),
}
"""Names that columns often have; case does not matter."""
RARE: Final = ("episode", "visitor", "outcome", "value", "y")
"""Names that count only if no column has a more common one."""
WORDS: Final = {
    **dict.fromkeys(("task", "test", "experiment", "campaign"), "task"),
    **dict.fromkeys(("action", "arm", "variant", "variation", "headline", "option"), "action"),
    **dict.fromkeys(("choice", "treatment", "creative", "version"), "action"),
    **dict.fromkeys(("reward", "rewards", "click", "clicks", "clicked", "converted"), "reward"),
    **dict.fromkeys(("conversion", "conversions", "orders", "purchases"), "reward"),
    **dict.fromkeys(("pulls", "impressions", "impr", "showings", "trials", "visitors"), "pulls"),
    **dict.fromkeys(("sends", "views", "sessions", "users"), "pulls"),
    **dict.fromkeys(("ctr", "cvr", "rate"), "rate"),
}
"""Words of longer names, and the role that they speak for."""
SHARES: Final = ("%", "percent", "pct")
"""Words that make a column of rewards one of rates."""
OTHERS: Final = frozenset(
    [
        *("date", "time", "day", "week", "month", "year", "start", "started", "begin", "end"),
        *("ended", "created", "duration", "status", "type", "owner", "winner", "result", "url"),
        *("link", "cost", "cpc", "cpm", "price", "revenue", "per", "share", "count", "number"),
        *("length", "words", "confidence", "significance", "uplift", "lift", "rank", "error"),
        *("description", "squares", "squared", "bounce"),
    ]
)
"""Words of columns that have no role, whatever other words their names have."""
BY_NAME, BY_RARE_NAME, BY_WORD = 1, 2, 3
"""How sure a match is; 0 for the name of the role itself."""


class UnsureError(ArgumentError):
    """The roles of columns are not clear; ``arguments`` are those to pass, None where there is
    nothing to propose.
    """

    def __init__(
        self, argument: str, problem: str, arguments: Mapping[str, str | Sequence[str] | None]
    ) -> None:
        self.arguments = dict(arguments)
        pairs = (option(role, ... if name is None else name) for role, name in arguments.items())
        super().__init__(argument, problem, cure=f"pass {', '.join(pairs)}")


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case: ``"testName (total) %"`` has test, name, total and %."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[^\W_]+|%", apart.lower())


def role_by_words(name: str) -> str | None:
    """The role that the words of a name speak for: the last word counts, as in "test variant", and
    what stands in parentheses only if nothing else does.
    """
    every = words_of(name)
    if OTHERS.intersection(every):
        return None
    outside = words_of(re.sub(r"\([^)]*\)", " ", name))
    roles = next(
        filter(None, ([WORDS[w] for w in ws if w in WORDS] for ws in (outside, every))), []
    )
    if not roles:
        return None
    if "rate" in roles or (roles[-1] == "reward" and is_share(name)):
        return "rate"
    return roles[-1]


def matches(names: Sequence[str]) -> dict[str, dict[int, list[str]]]:
    """Columns by the role that they look like, and by how sure that is."""
    found: dict[str, dict[int, list[str]]] = {role: {} for role in GUESSES}
    for name in names:
        whole = name.strip().lower()
        for role, likely in GUESSES.items():
            if whole in likely and (len(whole) > 1 or role == "reward"):
                sure = 0 if whole == role else BY_RARE_NAME if whole in RARE else BY_NAME
                found[role].setdefault(sure, []).append(name)
                break
        else:
            by_words = role_by_words(name) if len(whole) > 1 else None
            if by_words is not None:
                found[by_words].setdefault(BY_WORD, []).append(name)
    return found


def candidates_of(role: str, found: Mapping[int, Sequence[str]]) -> list[str]:
    """Columns that may have a role; one if that is sure. A common name does for tasks and actions,
    but numbers with further names of that sort beside them are not clear.
    """
    if not found:
        return []
    best = min(found)
    both = list(found[best])
    if role not in ("task", "action") and best > 0:
        both += found.get(BY_WORD, ()) if best < BY_WORD else ()
    return both


def is_share(name: str) -> bool:
    """Whether the name of a rate says that it is a percentage."""
    return any(each in SHARES for each in words_of(name))


def is_unlikely(name: str) -> bool:
    """Whether a name has words that speak against every role."""
    return not words_of(name) or bool(OTHERS.intersection(words_of(name)))
