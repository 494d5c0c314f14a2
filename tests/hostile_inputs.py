"""Bad inputs at every public door of the library: a good call each, and values that each of its
arguments must refuse.

``refused()`` lists them; each is a label, a call, and words of which the error must hold one (the
name of the argument). What is let in on purpose stands in ``ACCEPTED``, with the reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import particle_models
import pyarrow as pa
from bad_values import (
    NOT_COUNTS,
    NOT_NUMBERS,
    NOT_POLICIES,
    NOT_PRIORS,
    NOT_SEEDS,
    NOT_SHARES,
    derived,
)

import priorwise as pw
from priorwise.core.streams import streams
from priorwise.families.mixture.statistics import MixtureStatistics
from priorwise.policies.play_arms import PlayArms
from priorwise.testing.seeds import base_seed

SEED = base_seed()
BETA = pw.BetaPrior([1.0, 2.0, 3.0], [4.0, 3.0, 2.0])
OTHER_BETA = pw.BetaPrior([2.0, 2.0, 2.0], [4.0, 3.0, 2.0])
NORMAL = pw.GaussianPrior([0.0, 0.1], np.eye(2))
OTHER_NORMAL = pw.GaussianPrior([0.2, 0.1], np.eye(2))
FINITE = pw.FinitePrior([[0.1, 0.9], [0.8, 0.2]], [0.5, 0.5])
OTHER_FINITE = pw.FinitePrior([[0.1, 0.9], [0.8, 0.2]], [0.4, 0.6])
LINEAR = pw.LinearGaussianPrior([0.0, 1.0], np.eye(2), contexts=pw.SphereContexts(3))
OWN_CONTEXTS = pw.MixturePrior(
    [
        pw.LinearGaussianPrior(
            [0.0], [[1.0]], 1.0, pw.families.NormalContexts([[1.0], [2.0]], [[v]])
        )
        for v in (1.0, 2.0)
    ],
    [0.5, 0.5],
)
OWN_COUNTS = pw.LinearStatistics([[[2.0]]], [[0.3]], [7.0], [2])
CART = pw.families.Plant([[1.0]], [[0.1]], 0.01)
NOISY_CART = pw.families.HiddenPlant([[1.0]], [[1.0]], [[0.1]], 0.01, 0.1)
ARMS_OPEN = pw.ExchangeableBetaPrior(1.0, 2.0)
TS = pw.ThompsonSampling()
COUNTED = pw.BetaStatistics([[1, 2, 1], [0, 3, 2], [1, 1, 3]], [[5, 5, 5]] * 3)
SUMS = pw.GaussianStatistics(
    [[2, 1], [3, 3], [1, 2]],
    [[1.0, 0.5], [2.0, 1.0], [0.1, 0.9]],
    [[1.0, 0.5], [2.0, 1.0], [0.1, 0.9]],
)
PAST = pa.table(
    {"task": [1, 1, 2, 2], "action": ["a", "b"] * 2, "reward": [1, 2, 0, 3], "pulls": [5] * 4}
)
LONGER_PAST = pa.table(
    {
        "task": [1, 1, 2, 2, 3, 3, 4, 4],
        "action": ["a", "b"] * 4,
        "reward": [1, 2, 0, 3, 2, 2, 1, 4],
        "pulls": [5] * 8,
    }
)
FIT = pw.BetaMoments().fit(COUNTED)
META = pw.FixedPrior(TS)
HYPER = pw.meta.GaussianHyperPrior([0.0, 0.0], np.eye(2), np.eye(2))

OF_TASKS = pw.families.TaskFeatures(["n"], [None], [2.0], [1.0])

NOT_FLAGS = ("no", 1, None)


@dataclass(frozen=True)
class Door:
    """A call that is right, and for each argument values that are not; ``words`` stand in for the
    argument's name.
    """

    name: str
    call: Callable[..., Any]
    good: dict[str, Any]
    bad: dict[str, tuple[Any, ...]]
    words: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Case:
    """One bad input."""

    label: str
    call: Callable[[], Any]
    words: tuple[str, ...]


def door(
    name: str,
    call: Callable[..., Any],
    good: dict[str, Any],
    more: dict[str, tuple[Any, ...]] | None = None,
    *,
    fine: tuple[str, ...] = (),
    **words: tuple[str, ...],
) -> Door:
    """Add bad values to those that follow from declarations and good values; not to those of the
    arguments in ``fine``, which take more than their good value shows.
    """
    bad = {key: values for key, values in derived(call, good).items() if key not in fine}
    for key, values in (more or {}).items():
        bad[key] = (*bad.get(key, ()), *values)
    return Door(name, call, good, bad, words)


def _run(**options: Any) -> Any:
    return pw.simulate(
        **{
            "prior": BETA,
            "policy": TS,
            "horizon": 3,
            "tasks": 4,
            "seed": SEED,
            "engine": "numpy",
            **options,
        }
    )


def _compare(**options: Any) -> Any:
    return pw.compare(
        **{
            "prior": BETA,
            "policies": {"ts": TS},
            "horizon": 3,
            "tasks": 4,
            "seed": SEED,
            "engine": "numpy",
            **options,
        }
    )


def _meta(**options: Any) -> Any:
    good = {
        "prior": NORMAL,
        "learner": META,
        "episodes": 3,
        "replicates": 2,
        "horizon": 3,
        "seed": SEED,
        "jobs": 1,
        "engine": "numpy",
    }
    return pw.simulate_meta(**{**good, **options})


def _mdp_doors(vectors: Any, numbers: Any) -> list[Door]:
    """Doors of tabular MDPs and of policies on drawn environments."""
    nan = float("nan")
    tables = (*NOT_NUMBERS, [], [1.0, 1.0], np.full((2, 2), nan), np.ones((2, 2, 2)))
    river = pw.families.riverswim(states=2)
    moves, pairs = np.ones((1, 2, 2, 2)), np.full((1, 2, 2), 2.0)
    columns = (*NOT_NUMBERS, [], np.ones((1, 2, 3)), np.full((1, 2, 2), nan))
    return [
        door(
            "DirichletMdpPrior",
            pw.DirichletMdpPrior,
            {
                "transitions": np.ones((2, 2, 2)),
                "rewards": np.zeros((2, 2)),
                "round_steps": 3,
                "last_move": "hidden",
                "start": 0,
                "names": ["l", "r"],
            },
            {
                "transitions": (np.ones((2, 2)), np.ones((2, 2, 3)), np.zeros((2, 2, 2))),
                "rewards": (*tables, np.zeros((3, 2))),
            },
        ),
        door(
            "BernoulliRewardPrior",
            pw.families.BernoulliRewardPrior,
            {"alpha": np.ones((2, 2)), "beta": np.ones((2, 2))},
            {"alpha": (*tables,), "beta": (*tables,)},
            alpha=("alpha", "beta"),
            beta=("alpha", "beta"),
        ),
        door(
            "NormalRewardPrior",
            pw.families.NormalRewardPrior,
            {"mean": np.zeros((2, 2)), "var": np.ones((2, 2)), "noise_var": 1.0},
            {"mean": tables, "var": (*tables,), "noise_var": (*numbers,)},
            mean=("mean", "var"),
            var=("mean", "var"),
        ),
        door(
            "MdpStatistics",
            pw.families.MdpStatistics,
            {"moves": moves, "pulls": pairs, "sums": pairs, "squares": pairs, "names": None},
            {
                "moves": (pairs, 1.5 * moves, -moves, 2.0 * moves),
                "pulls": (*columns, 0.5 * pairs, -pairs),
                "sums": columns,
                "squares": columns,
                "names": (["l"], "lr", 3),
            },
            moves=("moves",),
            pulls=("pulls",),
        ),
        door(
            "DirichletMdpMarginalLikelihood",
            pw.families.DirichletMdpMarginalLikelihood,
            {"like": river, "regulariser": 1.0},
            {"like": (BETA,), "regulariser": (*numbers, -1.0)},
        ),
        door(
            "ParticlePrior",
            pw.ParticlePrior,
            {
                "sample": particle_models.normal_means,
                "log_density": particle_models.normal_density,
                "mean_reward": None,
                "sample_reward": particle_models.normal_reward,
                "particles": 16,
                "seed": SEED,
                "weights": None,
                "log_prior": particle_models.normal_log_prior,
                "rewards": None,
                "reward_range": (-np.inf, np.inf),
                "arms": 3,
                "contexts": None,
                "dim": None,
                "resample_below": 0.25,
                "moves": 5,
                "impossible": "error",
                "names": ["a", "b", "c"],
            },
            {
                "sample": (*NOT_NUMBERS, [1.0], [[nan]], np.zeros((0, 2)), pw.BetaPrior),
                "log_density": (None, "x", 3, [1.0], pw.BetaPrior),
                "mean_reward": ("x", 3, [1.0], lambda x: x[0], lambda x: nan * x),
                "sample_reward": ("x", 3, lambda x, arm, rng: x, lambda x, arm, rng: nan * x[:, 0]),
                "particles": (0, 1, 10**12),
                "seed": NOT_SEEDS,
                "weights": ([0.5, 0.5], "x", 1.0),
                "log_prior": ("x", 3, [1.0], lambda x: x, lambda x: nan * x[:, 0]),
                "rewards": ("x", [1.0], [1.0, 1.0], [0.0, nan], [0.0, 1.0]),
                "reward_range": ("x", 1.0, (1.0, 0.0), (nan, 1.0), (0.0, 1.0, 2.0)),
                "arms": (4,),
                "contexts": ("x", 3, [1.0], pw.SphereContexts, pw.SphereContexts(3)),
                "dim": (2, "x", 0),
                "resample_below": (*numbers, 0.0, 1.0, -1.0),
                "names": (["a"], "abc", ["a", "a", "b"], 3),
            },
            contexts=("contexts", "dim", "features"),
            rewards=("rewards", "log_density"),
        ),
        door(
            "register_function",
            pw.families.register_function,
            {"function": particle_models.normal_means, "name": "a name"},
            {"function": (None, "x", 3), "name": (3, "", [1.0])},
            fine=("name",),
        ),
        door(
            "riverswim",
            pw.families.riverswim,
            {"pulls": 20.0, "states": 6, "round_steps": 20},
            {
                "pulls": (*numbers, 0.0, -1.0),
                "states": (1,),
                "round_steps": tuple(each for each in NOT_COUNTS if each is not None),
            },
            fine=("round_steps",),
        ),
        door(
            "FinitePomdpPrior",
            pw.FinitePomdpPrior,
            {
                "transitions": [np.full((2, 2, 2), 0.5)] * 2,
                "observations": np.full((2, 2, 3), 1 / 3),
                "rewards": np.zeros((2, 2)),
                "probs": [0.5, 0.5],
                "noise": "none",
            },
            {
                "transitions": (np.full((2, 2, 2, 3), 1 / 3),),
                "observations": (
                    np.full((3, 2, 2, 2), 0.5),
                    np.full((2, 3, 2), 0.5),
                    np.full((2, 2, 3), np.nan),
                    np.full((2, 2, 3), 0.5),
                    np.array([[[1.5, -0.5]] * 2] * 2),
                ),
                "rewards": (
                    [0.0, 0.0],
                    np.zeros((3, 2)),
                    np.zeros((3, 2, 2)),
                    np.full((2, 2), np.nan),
                    np.full((2, 2), 1e200),
                ),
                "start": ([[0.5, 0.5]], [[1, 1]] * 2),
                "observation_names": (["a", "a", "b"],),
            },
            noise=("noise",),
        ),
        door(
            "FinitePomdpPrior.plan",
            pw.families.tiger().plan,
            {"horizon": 3, "candidate": 0},
            {"candidate": (3, 0.5)},
        ),
        door(
            "tiger",
            pw.families.tiger,
            {"accuracy": [0.7, 0.9], "probs": [0.5, 0.5]},
            {
                "accuracy": (
                    *NOT_NUMBERS[1:],
                    [],
                    [0.7, 1.1],
                    [-0.1, 0.5],
                    [np.nan, 0.5],
                    [[0.7, 0.9]],
                ),
                "probs": ("x", [], [0.5], [0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0]),
                "treasure": numbers,
                "tiger": numbers,
                "listening": numbers,
                "round_steps": NOT_COUNTS[1:],
                "planner": (None, "best", 3),
            },
        ),
        door(
            "corridor",
            pw.families.corridor,
            {"maps": ["|.G", "G.|"], "probs": [0.5, 0.5]},
            {
                "maps": (None, 3, "|.G", [], ["|.", "G"], ["x"], [3], [""]),
                "probs": ("x", [], [0.5], [0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0]),
                "accuracy": (*numbers, 1.5, -0.1),
                "stride": (*numbers, 1.5, -0.1),
                "walking": numbers,
                "mistake": numbers,
                "round_steps": NOT_COUNTS[1:],
                "planner": (None, "best", 3),
            },
        ),
        door(
            "RoundSampling",
            pw.policies.RoundSampling,
            {"k": 1, "rule": "max", "steps": 4},
            {"rule": (None, "mean", 3)},
        ),
        door(
            "EnvironmentSampling",
            pw.policies.EnvironmentSampling,
            {"k": 2, "rule": lambda drawn, seen: None},
            {"rule": (None, "max", 3, lambda drawn: None)},
        ),
    ]


def doors() -> list[Door]:
    """Every public door with its arguments."""
    nan, inf = float("nan"), float("inf")
    vectors = (
        *NOT_NUMBERS,
        [],
        [nan, 1.0],
        [inf, 0.0],
        [[1.0, 2.0]],
        ["a", "b"],
        [True, False],
        np.ma.array([1.0, 2.0], mask=[0, 1]),
    )
    noises = (None, "x", 0.0, -1.0, nan, inf, [1.0], [1.0, 1.0, 1.0], [1.0, 0.0])
    numbers = (None, "x", nan, inf, True, [1.0], 10**400, 1j)
    return [
        *_mdp_doors(vectors, numbers),
        door(
            "register",
            pw.register,
            {"family": pw.Family(name="none", priors=())},
            {"family": (None, "gaussian", pw.GaussianPrior, {})},
        ),
        door(
            "GaussianPrior",
            pw.GaussianPrior,
            {"mean": [0.0, 1.0], "cov": np.eye(2), "noise_var": 1.0},
            {"mean": vectors, "noise_var": noises},
        ),
        door("BetaPrior", pw.BetaPrior, {"alpha": [1.0, 2.0], "beta": [1.0, 2.0]}),
        door(
            "FinitePrior",
            pw.FinitePrior,
            {
                "means": [[0.1, 0.9], [0.8, 0.2]],
                "probs": [0.5, 0.5],
                "noise": "none",
                "noise_var": None,
            },
            {"means": ([0.1, 0.9],), "noise_var": (1.0,)},
        ),
        door(
            "FiniteMdpPrior",
            pw.families.FiniteMdpPrior,
            {
                "transitions": [np.full((2, 2, 2), 0.5)] * 2,
                "rewards": np.zeros((2, 2)),
                "probs": [0.5, 0.5],
                "noise": "none",
            },
            {
                "transitions": (np.full((2, 2, 2), 0.5), np.full((2, 2, 2, 3), 1 / 3)),
                "rewards": (
                    [0.0, 0.0],
                    np.zeros((3, 2)),
                    np.zeros((3, 2, 2)),
                    np.full((2, 2), nan),
                    np.full((2, 2), 1e200),
                ),
                "start": ([[0.5, 0.5]],),
            },
            noise=("noise",),
        ),
        door(
            "Plant",
            pw.families.Plant,
            {"state_cost": np.eye(2), "action_cost": [[1.0]], "noise_var": 1.0},
            {
                "state_cost": ([[1.0, 2.0]],),
                "action_cost": ([[0.0]],),
                "noise_var": ([1.0],),
                "start": ([1.0],),
                "start_cov": ([[1.0]],),
                "final_cost": ([[1.0]],),
            },
        ),
        door(
            "LinearQuadraticPrior",
            pw.LinearQuadraticPrior,
            {"transition": [[1.0]], "control": [[0.5]], "cov": np.eye(2), "plant": CART},
            {"transition": (np.eye(2),), "control": (np.eye(2),)},
        ),
        door(
            "HiddenPlant",
            pw.families.HiddenPlant,
            {
                "observation": [[1.0, 0.0]],
                "output_cost": [[1.0]],
                "action_cost": [[1.0]],
                "noise_var": 1.0,
                "output_var": 1.0,
            },
            {
                "action_cost": ([[0.0]],),
                "noise_var": ([1.0],),
                "output_var": ([1.0, 1.0],),
                "start": ([1.0],),
                "start_cov": ([[1.0]],),
            },
        ),
        door(
            "FiniteLqgPrior",
            pw.families.FiniteLqgPrior,
            {
                "transition": [[[1.0]]] * 2,
                "control": [[[0.5]]] * 2,
                "probs": [0.5, 0.5],
                "plant": NOISY_CART,
            },
            {"transition": ([np.eye(2)] * 2,), "control": ([np.eye(2)] * 2,), "plant": (CART,)},
        ),
        door(
            "FiniteLinearQuadraticPrior",
            pw.families.FiniteLinearQuadraticPrior,
            {
                "transition": [[[1.0]]] * 2,
                "control": [[[0.5]]] * 2,
                "probs": [0.5, 0.5],
                "plant": CART,
            },
            {"transition": ([np.eye(2)] * 2,), "control": ([np.eye(2)] * 2,)},
        ),
        door(
            "LinearGaussianPrior",
            pw.LinearGaussianPrior,
            {
                "mean": [0.0, 1.0],
                "cov": np.eye(2),
                "noise_var": 1.0,
                "contexts": pw.SphereContexts(3),
            },
            {
                "mean": vectors,
                "noise_var": ([1.0],),
                "contexts": (
                    None,
                    3,
                    "sphere",
                    pw.SphereContexts,
                    np.ones((3, 5)),
                    np.full((3, 2), nan),
                ),
            },
            contexts=("contexts", "features"),
        ),
        door(
            "ExchangeableGaussianPrior",
            pw.ExchangeableGaussianPrior,
            {"mean": 0.0, "var": 1.0, "correlation": 0.5, "noise_var": 1.0},
        ),
        door("ExchangeableBetaPrior", pw.ExchangeableBetaPrior, {"alpha": 1.0, "beta": 2.0}),
        door(
            "NormalGammaPrior",
            pw.NormalGammaPrior,
            {"mean": [0.0, 1.0], "pulls": 1.0, "shape": 2.0, "rate": [1.0, 2.0]},
            {"pulls": ([1.0] * 3,), "shape": ([1.0] * 3,)},
        ),
        door(
            "ExchangeableNormalGammaPrior",
            pw.families.ExchangeableNormalGammaPrior,
            {"mean": 0.0, "pulls": 1.0, "shape": 2.0, "rate": 1.0},
        ),
        door(
            "NormalGammaMarginalLikelihood",
            pw.families.NormalGammaMarginalLikelihood,
            {"structure": "separate", "arms": 2, "regulariser": 1.0},
            {"arms": (0,), "regulariser": (-1.0,)},
        ),
        door(
            "LogitNormalPrior",
            pw.LogitNormalPrior,
            {"mean": [0.0, 1.0], "cov": [[1.0, 0.5], [0.5, 1.0]]},
            {"mean": ([0.0, 1e3],)},
        ),
        door(
            "LogisticPrior",
            pw.LogisticPrior,
            {"mean": [0.0, 1.0], "cov": np.eye(2), "contexts": pw.SphereContexts(3), "names": None},
            {
                "mean": ([[1.0, 2.0]], [0.0, 50.0]),
                "contexts": (
                    None,
                    3,
                    "sphere",
                    pw.SphereContexts,
                    np.ones((3, 5)),
                    np.full((3, 2), nan),
                    np.full((3, 2), 1e3),
                ),
                "names": (["l", "l", "m"],),
            },
            contexts=("contexts", "features"),
        ),
        door(
            "LogisticStatistics",
            pw.families.LogisticStatistics,
            {
                "features": np.ones((2, 1, 2)),
                "rewards": np.ones((2, 1)),
                "pulls": [1, 1],
                "names": None,
            },
            {
                "features": (np.ones((2, 1)), np.full((2, 1, 2), 1e3)),
                "rewards": (np.ones((2, 2)), np.full((2, 1), 1.5), [[-1.0]] * 2),
                "pulls": ("x", [1], [2, 1], [-1, 1], [0.5, 1], [0, 1], nan),
                "names": ("ab", ["a", "a"], 3),
            },
            pulls=("pulls",),
        ),
        door(
            "ExchangeableLogitNormalPrior",
            pw.ExchangeableLogitNormalPrior,
            {"mean": -4.0, "var": 0.2, "correlation": 0.9},
            {"mean": (1e3,), "var": (1e3,)},
        ),
        door(
            "LogitNormalMarginalLikelihood",
            pw.LogitNormalMarginalLikelihood,
            {"structure": "full", "arms": 2, "regulariser": 1.0},
            {"arms": (0,), "regulariser": (-1.0,)},
        ),
        door("for_arms, Beta", ARMS_OPEN.for_arms, {"arms": 3}, {"arms": (0,)}),
        door(
            "for_arms, normal",
            pw.ExchangeableGaussianPrior(0.0, 1.0, -0.5).for_arms,
            {"arms": 3},
            {"arms": (0, 4)},
        ),
        door("SphereContexts", pw.SphereContexts, {"arms": 3}),
        door(
            "GivenContexts",
            pw.GivenContexts,
            {"features": np.ones((2, 3, 2))},
            {"features": ([1.0, 2.0], np.ones((1, 1, 1, 1)))},
        ),
        door(
            "NormalContexts",
            pw.families.NormalContexts,
            {"arm_features": np.eye(2), "cov": np.eye(3), "mean": np.zeros(3)},
            {"arm_features": (np.zeros((2, 2)),), "mean": ([1.0],)},
        ),
        door(
            "bilinear",
            pw.families.bilinear,
            {"arm_features": np.eye(2), "contexts": np.ones((4, 3))},
            {"arm_features": ([1.0],), "contexts": ([1.0], np.full((2, 2), nan))},
        ),
        door(
            "matrix_normal",
            pw.families.matrix_normal,
            {"mean": np.zeros((2, 3)), "row_cov": np.eye(2), "column_cov": np.eye(3)},
            {
                "mean": ([1.0],),
                "row_cov": (-np.eye(2), np.eye(3)),
                "column_cov": (-np.eye(3), np.eye(2)),
            },
        ),
        door(
            "MixtureStatistics",
            MixtureStatistics,
            {
                "parts": (OWN_COUNTS, OWN_COUNTS),
                "laws": [each.contexts for each in OWN_CONTEXTS.components],
                "log_contexts": [[0.0, -1.0]],
            },
            {
                "parts": (None, [], "x", [3]),
                "laws": (None, [], "x", [pw.SphereContexts(2)] * 2),
                "log_contexts": (None, "x", [0.0], [[0.0]], [[nan, 0.0]], [[np.inf, 0.0]]),
            },
        ),
        door(
            "MixturePrior",
            pw.MixturePrior,
            {"components": [BETA, OTHER_BETA], "probs": [0.5, 0.5]},
            {
                "components": (
                    None,
                    3,
                    [],
                    BETA,
                    [BETA, "x"],
                    [BETA, None],
                    [BETA, NORMAL],
                    [ARMS_OPEN, BETA],
                    [pw.BetaPrior, BETA],
                )
            },
        ),
        door(
            "ExchangeableMixturePrior",
            pw.families.ExchangeableMixturePrior,
            {"components": [ARMS_OPEN, ARMS_OPEN], "probs": [0.5, 0.5]},
            {"components": (None, 3, [], "x", [ARMS_OPEN, "x"], [ARMS_OPEN, BETA])},
        ),
        door(
            "MixtureMarginalLikelihood",
            pw.families.MixtureMarginalLikelihood,
            {"estimator": pw.BetaMarginalLikelihood(), "components": 2, "seed": SEED},
            {
                "estimator": (None, "x", TS, pw.BetaMarginalLikelihood),
                "components": (0, 1),
                "starts": (*NOT_COUNTS, 0),
                "regulariser": (None, "x", nan, -1.0),
                "max_iterations": (*NOT_COUNTS, 0),
                "tolerance": (None, "x", nan, 0.0, -1.0),
            },
        ),
        door(
            "TaskFeatures",
            pw.families.TaskFeatures,
            {"names": ["n", "s"], "words": [None, ["a", "b"]], "centre": [1, 0], "scale": [2, 1]},
            {
                "names": (None, 3, [], ["n"], ["n", "n"], ["n", 3], "ns"),
                "words": (None, 3, [], [None], [None, ["a"]], [None, ["a", "a"]], [None, "ab"]),
                "centre": (*NOT_NUMBERS, [1.0], [nan, 0.0]),
                "scale": (*NOT_NUMBERS, [1.0], [nan, 1.0], [0.0, 1.0], [-1.0, 1.0]),
            },
        ),
        door(
            "FeaturedPrior",
            pw.families.FeaturedPrior,
            {"base": NORMAL, "effects": [[0.1, 0.2]], "features": OF_TASKS},
            {
                "base": (BETA, ARMS_OPEN),
                "effects": (
                    None,
                    "x",
                    3,
                    [],
                    [[0.1]],
                    [0.1],
                    [[nan, 0.1]],
                    {"m": [1, 2]},
                    [["x", 1]],
                ),
                "features": (None, "x", 3, ["n"]),
            },
            base=("base", "FeaturedPrior needs"),
        ),
        door(
            "FeaturedStatistics",
            pw.families.FeaturedStatistics,
            {"seen": SUMS, "x": [[1.0], [2.0], [4.0]], "features": OF_TASKS},
            {
                "seen": (None, "x", 3, BETA),
                "x": (*NOT_NUMBERS, [[1.0]], [1.0, 2.0, 4.0], [[nan]] * 3, [[1.0, 2.0]] * 3),
                "features": (None, "x", 3, ["n"]),
            },
        ),
        door(
            "FeaturedMarginalLikelihood",
            pw.families.FeaturedMarginalLikelihood,
            {"estimator": pw.GaussianMarginalLikelihood()},
            {"estimator": (None, "x", TS, pw.GaussianMarginalLikelihood)},
        ),
        door(
            "FeaturedMarginalLikelihood.fit",
            pw.families.FeaturedMarginalLikelihood(pw.GaussianMarginalLikelihood("diagonal")).fit,
            {"data": pw.families.FeaturedStatistics(SUMS, [[1.0], [2.0], [4.0]], OF_TASKS)},
            {"data": (None, "x", SUMS), "start": ("x", 3, NORMAL, FIT)},
        ),
        door(
            "FeaturedPrior.for_features",
            pw.families.FeaturedPrior(NORMAL, [[0.1, 0.2]], OF_TASKS).for_features,
            {"features": {"n": 3}},
            {"features": (None, 3, "n", [3], {}, {"m": 3}, {"n": nan}, {"n": "x"}, {"n": [[1.0]]})},
        ),
        door("KShotThompson", pw.KShotThompson, {"k": 3}, {"k": (10**12,)}),
        door(
            "PosteriorSampling",
            pw.PosteriorSampling,
            {"k": 3, "rule": "max"},
            {"rule": (None, "mean", 3, ["max"])},
        ),
        door(
            "RecedingHorizon",
            pw.RecedingHorizon,
            {"k1": 2, "k2": 2, "alpha": 0.5, "ties": "draws", "when_certain": "draws"},
            {"alpha": (True,)},
        ),
        door("TopTwoThompson", pw.TopTwoThompson, {"share": 0.5, "most_draws": 8}),
        door(
            "ExactKnowledgeGradient",
            pw.ExactKnowledgeGradient,
            {"alpha": 0.5, "pulls": 1},
            {"alpha": (True,), "pulls": ([3],)},
        ),
        door("UniformThen", pw.UniformThen, {"rounds": 1, "then": TS}),
        door(
            "PlayArms",
            PlayArms,
            {"arms": (0, 1), "then": TS},
            {"arms": (None, [], (), 3, ("a",), (-1,), (0.5,))},
        ),
        door(
            "OneArmBlocks",
            pw.meta.OneArmBlocks,
            {"arms": 3, "rounds": 1, "then": TS},
            {"rounds": (None,), "then": (None,)},
        ),
        door("PairedArms", pw.meta.PairedArms, {"arms": 3, "then": TS}),
        door(
            "simulate",
            _run,
            {},
            {
                "prior": (*NOT_PRIORS, ARMS_OPEN),
                "policy": NOT_POLICIES,
                "horizon": (*NOT_COUNTS, 0, 2**32),
                "tasks": (*NOT_COUNTS, 0, 10**30),
                "seed": NOT_SEEDS,
                "believed": ("x", 3, NORMAL, TS, ARMS_OPEN),
                "available": (
                    "x",
                    [1, 1, 1],
                    [True],
                    [False] * 3,
                    np.ones((2, 3), dtype=bool),
                    np.ones((4, 4), dtype=bool),
                ),
                "keep": NOT_FLAGS,
                "engine": (None, "fast", 3),
                "threads": (0, -1, "x", 1.5, 10**9),
                "block": (0, -1, "x", 1.5),
                "progress": ("no", 1),
            },
        ),
        door(
            "compare",
            _compare,
            {},
            {
                "policies": (
                    None,
                    {},
                    [],
                    TS,
                    {"a": "ts"},
                    {"a": None},
                    {1: TS},
                    {"a": (TS,)},
                    {"a": (TS, NORMAL)},
                    {"a": (TS, "x")},
                ),
                "keep": NOT_FLAGS,
                "progress": ("no", 1),
                "tasks": (0, "x"),
            },
            policies=("policies", "policy", "believed"),
        ),
        door(
            "simulate_meta",
            _meta,
            {},
            {
                "prior": NOT_PRIORS,
                "learner": (None, "eb", TS, pw.FixedPrior, 3),
                "episodes": (*NOT_COUNTS, 0, 2**32),
                "replicates": (*NOT_COUNTS, 0, 2**32),
                "horizon": (*NOT_COUNTS, 0),
                "seed": NOT_SEEDS,
                "jobs": (0, -1, "x", 1.5),
                "keep": NOT_FLAGS,
                "progress": ("no", 1),
                "engine": ("fast", 3),
                "first": (-1, "x", 1.5),
            },
        ),
        door(
            "BetaStatistics",
            pw.BetaStatistics,
            {"successes": [[1, 0]], "pulls": [[3, 1]]},
            {
                "successes": (
                    *NOT_NUMBERS,
                    [],
                    [1, 0],
                    [[1]],
                    [[-1, 0]],
                    [[4, 0]],
                    [[0.5, 0]],
                    [[nan, 0]],
                    [["a", "b"]],
                    [[True, False]],
                    [[1e18, 0]],
                    np.ma.array([[1, 0]], mask=[[0, 1]]),
                ),
                "pulls": (
                    *NOT_NUMBERS,
                    [],
                    [3, 1],
                    [[3]],
                    [[-3, 1]],
                    [[0, 1]],
                    [[2.5, 1]],
                    [[inf, 1]],
                    [[1e19, 1]],
                    [[2**40, 1]],
                ),
            },
            pulls=("pulls", "successes"),
        ),
        door(
            "GaussianStatistics",
            pw.GaussianStatistics,
            {"pulls": [[2, 1]], "sums": [[1.0, 0.5]], "squares": [[1.0, 0.5]]},
            {
                "pulls": (
                    *NOT_NUMBERS,
                    [],
                    [[-1, 1]],
                    [[0, 1]],
                    [[1e17, 1]],
                    [[0.5, 1]],
                    [[nan, 1]],
                ),
                "sums": (
                    *NOT_NUMBERS,
                    [],
                    [[1.0]],
                    [[nan, 0.5]],
                    [[inf, 0.5]],
                    [[1e200, 0.5]],
                    [[9.0, 0.5]],
                ),
                "squares": ("x", [[1.0]], [[nan, 0.5]], [[-1.0, 0.5]], [[0.1, 0.5]]),
            },
            pulls=("pulls", "sums", "squares"),
            sums=("sums",),
        ),
        door(
            "LinearStatistics",
            pw.LinearStatistics,
            {"gram": np.eye(2)[None], "moments": [[0.5, 0.5]], "squares": [2.0], "pulls": [2]},
            {
                "gram": (np.eye(2), -np.eye(2)[None], [[[1.0, 2.0], [0.0, 1.0]]]),
                "moments": (*NOT_NUMBERS, [], [[nan, 0.0]], [[1.0]], [[9.0, 9.0]]),
                "squares": (*NOT_NUMBERS, [], [-1.0], [nan], [0.1], [1.0, 2.0]),
                "pulls": (*NOT_NUMBERS, [], [-1], [0], [1.5], [1e17], [nan]),
            },
            moments=("moments", "gram"),
            squares=("squares",),
        ),
        door(
            "FiniteStatistics",
            pw.FiniteStatistics,
            {"log_likelihood": [[-1.0, -2.0]]},
            {
                "log_likelihood": (
                    *NOT_NUMBERS,
                    [],
                    [-1.0],
                    [[nan, 0.0]],
                    [[inf, 0.0]],
                    [["a", "b"]],
                )
            },
        ),
        door(
            "BetaStatistics.from_trajectory",
            pw.BetaStatistics.from_trajectory,
            {"actions": [[0, 1]], "rewards": [[1.0, 0.0]], "arms": 2},
            {
                "actions": (
                    *NOT_NUMBERS,
                    [],
                    [0, 1],
                    [[0, 2]],
                    [[-1, 0]],
                    [[0.5, 1]],
                    [[nan, 1]],
                    np.ma.array([[0, 1]], mask=[[0, 1]]),
                ),
                "rewards": (*NOT_NUMBERS, [], [[0.5, 0.0]], [[nan, 0.0]], [[2.0, 0.0]], [[1.0]]),
                "arms": (0, 1),
            },
            arms=("arms", "actions"),
        ),
        door(
            "GaussianStatistics.from_estimates",
            pw.GaussianStatistics.from_estimates,
            {"estimates": [1.0, 2.0], "std_errors": [1.0, 1.0], "noise_var": 1.0},
            {
                "estimates": (*NOT_NUMBERS, [], [1.0], [inf, 1.0]),
                "std_errors": (*NOT_NUMBERS, [], [1.0], [0.0, 1.0], [-1.0, 1.0], [nan, 1.0]),
                "noise_var": (0.0, -1.0),
            },
        ),
        door(
            "BetaMarginalLikelihood",
            pw.BetaMarginalLikelihood,
            {"structure": "separate", "arms": 3, "regulariser": 1.0},
            {"arms": (0,), "regulariser": (-1.0,)},
        ),
        door("BetaMoments", pw.BetaMoments, {"arms": 3, "steps": 2}, {"arms": (0,), "steps": (0,)}),
        door(
            "GaussianMarginalLikelihood",
            pw.GaussianMarginalLikelihood,
            {
                "structure": "full",
                "factors": 1,
                "noise_var": 1.0,
                "arms": 2,
                "regulariser": 2.0,
                "max_iterations": 9,
                "tolerance": 1e-4,
            },
            {
                "factors": (0,),
                "noise_var": ("x", 0.0, -1.0, nan),
                "arms": (0,),
                "regulariser": (-1.0,),
                "max_iterations": (0,),
                "tolerance": (-1.0,),
            },
            fine=("noise_var",),
        ),
        door(
            "GaussianMoments",
            pw.GaussianMoments,
            {"variant": "full", "noise_var": 1.0, "arms": 2},
            {"noise_var": ("x", 0.0, -1.0, nan), "arms": (0,)},
            fine=("noise_var",),
        ),
        door(
            "LinearMoments",
            pw.LinearMoments,
            {"contexts": pw.SphereContexts(3), "noise_var": 1.0, "largest_condition": 1e8},
            {
                "contexts": (None, 3, "sphere", pw.SphereContexts, BETA),
                "noise_var": (-1.0,),
                "largest_condition": (-1.0, 0.5),
            },
            contexts=("contexts", "features"),
        ),
        door(
            "LinearMarginalLikelihood",
            pw.LinearMarginalLikelihood,
            {
                "contexts": pw.SphereContexts(3),
                "structure": "full",
                "noise_var": 1.0,
                "regulariser": 1.0,
            },
            {
                "contexts": (None, 3, "sphere", pw.SphereContexts),
                "noise_var": (0.0, -1.0),
                "regulariser": (-1.0,),
            },
            contexts=("contexts", "features"),
        ),
        door(
            "FiniteCounts",
            pw.FiniteCounts,
            {"candidates": FINITE, "smoothing": None, "level": 1.0},
            {"candidates": (BETA, [[0.1, 0.9]]), "smoothing": ("x", -1.0, nan), "level": (-1.0,)},
        ),
        door(
            "FiniteMarginalLikelihood",
            pw.FiniteMarginalLikelihood,
            {"candidates": FINITE, "regulariser": 0.5},
            {"candidates": (BETA, [[0.1, 0.9]]), "regulariser": (-1.0,)},
        ),
        door(
            "BetaMoments.fit",
            pw.BetaMoments().fit,
            {"data": COUNTED},
            {"data": (None, "x", SUMS, [[1]], BETA, _run())},
            data=("data", "kept"),
        ),
        door(
            "BetaMarginalLikelihood.fit",
            pw.BetaMarginalLikelihood().fit,
            {"data": COUNTED},
            {"data": (None, "x", SUMS, [[1]], BETA, _run())},
            data=("data", "kept"),
        ),
        door(
            "GaussianMarginalLikelihood.fit",
            pw.GaussianMarginalLikelihood(noise_var=1.0).fit,
            {"data": SUMS},
            {"data": (None, "x", COUNTED, [[1]], BETA)},
        ),
        door(
            "Decider",
            pw.Decider,
            {"prior": BETA, "policy": TS, "horizon": 10, "seed": SEED},
            {
                "horizon": (0,),
                "seed": (nan,),
                "store": (3, "", [1], BETA, True),
                "propensities": (None, 1, "yes"),
                "floor": (None, -0.1, 1.5, nan, "x", {"nobody": 0.1}, {0: 0.1}, 0.9),
                "control": (3, "a", ("nobody", 0.1), ("0", 1.5), ("0", nan), ("0",), {}),
                "window": (0, -1.0, nan, inf, "x"),
                "missing": ("x", nan, 0.5, None, 2.0),
                "tolerance": (-1.0, nan, "x"),
                "learn": (3, True, "x", pw.serve.Learning),
                "clock": (3, "x"),
            },
        ),
        door(
            "EmpiricalBayes",
            pw.EmpiricalBayes,
            {
                "estimator": pw.BetaMarginalLikelihood(),
                "policy": TS,
                "schedule": pw.meta.Every(5),
                "hold": pw.meta.AsFitted(),
                "start": BETA,
            },
            {"estimator": (pw.BetaMoments(),), "watch": (pw.meta.Alarm(BETA, OTHER_BETA),)},
        ),
        door(
            "ExploreThenCommit",
            pw.ExploreThenCommit,
            {
                "episodes": 5,
                "estimator": pw.BetaMoments(),
                "exploration": pw.Uniform(),
                "policy": TS,
                "exploring_with": BETA,
            },
            {"exploration": NOT_POLICIES, "exploring_with": (3, "x", TS, pw.BetaPrior)},
        ),
        door(
            "MetaThompson",
            pw.MetaThompson,
            {"hyper": HYPER, "policy": TS},
            {"hyper": (None, 3, BETA, pw.meta.CandidatePriors)},
        ),
        door(
            "AdaThompson",
            pw.AdaThompson,
            {"hyper": HYPER, "policy": TS},
            {"hyper": (None, 3, BETA, pw.meta.CandidatePriors)},
        ),
        door(
            "HierThompson",
            pw.HierThompson,
            {"hyper": HYPER, "concurrent": 2, "policy": TS},
            {"hyper": (None, 3, BETA), "concurrent": (0,)},
        ),
        door(
            "CandidatePriors",
            pw.meta.CandidatePriors,
            {"priors": [BETA, OTHER_BETA], "probs": [0.5, 0.5]},
            {
                "priors": (None, 3, [], BETA, [BETA, "x"], [BETA, NORMAL]),
                "probs": ("x", [0.5], [0.5, 0.6], [nan, 1.0]),
            },
        ),
        door(
            "GaussianHyperPrior",
            pw.meta.GaussianHyperPrior,
            {"mean": [0.0, 0.0], "cov": np.eye(2), "task_cov": np.eye(2)},
            {"mean": vectors},
        ),
        door("FixedPrior", pw.FixedPrior, {"policy": TS, "believed": BETA}),
        door("Mixed", pw.meta.Mixed, {"vague": BETA, "share": 0.1}),
        door("Widened", pw.meta.Widened, {"widened": 1.0, "raised": 0.5}),
        door("Every", pw.meta.Every, {"episodes": 3}),
        door("Geometric", pw.meta.Geometric, {"ratio": 1.2}),
        door("Watch", pw.meta.Watch, {"other": BETA, "level": 0.01, "least": 5, "episodes": 5}),
        door(
            "Alarm",
            pw.meta.Alarm,
            {"prior": BETA, "other": OTHER_BETA, "level": 0.01},
            {"prior": (None, 3, "x", TS), "other": (None, 3, "x", TS)},
        ),
        door("Play", pw.meta.Play, {"policy": TS, "believed": BETA, "episodes": 1}),
        door(
            "RunningMean",
            pw.meta.RunningMean,
            {"cov": np.eye(2), "noise_var": 1.0},
            {
                "cov": (
                    [1.0, 1.0],
                    [[1.0, 2.0], [2.0, 1.0]],
                    [[1.0, 0.5], [0.4, 1.0]],
                    np.ones((2, 3)),
                ),
                "noise_var": (0.0, -1.0),
            },
        ),
        door(
            "total_variation",
            pw.total_variation,
            {
                "p": OTHER_NORMAL,
                "q": pw.GaussianPrior([0.2, 0.1], [[1.0, 0.5], [0.5, 3.0]]),
                "seed": SEED,
                "draws": 100,
                "estimate": True,
            },
            {"p": (BETA,), "q": (BETA,), "draws": (0, 10**13)},
            p=("p ", "priors", "prior"),
            q=("q ", "priors", "prior"),
        ),
        door(
            "kl",
            pw.sensitivity.kl,
            {"p": NORMAL, "q": OTHER_NORMAL},
            {"p": (BETA,), "q": (BETA,)},
            p=("p ", "prior"),
            q=("q ", "prior"),
        ),
        door(
            "hellinger",
            pw.sensitivity.hellinger,
            {"p": NORMAL, "q": OTHER_NORMAL},
            {"p": (BETA,), "q": (BETA,)},
            p=("p ", "prior"),
            q=("q ", "prior"),
        ),
        door(
            "tail_expectation",
            pw.tail_expectation,
            {
                "prior": BETA,
                "p": 0.1,
                "horizon": 2,
                "condition": "auto",
                "seed": SEED,
                "draws": 100,
            },
            {"p": (-0.1,), "horizon": (0,), "condition": (pw.sensitivity.Bounded,), "draws": (0,)},
            p=("p ", "level"),
        ),
        door("Bounded", pw.sensitivity.Bounded, {"diameter": 1.0}, {"diameter": (-1.0,)}),
        door(
            "SubGaussian",
            pw.sensitivity.SubGaussian,
            {"mean": [0.0, 1.0], "variance": 1.0, "form": "lemma"},
            {"mean": (None, "x", [], [nan, 1.0]), "variance": (-1.0,)},
        ),
        door(
            "SubGamma",
            pw.sensitivity.SubGamma,
            {"mean": [0.0, 1.0], "variance": 1.0, "scale": 1.0, "form": "lemma"},
            {"mean": (None, "x", [], [nan, 1.0]), "variance": (-1.0,), "scale": (-1.0,)},
        ),
        door(
            "trajectory_bound",
            pw.trajectory_bound,
            {"p": NORMAL, "q": OTHER_NORMAL, "policy": TS, "horizon": 3},
            {"policy": (pw.Greedy(),), "horizon": (0,), "tv": ("x", nan, -0.1, 1.5)},
            p=("p ", "prior"),
            q=("q ", "prior"),
            policy=("policy", "Monte-Carlo constant"),
        ),
        door(
            "reward_bound",
            pw.reward_bound,
            {"p": NORMAL, "q": OTHER_NORMAL, "policy": TS, "horizon": 3},
            {
                "policy": (pw.Greedy(),),
                "horizon": (0,),
                "tv": ("x", nan, -0.1, 1.5),
                "tail": (None, 3, "magic"),
                "draws": (None, 0, "x"),
                "estimate": NOT_FLAGS,
            },
            p=("p ", "prior"),
            q=("q ", "prior"),
            tail=("tail", "condition"),
            policy=("policy", "Monte-Carlo constant"),
        ),
        door(
            "sensitivity_ladder",
            pw.sensitivity_ladder,
            {"p": FINITE, "q": OTHER_FINITE, "policy": TS, "horizon": 2, "seed": SEED, "tasks": 10},
            {
                "horizon": (0,),
                "tasks": (0, 1),
                "histories": (0, 1, "x", 1.5),
                "tv": ("x", nan, -0.1, 1.5),
            },
        ),
        door(
            "approximation_error",
            pw.sensitivity.approximation_error,
            {"p": FINITE, "q": OTHER_FINITE, "policy": TS, "horizon": 2, "seed": SEED},
            {"horizon": (0,), "histories": (0, 1, "x", 1.5)},
        ),
        door(
            "break_even",
            pw.break_even,
            {
                "prior": NORMAL,
                "direction": OTHER_NORMAL,
                "policy": TS,
                "horizon": 2,
                "seed": SEED,
                "tasks": 64,
            },
            {
                "direction": (None, "x", [1.0], {"mean": [1.0]}, {"x": [1.0]}, BETA),
                "horizon": (0,),
                "tasks": (0,),
                "largest": (*numbers, 0.0, -1.0),
                "fallback": (3, "x", pw.Greedy),
            },
            fine=("direction",),
            direction=("direction", "prior", "mean"),
        ),
        door(
            "exact_evaluation",
            pw.sensitivity.exact_evaluation,
            {"prior": FINITE, "policy": TS, "horizon": 2},
            {"prior": (BETA,), "horizon": (0,), "believed": ("x", 3, BETA), "most": (0, "x", 1.5)},
        ),
        door(
            "exact_trajectory_tv",
            pw.sensitivity.exact_trajectory_tv,
            {"prior": FINITE, "other": OTHER_FINITE, "policy": TS, "horizon": 2},
            {"prior": (BETA,), "other": (BETA,), "horizon": (0,)},
        ),
        door(
            "bayes_optimal",
            pw.bayes_optimal,
            {"prior": FINITE, "horizon": 2, "most": 1000},
            {"prior": (NORMAL,), "horizon": (0,), "most": (0,)},
        ),
        door(
            "BayesOptimalPolicy", pw.sensitivity.BayesOptimalPolicy, {"most": 1000}, {"most": (0,)}
        ),
        door(
            "kveton_comparison",
            pw.sensitivity.kveton_comparison,
            {"p": NORMAL, "q": OTHER_NORMAL, "horizon": 3},
            {"p": (BETA,), "q": (BETA,), "horizon": (0,)},
            p=("p ", "prior"),
            q=("q ", "prior"),
        ),
        door(
            "lower_bound_gap",
            pw.sensitivity.lower_bound_gap,
            {"k": 1, "horizon": 2, "arms": 4, "eps": 0.1, "delta": 0.1, "seed": SEED, "tasks": 64},
            {"k": (0,), "horizon": (0,), "arms": (0,), "eps": NOT_SHARES, "tasks": (0,)},
        ),
        door(
            "formal_lower_bound",
            pw.sensitivity.formal_lower_bound,
            {"eta": 0.2, "k": 1, "horizon": 40, "eps": 1e-4, "scale": 1.0},
            {
                "eta": (-0.1, 1.5, 0.0, 0.25),
                "k": (0,),
                "horizon": (0, 39),
                "eps": (-0.1, 0.0, 0.01),
                "scale": (0.0, -1.0),
            },
        ),
        door(
            "trigamma_matrix",
            pw.meta.trigamma_matrix,
            {"alpha": [1.0, 2.0], "beta": 1.0},
            {each: (None, "x", [nan], [inf], 0.0, -1.0) for each in ("alpha", "beta")},
            fine=("beta",),
        ),
        door(
            "beta_constant",
            pw.meta.beta_constant,
            {"alpha": 1.0, "beta": 2.0, "radius": 0.1},
            {"alpha": (0.0, -1.0), "beta": (0.0, -1.0), "radius": (-1.0,)},
        ),
        door(
            "beta_concentration",
            pw.meta.beta_concentration,
            {"prior": BETA, "tasks": 1000, "delta": 0.1, "pulls": 3},
            {
                "prior": (NORMAL, ARMS_OPEN),
                "tasks": (0,),
                "delta": (-0.1, 1.5, 0.0, 1.0),
                "pulls": (0, 1),
            },
        ),
        door(
            "beta_tasks",
            pw.meta.beta_tasks,
            {"prior": BETA, "eps": 0.5, "delta": 0.1, "pulls": 3},
            {
                "prior": (NORMAL, ARMS_OPEN),
                "eps": (-0.1, 1.5, 0.0, 1.0),
                "delta": (-0.1, 1.5, 0.0, 1.0),
                "pulls": (0, 1),
            },
        ),
        door(
            "gaussian_constants", pw.meta.gaussian_constants, {"prior": NORMAL}, {"prior": (BETA,)}
        ),
        door(
            "gaussian_concentration",
            pw.meta.gaussian_concentration,
            {"prior": NORMAL, "tasks": 1000, "delta": 0.1, "difference": True},
            {"prior": (BETA,), "tasks": (0,), "delta": (-0.1, 1.5, 0.0, 1.0)},
        ),
        door(
            "gaussian_tasks",
            pw.meta.gaussian_tasks,
            {"prior": NORMAL, "eps": 0.5, "delta": 0.1, "known_cov": True},
            {"prior": (BETA,), "eps": (-0.1, 1.5, 0.0, 1.0), "delta": (-0.1, 1.5, 0.0, 1.0)},
        ),
        door(
            "kl_lemma",
            pw.meta.kl_lemma,
            {"truth": NORMAL, "fitted": OTHER_NORMAL},
            {"truth": (BETA,), "fitted": (BETA,)},
        ),
        door(
            "theory_rate",
            pw.meta.theory_rate,
            {"prior": NORMAL, "eps": 0.5, "delta": 0.1, "known_mean": False, "known_cov": True},
            {"prior": (ARMS_OPEN,), "eps": (-0.1, 1.5, 0.0, 1.0), "delta": (-0.1, 1.5, 0.0, 1.0)},
        ),
        door(
            "two_point_instance",
            pw.sensitivity.two_point_instance,
            {"eps": 0.1},
            {"eps": NOT_SHARES},
        ),
        door(
            "noiseless_instance",
            pw.sensitivity.noiseless_instance,
            {"arms": 4, "eps": 0.1, "delta": 0.1},
            {"arms": (0,), "eps": NOT_SHARES},
        ),
        door(
            "pomdp_trajectory_bound",
            pw.sensitivity.pomdp_trajectory_bound,
            {"tv": 0.1, "n": 1, "horizon": 3},
            {"tv": (-0.1, 1.5), "horizon": (0,)},
        ),
        door(
            "pomdp_trajectory_bound, two priors",
            pw.sensitivity.pomdp_trajectory_bound,
            {"tv": (FINITE, OTHER_FINITE), "n": TS, "horizon": 3, "seed": SEED},
            {
                "tv": ((), (FINITE,), (FINITE, None), (FINITE, BETA), (3, FINITE)),
                "n": (*NOT_COUNTS, pw.Greedy(), BETA),
                "horizon": (0,),
                "estimate": NOT_FLAGS,
            },
            fine=("n",),
            tv=("tv", "p ", "q ", "prior"),
            n=("n ", "policy"),
        ),
        door(
            "pomdp_reward_bound",
            pw.sensitivity.pomdp_reward_bound,
            {"tv": 0.1, "n": 1, "horizon": 3, "reward_range": 1.0},
            {"tv": (-0.1, 1.5), "horizon": (0,), "reward_range": (-1.0, None), "tails": (3, "x")},
            reward_range=("reward_range", "tails"),
        ),
        door(
            "reward_tails",
            pw.sensitivity.reward_tails,
            {
                "prior": BETA,
                "believed": BETA,
                "policy": TS,
                "horizon": 2,
                "tasks": 10,
                "seed": SEED,
            },
            {"horizon": (0,), "tasks": (0,), "centre": numbers},
        ),
        door(
            "exact_reward_tails",
            pw.sensitivity.exact_reward_tails,
            {"prior": FINITE, "believed": OTHER_FINITE, "policy": TS, "horizon": 2},
            {
                "prior": (BETA,),
                "believed": (BETA,),
                "horizon": (0,),
                "centre": numbers,
                "most": (0, "x", 1.5),
            },
        ),
        door(
            "sample_complexity",
            pw.sample_complexity,
            {
                "prior": BETA,
                "eps": 0.5,
                "delta": 0.5,
                "horizon": 3,
                "seed": SEED,
                "replicates": 2,
                "most": 64,
                "draws": 10,
            },
            {
                "eps": (-0.1, 1.5, 0.0, 1.0),
                "delta": (-0.1, 1.5, 0.0, 1.0),
                "horizon": (0,),
                "estimator": (3, "x", TS, pw.BetaMoments),
                "exploration": (3, "x", BETA, pw.Uniform),
                "replicates": (0,),
                "least": (*NOT_COUNTS, 0),
                "most": (0, 1),
                "precision": (*numbers, 1.0, 0.5),
                "draws": (0,),
            },
        ),
        door(
            "fit_prior",
            pw.fit_prior,
            {
                "log": PAST,
                "family": "beta:separate",
                "seed": SEED,
                "task": "task",
                "action": "action",
                "reward": "reward",
                "pulls": "pulls",
                "squares": None,
                "context": None,
                "contexts": None,
                "arms": "same",
                "missing": "refuse",
                "noise_var": None,
                "time": None,
                "since": None,
                "until": None,
                "window": None,
                "half_life": None,
                "reward_as": "reward",
                "task_features": None,
            },
            {
                "log": (None, 3, [], BETA, "no.csv", "log.xlsx", Path("no.parquet")),
                "task": (["task"],),
                "action": (["task"],),
                "reward": (["task"],),
                "pulls": (["task"],),
                "squares": ("no", 3, ["task"], "action"),
                "context": ("no", 3, ["no"], ["pulls"]),
                "noise_var": ("x", 0.0, -1.0, nan),
                "time": ("no", 3, ["task"], "action"),
                "since": ("2024-01-01", 3),
                "until": ("2024-01-01", 3),
                "window": ("x", 0, -1.0, nan, 3),
                "half_life": ("x", 0, -1.0, nan),
                "task_features": ("no", 3, ["no"], ["pulls"], [3], "reward"),
            },
            task_features=("task_features", "pulls", "reward"),
            time=("time", "action"),
            task=("task", "reward"),
            action=("action", "reward"),
            reward=("reward", "action"),
            pulls=("pulls", "action"),
            squares=("squares", "action"),
            context=("context", "pulls"),
        ),
        door(
            "compare_models",
            pw.compare_models,
            {
                "models": {"a": pw.BetaMarginalLikelihood()},
                "data": COUNTED,
                "folds": 2,
                "seed": SEED,
            },
            {
                "models": (
                    None,
                    {},
                    [],
                    pw.BetaMoments(),
                    {"a": TS},
                    {"a": None},
                    {"a": pw.BetaMoments},
                    {1: pw.BetaMoments()},
                ),
                "data": (None, "x", SUMS, BETA, _run()),
                "folds": (0, 1, 99),
            },
            data=("data", "kept"),
        ),
        door(
            "compare_policies",
            pw.compare_policies,
            {
                "fit": FIT,
                "policies": {"ts": TS},
                "horizon": 2,
                "tasks": 4,
                "draws": 2,
                "seed": SEED,
            },
            {
                "fit": (None, BETA, "x", COUNTED),
                "policies": (None, {}, [], TS, {"a": "ts"}, {1: TS}),
                "horizon": (0,),
                "tasks": (0,),
                "draws": (0,),
                "arms": (5, 0, "x"),
            },
            policies=("policies", "policy"),
        ),
        door(
            "recommend",
            pw.recommend,
            {
                "log": PAST,
                "horizon": 2,
                "seed": SEED,
                "batch": 1,
                "family": "beta:separate",
                "task": "task",
                "action": "action",
                "reward": "reward",
                "pulls": "pulls",
                "squares": None,
                "context": None,
                "contexts": None,
                "arms": "same",
                "missing": "refuse",
            },
            {
                "log": (None, 3, [], BETA, "no.csv", "log.xlsx", Path("no.parquet")),
                "horizon": (0,),
                "batch": (0, 3),
                "seconds": (None, "x", 0, -1.0, np.nan),
                "task": ("no", 3, ["task"]),
                "action": ("no", 3, ["task"]),
                "reward": ("no", 3, ["task"]),
                "pulls": ("no", 3, ["task"]),
                "squares": ("no", 3, ["task"]),
                "context": ("no", 3, ["no"]),
                "progress": ("yes", 1),
            },
            fine=("task", "action", "reward", "pulls"),
        ),
        door(
            "certify",
            pw.certify,
            {"fit": FIT, "policy": TS, "horizon": 2, "seed": SEED, "draws": 20, "tasks": 4},
            {
                "fit": (None, BETA, "x", COUNTED),
                "horizon": (0,),
                "draws": (0, 19),
                "tasks": (0, 1),
                "bootstrap": ("x", -1, 1.5, 19, 20),
                "estimator": ("x", TS, BETA),
                "arms": (5, 0, "x"),
                "batch": (*NOT_COUNTS, 0),
                "progress": ("yes", 1),
            },
        ),
        door(
            "backtest",
            pw.backtest,
            {
                "log": LONGER_PAST,
                "policies": {"ts": TS},
                "horizon": 2,
                "seed": SEED,
                "family": "beta:separate",
                "task": "task",
                "action": "action",
                "reward": "reward",
                "pulls": "pulls",
                "arms": "same",
            },
            {
                "log": (None, 3, [], BETA, "no.csv", "log.xlsx", Path("no.parquet")),
                "policies": (None, 3, {}, TS, [TS], {"x": 3}, {3: TS}, {"x": (TS,)}),
                "horizon": (0,),
                "batch": (*NOT_COUNTS, 0),
                "time": ("no", 3, ["task"]),
                "train": (*NOT_SHARES, 0.0, 1.0),
                "task": ("no", 3, ["task"]),
                "action": ("no", 3, ["task"]),
                "reward": ("no", 3, ["task"]),
                "pulls": ("no", 3, ["task"]),
                "squares": ("no", 3, ["task"]),
                "propensity": ("no", 3, ["task"], "pulls"),
                "noise_var": ("x", -1.0, float("nan"), 0.0, 1.0),
                "missing": (None, 3, "", "zero"),
                "progress": ("yes", 1),
            },
            fine=("task", "action", "reward", "pulls"),
            policies=("policies", "policy"),
            propensity=("propensity", "'pulls'"),
        ),
        door(
            "log_marginal_likelihood",
            pw.meta.log_marginal_likelihood,
            {"prior": BETA, "statistics": COUNTED},
            {
                "prior": (NORMAL, ARMS_OPEN.for_arms(2)),
                "statistics": (None, "x", SUMS, [[1]], _run(), COUNTED[:1].pulls),
            },
            prior=("prior", "arms", "statistics"),
            statistics=("statistics", "kept"),
        ),
        door(
            "load_prior",
            pw.load_prior,
            {"source": BETA.to_json()},
            {"source": (b"{}", BETA)},
            source=("source", "JSON", "cannot read", "priorwise file", "file"),
        ),
        door(
            "PriorFit",
            pw.PriorFit,
            {"prior": BETA, "estimator": "mine", "tasks": 3},
            {
                "prior": (None, 3, "x"),
                "estimator": (None, 3),
                "left_out": (-1, "x"),
                "std_errors": ("x", 3, {"alpha": "x"}),
            },
            fine=("prior", "estimator"),
        ),
        door(
            "MetaRun.shortfall",
            _meta().shortfall,
            {"other": _meta()},
            {"other": (None, 3, _run(), _meta(horizon=4))},
        ),
        door(
            "MetaRun.average",
            _meta().average,
            {"first": 1, "last": 2},
            {"first": (0, 3), "last": (0, 99)},
        ),
        door(
            "Comparison.difference",
            _compare(policies={"a": TS, "b": pw.Greedy()}).difference,
            {"first": "a", "second": "b"},
            first=("no policy",),
            second=("no policy",),
        ),
        door("take", COUNTED.take, {"index": [0, 1]}, {"index": ("x", [9], [0.5], [True], [-9])}),
        door("monte_carlo_n", TS.monte_carlo_n, {"arms": 3}, {"arms": (0,)}),
    ]


# where the error is about another argument than the one that is spoilt: two must go together
ALSO: dict[str, tuple[str, ...]] = {
    "NormalGammaPrior: mean": ("rate", "pulls", "shape"),
    "LinearQuadraticPrior: transition": ("control",),
    "FiniteLqgPrior: transition": ("control",),
    "FiniteLinearQuadraticPrior: transition": ("control",),
    "FinitePomdpPrior: transitions": ("probs",),
    "MdpStatistics: pulls": ("moves",),
    "ParticlePrior: sample": ("log_prior",),
    "ParticlePrior: rewards": ("reward_range",),
    "BetaPrior: beta": ("alpha",),
    "LogisticStatistics: pulls": ("features",),
    "for_arms, normal: arms": ("correlation",),
    "MixtureStatistics: log_contexts": ("laws",),
    "TaskFeatures: words": ("names",),
    "TaskFeatures: scale": ("centre",),
    "FeaturedPrior: base": ("prior",),
    "FeaturedStatistics: features": ("seen",),
    "ExactKnowledgeGradient: pulls": ("alpha",),
    "OneArmBlocks: then": ("rounds",),
    "GaussianStatistics: sums": ("squares",),
    "LinearStatistics: squares": ("gram",),
    "LinearStatistics: pulls": ("gram",),
    "GaussianStatistics.from_estimates: std_errors": ("estimates",),
    "GaussianMarginalLikelihood: tolerance": ("regulariser",),
    "BetaMoments.fit: data": ("run",),
    "BetaMarginalLikelihood.fit: data": ("run",),
    "total_variation: p": ("q",),
    "kl: p": ("q",),
    "hellinger: p": ("q",),
    "break_even: prior": ("direction",),
    "pomdp_reward_bound: tails": ("reward_range",),
    "fit_prior: task": ("log",),
    "fit_prior: action": ("log",),
    "fit_prior: reward": ("log",),
    "fit_prior: pulls": ("log",),
    "fit_prior: squares": ("log",),
    "fit_prior: context": ("log",),
    "fit_prior: time": ("log",),
    "fit_prior: task_features": ("log",),
    "compare_models: data": ("run",),
    "backtest: propensity": ("log",),
    "backtest: noise_var": ("family",),
    "log_marginal_likelihood: statistics": ("run",),
    "load_prior: source": ("text",),
    "MetaRun.average: last": ("first",),
    "own classes: belief of other tasks": ("belief",),
    "PriorFit.draw: n huge": ("n",),
}


def refused() -> Iterator[Case]:
    """List every bad input: a good call with one argument spoilt."""
    for each in doors():
        for argument, values in each.bad.items():
            words = each.words.get(argument, (argument,)) + ALSO.get(f"{each.name}: {argument}", ())
            for number, value in enumerate(values):
                call = _spoilt(each, argument, value)
                yield Case(f"{each.name}: {argument} {number}: {_short(value)}", call, words)
    for case in (*_own_classes(), *_results(), *_statistics(), *_parts_of_learners()):
        yield replace(case, words=case.words + ALSO.get(case.label, ()))


def _spoilt(each: Door, argument: str, value: Any) -> Callable[[], Any]:
    return lambda: each.call(**{**each.good, argument: value})


def _short(value: Any) -> str:
    text = (
        " ".join(repr(value).split())
        if not (isinstance(value, int) and value > 10**50)
        else "a huge integer"
    )
    return text[:40].split(" at 0x")[0]


class Broken:
    """A prior of the user's that is right but for one method, given by name."""

    arms = 3

    def __init__(self, **wrong: Any) -> None:
        """Keep what to return instead."""
        self.wrong = wrong

    def sample(self, rng: Any, tasks: int) -> Any:
        """Draw the environment, or return what is wrong."""
        if "environment" in self.wrong:
            return self.wrong["environment"]
        return BrokenEnvironment(BETA.sample(rng, tasks), self.wrong)

    def belief(self, tasks: int) -> Any:
        """Start the belief, or return what is wrong."""
        return self.wrong["belief"](tasks) if "belief" in self.wrong else BETA.belief(tasks)


class BrokenEnvironment:
    """An environment with a wrong reward, or wrong values."""

    def __init__(self, inner: Any, wrong: dict[str, Any]) -> None:
        """Wrap the right one."""
        self.inner, self.wrong = inner, wrong

    def start(self, rng: Any) -> Any:
        """Show nothing."""
        return None

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        """Return the reward, or what is wrong."""
        if "step" in self.wrong:
            return self.wrong["step"]
        rewards, after = self.inner.step(seen, actions, rng)
        return (self.wrong["reward"](rewards) if "reward" in self.wrong else rewards), after

    def values(self, signal: Any) -> Any:
        """Return the values, or what is wrong."""
        values = self.inner.values(signal)
        return self.wrong["values"](values) if "values" in self.wrong else values


class BrokenPolicy:
    """A policy that returns what it was told."""

    def __init__(self, actions: Any) -> None:
        """Keep the answer."""
        self.actions = actions

    def act(self, belief: Any, seen: Any, rng: Any) -> Any:
        """Give the answer."""
        return self.actions


class Lost:
    """A belief whose update forgets to return."""

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        """Draw."""
        return BETA.belief(rng.tasks).sample(rng, draws, seen)

    def update(self, *args: Any) -> None:
        """Return nothing."""


class Drawless(pw.SamplingPolicy):
    """A sampling policy that does not say how many draws it needs."""

    def select(self, values: Any, seen: Any, rng: Any) -> Any:
        """Play the first arm."""
        return np.zeros(len(values), dtype=np.int64)


def _own_classes() -> Iterator[Case]:
    """Priors, environments, beliefs and policies of a user's own that break their role: the error
    names class and method.
    """
    priors: dict[str, tuple[Any, tuple[str, ...]]] = {
        "environment None": (Broken(environment=None), ("Broken.sample",)),
        "environment of words": (Broken(environment="x"), ("Broken.sample",)),
        "belief None": (Broken(belief=lambda tasks: None), ("Broken.belief",)),
        "belief of words": (Broken(belief=lambda tasks: "x"), ("Broken.belief",)),
        "belief of other tasks": (
            Broken(belief=lambda tasks: BETA.belief(7)),
            ("belief is about 7 tasks", "Broken.belief"),
        ),
        "belief of other arms": (
            Broken(belief=lambda tasks: pw.BetaPrior([1.0], [1.0]).belief(tasks)),
            ("arms",),
        ),
        "belief that is lost": (Broken(belief=lambda tasks: Lost()), ("Lost.update",)),
        "reward NaN": (Broken(reward=lambda r: r * np.nan), ("BrokenEnvironment.step",)),
        "reward infinite": (Broken(reward=lambda r: r + np.inf), ("BrokenEnvironment.step",)),
        "reward of words": (
            Broken(reward=lambda r: np.array(["x"] * len(r))),
            ("BrokenEnvironment.step",),
        ),
        "reward None": (Broken(reward=lambda r: None), ("BrokenEnvironment.step",)),
        "rewards too many": (Broken(reward=lambda r: np.ones(99)), ("BrokenEnvironment.step",)),
        "rewards by arm": (
            Broken(reward=lambda r: np.ones((len(r), 3))),
            ("BrokenEnvironment.step",),
        ),
        "step returns rewards alone": (Broken(step=np.ones(4)), ("BrokenEnvironment.step",)),
        "step returns None": (Broken(step=None), ("BrokenEnvironment.step",)),
        "values of more arms": (
            Broken(values=lambda v: np.concatenate([v, v], axis=1)),
            ("BrokenEnvironment.values",),
        ),
        "values NaN": (Broken(values=lambda v: v * np.nan), ("BrokenEnvironment.values",)),
        "values None": (Broken(values=lambda v: None), ("BrokenEnvironment.values",)),
    }
    for label, (prior, words) in priors.items():
        yield Case(f"own classes: {label}", _played(prior, TS), words)
    for label, actions in {
        "None": None,
        "one for all": 0,
        "words": ["a"] * 4,
        "halves": np.full(4, 0.5),
        "too many": np.zeros(9, dtype=np.int64),
        "an arm too many": np.full(4, 3),
        "a negative arm": np.full(4, -1),
    }.items():
        yield Case(
            f"own classes: actions: {label}",
            _played(BETA, BrokenPolicy(actions)),
            ("BrokenPolicy.act",),
        )
    yield Case("own classes: no draws", _played(BETA, Drawless()), ("Drawless",))
    yield Case(
        "own classes: no draws, by hand",
        lambda: Drawless().act(BETA.belief(2), pw.core.Seen(1, 2, 3), streams(SEED, 2)(1)),
        ("Drawless",),
    )
    place = Path(tempfile.gettempdir()) / "priorwise-no-such-directory" / "fit.json"
    yield Case("save: no directory", lambda: FIT.save(place), (str(place.parent), "fit.json"))


def _played(prior: Any, policy: Any) -> Callable[[], Any]:
    return lambda: pw.simulate(prior, policy, horizon=3, tasks=4, seed=SEED, engine="numpy")


class Unreadable:
    """A value that fails when it is made an array, and when it is printed."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Fail."""
        raise RuntimeError("cannot be read")

    def __repr__(self) -> str:
        """Fail."""
        raise RuntimeError("cannot be shown")


def _named(
    door: str, argument: str, call: Callable[[Any], Any], values: dict[str, Any], *words: str
) -> Iterator[Case]:
    """One argument with values that have names."""
    for name, value in values.items():
        yield Case(
            f"{door}: {argument} {name}", lambda value=value: call(value), words or (argument,)
        )


def _results() -> Iterator[Case]:
    """What results are asked: figures, tables, differences, files."""
    run, comparison, meta = _run(), _compare(policies={"a": TS, "b": pw.Greedy()}), _meta()
    ladder = pw.sensitivity_ladder(FINITE, OTHER_FINITE, TS, 2, seed=SEED, tasks=20)
    models = pw.compare_models(
        {"a": pw.BetaMoments(), "b": pw.BetaMarginalLikelihood()}, COUNTED, folds=2, seed=SEED
    )
    no_text = {
        "None": None,
        "a number": 3,
        "bytes": b"t",
        "a list": ["t"],
        "half a character": "\ud800",
        "unreadable": Unreadable(),
    }
    for name, result in {
        "Run": run,
        "Comparison": comparison,
        "MetaRun": meta,
        "Ladder": ladder,
        "PriorFit": FIT,
    }.items():
        yield from _named(
            f"{name}.figure",
            "title",
            lambda value, result=result: result.figure(title=value),
            no_text,
        )
    yield from _named("Run.figure", "label", lambda value: run.figure(label=value), no_text)
    yield from _named(
        "Comparison.figure", "note", lambda value: comparison.figure(note=value), no_text
    )
    yield from _named("MetaRun.figure", "label", lambda value: meta.figure(label=value), no_text)
    others = {
        "a run": run,
        "a list": [meta],
        "a dictionary of runs": {"a": run},
        "a word": "x",
        "None in it": {"a": None},
    }
    yield from _named("MetaRun.figure", "others", lambda value: meta.figure(others=value), others)
    flags = {"a number": 1, "None": None, "a word": "yes"}
    yield from _named(
        "Comparison.to_frame", "by_step", lambda value: comparison.to_frame(by_step=value), flags
    )
    yield from _named(
        "MetaRun.to_frame", "by_replicate", lambda value: meta.to_frame(by_replicate=value), flags
    )
    names = {"a list": ["a"], "None": None, "unreadable": Unreadable()}
    yield from _named(
        "Comparison.difference",
        "second",
        lambda value: comparison.difference("a", value),
        names,
        "no policy",
    )
    yield from _named(
        "ModelComparison.difference",
        "second",
        lambda value: models.difference("a", value),
        names,
        "in this comparison",
    )
    yield from _named(
        "ModelComparison.estimate", "name", models.estimate, names, "in this comparison"
    )
    yield from _named("Ladder", "name", lambda value: ladder[value], names, "no rung")
    half = {"half a character": {"\ud800": TS}}
    yield from _named(
        "compare", "name", lambda value: _compare(policies=value), half, "a name in policies"
    )
    files = {
        "None": None,
        "a number": 5,
        "bytes": b"x.png",
        "a list": ["a.png"],
        "NUL": "a\0b.png",
        "half a character": "\ud83d.png",
    }
    picture = run.figure()
    yield from _named("Picture.save", "path", picture.save, files)
    yield from _named("BetaPrior.save", "path", BETA.save, files)
    yield from _named("PriorFit.save", "path", FIT.save, files)
    yield from _named(
        "PriorFit.draw",
        "n",
        lambda value: FIT.draw(np.random.default_rng(SEED), value),
        {"huge": 10**14},
        "n=",
    )


def _statistics() -> Iterator[Case]:
    """Which tasks, and how many arms."""
    linear = pw.LinearStatistics.from_trajectory(np.ones((3, 4, 2)), np.ones((3, 4)))
    chances = pw.FiniteStatistics(-np.arange(6.0).reshape(3, 2))
    rows = {
        "of two axes": [[0, 1]],
        "nothing": [],
        "an empty slice": slice(9, 9),
        "a slice of words": slice("a"),
        "unreadable": Unreadable(),
    }
    for statistics in (COUNTED, SUMS, chances, linear):
        name = type(statistics).__name__
        yield from _named(f"{name}.take", "index", statistics.take, rows)
        yield from _named(f"{name}[]", "index", statistics.__getitem__, {**rows, "a pair": (0, 1)})
        yield Case(
            f"{name} + array: a matrix", lambda each=statistics: each + np.ones((2, 2)), (name,)
        )
    shifts = {
        "NaN": np.nan,
        "infinite": np.inf,
        "None": None,
        "of other arms": np.ones(5),
        "huge": 1e200,
        "a word": "a",
    }
    yield from _named("GaussianStatistics.shifted", "by", SUMS.shifted, shifts)
    run = _run(keep=True)
    for statistics in (pw.BetaStatistics, pw.GaussianStatistics):
        yield from _named(
            f"{statistics.__name__}.from_trajectory",
            "arms",
            lambda value, kind=statistics: kind.from_trajectory([[0, 1]], [[1.0, 0.0]], arms=value),
            {"huge": 10**13},
        )
        yield from _named(
            f"{statistics.__name__}.from_run",
            "steps",
            lambda value, kind=statistics: kind.from_run(run, arms=3, steps=value),
            {"a slice of words": slice("a", "b")},
        )
    sizes = {
        "None": None,
        "a number": 3,
        "too many": [99],
        "a word": "ab",
        "unreadable": Unreadable(),
    }
    candidates = pw.FiniteCounts(FINITE)
    fits = ((pw.BetaMoments(), COUNTED), (pw.GaussianMoments(), SUMS), (candidates, chances))
    for estimator, data in (*fits, (pw.LinearMoments(pw.SphereContexts(3)), linear)):
        yield from _named(
            f"{type(estimator).__name__}.fit_prefixes",
            "sizes",
            lambda value, estimator=estimator, data=data: estimator.fit_prefixes(data, value),
            sizes,
        )


class Unplanned:
    """A learner whose plan is something else."""

    def __init__(self, play: Any) -> None:
        """Keep what to plan."""
        self.play = play

    def init(self, setting: Any) -> None:
        """Know nothing."""

    def plan(self, state: Any, rng: Any) -> Any:
        """Return what is wrong."""
        return self.play

    def step(self, state: Any, play: Any, played: Any) -> None:
        """Learn nothing."""


def _parts_of_learners() -> Iterator[Case]:
    """What learners, plans, alarms and bounds are made of."""
    plays = {"None": None, "a policy": TS, "a pair": (TS, NORMAL)}
    yield from _named(
        "simulate_meta",
        "plan",
        lambda value: _meta(learner=Unplanned(value)),
        plays,
        "Unplanned.plan",
    )
    blocks = pw.ExploreThenCommit(2, pw.GaussianMoments(), pw.meta.OneArmBlocks(5))
    yield Case(
        "simulate_meta: exploration of other arms", lambda: _meta(learner=blocks), ("exploration",)
    )
    yield from _named(
        "Setting", "truth", lambda value: pw.meta.Setting(value, 3), {"a class": pw.BetaPrior}
    )
    yield from _named(
        "Setting",
        "horizon",
        lambda value: pw.meta.Setting(BETA, value),
        {"half": 1.5, "none": 0, "a word": "3"},
    )
    yield from _named(
        "Setting",
        "seed",
        lambda value: pw.meta.Setting(BETA, 3, value),
        {"negative": -1, "half": 1.5, "a word": "3"},
    )
    for plan in (pw.meta.OneArmBlocks(3), pw.meta.PairedArms(3)):
        name = f"{type(plan).__name__}.segments"
        wrong = {"negative": -1, "half": 1.5, "None": None, "a word": "x", "True": True}
        yield from _named(
            name, "episodes", lambda value, plan=plan: plan.segments(value, seed=SEED), wrong
        )
        yield from _named(
            name, "seed", lambda value, plan=plan: plan.segments(4, seed=value), wrong
        )
    alarm = pw.meta.Alarm(BETA, OTHER_BETA)
    yield from _named(
        "Alarm.observe",
        "played",
        alarm.observe,
        {"None": None, "an array": np.ones(3), "a run": _run(keep=True)},
    )
    no_numbers = {"a word": "nan", "a dictionary": {}, "True": True, "NaN": np.nan}
    yield from _named(
        "Alarm",
        "log_evidence",
        lambda value: pw.meta.Alarm(BETA, OTHER_BETA, 0.01, value),
        no_numbers,
    )
    yield from _named(
        "Alarm",
        "largest",
        lambda value: pw.meta.Alarm(BETA, OTHER_BETA, 0.01, 0.0, value),
        no_numbers,
    )
    no_policies = {"a number": 0, "a list": [], "a function": len, "NaN": np.nan}
    no_tails = {
        "a typo": "subgauss",
        "None": None,
        "a number": 3,
        "a class": pw.sensitivity.Bounded,
    }
    no_seeds = {"negative": -1, "half": 1.5, "a word": "x", "too large": 2**64}
    for bound in (pw.trajectory_bound, pw.reward_bound):
        name = bound.__name__
        yield from _named(
            name,
            "policy",
            lambda value, bound=bound: bound(BETA, OTHER_BETA, value, 3),
            no_policies,
        )
        yield from _named(
            name,
            "seed",
            lambda value, bound=bound: bound(BETA, OTHER_BETA, TS, 3, seed=value),
            no_seeds,
        )
    yield from _named(
        "reward_bound",
        "tail",
        lambda value: pw.reward_bound(BETA, OTHER_BETA, TS, 3, tail=value),
        no_tails,
    )
    flags = {"a number": 1, "None": None, "a word": "x"}
    yield from _named(
        "pomdp_trajectory_bound",
        "estimate",
        lambda value: pw.sensitivity.pomdp_trajectory_bound(0.1, 1, 3, estimate=value),
        flags,
    )
    bars = {"a number": 1, "a word": "x", "a list": []}
    yield from _named(
        "sensitivity_ladder",
        "progress",
        lambda value: pw.sensitivity_ladder(
            FINITE, OTHER_FINITE, TS, 2, seed=SEED, tasks=20, progress=value
        ),
        bars,
    )
    paths = {"to None": lambda scale: None, "to a number": lambda scale: 3}
    yield from _named(
        "break_even",
        "direction",
        lambda value: pw.break_even(NORMAL, value, TS, 2, seed=SEED, tasks=50),
        paths,
    )
    yield Case(
        "exact_evaluation: a class",
        lambda: pw.sensitivity.exact_evaluation(FINITE, pw.Greedy, 2),
        ("policy",),
    )
    yield Case(
        "exact_evaluation: unreadable",
        lambda: pw.sensitivity.exact_evaluation(FINITE, Unreadable(), 2),
        ("policy",),
    )
    span = {"a span of time": np.timedelta64(3, "s")}
    yield from _named("SphereContexts", "arms", pw.SphereContexts, span)
    yield from _named(
        "ExchangeableBetaPrior", "alpha", lambda value: pw.ExchangeableBetaPrior(value, 1.0), span
    )
    unreadable = {"unreadable": Unreadable()}
    yield from _named("BetaPrior", "alpha", lambda value: pw.BetaPrior(value, [1.0]), unreadable)
    yield from _named(
        "RecedingHorizon", "alpha", lambda value: pw.RecedingHorizon(1, 1, value), unreadable
    )
    for arms in ("3", None, 0, -1, 2.0, True):
        prior = Broken()
        prior.arms = arms  # type: ignore[assignment]
        yield Case(
            f"simulate: arms of a prior {arms!r}",
            lambda prior=prior: _run(prior=prior),
            ("prior.arms",),
        )
    masked = {"masked": np.ma.array([True] * 3, mask=[0, 0, 1])}
    yield from _named("simulate", "available", lambda value: _run(available=value), masked)


ACCEPTED: dict[str, tuple[Callable[[], Any], str]] = {
    "a NumPy integer as a count": (lambda: _run(tasks=np.int64(4)), "it is an integer"),
    "lists where arrays are meant": (
        lambda: pw.GaussianPrior([0, 1], [[1, 0], [0, 1]]),
        "they are read as arrays",
    ),
    "a singular covariance": (
        lambda: pw.GaussianPrior([0.0, 0.0], np.ones((2, 2))),
        "arms may move together",
    ),
    "one task": (lambda: _run(tasks=1), "its standard error is infinite, and says so"),
    "rewards between 0 and 1 for clicks": (
        lambda: BETA.belief(1).update(pw.core.Seen(1, 2, 3), [0], [0.5], None),
        "they count as a share of a success, as documented",
    ),
    "a reward that a finite prior deems impossible": (
        lambda: FINITE.belief(1).update(pw.core.Seen(1, 2, 2), [0], [0.33], None),
        "the belief starts again from its prior and counts that, as documented",
    ),
    "an unmasked masked array": (
        lambda: pw.GaussianPrior(np.ma.array([0.0, 1.0]), np.eye(2)),
        "nothing in it is masked",
    ),
    "a list of values to mask": (
        lambda: pw.core.Seen(1, 2, 2, mask=np.array([[True, False]])).masked([[1.0, 2.0]]),
        "it is read as an array",
    ),
    "a name of any length and signs": (
        lambda: _compare(policies={"n" * 5_000: TS, "a\nb": TS, "$\\frac$": TS, "": TS}).figure(
            title="t" * 5_000
        ),
        "a figure leaves out its middle, and shows the rest as it is",
    ),
    "tasks without pulls": (
        lambda: pw.BetaStatistics([[0, 0]], [[0, 0]]),
        "a log may hold tasks that nobody saw",
    ),
}
