"""Reward against misspecification, case by case, with the oracle, a vague prior and the theorem's
bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.estimates import mean_estimate
from priorwise.core.hashing import mix
from priorwise.core.types import FloatArray
from priorwise.experiments.experiment import Arrays, Block, Claim, Files, Tables, ranges, stacked
from priorwise.experiments.general import (
    control,
    hidden_state,
    logistic,
    lqg,
    normal_gamma,
    own_contexts,
    particles,
    tabular_mdp,
)
from priorwise.experiments.general.case import Case
from priorwise.experiments.judging import SIGMAS
from priorwise.figures.misspecification import misspecification
from priorwise.figures.tables import Table
from priorwise.simulate.run import simulate

CASES: Final[dict[str, Case]] = {
    "normal-gamma": normal_gamma.CASE,
    "tabular-mdp": tabular_mdp.CASE,
    "linear-quadratic": control.CASE,
    "hidden-state": hidden_state.CASE,
    "lqg": lqg.CASE,
    "logistic": logistic.CASE,
    "own-contexts": own_contexts.CASE,
    "particles": particles.CASE,
}
ORACLE: Final = "true prior"
VAGUE: Final = "vague prior"
WRONG: Final = "wrong prior"
SIZE: Final = 10  # replicates in a block
MASK: Final = (1 << 64) - 1


@final
@dataclass(frozen=True)
class General:
    """One figure per case: what a policy earns that believes the true prior, a wrong one, a vague
    one.
    """

    name: str = "general"
    title: str = "Other rewards and states: reward against misspecification"

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        return {
            name: repr((
                case.true(), [case.wrong(x) for x in case.grid], case.vague(), case.grid,
                case.policy, case.horizon, case.tasks,
            ))
            for name, case in CASES.items()
        }  # fmt: skip

    def blocks(self, replicates: int) -> Sequence[Block]:
        """A few replicates of a case, or its bounds, at a time."""
        return [
            block
            for name, case in CASES.items()
            for block in (
                *ranges(f"bounds {name}", len(case.grid), SIZE),
                *ranges(name, replicates, SIZE),
            )
        ]

    def run(self, block: Block, seed: int) -> Arrays:
        """Simulate, or evaluate the theorem."""
        name = block.part.removeprefix("bounds ")
        if block.part != name:
            return _limits(CASES[name], block, seed)
        return {"rewards": np.stack([_rewards(CASES[name], r, seed) for r in block.replicates])}

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Return the tables ``rewards`` and ``bounds``."""
        rewards, bounds = [], []
        for name, case in CASES.items():
            earned, limits = stacked(done, name), stacked(done, f"bounds {name}")
            if earned:
                rewards += _rows(name, case, earned["rewards"])
            for x, numbers in zip(case.grid, limits.get("limits", ()), strict=False):
                bounds.append((name, x, *numbers))
        titles = ("case", "believed", "misspecification", "replicate", "reward")
        return {
            "rewards": _table(titles, rewards),
            "bounds": _table(("case", "misspecification", "tv", "bound", "trivial"), bounds),
        }

    def figures(self, tables: Tables) -> dict[str, Files]:
        """One for each case."""
        out: dict[str, Files] = {}
        for name, case in CASES.items():
            rewards, bounds = (_of(tables[table], name) for table in ("rewards", "bounds"))
            if rewards["case"].size:
                out[name] = misspecification(rewards, bounds, case.title, case.axis, case.note)
        return out

    def claims(self, tables: Tables) -> list[Claim]:
        """What the bound, the named wrong prior and the vague prior do."""
        out = []
        for name, case in CASES.items():
            rewards, bounds = (_of(tables[table], name) for table in ("rewards", "bounds"))
            if not rewards["case"].size:
                continue
            oracle = earned_by(rewards, ORACLE)
            gaps = {x: mean_estimate(earned_by(rewards, WRONG, x) - oracle) for x in case.grid}
            holds = [
                abs(gap.mean) <= bound + SIGMAS * gap.std_error
                for gap, bound in zip(gaps.values(), bounds["bound"], strict=True)
            ]
            said = f"{sum(holds)} of {len(holds)} misspecifications"
            statement = f"{case.title}: the reward changes by no more than the bound"
            out.append(Claim(statement, said, all(holds), "paper", "all, but for noise"))
            for what, lost in (
                (case.named[1], oracle - earned_by(rewards, WRONG, case.named[0])),
                ("the vague prior", oracle - earned_by(rewards, VAGUE)),
            ):
                loss = mean_estimate(lost)
                measured = f"short by {loss.mean:.3f} ± {loss.std_error:.3f}"
                clear = len(lost) > 1 and loss.mean > SIGMAS * loss.std_error
                needed = f"more than {SIGMAS:g} standard errors, task by task"
                out.append(Claim(f"{case.title}: {what} loses", measured, clear, "ours", needed))
        return out


def earned_by(rewards: Table, believed: str, misspecification: float = np.nan) -> FloatArray:
    """Mean reward of each replicate under a prior, in order."""
    chosen = rewards["believed"] == believed
    if believed == WRONG:
        chosen &= rewards["misspecification"] == misspecification
    order = np.argsort(rewards["replicate"][chosen])
    return np.asarray(rewards["reward"][chosen][order])


def _rewards(case: Case, replicate: int, seed: int) -> FloatArray:
    """Mean reward of a task under the true prior, the vague one and each wrong one, on the same
    tasks and noise.
    """
    true = case.true()
    believed = [true, case.vague(), *(case.wrong(x) for x in case.grid)]
    options: Any = {
        "horizon": case.horizon,
        "tasks": case.tasks,
        "seed": mix(mix(seed) + replicate & MASK),
    }
    runs = [simulate(true, case.policy, believed=each, **options) for each in believed]
    return np.array([run.mean_reward for run in runs])


def _limits(case: Case, block: Block, seed: int) -> Arrays:
    true = case.true()
    rows = []
    for x in case.grid[block.first : block.first + block.count]:
        found = case.limit(true, case.wrong(x), case.policy, case.horizon, seed)
        rows.append((found.tv, found.reward, found.trivial))
    return {"limits": np.array(rows)}


def _rows(name: str, case: Case, rewards: FloatArray) -> list[tuple[Any, ...]]:
    believed = [(ORACLE, np.nan), (VAGUE, np.nan), *((WRONG, x) for x in case.grid)]
    return [
        (name, *each, replicate, value)
        for replicate, row in enumerate(rewards)
        for each, value in zip(believed, row.tolist(), strict=True)
    ]


def _table(titles: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    return {title: np.array([row[k] for row in rows]) for k, title in enumerate(titles)}


def _of(table: Table, case: str) -> Table:
    chosen = table["case"] == case
    return {name: column[chosen] for name, column in table.items()}


EXPERIMENT: Final = General()
