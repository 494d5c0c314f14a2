"""Tests of one law against another, as p-values."""

from typing import Final

import numpy as np
from scipy import stats

from priorwise.core.types import FloatArray, IntArray

TIE: Final = 1e-9
FEWEST: Final = 20


def randomised_ranks(truth: FloatArray, draws: FloatArray, uniform: FloatArray) -> IntArray:
    """Rank 0..draws of ``truth`` (task,) among ``draws`` (task, draw), ties broken by ``uniform``
    (task,).

    Uniform if the truth and the draws are exchangeable, whatever their law: also for discrete ones.
    """
    gap = TIE * (1.0 + np.abs(truth))[:, None]
    below = (draws < truth[:, None] - gap).sum(axis=1)
    equal = (np.abs(draws - truth[:, None]) <= gap).sum(axis=1)
    return (below + np.floor(uniform * (equal + 1))).astype(np.int64)


def uniform_p_value(ranks: IntArray, bins: int) -> float:
    """Chi-square test that integers are uniform on 0..bins-1."""
    return float(stats.chisquare(np.bincount(ranks, minlength=bins)).pvalue)


def same_law_p_value(first: IntArray, second: IntArray, bins: int) -> float:
    """Chi-square test that two independent samples of 0..bins-1 have one law; rare values count as
    one.
    """
    table = np.array([np.bincount(sample, minlength=bins) for sample in (first, second)])
    rare = table.sum(axis=0) < 2 * FEWEST
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] == 1:
        return 1.0
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def bonferroni(p_values: list[float]) -> float:
    """Smallest p-value times their number: below x with probability at most x if all their
    hypotheses hold.
    """
    return min(1.0, len(p_values) * min(p_values))
