"""What the paper says of the Gaussian bandit, and the values known of it, held against the
tables.
"""

from __future__ import annotations

from priorwise.experiments.envelope import envelope
from priorwise.experiments.judging import (
    Known,
    above,
    equals,
    last,
    overtakes,
    rewards,
    share,
    within,
)
from priorwise.experiments.work import Claim, Tables


def claims(tables: Tables) -> list[Claim]:
    """Judge the tables."""
    curves, test = tables["curves"], tables["test"]
    best = envelope(curves)
    oracle, wrong, full, no_cov = (
        rewards(test, name) for name in ("OracleTS", "MisTS", "MetaTS:full", "MetaTS:no-cov")
    )
    return [
        equals("OracleTS earns", last(curves, "OracleTS"), Known(5.380, 0.002)),
        equals("MisTS earns", last(curves, "MisTS"), Known(3.479, 0.002)),
        equals("MetaTS:no-cov with T0 = 5,000 earns", no_cov, Known(3.88, 0.04)),
        overtakes(
            "Learning the mean beats the misspecified prior soon",
            best,
            "MetaTS:no-cov",
            "MisTS",
            1000,
        ),
        overtakes(
            "Learning mean and covariance beats the misspecified prior soon",
            best,
            "MetaTS:full",
            "MisTS",
            2500,
        ),
        overtakes(
            "Learning the covariance takes more tasks, and then pays",
            best,
            "MetaTS:full",
            "MetaTS:no-cov",
            5000,
        ),
        within("With T0 = 5,000, MetaTS:full tests as well as OracleTS", oracle, full, 0.03),
        equals(
            "With T0 = 5,000, MetaTS:full exceeds OracleTS by", full - oracle, Known(0.024, 0.012)
        ),
        above("Without the covariance, a learned prior stays far below", full, no_cov, 1.0),
        share(
            "The misspecified prior earns less than two thirds of the true one",
            float(wrong.mean() / oracle.mean()),
            0.5,
            2 / 3,
        ),
    ]
