"""Which column of a log means what: as the caller says, or guessed and said aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from priorwise.core.errors import ArgumentError, ArgumentTypeError, option
from priorwise.logs.naming import (
    BY_WORD,
    GUESSES,
    UnsureError,
    candidates_of,
    is_unlikely,
    matches,
)

ROLES: Final = (
    "task", "action", "reward", "pulls", "squares", "context", "time", "propensity",
    "task_features", "rate",
)  # fmt: skip
"""What a column of a log may mean."""


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
    rate: str | None = None  # stands for the reward, which is this share of the pulls
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
        rate: str | None = None,
    ) -> Columns:
        """Take what was asked for, and guess what was not: by names that are common, then by words
        in names. Where several columns are as likely, or none is, the error proposes all arguments.

        A log with a column of pulls is one of sums; a column ``n`` alone says too little for that
        and is taken for one only where it is asked for.
        """
        if rate is not None and reward is not None:
            raise ArgumentError(
                "rate", "stands for the reward, which is given too", cure="leave one of them out"
            )
        asked = {"task": task, "action": action, "reward": reward, "pulls": pulls}
        asked["squares"] = squares
        features, of_tasks = _listed("context", context), _listed("task_features", task_features)
        # propensities and rates are never guessed here, and times by what they hold
        others = {"time": time, "propensity": propensity, "rate": rate}
        roles = (
            *asked.items(), *others.items(), *(("context", each) for each in features),
            *(("task_features", each) for each in of_tasks),
        )  # fmt: skip
        for role, name in roles:
            if name is not None and name not in names:
                _unknown(role, name, names, where)
        said: list[str] = []
        taken = [name for _, name in roles if name is not None]
        likely = matches([name for name in names if name not in taken])
        single = reward is not None and reward.lower() == "reward"
        if features or propensity is not None or single or 0 in likely["reward"]:
            likely["pulls"].pop(
                BY_WORD, None
            )  # one row per pull, or names as this library has them
        found = {role: candidates_of(role, each) for role, each in likely.items()}
        none = reward is None and rate is None and not found["reward"]
        if none and found["rate"] and (pulls is not None or found["pulls"]):
            found["reward"] = found["rate"]
            others["rate"] = found["rate"][0]
        if others["rate"] is not None:  # where the reward is read from
            asked["reward"] = rate
        several: dict[str, list[str]] = {}
        lacking: list[str] = []
        for role in ("task", "action", "reward", "pulls", "squares"):
            if asked[role] is not None or (role == "squares" and asked["pulls"] is None):
                continue
            if not found[role]:
                asked_for = {each: name for name, each in roles if each is not None}
                elsewhere = _guess(role, list(asked_for))
                other = asked_for.get(elsewhere or "")
                if role not in ("pulls", "squares"):
                    if elsewhere is not None:
                        _elsewhere(role, elsewhere, str(other), names, where)
                    lacking.append(role)
                if role == "pulls" and other in ("context", "task_features"):
                    said.append(
                        f"the column {elsewhere!r} stands in {option(other)} and is not taken for "
                        f"{option('pulls')}"
                    )
                continue
            name = asked[role] = found[role][0]
            taken.append(name)
            meant = "rate" if role == "reward" and others["rate"] is not None else role
            if len(found[role]) > 1:
                several[meant] = found[role]
            elif name != meant:
                said.append(f"the column {name!r} is taken for {option(meant)}")
        if several or lacking:
            earned = "reward" if others["rate"] is None else "rate"
            proposed = {"task": asked["task"], "action": asked["action"], earned: asked["reward"]}
            proposed |= {"pulls": asked["pulls"], "squares": squares}
            proposed |= {"time": time, "propensity": propensity}
            lists = {"context": features, "task_features": of_tasks}
            _unsure(several, lacking, names, where, taken, proposed, lists)
        if others["rate"] is not None and asked["pulls"] is None:
            raise ArgumentError(
                "rate", f"needs {option('pulls')}, the number of pulls that it is a share of"
            )
        if squares is not None and asked["pulls"] is None:
            raise ArgumentError("squares", f"needs {option('pulls')}, the number of pulls")
        twice = sorted({name for name in taken if taken.count(name) > 1})
        if twice:
            places = [role for role, name in (*asked.items(), *roles) if name == twice[0]]
            both = " and ".join(option(each) for each in dict.fromkeys(places))
            raise ArgumentError(
                "log",
                f"cannot have the column {twice[0]!r} "
                f"{f'in two roles, {both}' if ' ' in both else f'twice in {both}'}",
            )
        if propensity is not None and asked["pulls"] is not None:
            raise ArgumentError("propensity", f"needs one row per pull, without {option('pulls')}")
        made: Any = cls(**asked, context=features, said=tuple(said), **others)  # type: ignore[arg-type]
        return replace(made, task_features=of_tasks)

    @property
    def summed(self) -> bool:
        """Whether a row sums up several pulls."""
        return self.pulls is not None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that must be numbers."""
        return tuple(
            dict.fromkeys(filter(None, (self.reward, self.pulls, self.squares, *self.context)))
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """All columns as the arguments that name them."""
        earned = "reward" if self.rate is None else "rate"
        single: dict[str, Any] = {"task": self.task, "action": self.action, earned: self.reward}
        single |= {name: getattr(self, name) for name in ("pulls", "squares", "time", "propensity")}
        lists = {"context": list(self.context), "task_features": list(self.task_features)}
        return {role: given for role, given in (single | lists).items() if given}


def _listed(role: str, names: Any) -> tuple[str, ...]:
    """Several columns; one may stand by itself."""
    if names is not None and not isinstance(names, (str, Sequence)):
        raise ArgumentTypeError(role, "must be a list of columns", got=names)
    return (names,) if isinstance(names, str) else tuple(names or ())


def _guess(role: str, names: Sequence[str]) -> str | None:
    free = {name.strip().lower(): name for name in names}
    likely = [guess for guess in GUESSES[role] if len(guess) > 1 or role == "reward"]
    return next((free[guess] for guess in likely if guess in free), None)


def _listing(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")


def _unknown(role: str, name: str, names: Sequence[str], where: str) -> None:
    raise ArgumentError(role, f"must be a column of {where}, which has {_listing(names)}", got=name)


def _unsure(
    several: Mapping[str, Sequence[str]],
    lacking: Sequence[str],
    names: Sequence[str],
    where: str,
    taken: Sequence[str],
    proposed: Mapping[str, str | None],
    lists: Mapping[str, tuple[str, ...]],
) -> None:
    """Reject a log whose roles are not clear, all of them at once, and propose what to pass."""
    problems = [
        f"{' and '.join(map(repr, alike))} of {where} may each be the {role}"
        for role, alike in several.items()
    ]
    arguments: dict[str, Any] = {
        role: name for role, name in proposed.items() if name is not None or role in lacking
    }
    if lacking:
        looks = " or ".join(", ".join(f"the {each}" for each in lacking).rsplit(", ", 1))
        sums = (
            ""
            if proposed["pulls"]
            else f"; {option('pulls')} is needed if a row sums up several pulls"
        )
        problems.append(f"no column of {where} looks like {looks} (it has {_listing(names)}{sums})")
        alike = [name for each in several.values() for name in each]
        left = [name for name in names if name not in (*taken, *alike) and not is_unlikely(name)]
        if len(left) == len(lacking):
            arguments |= dict(zip(lacking, left, strict=True))
    arguments |= {role: list(each) for role, each in lists.items() if each}
    raise UnsureError("log", "; ".join(problems), arguments)


def _elsewhere(role: str, name: str, other: str, names: Sequence[str], where: str) -> None:
    """Refuse a log whose column that looks like a role was named for another."""
    several = other in ("context", "task_features")
    raise ArgumentError(
        other,
        f"takes the column {name!r} of {where}, which looks like the {role} that every log "
        f"needs, of {_listing(names)}",
        cure=f"{'leave it out' if several else 'take another'}, or pass {option(role, ...)}",
    )
