"""Beyond the paper: learners that never stop learning, policies that earn more, and what a wrong
covariance costs, on the paper's problems and its tasks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.estimates import mean_estimate
from priorwise.core.protocols import Policy
from priorwise.experiments import covariance, problems
from priorwise.experiments.experiment import Arrays, Block, Claim, Files, Tables, ranges, stacked
from priorwise.experiments.problems import Problem
from priorwise.families.finite.counts import FiniteCounts
from priorwise.families.finite.likelihood.estimator import FiniteMarginalLikelihood
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.likelihood.estimator import LinearMarginalLikelihood
from priorwise.families.linear.moments import LinearMoments
from priorwise.figures.covariance import covariances
from priorwise.figures.learning import learning_curves
from priorwise.figures.tables import Table, tidy
from priorwise.fitting.fits import Estimator
from priorwise.meta.learners.empirical_bayes import EmpiricalBayes
from priorwise.meta.learners.explore_then_commit import ExploreThenCommit
from priorwise.meta.learners.learner import FixedPrior, MetaLearner
from priorwise.meta.learners.simulate_meta import simulate_meta
from priorwise.policies.exact_knowledge_gradient import ExactKnowledgeGradient
from priorwise.policies.posterior_sampling import PosteriorSampling
from priorwise.policies.receding_horizon import KnowledgeGradient
from priorwise.policies.thompson import ThompsonSampling

TS: Final = ThompsonSampling()
SUM: Final = PosteriorSampling(8, "sum")
EXACT_KG: Final = ExactKnowledgeGradient("online")
KG: Final = KnowledgeGradient(10, 10, ties="random", when_certain="best")


@dataclass(frozen=True)
class Sweep:
    """A problem, the learners that play it, and for how long; the paper lacks ``ours``."""

    problem: Callable[[], Problem[Any]]
    title: str
    episodes: int
    grid: tuple[int, ...]
    paper: Mapping[str, MetaLearner]
    ours: Mapping[str, MetaLearner]
    # learner, its oracle, first and last episode of a shortfall
    windows: tuple[tuple[str, str, int, int], ...]

    @property
    def learners(self) -> dict[str, MetaLearner]:
        """All of them, the paper's first."""
        return {**self.paper, **self.ours}


_GAUSSIAN: Final = GaussianMarginalLikelihood(noise_var=1.0)
_SPHERE: Final[Any] = {"contexts": SphereContexts(arms=6), "noise_var": 1.0}
_LINEAR: Final = LinearMarginalLikelihood(**_SPHERE)
_WRONG: Final = {name: make().misspecified for name, make in problems.ALL.items()}
_MOMENTS: Final = GaussianMoments("full", noise_var=1.0)
_COUNTS: Final = FiniteCounts(_WRONG["discrete"], smoothing=0.0)
LIMITS: Final[dict[tuple[str, str, int], float]] = {
    ("gaussian", "Empirical Bayes, TS", 200): 0.43,
    ("gaussian", "Empirical Bayes, TS", 1000): 0.13,
    ("gaussian", "Empirical Bayes, exact KG", 200): 1.05,
    ("gaussian", "Empirical Bayes, exact KG", 1000): 0.45,
}
SHARES: Final[dict[tuple[str, str], float]] = {
    ("linear", "Empirical Bayes, TS"): 0.95,
    ("discrete", "Empirical Bayes, KG"): 0.97,
}
SIZE: Final = 5  # replicates in a block


def _paper(
    problem: str, name: str, policy: Policy, how: str, estimator: Estimator, sizes: Sequence[int]
) -> dict[str, MetaLearner]:
    """The paper's learners: the oracle, the wrong prior, and T0 of several sizes."""
    learners: dict[str, MetaLearner] = {
        f"Oracle{name}": FixedPrior(policy),
        f"Mis{name}": FixedPrior(policy, _WRONG[problem]),
    }
    for size in sizes:
        committed = ExploreThenCommit(size, estimator, policy=policy)
        learners[f"Meta{name}{how} {size}"] = committed
    return learners


SWEEPS: Final[dict[str, Sweep]] = {
    "gaussian": Sweep(
        problem=problems.gaussian,
        title="Gaussian bandit, first 1,000 episodes",
        episodes=1000,
        grid=tuple(range(10, 1001, 10)),
        paper=_paper("gaussian", "TS", TS, ":full", _MOMENTS, (100, 200, 400)),
        ours={
            "Empirical Bayes, TS": EmpiricalBayes(_GAUSSIAN, TS),
            "Empirical Bayes, sum of 8": EmpiricalBayes(_GAUSSIAN, SUM),
            "Empirical Bayes, exact KG": EmpiricalBayes(_GAUSSIAN, EXACT_KG),
            "Oracle, exact KG": FixedPrior(EXACT_KG),
        },
        windows=(
            ("Empirical Bayes, TS", "OracleTS", 1, 200),
            ("Empirical Bayes, TS", "OracleTS", 1, 1000),
            ("Empirical Bayes, exact KG", "Oracle, exact KG", 1, 200),
            ("Empirical Bayes, exact KG", "Oracle, exact KG", 1, 1000),
        ),
    ),
    "linear": Sweep(
        problem=problems.linear,
        title="Linear contextual bandit, first 300 episodes",
        episodes=300,
        grid=tuple(range(5, 301, 5)),
        paper=_paper("linear", "TS", TS, ":full", LinearMoments(**_SPHERE), (50, 100)),
        ours={"Empirical Bayes, TS": EmpiricalBayes(_LINEAR, TS)},
        windows=(("Empirical Bayes, TS", "OracleTS", 51, 100),),
    ),
    "discrete": Sweep(
        problem=problems.discrete,
        title="Discrete bandit, 400 episodes",
        episodes=400,
        grid=tuple(range(5, 401, 5)),
        paper=_paper("discrete", "KG", KG, "", _COUNTS, (25, 50, 100)),
        ours={
            "Empirical Bayes, KG": EmpiricalBayes(FiniteMarginalLikelihood(_WRONG["discrete"]), KG)
        },
        windows=(("Empirical Bayes, KG", "OracleKG", 101, 400),),
    ),
}


@final
@dataclass(frozen=True)
class Ours:
    """Empirical Bayes and better policies beside the paper's learners, on the same tasks, and a
    sweep of wrong covariances.
    """

    name: str = "ours"
    title: str = "Beyond the paper: learners that never stop learning"

    def constants(self) -> Mapping[str, Any]:
        """What the results depend on."""
        sweeps = SWEEPS.items()
        learners = {part: [repr(s.learners), s.episodes, list(s.grid)] for part, s in sweeps}
        return learners | {"covariance": covariance.constants()}

    def blocks(self, replicates: int) -> Sequence[Block]:
        """Few replicates of each problem at a time."""
        learners = [block for part in SWEEPS for block in ranges(part, replicates, SIZE)]
        return learners + covariance.blocks(replicates)

    def run(self, block: Block, seed: int) -> Arrays:
        """Run every learner, or every policy with every wrong covariance, on the replicates of a
        block.
        """
        if block.part.startswith("covariance "):
            return covariance.run(block, seed)
        sweep = SWEEPS[block.part]
        problem = sweep.problem()
        size: Any = {"episodes": sweep.episodes, "replicates": block.count, "first": block.first}
        size |= {"jobs": 1}
        runs = [
            simulate_meta(
                problem.prior, learner, horizon=problem.horizon, seed=seed, **size
            ).rewards
            for learner in sweep.learners.values()
        ]
        rewards = np.stack(runs, axis=1)  # (replicate, learner, episode)
        grid = np.array(sweep.grid)
        curves = np.cumsum(rewards, axis=2)[:, :, grid - 1] / grid
        return {"curves": curves, "rewards": rewards}

    def tables(self, done: Sequence[tuple[Block, Arrays]]) -> dict[str, Table]:
        """Learning curves, the paired shortfall from the oracle that plays the same policy, and
        rewards under a wrong covariance, by problem.
        """
        curves: list[Table] = []
        falls: list[Table] = []
        for part, sweep in SWEEPS.items():
            arrays = stacked(done, part)
            if arrays:
                curves.append(_curves(part, sweep, arrays["curves"]))
                falls += _shortfalls(part, sweep, arrays["rewards"])
        wrong = covariance.table(done)
        return {"curves": _joined(curves), "shortfalls": _joined(falls), "covariance": wrong}

    def figures(self, tables: Tables) -> dict[str, Files]:
        """Learning curves of each problem, ours dashed and starred, and rewards under a wrong
        covariance.
        """
        curves = tables["curves"]
        out: dict[str, Files] = {}
        for problem, sweep in SWEEPS.items():
            chosen = curves["problem"] == problem
            if chosen.any():
                table = {name: column[chosen] for name, column in curves.items()}
                ours = np.unique(table["algorithm"][table["ours"]]).tolist()
                out[problem] = learning_curves(table, sweep.title, ours=ours)
        if tables["covariance"]["problem"].size:
            out["covariance"] = covariances(tables["covariance"], covariance.TRUTH)
        return out

    def claims(self, tables: Tables) -> list[Claim]:
        """How far each learner is short of its oracle, against what we promise, and what a wrong
        covariance costs.
        """
        table, out = tables["shortfalls"], []
        keys = [table[name] for name in ("problem", "algorithm", "first", "last")]
        for key in sorted(set(zip(*keys, strict=True))):
            problem, algorithm, first, last = map(str, key)
            same = [column == each for column, each in zip(keys, key, strict=True)]
            chosen = np.all(same, axis=0)
            fall = mean_estimate(table["shortfall"][chosen])
            reached = 1 - fall.mean / float(np.mean(table["oracle"][chosen]))
            where = f"{problem}: {algorithm}, episodes {first} to {last}"
            measured = f"short by {fall.mean:.3f} ± {fall.std_error:.3f}, "
            measured += f"{100 * reached:.1f} % of the oracle"
            if (limit := LIMITS.get((problem, algorithm, int(last)))) is not None:
                said = f"{where}: short of the oracle by at most {limit:g}"
                out.append(Claim(said, measured, fall.mean <= limit, "ours"))
            if (share := SHARES.get((problem, algorithm))) is not None:
                said = f"{where}: at least {100 * share:g} % of the oracle"
                out.append(Claim(said, measured, reached >= share, "ours"))
        return out + covariance.claims(tables["covariance"])


def _curves(part: str, sweep: Sweep, averages: np.ndarray) -> Table:
    """``MetaTS:full 200`` is the algorithm ``MetaTS:full`` with T0 = 200."""
    t0 = [int(name.rpartition(" ")[2]) if name.startswith("Meta") else 0 for name in sweep.learners]
    names = [name.removesuffix(f" {size}") for name, size in zip(sweep.learners, t0, strict=True)]
    columns: dict[str, Any] = {
        "problem": (1, [part] * len(names)),
        "algorithm": (1, names),
        "t0": (1, t0),
        "ours": (1, [name in sweep.ours for name in sweep.learners]),
        "replicate": (0, None),
        "episode": (2, sweep.grid),
    }
    return tidy(columns, "average", averages)


def _shortfalls(part: str, sweep: Sweep, rewards: np.ndarray) -> list[Table]:
    """Paired shortfall from the oracle with the same policy, averaged over windows of episodes."""
    names, out = list(sweep.learners), []
    for name, oracle, first, last in sweep.windows:
        mine, best = (
            rewards[:, names.index(each), first - 1 : last].mean(axis=1) for each in (name, oracle)
        )
        key = {"problem": part, "algorithm": name, "first": first, "last": last}
        table = {column: np.full(len(mine), value) for column, value in key.items()}
        table |= {"replicate": np.arange(len(mine)), "shortfall": best - mine, "oracle": best}
        out.append(table)
    return out


def _joined(parts: Sequence[Table]) -> Table:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


EXPERIMENT: Final = Ours()
