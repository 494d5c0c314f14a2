"""What the paper says of the discrete bandit, and the values known of it, held against the
tables.
"""

from __future__ import annotations

import numpy as np

from priorwise.experiments.envelope import envelope
from priorwise.experiments.judging import (
    Known,
    above_all,
    after,
    equals,
    even,
    first_pull_counts,
    first_pull_shares,
    last,
    never,
    overtakes,
    rewards,
    share,
    within,
)
from priorwise.experiments.work import Claim, Table, Tables

IDENTIFYING = [0, 5, 10, 15]
LIKELY = [1, 2, 3, 4]
ORDINARY = [arm for arm in range(20) if arm not in IDENTIFYING]


def claims(tables: Tables) -> list[Claim]:
    """Judge the tables."""
    curves, test, pulls = tables["curves"], tables["test"], tables["first_pulls"]
    best = envelope(curves)
    shares = {name: first_pull_shares(pulls, name) for name in np.unique(pulls["algorithm"])}
    counts = {name: first_pull_counts(pulls, name) for name in shares}
    ts, kg = rewards(test, "OracleTS"), rewards(test, "OracleKG")
    likely = shares["OracleTS"][LIKELY]
    wrong = shares["MisTS"][ORDINARY]
    spread = shares["MisKG"][IDENTIFYING]
    return [
        equals("OracleTS earns", last(curves, "OracleTS"), Known(7.4536, 0.0005)),
        equals("MisTS earns", last(curves, "MisTS"), Known(55 / 16, 0.0005)),
        equals("OracleKG earns", last(curves, "OracleKG"), Known(9.04, 0.02)),
        equals("MisKG earns", last(curves, "MisKG"), Known(7.67, 0.02)),
        share(
            "OracleTS first plays one of A2 to A5 in 90 % of episodes",
            float(likely.sum()),
            0.89,
            0.91,
        ),
        even("OracleTS first plays A2 to A5 evenly", likely, counts["OracleTS"], 0.005),
        even("MisTS first plays the 16 ordinary arms evenly", wrong, counts["MisTS"], 0.005),
        _never_identifies(
            "Thompson sampling never plays an identifying arm, at any pull of any configuration",
            curves,
            tables["pulls"],
        ),
        share("OracleKG first plays A1", float(shares["OracleKG"][0]), 0.98),
        share("MisKG first plays one of the identifying arms", float(spread.sum()), 0.90),
        even("MisKG first plays the identifying arms evenly", spread, counts["MisKG"], 0.02),
        above_all(
            "OracleKG earns much more than every Thompson configuration, exploration left out",
            _leads(curves),
            1.0,
        ),
        share(
            "MetaTS with T0 = 100 first plays one of A2 to A5",
            float(shares["MetaTS"][LIKELY].sum()),
            0.70,
            0.75,
        ),
        share("MetaKG with T0 = 100 first plays A1", float(shares["MetaKG"][0]), 0.74, 0.78),
        equals(
            "With T0 = 200, MetaKG is short of OracleKG by",
            kg - rewards(test, "MetaKG"),
            Known(0.21, 0.02),
        ),
        within(
            "MetaTS becomes competitive with OracleTS",
            ts,
            rewards(test, "MetaTS"),
            0.02 * float(ts.mean()),
        ),
        within(
            "MetaKG becomes competitive with OracleKG",
            kg,
            rewards(test, "MetaKG"),
            0.03 * float(kg.mean()),
        ),
        overtakes("MetaKG beats MisKG within the 400 episodes", best, "MetaKG", "MisKG", 400),
        overtakes("MetaTS beats MisTS soon", best, "MetaTS", "MisTS", 200),
    ]


def _thompson(curves: Table) -> list[tuple[str, int]]:
    """Every Thompson configuration: its algorithm and T0."""
    every = set(zip(curves["algorithm"].tolist(), curves["t0"].tolist(), strict=True))
    return sorted(each for each in every if each[0].endswith("TS"))


def _never_identifies(what: str, curves: Table, pulls: Table) -> Claim:
    """Count identifying arms over all pulls that Thompson sampling chose; a configuration without
    counts refutes the claim.
    """
    found = of = 0
    for algorithm, t0 in _thompson(curves):
        chosen = (pulls["algorithm"] == algorithm) & (pulls["t0"] == t0)
        count, arm = pulls["count"][chosen], pulls["arm"][chosen]
        if not count.sum():
            return Claim(what, f"no pulls of {_named(algorithm, t0)}", False, "paper", "none")
        found, of = found + int(count[np.isin(arm, IDENTIFYING)].sum()), of + int(count.sum())
    return never(what, found, of)


def _leads(curves: Table) -> dict[str, np.ndarray]:
    """By how much OracleKG is ahead of each Thompson configuration, on the same episodes after its
    exploration.
    """
    return {
        _named(algorithm, t0): after(curves, "OracleKG", 0, t0) - after(curves, algorithm, t0, t0)
        for algorithm, t0 in _thompson(curves)
    }


def _named(algorithm: str, t0: int) -> str:
    return f"{algorithm} with T0 = {t0}" if t0 else algorithm
