"""What is known of the noise before a fit: given, to be estimated, or beyond what the data can
tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.likelihood.data import GaussianData

NoiseKind = Literal["known", "shared", "per-arm"]


@dataclass(frozen=True, eq=False)
class Noise:
    """Noise of each arm, in the unit of the rewards, and of which arms it is an estimate that a fit
    improves.
    """

    kind: NoiseKind
    value: FloatArray  # (arm,): what is known, or where the estimate starts
    free: BoolArray  # (arm,): whether it is estimated
    # whether the rewards of some arm never differ, so that a noise of zero is likeliest
    silent: bool = False
    notes: tuple[str, ...] = ()


def given_noise(value: FloatArray, data: GaussianData) -> Noise:
    """Noise that is known."""
    check_unit(data.unit, value, "the estimator")
    return Noise("known", value, np.zeros(data.arms, dtype=bool))


def noise_to_estimate(kind: NoiseKind, data: GaussianData, start: FloatArray | None) -> Noise:
    """Noise to be estimated, from the rewards around their task's mean; ``start`` serves where they
    do not tell it.

    With no repeated pull at all, or rewards that never differ, the noise is held at that of
    ``start``. An arm that alone is like that, where each has its own noise, is given the one that
    all arms have together.
    """
    if data.unit is not None:
        raise ValueError(
            "estimates with standard errors do not tell the noise of a pull; leave noise_var out "
            "to take theirs"
        )
    if data.within is None:
        raise ValueError(
            "the noise cannot be estimated without squares: give sums of squared rewards, or pass "
            "noise_var=..."
        )
    within, freedom = data.within * data.scale**2, data.freedom
    repeated = freedom > 0.0
    if not repeated.any():
        why = "no arm is ever pulled twice in a task"
        return _held(
            start,
            f"the noise cannot be told from the spread of the arms: {why}",
            data,
            silent=False,
        )
    if within.sum() <= 0.0:
        return _held(
            start,
            "the rewards of an arm never differ within a task, so that their noise is zero",
            data,
            silent=True,
        )
    shared = np.full(data.arms, within.sum() / freedom.sum())
    if kind == "shared":
        return Noise(kind, shared, np.ones(data.arms, dtype=bool))
    free = repeated & (within > 0.0)
    lacking = np.flatnonzero(~free & (data.pulled > 0.0)).tolist()
    notes: tuple[str, ...] = ()
    if lacking:
        which = f"arm {lacking[0]}" if len(lacking) == 1 else f"arms {', '.join(map(str, lacking))}"
        notes = (
            (
                f"too few repeated pulls tell the noise of {which}, which took that of all arms "
                "together"
            ),
        )
    return Noise(
        kind,
        np.where(free, within / np.maximum(freedom, 1.0), shared),
        free,
        bool((repeated & ~free).any()),
        notes,
    )


def check_unit(unit: float | None, noise: FloatArray, holder: str) -> None:
    """Check that estimates with standard errors are read with the noise that is their unit of
    precision.
    """
    if unit is not None and not np.allclose(noise, unit, rtol=1e-9, atol=0.0):
        raise ValueError(
            f"the estimates were given with noise_var={unit:g}, but {holder} holds "
            f"{np.unique(noise).tolist()}: give both the same"
        )


def _held(start: FloatArray | None, why: str, data: GaussianData, *, silent: bool) -> Noise:
    if start is None:
        raise ValueError(
            f"{why}; pass noise_var=..., or a start whose noise to hold until it can be told"
        )
    return Noise(
        "known",
        start,
        np.zeros(data.arms, dtype=bool),
        silent,
        (f"{why}; that of the start was held",),
    )
