"""What we claim of learners that never stop learning, held against the tables."""

from __future__ import annotations

import numpy as np

from priorwise.experiments.judging import mean
from priorwise.experiments.work import Claim, Tables

LIMITS: dict[tuple[str, str, int], float] = {
    ("gaussian", "Empirical Bayes, TS", 200): 0.43,
    ("gaussian", "Empirical Bayes, TS", 1000): 0.13,
    ("gaussian", "Empirical Bayes, exact KG", 200): 1.05,
    ("gaussian", "Empirical Bayes, exact KG", 1000): 0.45,
}
SHARES: dict[tuple[str, str], float] = {
    ("linear", "Empirical Bayes, TS"): 0.95,
    ("discrete", "Empirical Bayes, KG"): 0.97,
}


def claims(tables: Tables) -> list[Claim]:
    """Judge the tables."""
    table, out = tables["shortfalls"], []
    keys = sorted(
        set(zip(table["problem"], table["algorithm"], table["first"], table["last"], strict=True))
    )
    for problem, algorithm, first, last in keys:
        chosen = (
            (table["problem"] == problem)
            & (table["algorithm"] == algorithm)
            & (table["first"] == first)
            & (table["last"] == last)
        )
        fall, oracle = mean(table["shortfall"][chosen]), float(np.mean(table["oracle"][chosen]))
        where = f"{problem}: {algorithm}, episodes {first} to {last}"
        measured = (
            f"short by {fall.mean:.3f} ± {fall.std_error:.3f}, "
            f"{100 * (1 - fall.mean / oracle):.1f} % of the oracle"
        )
        if (limit := LIMITS.get((str(problem), str(algorithm), int(last)))) is not None:
            out.append(
                Claim(
                    f"{where}: short of the oracle by at most {limit:g}",
                    measured,
                    fall.mean <= limit,
                    "ours",
                )
            )
        if (share := SHARES.get((str(problem), str(algorithm)))) is not None:
            out.append(
                Claim(
                    f"{where}: at least {100 * share:g} % of the oracle",
                    measured,
                    1 - fall.mean / oracle >= share,
                    "ours",
                )
            )
    return out
