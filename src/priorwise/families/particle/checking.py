"""Checks of what a particle prior is given, and the particles that are drawn from it."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import sizes, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, shown
from priorwise.core.hashing import mix
from priorwise.core.streams import Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.contexts import GivenContexts, law_of_contexts
from priorwise.families.particle.model import Model, asked, numbers_of
from priorwise.families.particle.quasi import QuasiStream

PARTICLES: Final = 0x7061727469636C65
"""Keeps the random numbers of particles apart from those of a run on the same seed."""
SAME_ROWS: Final = 3  # rows that are drawn again by themselves
TRIED: Final = 8  # rows of parameters on which functions are tried


def function(name: str, value: Any, of: str, *, needed: bool = False) -> None:
    """Raise an error for what is not a function; None is fine unless one is needed."""
    if isinstance(value, type) or not (callable(value) or (value is None and not needed)):
        raise ArgumentTypeError(name, f"must be a function of {of}", got=value)


def key_of(seed: int | None) -> int:
    """Return the seed of the particles' random numbers, which no run has."""
    if seed is None:
        raise ArgumentError(
            "seed", "must be given, as particles are drawn", cure="pass seed=0, say"
        )
    return mix(validation.seed(seed) ^ PARTICLES)


def streams(key: int, rows: int) -> Streams:
    """Return random numbers for so many rows of parameters."""
    return Streams(key, np.arange(rows, dtype=np.uint64))


def particles(sample: Callable[[Stream], Any], key: int, count: Any) -> FloatArray:
    """Draw the particles, ``(particle, d)``; raise an error for a function whose rows depend on
    anything but their own random numbers.
    """
    count = validation.count("particles", count, least=2)
    sizes.check_memory(
        "particles", count, 8.0 * sizes.ARRAYS * sizes.as_float(count), "lower particles"
    )
    found = rows_of(sample, QuasiStream(key, count))
    some = min(SAME_ROWS, count)
    again = rows_of(sample, QuasiStream(key, some))
    if not np.allclose(found[:some], again, rtol=1e-9, atol=0.0):
        raise ArgumentError(
            "sample",
            f"must draw each row from rng alone, but rows 0 to {some - 1} differ when they are "
            "drawn by themselves",
            cure="use no other random numbers, and no number of one row in another",
        )
    return found


def rows_of(sample: Callable[[Stream], Any], rng: Stream) -> FloatArray:
    """Call ``sample``: a row of finite parameters for each row of a stream."""
    with asked("sample"):
        found = sample(rng)
    array = validation.plain_array("the return value of sample", found)
    if array.dtype.kind not in "fiub" or array.ndim != 2 or len(array) != rng.tasks:
        hint = "; x[:, None] makes a column" if array.shape == (rng.tasks,) else ""
        raise ArgumentError(
            "sample",
            f"must return parameters (n, d), a row for each of n = {rng.tasks}, not "
            f"{array.dtype} of shape {array.shape}{hint}",
        )
    if array.shape[1] == 0 or not np.isfinite(array).all():
        raise ArgumentError("sample", "must return at least one finite parameter for each row")
    return array.astype(np.float64)


def weights_of(weights: ArrayLike | None, count: int, given: bool) -> FloatArray:
    """Weights of given draws, equal ones for others."""
    if weights is None:
        return np.full(count, 1.0 / count)
    if not given:
        raise ArgumentError(
            "weights",
            "are for given draws",
            cure="pass draws (n, d) for sample, or leave weights out",
        )
    return validation.probabilities("weights", weights, count)


def possible(rewards: ArrayLike | None) -> tuple[float, ...] | None:
    """Return the possible rewards, largest first."""
    if rewards is None:
        return None
    values = validation.vector("rewards", rewards)
    if len(np.unique(values)) < 2 or len(np.unique(values)) < len(values):
        raise ArgumentError("rewards", "must be two or more different values", got=values.tolist())
    return tuple(sorted(values.tolist(), reverse=True))


def range_of(reward_range: Any, rewards: tuple[float, ...] | None) -> tuple[float, float] | None:
    """Return the least and the largest reward, where they are known."""
    if rewards is not None:
        if reward_range is not None and tuple(reward_range) != (rewards[-1], rewards[0]):
            raise ArgumentError("reward_range", "follows from rewards", cure="leave it out")
        return rewards[-1], rewards[0]
    if reward_range is None:
        return None
    values = validation.numbers("reward_range", reward_range)
    if values.shape != (2,) or np.isnan(values).any() or not values[0] < values[1]:
        raise ArgumentError(
            "reward_range", "must be the least and the largest reward", got=reward_range
        )
    return float(values[0]), float(values[1])


def contexts_of(contexts: Any, dim: Any) -> tuple[Any, int | None]:
    """Return the law of the features, and how many there are."""
    if contexts is None:
        if dim is not None:
            raise ArgumentError(
                "dim", "is the number of features of contexts=..., and there are none"
            )
        return None, None
    law = law_of_contexts(contexts)
    if isinstance(law, GivenContexts):
        known = law.features.shape[2]
        if dim is not None and dim != known:
            raise ArgumentError("dim", f"is {shown(dim)}, but contexts have {known} features")
        return law, known
    if dim is None:
        raise ArgumentError("dim", "must be given, as these contexts do not say how many features")
    return law, validation.count("dim", dim)


def arms_of(model: Model, asked_for: int | None, parameters: FloatArray) -> int:
    """Return the number of arms: as contexts, means or the caller say, which have to agree."""
    found: int | None = None
    if model.contexts is not None:
        found = int(model.contexts.arms)
    elif model.mean_reward is not None:
        with asked("mean_reward"):
            means = np.asarray(model.mean_reward(parameters[:TRIED]))
        if means.ndim != 2 or len(means) != len(parameters[:TRIED]):
            raise ArgumentError(
                "mean_reward",
                f"must return numbers (n, arm), a row for each of n = {len(parameters[:TRIED])} "
                "rows of parameters",
                got=means.shape,
            )
        found = means.shape[1]
    elif model.rewards is None:
        found = parameters.shape[1]
    if asked_for is not None:
        validation.count("arms", asked_for)
        if found is not None and found != asked_for:
            raise ArgumentError("arms", f"is {asked_for}, but there are {found}")
        return asked_for
    if found is None:
        raise ArgumentError("arms", "must be given, as only log_density is", cure="pass arms=...")
    return validation.count("arms", found)


def log_prior_at(log_prior: Callable[..., Any], parameters: FloatArray) -> FloatArray:
    """Log density of the prior, ``(row,)``; NaN, as outside the support, counts as -inf."""
    with asked("log_prior"):
        found = log_prior(parameters)
    shape, what = (len(parameters),), f"for parameters {parameters.shape}"
    found = numbers_of("log_prior", found, shape, what)
    if np.isposinf(found).any():
        row = parameters[int(np.argmax(found))]
        raise ArgumentError("log_prior", f"must be below infinity, but is not at {row}")
    return np.where(np.isnan(found), -np.inf, found)


def refuse_impossible(particles: int, task: int, actions: IntArray, rewards: FloatArray) -> None:
    """Raise what no particle allows."""
    raise ArgumentError(
        "log_density",
        f"is -inf for each of {particles:,} particles that earlier rewards leave: none "
        f"allows the reward {rewards[task]:g} of arm {actions[task]} in task {task}",
        cure=(
            "check it there, raise particles=..., or pass impossible='reset' to start such "
            "tasks again"
        ),
    )
