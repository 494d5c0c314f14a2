"""Beyond the paper: learners that never stop learning and policies that earn more, on the paper's
problems and its tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from priorwise.experiments import problems
from priorwise.experiments.problems import Problem
from priorwise.families.finite.counts import FiniteCounts
from priorwise.families.finite.likelihood.estimator import FiniteMarginalLikelihood
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.likelihood.estimator import LinearMarginalLikelihood
from priorwise.families.linear.moments import LinearMoments
from priorwise.meta.learners.empirical_bayes import EmpiricalBayes
from priorwise.meta.learners.explore_then_commit import ExploreThenCommit
from priorwise.meta.learners.learner import FixedPrior, MetaLearner
from priorwise.policies.baselines import ExactKnowledgeGradient
from priorwise.policies.receding_horizon import KnowledgeGradient
from priorwise.policies.sampling import PosteriorSampling, ThompsonSampling

TS: Final = ThompsonSampling()
SUM: Final = PosteriorSampling(8, "sum")
EXACT_KG: Final = ExactKnowledgeGradient("online")
KG: Final = KnowledgeGradient(10, 10, ties="random", when_certain="best")


@dataclass(frozen=True)
class Sweep:
    """A problem, the learners that meet it, and for how long; ``ours`` are those the paper does not
    have.
    """

    problem: Callable[[], Problem[Any]]
    episodes: int
    grid: tuple[int, ...]
    paper: Mapping[str, MetaLearner]
    ours: Mapping[str, MetaLearner]
    sizes: Mapping[str, int]  # T0 of explore-then-commit learners, by name
    # learner, its oracle, first and last episode of a shortfall
    windows: tuple[tuple[str, str, int, int], ...]

    @property
    def learners(self) -> dict[str, MetaLearner]:
        """All of them, the paper's first."""
        return {**self.paper, **self.ours}


_GAUSSIAN: Final = GaussianMarginalLikelihood(noise_var=1.0)
_LINEAR: Final = LinearMarginalLikelihood(contexts=SphereContexts(arms=6), noise_var=1.0)
_WRONG: Final = {name: make().misspecified for name, make in problems.ALL.items()}

SWEEPS: Final[dict[str, Sweep]] = {
    "gaussian": Sweep(
        problem=problems.gaussian,
        episodes=1000,
        grid=tuple(range(10, 1001, 10)),
        paper={
            "OracleTS": FixedPrior(TS),
            "MisTS": FixedPrior(TS, _WRONG["gaussian"]),
            **{
                f"MetaTS:full {size}": ExploreThenCommit(
                    size, GaussianMoments("full", noise_var=1.0)
                )
                for size in (100, 200, 400)
            },
        },
        ours={
            "Empirical Bayes, TS": EmpiricalBayes(_GAUSSIAN, TS),
            "Empirical Bayes, sum of 8": EmpiricalBayes(_GAUSSIAN, SUM),
            "Empirical Bayes, exact KG": EmpiricalBayes(_GAUSSIAN, EXACT_KG),
            "Oracle, exact KG": FixedPrior(EXACT_KG),
        },
        sizes={f"MetaTS:full {size}": size for size in (100, 200, 400)},
        windows=tuple(
            (learner, oracle, 1, last)
            for learner, oracle in (
                ("Empirical Bayes, TS", "OracleTS"),
                ("Empirical Bayes, exact KG", "Oracle, exact KG"),
            )
            for last in (200, 1000)
        ),
    ),
    "linear": Sweep(
        problem=problems.linear,
        episodes=300,
        grid=tuple(range(5, 301, 5)),
        paper={
            "OracleTS": FixedPrior(TS),
            "MisTS": FixedPrior(TS, _WRONG["linear"]),
            **{
                f"MetaTS:full {size}": ExploreThenCommit(
                    size, LinearMoments(contexts=SphereContexts(arms=6), noise_var=1.0)
                )
                for size in (50, 100)
            },
        },
        ours={"Empirical Bayes, TS": EmpiricalBayes(_LINEAR, TS)},
        sizes={f"MetaTS:full {size}": size for size in (50, 100)},
        windows=(("Empirical Bayes, TS", "OracleTS", 51, 100),),
    ),
    "discrete": Sweep(
        problem=problems.discrete,
        episodes=400,
        grid=tuple(range(5, 401, 5)),
        paper={
            "OracleKG": FixedPrior(KG),
            "MisKG": FixedPrior(KG, _WRONG["discrete"]),
            **{
                f"MetaKG {size}": ExploreThenCommit(
                    size, FiniteCounts(_WRONG["discrete"], smoothing=0.0), policy=KG
                )
                for size in (25, 50, 100)
            },
        },
        ours={
            "Empirical Bayes, KG": EmpiricalBayes(FiniteMarginalLikelihood(_WRONG["discrete"]), KG)
        },
        sizes={f"MetaKG {size}": size for size in (25, 50, 100)},
        windows=(("Empirical Bayes, KG", "OracleKG", 101, 400),),
    ),
}
