"""What the paper says of the linear contextual bandit, and the values known of it, held against the
tables.
"""

from __future__ import annotations

from priorwise.experiments.envelope import envelope
from priorwise.experiments.judging import Known, equals, last, overtakes, rewards, share, within
from priorwise.experiments.work import Claim, Tables


def claims(tables: Tables) -> list[Claim]:
    """Judge the tables."""
    curves, test = tables["curves"], tables["test"]
    oracle, wrong, meta = (rewards(test, name) for name in ("OracleTS", "MisTS", "MetaTS:full"))
    return [
        equals("OracleTS earns", last(curves, "OracleTS"), Known(24.857, 0.012)),
        equals("MisTS earns", last(curves, "MisTS"), Known(12.403, 0.013)),
        overtakes(
            "Learning the prior beats the misspecified one soon",
            envelope(curves),
            "MetaTS:full",
            "MisTS",
            500,
        ),
        within(
            "With T0 = 1,000, MetaTS:full tests within 0.5 % of OracleTS",
            oracle,
            meta,
            0.005 * float(oracle.mean()),
        ),
        equals(
            "With T0 = 1,000, MetaTS:full is short of OracleTS by",
            oracle - meta,
            Known(0.087, 0.01),
        ),
        share(
            "The misspecified prior earns half of the true one",
            float(wrong.mean() / oracle.mean()),
            0.48,
            0.52,
        ),
    ]
