"""The user's functions, called in one way and checked: how likely rewards are, their means, draws.

Parameters are rows ``(n, d)``, an arm is one integer, and rewards are a column ``(k, 1)``: what a
function computes element by element broadcasts to ``(k, n)``. With contexts a call is about one
task, and its context ``(arm, dim)`` comes last.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.hashing import invert
from priorwise.core.seen import Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.particle.weights import CHUNK, chunks

SUM_TO_ONE: Final = 1e-6
TRIED: Final = 8  # rows of parameters on which functions are tried


@final
@dataclass(frozen=True)
class Model:
    """What two priors over the same tasks share: the law of rewards given parameters.

    It stands in the place of a reward law: equal if its functions are the same ones.
    """

    log_density: Callable[..., Any]
    mean_reward: Callable[..., Any] | None
    sample_reward: Callable[..., Any] | None
    rewards: tuple[float, ...] | None  # descending
    reward_range: tuple[float, float] | None
    arms: int
    contexts: Any = None
    dim: int | None = None

    @property
    def support(self) -> tuple[float, float] | None:
        """Least and largest reward; None where they are not known."""
        return self.reward_range

    @property
    def binary(self) -> bool | None:
        """Whether rewards are 0 or 1; None where their values are not known."""
        return None if self.rewards is None else set(self.rewards) <= {0.0, 1.0}

    # -- how likely rewards are

    def densities(
        self, parameters: FloatArray, arm: int, rewards: FloatArray, context: Any = None
    ) -> FloatArray:
        """Log densities ``(reward, row)`` of some rewards of an arm."""
        with asked("log_density"):
            last = () if context is None else (context,)
            found = self.log_density(parameters, arm, rewards[:, None], *last)
        shape = (len(rewards), len(parameters))
        if np.shape(found) in ((1, 1), (shape[0], 1), (1, shape[1])):
            found = np.broadcast_to(found, shape)
        what = f"for parameters {parameters.shape} and rewards {(len(rewards), 1)}"
        found = numbers_of("log_density", found, shape, what)
        worst = found.max(initial=-np.inf)
        if not worst < np.inf:  # NaN is not
            place = np.argwhere(~(found < np.inf))[0]
            _refuse_density(
                float(found[tuple(place)]), parameters[place[1]], arm, float(rewards[place[0]])
            )
        return found

    def likelihoods(
        self, parameters: FloatArray, actions: IntArray, rewards: FloatArray, signal: Signal
    ) -> FloatArray:
        """Log densities ``(task, row)`` of the reward of each task, under parameters that all of
        them share.
        """
        out = np.empty((len(actions), len(parameters)))
        for rows, arm in self._calls(actions, len(parameters)):
            context = None if self.contexts is None else signal[rows[0]]
            out[rows] = self.densities(parameters, arm, rewards[rows], context)
        return out

    def _calls(self, actions: IntArray, rows: int) -> Iterator[tuple[IntArray, int]]:
        """Tasks whose rewards one call may weigh: of one arm, not too many, and with contexts one
        at a time.
        """
        for arm in np.unique(actions).tolist():
            tasks = np.flatnonzero(actions == arm)
            for some in chunks(tasks, rows if self.contexts is None else CHUNK):
                yield some, arm

    def history(
        self, parameters: FloatArray, actions: IntArray, rewards: FloatArray, contexts: Any
    ) -> FloatArray:
        """Log likelihood ``(row,)`` of all pulls of one task, ``(step,)`` each."""
        total = np.zeros(len(parameters))
        if self.contexts is not None:
            for arm, reward, context in zip(actions.tolist(), rewards, contexts, strict=True):
                total += self.densities(parameters, arm, reward[None], context)[0]
            return total
        for steps, arm in self._calls(actions, len(parameters)):
            total += self.densities(parameters, arm, rewards[steps]).sum(axis=0)
        return total

    # -- means

    def means(self, parameters: FloatArray, context: Any = None) -> FloatArray:
        """Mean reward of each arm, ``(row, arm)``."""
        if self.mean_reward is not None:
            with asked("mean_reward"):
                found = self.mean_reward(parameters, *(() if context is None else (context,)))
        elif self.rewards is None:
            return parameters
        else:
            values = np.array(self.rewards)
            each = [self.chances(parameters, arm, context).T @ values for arm in range(self.arms)]
            return np.stack(each, axis=1)
        shape = (len(parameters), self.arms)
        found = numbers_of("mean_reward", found, shape, f"for parameters {parameters.shape}")
        if not np.isfinite(found).all():
            row = int(np.argmin(np.isfinite(found).all(axis=1)))
            raise ArgumentError(
                "mean_reward",
                f"must be finite, but is {found[row]} at the parameters {parameters[row]}",
                cure="cut off a tail without a mean, or keep it out of the prior",
            )
        return found

    def chances(self, parameters: FloatArray, arm: int, context: Any = None) -> FloatArray:
        """Probability of each possible reward of an arm, largest first, ``(reward, row)``."""
        assert self.rewards is not None
        chance = np.exp(self.densities(parameters, arm, np.array(self.rewards), context))
        total = chance.sum(axis=0)
        if np.abs(total - 1.0).max() > SUM_TO_ONE:
            row = int(np.argmax(np.abs(total - 1.0)))
            raise ArgumentError(
                "log_density",
                f"must be the log probability of each of rewards={self.rewards[::-1]}, but they "
                f"sum to {total[row]:g} for arm {arm} at the parameters {parameters[row]}",
            )
        return np.asarray(chance / total)

    # -- draws

    def draw(
        self, parameters: FloatArray, actions: IntArray, rng: Stream, signal: Signal
    ) -> FloatArray:
        """Rewards ``(task,)`` of the chosen arms under parameters of each task ``(task, d)``."""
        out = np.empty(len(actions))
        uniform = rng.uniform(1) if self.sample_reward is None else out
        for rows, arm in self._calls(actions, 1):
            context = None if self.contexts is None else signal[rows[0]]
            if self.sample_reward is None:
                out[rows] = self._inverted(parameters[rows], arm, uniform[rows], context)
                continue
            own = rng.take(rows)
            with asked("sample_reward"):
                last = () if context is None else (context,)
                found = self.sample_reward(parameters[rows], arm, own, *last)
            what = f"for parameters {(len(rows), parameters.shape[1])}"
            found = numbers_of("sample_reward", found, (len(rows),), what)
            if not np.isfinite(found).all():
                raise ArgumentError(
                    "sample_reward", f"must be finite, but drew {found[~np.isfinite(found)][0]:g}"
                )
            out[rows] = found
        return out

    def _inverted(
        self, parameters: FloatArray, arm: int, uniform: FloatArray, context: Any
    ) -> FloatArray:
        if self.rewards is None:
            raise ArgumentTypeError(
                "rewards",
                "cannot be drawn",
                cure=(
                    "pass sample_reward=..., a function of (parameters, arm, rng), or "
                    "rewards=[...] if a reward has few possible values"
                ),
            )
        chance = self.chances(parameters, arm, context).T
        return np.array(self.rewards)[invert(chance, uniform)[:, 0]]

    # -- do the functions belong together

    def tried(self, parameters: FloatArray, rng: Stream, context: Any) -> None:
        """Raise an error for functions that cannot be called as they have to be, by calling them on
        a few rows.
        """
        few = parameters[: rng.tasks]
        self.means(few, context)
        for arm in range(self.arms):
            if self.rewards is not None:
                self.chances(few, arm, context)
            if self.sample_reward is None:
                continue
            shown = (
                None if context is None else np.broadcast_to(context, (len(few), *context.shape))
            )
            drawn = self.draw(few, np.full(len(few), arm), rng, shown)
            own = np.diag(self.densities(few, arm, drawn, context))
            if np.isneginf(own).any():
                row = int(np.argmax(np.isneginf(own)))
                raise ArgumentError(
                    "log_density",
                    "rules out what sample_reward drew",
                    cure=f"{drawn[row]:g} for arm {arm} at the parameters {few[row]}",
                )


@contextmanager
def asked(name: str) -> Iterator[None]:
    """Let a function of the user's compute logarithms of 0, and say whose error is whose."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        error.add_note(f"raised by {name}, a function of this ParticlePrior")
        raise


def numbers_of(name: str, found: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """Raise an error for what is not an array of numbers of this shape."""
    array = validation.plain_array(f"the return value of {name}", found)
    if array.dtype.kind not in "fiub" or array.shape != shape:
        kind = "" if array.dtype.kind in "fiub" else f"{array.dtype} of "
        raise ArgumentError(
            name,
            f"must return numbers of shape {shape} {what}, got {kind}shape {array.shape}",
            cure="compute element by element, with broadcasting",
        )
    return array.astype(np.float64, copy=False)


def _refuse_density(value: float, parameters: FloatArray, arm: int, reward: float) -> None:
    raise ArgumentError(
        "log_density",
        f"must be a number below infinity, or -inf for what is impossible, but is {value:g} for "
        f"arm {arm}, reward {reward:g} and the parameters {parameters}",
    )
