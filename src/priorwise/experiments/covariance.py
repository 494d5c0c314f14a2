"""What a wrong covariance costs: believed priors with the right mean whose width, correlation, or
one block of correlations is wrong. Thompson sampling and the exact knowledge gradient, on the
paper's Gaussian and linear problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.core.types import FloatArray
from priorwise.experiments import judging, problems
from priorwise.experiments.experiment import Arrays, Block, Claim, ranges, stacked
from priorwise.figures.tables import Table
from priorwise.meta.exploration import replicate_seed
from priorwise.policies.exact_knowledge_gradient import ExactKnowledgeGradient
from priorwise.policies.thompson import ThompsonSampling
from priorwise.simulate.run import simulate

TS: Final = "Thompson sampling"
KG: Final = "exact knowledge gradient"
POLICIES: Final[dict[str, Policy]] = {
    TS: ThompsonSampling(),
    KG: ExactKnowledgeGradient("online"),
}
PROBLEMS: Final = ("gaussian", "linear")
CORRELATION: Final = 0.9
"""The true one, in both blocks."""

GRIDS: Final[dict[str, tuple[float, ...]]] = {
    "width": (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0),
    "correlation": (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    "one block": (-0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
}
TRUTH: Final = {"width": 1.0, "correlation": CORRELATION, "one block": CORRELATION}
WRONG_WIDTHS: Final = tuple(x for x in GRIDS["width"] if x != TRUTH["width"])
TASKS: Final = 500  # in a replicate
REPLICATES: Final = 40
SIZE: Final = 10  # replicates in a block
POINTS: Final = tuple((sweep, x) for sweep, grid in GRIDS.items() for x in grid)


def constants() -> str:
    """What the results depend on."""
    return repr((POLICIES, PROBLEMS, GRIDS, TASKS))


def blocks(replicates: int) -> list[Block]:
    """A few replicates of one problem at a time."""
    most = min(replicates, REPLICATES)
    return [each for name in PROBLEMS for each in ranges(f"covariance {name}", most, SIZE)]


def believed(prior: Any, sweep: str, x: float) -> Any:
    """The prior with a wrong covariance: ``x`` times as wide, or with correlation ``x`` in both
    blocks or in the first.
    """
    if sweep == "width":
        return prior.replaced(cov=x * prior.cov)
    cov = prior.cov.copy()
    for first in (0, 3) if sweep == "correlation" else (0,):
        block = slice(first, first + 3)
        cov[block, block] = prior.cov[0, 0] * (x + (1.0 - x) * np.eye(3))
    return prior.replaced(cov=cov)


def run(block: Block, seed: int) -> Arrays:
    """Mean reward of a task, ``(replicate, policy, point)``: all policies and believed priors play
    the same tasks with the same noise.
    """
    problem = problems.ALL[block.part.removeprefix("covariance ")]()
    wrong = [believed(problem.prior, sweep, x) for sweep, x in POINTS]
    out = np.empty((block.count, len(POLICIES), len(POINTS)))
    for row, replicate in enumerate(block.replicates):
        size: Any = {"tasks": TASKS, "seed": replicate_seed(seed, replicate)}
        for column, policy in enumerate(POLICIES.values()):
            for place, prior in enumerate(wrong):
                ran = simulate(
                    problem.prior, policy, believed=prior, horizon=problem.horizon, **size
                )
                out[row, column, place] = ran.mean_reward
    return {"rewards": out}


def table(done: Sequence[tuple[Block, Arrays]]) -> Table:
    """Rewards by problem, policy, sweep, misspecification and replicate."""
    names = ("problem", "policy", "sweep", "misspecification", "replicate", "reward")
    rows = [
        (problem, policy, *POINTS[place], replicate, rewards[replicate, column, place])
        for problem in PROBLEMS
        for rewards in [stacked(done, f"covariance {problem}").get("rewards", np.empty((0, 0, 0)))]
        for column, policy in enumerate(POLICIES)
        for place in range(len(POINTS))
        for replicate in range(len(rewards))
    ]
    return {name: np.array([row[at] for row in rows]) for at, name in enumerate(names)}


def earned(rewards: Table, problem: str, policy: str, sweep: str, x: float) -> FloatArray:
    """Mean reward of each replicate, in order."""
    chosen = (rewards["problem"] == problem) & (rewards["policy"] == policy)
    chosen &= (rewards["sweep"] == sweep) & (rewards["misspecification"] == x)
    return np.asarray(rewards["reward"][chosen][np.argsort(rewards["replicate"][chosen])])


def claims(rewards: Table) -> list[Claim]:
    """What a wrong covariance does to each policy."""

    def reward(problem: str, policy: str, sweep: str, x: float | None = None) -> FloatArray:
        return earned(rewards, problem, policy, sweep, TRUTH[sweep] if x is None else x)

    def loss(problem: str, policy: str, sweep: str, x: float) -> FloatArray:
        return reward(problem, policy, sweep) - reward(problem, policy, sweep, x)

    out = []
    for problem in np.unique(rewards["problem"]).tolist():
        independent = "correlation", 0.0
        out += [
            judging.above_all(
                f"{problem}: the exact knowledge gradient earns most with the right width",
                {f"width {x:g}": loss(problem, KG, "width", x) for x in WRONG_WIDTHS},
                source="ours",
            ),
            judging.above(
                f"{problem}: Thompson sampling earns more with a quarter of the width",
                reward(problem, TS, "width", 0.25),
                reward(problem, TS, "width"),
                source="ours",
            ),
            judging.above(
                f"{problem}: the exact knowledge gradient that believes independence beats "
                "Thompson sampling with the true prior",
                reward(problem, KG, *independent),
                reward(problem, TS, "correlation"),
                source="ours",
            ),
            judging.above(
                f"{problem}: believing independence costs Thompson sampling more than look-ahead",
                loss(problem, TS, *independent),
                loss(problem, KG, *independent),
                source="ours",
            ),
            judging.above_all(
                f"{problem}: the farther the correlation of one block from the truth, the less "
                "Thompson sampling earns",
                {
                    f"{low:g} to {high:g}": reward(problem, TS, "one block", high)
                    - reward(problem, TS, "one block", low)
                    for low, high in pairwise(GRIDS["one block"])
                },
                source="ours",
            ),
        ]
    return out
