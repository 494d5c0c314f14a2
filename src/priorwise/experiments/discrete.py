"""Discrete bandit with identifying arms: 16 noiseless tasks over 20 arms, 10 pulls, 400 episodes;
Thompson sampling and the knowledge gradient.
"""

from typing import Final

import numpy as np

from priorwise.experiments import judging, problems
from priorwise.experiments.experiment import Claim, Files, Tables
from priorwise.experiments.judging import equals, even, last, overtakes, rewards, share, within
from priorwise.experiments.learning import Exploring, LearningCurves, Sweep
from priorwise.families.finite.counts import FiniteCounts
from priorwise.figures.envelope import envelope
from priorwise.figures.heat_maps import IDENTIFYING, first_pull_map, instance_map
from priorwise.figures.learning import learning_curves
from priorwise.figures.tables import Table, tidy
from priorwise.policies.receding_horizon import KnowledgeGradient
from priorwise.policies.thompson import ThompsonSampling
from priorwise.policies.uniform import Uniform

TS: Final = ThompsonSampling()
KG: Final = KnowledgeGradient(10, 10, ties="random", when_certain="best")
COUNTS: Final = FiniteCounts(problems.discrete().misspecified, smoothing=0.0)
LIKELY: Final = [1, 2, 3, 4]
ORDINARY: Final = [arm for arm in range(20) if arm not in IDENTIFYING]
RECONSTRUCTED: Final = (
    "The paper draws the rewards without printing them; this is a reconstruction."
)
LEADS: Final = "OracleKG earns much more than every Thompson configuration, exploration left out"
EXPLORED: Final = (
    "MetaTS and MetaKG: all 400 episodes, among them the 100 of exploration, which open with any "
    "arm."
)

SWEEP: Final = Sweep(
    problem=problems.discrete,
    episodes=400,
    sizes=tuple(range(25, 201, 25)),
    grid=tuple(range(4, 401, 4)),
    test_size=200,
    test_episodes=200,
    oracle={"OracleTS": TS, "OracleKG": KG},
    misspecified={"MisTS": TS, "MisKG": KG},
    meta=(Exploring(Uniform(), None, COUNTS, {"MetaTS": TS, "MetaKG": KG}),),
    first_pull_size=100,
    pulls_of=("OracleTS", "OracleKG", "MisTS", "MisKG", "MetaTS"),
)


def instance() -> dict[str, Table]:
    """Rewards of every arm in every task, with the prior; given, not measured."""
    prior = problems.discrete().prior
    table = tidy({"task": (0, None), "arm": (1, None)}, "reward", prior.means)
    return {"instance": table | {"probability": prior.probs[table["task"]]}}


def figures(tables: Tables) -> dict[str, Files]:
    """The instance, learning curves, and the law of the first pull."""
    rewards_title = "Discrete bandit: rewards of 20 arms in 16 tasks"
    curves_title = "Discrete bandit: 20 arms, 10 pulls, 16 tasks"
    pulls_title = "Discrete bandit: first arm pulled, T₀ = 100"
    return {
        "instance": instance_map(tables["instance"], rewards_title, note=RECONSTRUCTED),
        "learning_curves": learning_curves(tables["curves"], curves_title),
        "first_pulls": first_pull_map(tables["first_pulls"], pulls_title, note=EXPLORED),
    }


def claims(tables: Tables) -> list[Claim]:
    """What the paper says of the discrete bandit, and the values known of it."""
    curves, test, pulls = tables["curves"], tables["test"], tables["first_pulls"]
    best = envelope(curves)
    shares = {
        name: judging.first_pull_shares(pulls, name) for name in np.unique(pulls["algorithm"])
    }
    counts = {name: judging.first_pull_counts(pulls, name) for name in shares}
    ts, meta_ts, kg, meta_kg = (
        rewards(test, name) for name in ("OracleTS", "MetaTS", "OracleKG", "MetaKG")
    )
    likely, learned = shares["OracleTS"][LIKELY], shares["MetaTS"][LIKELY]
    later = tables["first_pulls_later"]
    commits = judging.first_pull_shares(later, "MetaTS")[LIKELY]
    asks = judging.first_pull_shares(later, "MetaKG")[0]
    chosen = judging.first_pull_counts(later, "MetaTS")
    wrong = shares["MisTS"][ORDINARY]
    spread = shares["MisKG"][list(IDENTIFYING)]
    return [
        equals("OracleTS earns", last(curves, "OracleTS"), 7.4536, 0.0005),
        equals("MisTS earns", last(curves, "MisTS"), 55 / 16, 0.0005),
        equals("OracleKG earns", last(curves, "OracleKG"), 9.04, 0.02),
        equals("MisKG earns", last(curves, "MisKG"), 7.67, 0.02),
        share("OracleTS first plays one of A2 to A5 in 90 % of episodes", likely.sum(), 0.89, 0.91),
        even("OracleTS first plays A2 to A5 evenly", likely, counts["OracleTS"], 0.005),
        even("MisTS first plays the 16 ordinary arms evenly", wrong, counts["MisTS"], 0.005),
        _never_identifies(curves, tables["pulls"]),
        share("OracleKG first plays A1", shares["OracleKG"][0], 0.98),
        share("MisKG first plays one of the identifying arms", spread.sum(), 0.90),
        even("MisKG first plays the identifying arms evenly", spread, counts["MisKG"], 0.02),
        judging.above_all(LEADS, _leads(curves), 1.0),
        share(
            "MetaTS with T0 = 100 first plays one of A2 to A5, exploration included",
            learned.sum(),
            0.70,
            0.75,
            source="ours",
        ),
        share(
            "MetaKG with T0 = 100 first plays A1, exploration included",
            shares["MetaKG"][0],
            0.74,
            0.78,
            source="ours",
        ),
        share("After exploration MetaTS first plays one of A2 to A5", commits.sum(), 0.85, 0.95),
        even("After exploration MetaTS first plays A2 to A5 evenly", commits, chosen, 0.03),
        share("After exploration MetaKG first plays A1", asks, 0.95),
        equals("With T0 = 200, MetaKG is short of OracleKG by", kg - meta_kg, 0.21, 0.02),
        within("MetaTS becomes competitive with OracleTS", ts, meta_ts, 0.02 * ts.mean()),
        within("MetaKG becomes competitive with OracleKG", kg, meta_kg, 0.03 * kg.mean()),
        overtakes(
            "MetaKG beats MisKG within the 400 episodes", best, "MetaKG", "MisKG", 400, "ours"
        ),
        overtakes("MetaTS beats MisTS soon", best, "MetaTS", "MisTS", 200),
    ]


def _thompson(curves: Table) -> list[tuple[str, int]]:
    """Every Thompson configuration: its algorithm and T0."""
    every = set(zip(curves["algorithm"].tolist(), curves["t0"].tolist(), strict=True))
    return sorted(each for each in every if each[0].endswith("TS"))


def _never_identifies(curves: Table, pulls: Table) -> Claim:
    """Count identifying arms over all pulls that Thompson sampling chose; a configuration without
    counts refutes the claim.
    """
    what = "Thompson sampling never plays an identifying arm, at any pull of any configuration"
    found = of = 0
    for algorithm, t0 in _thompson(curves):
        chosen = (pulls["algorithm"] == algorithm) & (pulls["t0"] == t0)
        count, arm = pulls["count"][chosen], pulls["arm"][chosen]
        if not count.sum():
            return Claim(what, f"no pulls of {_named(algorithm, t0)}", False, "paper", "none")
        found, of = found + int(count[np.isin(arm, IDENTIFYING)].sum()), of + int(count.sum())
    return judging.never(what, found, of)


def _leads(curves: Table) -> dict[str, np.ndarray]:
    """By how much OracleKG is ahead of each Thompson configuration, on the same episodes after its
    exploration.
    """
    return {
        _named(algorithm, t0): judging.after(curves, "OracleKG", 0, t0)
        - judging.after(curves, algorithm, t0, t0)
        for algorithm, t0 in _thompson(curves)
    }


def _named(algorithm: str, t0: int) -> str:
    return f"{algorithm} with T0 = {t0}" if t0 else algorithm


EXPERIMENT: Final = LearningCurves(
    "discrete", "Discrete bandit with identifying arms", SWEEP, figures, claims, instance
)
