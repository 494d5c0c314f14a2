"""What policies earn: the tables of docs/policies.md.

``python -m benchmarks.which_policy clicks`` compares policies on a click prior learned from past
tests, by number of pulls; ``stories`` plays new tests instead of tasks from the learned prior;
``gaussian`` and ``discrete`` play the paper's problems. The first two take about ten minutes on one
core, ``gaussian`` three; ``--quick`` plays a twentieth of the tasks.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import priorwise as pw
from priorwise.experiments import problems

SEED = 0
MOST_ARMS = 6
CLICK_TASKS = {200: 20_000, 1_000: 10_000, 5_000: 3_000}  # by pulls
STORY_TASKS = {200: 8_000, 1_000: 4_000}
SLOW = ("bayes-ucb", 1_000)  # not for more pulls
CLICKS: dict[str, Any] = {
    "ts": pw.ThompsonSampling(),
    "sum:8": pw.PosteriorSampling(8, "sum"),
    "sum:32": pw.PosteriorSampling(32, "sum"),
    "greedy": pw.Greedy(),
    "exact-kg:online": pw.ExactKnowledgeGradient("online"),
    "bayes-ucb": pw.BayesUCB(),
}
GAUSSIAN: dict[str, Any] = {  # with the number of tasks that takes about as long for each
    'ExactKnowledgeGradient("online")': (pw.ExactKnowledgeGradient("online"), 100_000),
    "Greedy()": (pw.Greedy(), 2_000_000),
    'PosteriorSampling(32, "sum")': (pw.PosteriorSampling(32, "sum"), 500_000),
    "BayesUCB()": (pw.BayesUCB(), 200_000),
    'PosteriorSampling(8, "sum")': (pw.PosteriorSampling(8, "sum"), 2_000_000),
    'RecedingHorizon(100, 100, "online")': (pw.RecedingHorizon(100, 100, "online"), 50_000),
    'PosteriorSampling(2, "sum")': (pw.PosteriorSampling(2, "sum"), 2_000_000),
    'RecedingHorizon(10, 10, "online")': (pw.RecedingHorizon(10, 10, "online"), 200_000),
    'PosteriorSampling(4, "softmax")': (pw.PosteriorSampling(4, "softmax"), 2_000_000),
    "KShotThompson(3)": (pw.KShotThompson(3), 2_000_000),
    "ThompsonSampling()": (pw.ThompsonSampling(), 2_000_000),
    "TopTwoThompson()": (pw.TopTwoThompson(), 20_000),
    "ExactKnowledgeGradient(1.0)": (pw.ExactKnowledgeGradient(1.0), 50_000),
    "KnowledgeGradient(10, 10)": (pw.KnowledgeGradient(10, 10), 200_000),
    "Uniform()": (pw.Uniform(), 2_000_000),
}
DISCRETE: dict[str, Any] = {
    "KnowledgeGradient(10, 10)": pw.KnowledgeGradient(10, 10),
    "ExactKnowledgeGradient()": pw.ExactKnowledgeGradient(),
    "Greedy()": pw.Greedy(),
    'PosteriorSampling(8, "sum")': pw.PosteriorSampling(8, "sum"),
    "ThompsonSampling()": pw.ThompsonSampling(),
}


def headline_tests(tests: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Click rates of 2 to 6 headlines in each test, and which of them it has; headlines of one
    story move together.
    """
    story = rng.normal(np.log(0.05 / 0.95), 0.5, (tests, 1))
    rates = 1.0 / (1.0 + np.exp(-story - rng.normal(0.0, 0.28, (tests, MOST_ARMS))))
    return rates, np.arange(MOST_ARMS) < rng.integers(2, MOST_ARMS + 1, (tests, 1))


def learned(rng: np.random.Generator) -> pw.ExchangeableBetaPrior:
    """Fit 2,000 past tests with 200 to 2,000 showings of each headline."""
    rates, there = headline_tests(2_000, rng)
    shown = rng.integers(200, 2_001, rates.shape) * there
    return (
        pw.BetaMarginalLikelihood("exchangeable")
        .fit(pw.BetaStatistics(successes=rng.binomial(shown, rates), pulls=shown))
        .prior
    )


def clicks(share: int, new_tests: bool) -> None:
    """Print rewards and paired differences for each number of pulls; new tests are given as a prior
    over their own rates.
    """
    rng = np.random.default_rng(SEED)
    prior = learned(rng)
    print(f"Beta({prior.alpha:.3f}, {prior.beta:.3f}) learned", flush=True)
    held = prior.for_arms(MOST_ARMS)
    for pulls, most in (STORY_TASKS if new_tests else CLICK_TASKS).items():
        tasks = most // share
        rates, there = headline_tests(tasks, rng)
        true = (
            pw.FinitePrior(rates, np.full(tasks, 1.0 / tasks), noise="bernoulli")
            if new_tests
            else held
        )
        believed = {
            name: (policy, held)
            for name, policy in CLICKS.items()
            if name != SLOW[0] or pulls <= SLOW[1]
        }
        print(f"\n{pulls:,} pulls, {tasks:,} tasks")
        print(
            pw.compare(true, believed, horizon=pulls, tasks=tasks, seed=SEED, available=there),
            flush=True,
        )


def gaussian(share: int) -> None:
    """Print what each policy earns with the true and with the wrong prior."""
    problem = problems.gaussian()
    for name, (policy, most) in GAUSSIAN.items():
        earned = []
        for believed in (problem.prior, problem.misspecified):
            run = pw.simulate(
                problem.prior,
                policy,
                horizon=problem.horizon,
                tasks=most // share,
                seed=SEED,
                believed=believed,
            )
            earned.append(f"{run.mean_reward:.3f} ± {run.std_error:.3f}")
        print(f"| `{name}` | {' | '.join(earned)} | {most // share:,} |", flush=True)


def discrete(share: int) -> None:
    """Print what each policy earns with the true prior."""
    problem = problems.discrete()
    print(
        pw.compare(
            problem.prior, DISCRETE, horizon=problem.horizon, tasks=20_000 // share, seed=SEED
        )
    )


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=("clicks", "stories", "gaussian", "discrete"))
    parser.add_argument("--quick", action="store_true", help="a twentieth of the tasks")
    chosen = parser.parse_args()
    share = 20 if chosen.quick else 1
    if chosen.table in ("clicks", "stories"):
        clicks(share, chosen.table == "stories")
    else:
        {"gaussian": gaussian, "discrete": discrete}[chosen.table](share)


if __name__ == "__main__":
    main()
