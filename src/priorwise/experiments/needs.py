"""How many tasks it takes to learn a prior, against the number of arms and the probability of
failure, beside the theory's rates and what its lemmas certify.

Errors fall as ``T^-1/2``, so a run of T tasks whose total variation from the truth has the (1 -
delta)-quantile q says that ``T (q / eps)^2`` tasks reach eps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priorwise.experiments.experiment import Arrays, Block, Claim, ranges, stacked
from priorwise.families.beta.lemmas import beta_tasks
from priorwise.families.beta.moments import BetaMoments
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.gaussian.lemmas import gaussian_tasks
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.figures.tables import Table
from priorwise.meta.complexity.theory import theory_rate
from priorwise.meta.exploration import OneArmBlocks, PairedArms, explored, replicate_seed
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.distance.measures import total_variation

EPS: Final = 0.1
DELTAS: Final = (0.3, 0.1, 0.05)
PULLS: Final = 10  # of a task with Bernoulli rewards
DRAWS: Final = 2000  # of an estimated total variation
REPLICATES: Final = 60
SIZE: Final = 10  # replicates in a block


@dataclass(frozen=True)
class Learned:
    """A prior that is learned, for several numbers of arms: from which pulls, by which estimator,
    from how many tasks, and at which rate by theory.
    """

    arms: tuple[int, ...]
    prior: Callable[[int], Any]
    estimator: Callable[[int], Any]
    exploration: Callable[[int], Any]
    horizon: int
    tasks: Callable[[int], int]
    power: int  # of the number of arms in the theory's rate
    certified: Callable[[Any, float], float]
    known: dict[str, bool]


def _normal(arms: int) -> GaussianPrior:
    return GaussianPrior(np.zeros(arms), np.eye(arms))


LEARNED: Final = {
    "Beta": Learned(
        (4, 8, 16), lambda a: BetaPrior([2.0] * a, [3.0] * a), lambda _: BetaMoments(),
        OneArmBlocks, PULLS, lambda a: 100 * a**2, 2,
        lambda prior, delta: beta_tasks(prior, EPS, delta, pulls=PULLS), {},
    ),
    "normal, covariance known": Learned(
        (4, 8, 16), _normal,
        lambda a: GaussianMoments("no-cov", arms=a, cov=np.eye(a), noise_var=1.0),
        lambda _: Uniform(), 1, lambda a: 50 * a**2, 2,
        lambda prior, delta: gaussian_tasks(prior, EPS, delta, known_cov=True), {"known_cov": True},
    ),
    "normal, covariance unknown": Learned(
        (2, 4, 8), _normal, lambda a: GaussianMoments("difference", arms=a, noise_var=1.0),
        PairedArms, 2, lambda a: 40 * a**4, 4,
        lambda prior, delta: gaussian_tasks(prior, EPS, delta), {},
    ),
}  # fmt: skip


def constants() -> str:
    """What the results depend on."""
    sizes = [(each.arms, [each.tasks(a) for a in each.arms]) for each in LEARNED.values()]
    return repr((list(LEARNED), sizes, EPS, DELTAS, PULLS, DRAWS))


def blocks(replicates: int) -> list[Block]:
    """A few replicates of one prior at a time."""
    most = min(replicates, REPLICATES)
    return [each for name in LEARNED for each in ranges(f"needs {name}", most, SIZE)]


def run(block: Block, seed: int) -> Arrays:
    """Total variation of each fit from the truth, ``(replicate, number of arms)``."""
    learned = LEARNED[block.part.removeprefix("needs ")]
    return {
        "tv": np.array(
            [[_distance(learned, a, seed, r) for a in learned.arms] for r in block.replicates]
        )
    }


def _distance(learned: Learned, arms: int, seed: int, replicate: int) -> float:
    prior, own = learned.prior(arms), replicate_seed(seed, replicate)
    size = learned.tasks(arms), learned.horizon
    played = explored(prior, learned.exploration(arms), *size, seed=own)
    fitted = learned.estimator(arms).fit(played).prior
    return total_variation(prior, fitted, draws=DRAWS, seed=own).value


def table(done: Sequence[tuple[Block, Arrays]]) -> Table:
    """Tasks needed, certified, and the rate for C = 1, a row for each prior, arms and delta."""
    names = ("prior", "arms", "delta", "tasks", "certified", "rate")
    rows = []
    for name, learned in LEARNED.items():
        found = stacked(done, f"needs {name}")
        for column, a in enumerate(learned.arms if found else ()):
            prior = learned.prior(a)
            for delta in DELTAS:
                quantile = np.quantile(found["tv"][:, column], 1.0 - delta)
                need = learned.tasks(a) * (quantile / EPS) ** 2
                rate = theory_rate(prior, EPS, delta, **learned.known).tasks
                rows.append((name, a, delta, need, learned.certified(prior, delta), rate))
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def claims(needs: Table) -> list[Claim]:
    """What the theorems say of the number of tasks."""
    out = []
    for name, learned in LEARNED.items():
        rows = (needs["prior"] == name) & (needs["delta"] == DELTAS[1])
        logs = {each: np.log(needs[each][rows]) for each in ("arms", "tasks", "rate")}
        found, rate = (float(np.polyfit(logs["arms"], logs[y], 1)[0]) for y in ("tasks", "rate"))
        statement = f"{name}: the tasks needed grow with the arms as the rate does, about A^"
        least, most = sorted((rate, float(learned.power)))
        needed = f"power {least:.2f} to {most:.2f}, but for 0.4"
        near = least - 0.4 <= found <= most + 0.4
        out.append(
            Claim(f"{statement}{learned.power}", f"power {found:.2f}", near, "paper", needed)
        )
    last, first = (needs["tasks"][needs["delta"] == each] for each in (DELTAS[-1], DELTAS[0]))
    most = np.log(DELTAS[-1]) / np.log(DELTAS[0])
    ratio = last / first
    statement = f"From δ = {DELTAS[0]} to {DELTAS[-1]} they grow no faster than log(1/δ)"
    said = f"{ratio.min():.2f} to {ratio.max():.2f} times"
    needed = f"1 to {most:.2f} times, but for a third, the noise of a quantile"
    holds = bool((ratio >= 1.0).all() and (ratio <= most * 4.0 / 3.0).all())
    out.append(Claim(statement, said, holds, "paper", needed))
    times = needs["certified"] / needs["tasks"]
    statement = "The lemmas with their constants ask for more tasks than it takes"
    said = f"{times.min():.2g} to {times.max():.2g} times as many"
    out.append(Claim(statement, said, bool((times >= 1.0).all()), "ours", "at least as many"))
    return out
