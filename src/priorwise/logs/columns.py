"""Which column of a log means what: as the caller says, or guessed and said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from priorwise.core import validation

GUESSES: Final = {
    "task": ("task", "test", "test_id", "task_id", "experiment", "campaign", "episode", "visitor"),
    "action": ("action", "arm", "variant", "headline", "option", "choice", "treatment"),
    "reward": ("reward", "clicks", "click", "conversions", "converted", "outcome", "value", "y"),
    "pulls": ("pulls", "impressions", "showings", "trials", "n", "visitors", "sends"),
    "squares": ("squares", "reward_squares", "sum_of_squares"),
    "time": (
        *("time", "timestamp", "date", "datetime", "day", "when"),
        *("start", "starts", "started", "start_date", "start_time", "start_day", "started_at"),
        *("begin", "begins", "began", "created", "created_at", "created_on", "creation_date"),
    ),
}
"""Names that columns often have, the likeliest first; case does not matter. Those of times are
equally likely: see :mod:`priorwise.logs.guessing`.
"""


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a log; ``said`` tells which were guessed."""

    task: str
    action: str
    reward: str
    pulls: str | None
    squares: str | None
    context: tuple[str, ...]
    said: tuple[str, ...]
    time: str | None = None
    propensity: str | None = None
    task_features: tuple[str, ...] = ()
    ordered: bool = False  # the order of tasks stands for time

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        where: str,
        *,
        task: str | None,
        action: str | None,
        reward: str | None,
        pulls: str | None,
        squares: str | None,
        context: Sequence[str] | str | None,
        time: str | None = None,
        propensity: str | None = None,
        task_features: Sequence[str] | str | None = None,
    ) -> Columns:
        """Take what was asked for, and guess what was not.

        A log with a column of pulls is one of sums; a column ``n`` alone says too little for that
        and is taken for one only where it is asked for.
        """
        asked = {"task": task, "action": action, "reward": reward, "pulls": pulls}
        asked["squares"] = squares
        features, of_tasks = _listed("context", context), _listed("task_features", task_features)
        # propensities are never guessed, and times by what they hold
        others = {"time": time, "propensity": propensity}
        roles = (
            *asked.items(), *others.items(), *(("context", each) for each in features),
            *(("task_features", each) for each in of_tasks),
        )  # fmt: skip
        for role, name in roles:
            if name is not None and name not in names:
                _unknown(role, name, names, where)
        said: list[str] = []
        lacking: list[str] = []
        taken = [name for _, name in roles if name is not None]
        for role in ("task", "action", "reward", "pulls", "squares"):
            if asked[role] is not None:
                continue
            optional = role in ("pulls", "squares")
            if role == "squares" and asked["pulls"] is None:
                continue
            found = _guess(role, names, taken)
            if found is None:
                asked_for = {each: name for name, each in roles if each is not None}
                elsewhere = _guess(role, list(asked_for), ())
                other = asked_for.get(elsewhere or "")
                if not optional and elsewhere is not None:
                    _elsewhere(role, elsewhere, str(other), names, where)
                if not optional:
                    lacking.append(role)
                if role == "pulls" and other in ("context", "task_features"):
                    said.append(
                        f"the column {elsewhere!r} stands in {other}= and is not taken for pulls="
                    )
                continue
            asked[role] = found
            taken.append(found)
            if found != role:
                said.append(f"the column {found!r} is taken for {role}=")
        if lacking:
            _lacking(lacking, names, where, summed=asked["pulls"] is not None)
        if squares is not None and asked["pulls"] is None:
            raise ValueError("squares: sums of squared rewards need pulls=, the number of pulls")
        twice = sorted({name for name in taken if taken.count(name) > 1})
        if twice:
            places = [role for role, name in (*asked.items(), *roles) if name == twice[0]]
            both = " and ".join(f"{each}=" for each in dict.fromkeys(places))
            raise ValueError(
                f"log: the column {twice[0]!r} is asked for "
                + (f"in two roles, {both}" if " " in both else f"twice in {both}")
            )
        if propensity is not None and asked["pulls"] is not None:
            raise ValueError("propensity: each pull has its own; the log needs one row per pull")
        made: Any = cls(**asked, context=features, said=tuple(said), **others)  # type: ignore[arg-type]
        return replace(made, task_features=of_tasks)

    @property
    def summed(self) -> bool:
        """Whether a row sums up several pulls."""
        return self.pulls is not None


def _listed(role: str, names: Any) -> tuple[str, ...]:
    """Several columns; one may stand by itself."""
    if names is not None and not isinstance(names, (str, Sequence)):
        raise TypeError(f"{role} must be a list of columns, got {validation.shown(names)}")
    return (names,) if isinstance(names, str) else tuple(names or ())


def _guess(role: str, names: Sequence[str], taken: Sequence[str]) -> str | None:
    free = {name.strip().lower(): name for name in names if name not in taken}
    likely = [guess for guess in GUESSES[role] if len(guess) > 1 or role == "reward"]
    return next((free[guess] for guess in likely if guess in free), None)


def _listing(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")


def _unknown(role: str, name: str, names: Sequence[str], where: str) -> None:
    raise ValueError(
        f"{role}={validation.shown(name)} is no column of {where}; it has {_listing(names)}"
    )


def _lacking(roles: Sequence[str], names: Sequence[str], where: str, *, summed: bool) -> None:
    """Refuse a log of which some roles were neither named nor guessed, all of them at once."""
    looks = " or ".join(", ".join(f"the {each}" for each in roles).rsplit(", ", 1))
    wanted = " and ".join(", ".join(f"{each}=..." for each in roles).rsplit(", ", 1))
    several = "" if summed else " (and pulls=... if a row sums up several pulls)"
    raise ValueError(
        f"no column of {where} looks like {looks}: pass {wanted}{several}; it has {_listing(names)}"
    )


def _elsewhere(role: str, name: str, other: str, names: Sequence[str], where: str) -> None:
    """Refuse a log whose column that looks like a role was named for another."""
    several = other in ("context", "task_features")
    raise ValueError(
        f"{other}: the column {name!r} of {where} looks like the {role}, which every log needs, "
        "and a column has one role: "
        + (f"leave it out of {other}=" if several else f"take another for {other}=")
        + f", or pass {role}=... if another column is the {role}; {where} has {_listing(names)}"
    )
