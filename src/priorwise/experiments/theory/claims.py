"""What the theory says, held against the tables."""

from __future__ import annotations

import numpy as np

from priorwise.experiments.work import Claim, Table, Tables


def claims(tables: Tables) -> list[Claim]:
    """Judge the tables."""
    ladder, gaps = tables["ladder"], tables["gaps"]
    out = []
    for policy in dict.fromkeys(ladder["policy"].tolist()):
        chosen = (ladder["policy"] == policy) & (ladder["rung"] == ladder["rung"][0])
        ordered = ladder["in_order"][chosen] == 1.0
        statement = (
            f"{policy}: the rungs of the chain (not those beside it) bound one another, at every "
            "misspecification"
        )
        measured = f"{int(ordered.sum())} of {ordered.size} ladders in order"
        out.append(Claim(statement, measured, bool(ordered.all()), "paper", "all, but for noise"))
    low = (gaps["measured"] >= gaps["theorem"] - 5 * gaps["std_error"]) & (
        gaps["exact"] >= gaps["theorem"]
    )
    high = gaps["measured"] <= gaps["upper"]
    out += [
        Claim(
            "The lower bound holds on its instance",
            f"{int(low.sum())} of {low.size} horizons",
            bool(low.all()),
            "paper",
            "all",
        ),
        Claim(
            "The upper bound holds there too",
            f"{int(high.sum())} of {high.size} horizons",
            bool(high.all()),
            "paper",
            "all",
        ),
    ]
    ratio = gaps["upper"] / gaps["exact"]
    measured = f"{ratio.min():.1f} to {ratio.max():.1f} times the exact gap"
    out.append(
        Claim(
            "The upper bound is within a small factor there",
            measured,
            bool(ratio.max() < 8.0),
            "paper",
            "less than 8",
        )
    )
    far = float((np.abs(gaps["measured"] - gaps["exact"]) / gaps["std_error"]).max())
    out.append(
        Claim(
            "The simulated gap is the exact one",
            f"within {far:.1f} standard errors",
            far <= 5.0,
            "ours",
            "within 5",
        )
    )
    table = tables["estimators"]
    for estimator in dict.fromkeys(table["estimator"].tolist()):
        for of in ("mean", "covariance"):
            slope, error = log_log_slope(table, estimator, of)
            statement = f"{estimator}: the error of the {of} falls as T^(-1/2)"
            near = abs(slope + 0.5) <= 0.05 + 4 * error
            needed = "-0.5, but for 0.05 and 4 standard errors"
            out.append(Claim(statement, f"slope {slope:.3f} ± {error:.3f}", near, "paper", needed))
    return out


def log_log_slope(table: Table, estimator: str, of: str) -> tuple[float, float]:
    """Slope of the log error in the log number of tasks, with its standard error over replicates;
    from 300 tasks on.
    """
    chosen = (table["estimator"] == estimator) & (table["of"] == of) & (table["tasks"] >= 300)
    slopes = []
    for replicate in np.unique(table["replicate"][chosen]):
        rows = chosen & (table["replicate"] == replicate)
        slopes.append(np.polyfit(np.log(table["tasks"][rows]), np.log(table["error"][rows]), 1)[0])
    return float(np.mean(slopes)), float(np.std(slopes, ddof=1) / np.sqrt(len(slopes))) if len(
        slopes
    ) > 1 else np.inf
