"""Bad values of parameters, derived from their declarations."""

from __future__ import annotations

import inspect
from functools import singledispatch
from typing import Any, Final

import attrs
import numpy as np

import priorwise as pw
from priorwise.core import argument_checks
from priorwise.core import parameters as declared
from priorwise.families.linear_quadratic.prior import RowCovariances
from priorwise.families.tabular_mdp.parameters import FirstState, Transitions
from priorwise.policies.shared import check_alpha, draws_of

nan, inf = float("nan"), float("inf")
TS = pw.ThompsonSampling()
NOT_NUMBERS = (None, "x", [[1.0], [1.0, 2.0]], 1j, object())
NOT_ONE_NUMBER = (None, "x", nan, inf, True, [1.0], 10**400, 1j, np.timedelta64(3, "s"))
NOT_COUNTS = (None, "3", 2.5, nan, inf, True, -1, [3], np.timedelta64(3, "s"))
NOT_SEEDS = (None, -1, 2**64, 1.5, "a", True)
NOT_PRIORS = (None, "beta", 3, TS, pw.BetaPrior)
NOT_POLICIES = (None, "ts", 3, [], len, nan, pw.BetaPrior(1.0, 1.0), pw.ThompsonSampling)
NOT_ESTIMATORS = (None, "x", 3, TS, pw.BetaMoments)
NOT_SHARES = (None, "x", nan, -0.1, 1.5, [0.5])

CHECKED: Final[dict[Any, tuple[Any, ...]]] = {
    draws_of: (*NOT_COUNTS, 0, 10**15),
    check_alpha: (*NOT_SHARES, "offline"),
    argument_checks.policy: NOT_POLICIES,
    argument_checks.player: NOT_POLICIES,
    argument_checks.prior: NOT_PRIORS,
    argument_checks.fixed_prior: NOT_PRIORS,
    argument_checks.estimator: NOT_ESTIMATORS,
}
"""What the functions must reject that check parameters."""


def derived(call: Any, good: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return what a call must reject: from the declarations of a class, or unlike good values."""
    if isinstance(call, type) and declared.parameters(call):
        return bad_values(call, good)
    optional = {
        name for name, one in inspect.signature(call).parameters.items() if one.default is None
    }
    return {
        name: tuple(bad for bad in unlike(name, value) if bad is not None or name not in optional)
        for name, value in good.items()
    }


def bad_values(cls: type, good: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return what each declared parameter of a class must reject, next to good values."""
    kept = cls(**good)
    result = {}
    for name, one in declared.parameters(cls).items():
        values = [*bad(one, getattr(kept, name)), *unlike_others(cls, name, good)]
        if getattr(attrs.fields(cls), name).default is None:
            values = [value for value in values if value is not None]
        result[name] = tuple(values)
    return result


def unlike_others(cls: type, name: str, good: dict[str, Any]) -> list[Any]:
    """Return arrays that are longer than others along a dimension that they share."""
    every = declared.parameters(cls)
    dims = getattr(every[name], "dims", ())
    others = [(other, getattr(every.get(other), "dims", ())) for other in good.keys() - {name}]
    shared = {dim for other, its in others if np.ndim(good[other]) == len(its) for dim in its}
    if not isinstance(every[name], declared.Array) or np.ndim(good.get(name)) != len(dims):
        return []
    array = np.array(good[name], dtype=np.float64)
    axes = [axis for axis, dim in enumerate(dims) if dim in shared]
    if isinstance(every[name], declared.Covariance):
        return [np.eye(len(array) + 1)] if axes else []
    longer = [np.concatenate([array, array.take([0], axis=axis)], axis=axis) for axis in axes]
    return longer + [array.take([0], axis=axis) for axis in axes if array.shape[axis] > 1]


@singledispatch
def bad(parameter: Any, good: Any) -> tuple[Any, ...]:
    """Return bad values of a parameter."""
    raise NotImplementedError(f"bad values of {type(parameter).__name__}")


@bad.register
def _(parameter: declared.Checked, good: Any) -> tuple[Any, ...]:
    return CHECKED.get(parameter.check, ())


@bad.register
def _(parameter: declared.Number, good: float) -> tuple[Any, ...]:
    return (*NOT_ONE_NUMBER, *outside(parameter))


@bad.register
def _(parameter: declared.Count, good: int) -> tuple[Any, ...]:
    return (*NOT_COUNTS, parameter.least - 1)


@bad.register
def _(parameter: declared.Seed, good: int) -> tuple[Any, ...]:
    return NOT_SEEDS


@bad.register
def _(parameter: declared.Choice, good: str) -> tuple[Any, ...]:
    return (None, "no such word", 3, 2.5, nan, inf, -1, True, ["none"])


@bad.register
def _(parameter: declared.Names, good: Any) -> tuple[Any, ...]:
    names = list(good or ["a"])
    wrong = ("ab", 3, [3], [""], [*names, names[0]])
    return wrong if good is None else (*wrong, names[:-1], [*names[:-1], names[0]])


@bad.register
def _(parameter: declared.Instance, good: Any) -> tuple[Any, ...]:
    return (None, "x", 3, True, parameter.kind)


@bad.register
def _(parameter: declared.Role, good: Any) -> tuple[Any, ...]:
    return (None, "x", 3, TS, type(good))


@bad.register
def _(parameter: declared.Array, good: Any) -> tuple[Any, ...]:
    array = np.ones((1,) * len(parameter.dims)) if good is None else np.array(good)
    shapes = [array[None], [array[None, None].tolist()]]
    if array.ndim > parameter.spread + 1:
        shapes += [array.reshape(-1), array.reshape(-1)[:1]]
    numbers = (nan, inf, 1e200, *outside(parameter))
    wrong = [with_first(array, number) for number in numbers]
    wrong += [np.full(array.shape, number) for number in numbers]
    wrong += list(numbers) if parameter.spread == array.ndim else []
    masked = np.ma.array(array, mask=np.arange(array.size).reshape(array.shape) == 0)
    words = np.full(array.shape, "a").tolist()
    return (*NOT_NUMBERS, [], *shapes, *wrong, masked, words, np.full(array.shape, True))


@bad.register
def _(parameter: Transitions, good: Any) -> tuple[Any, ...]:
    array = np.array(good)
    spread = np.concatenate([[1.5, -0.5], np.zeros(array.shape[-1] - 2)])
    wrong = (0.6 * array, -array, np.broadcast_to(spread, array.shape), with_first(array, 1.5))
    return (*bad.dispatch(declared.Array)(parameter, good), *wrong)


@bad.register
def _(parameter: FirstState, good: Any) -> tuple[Any, ...]:
    size = np.shape(good)[-1]
    laws = (np.full(size, 1.1 / size), np.full(size + 1, 1.0 / (size + 1)), [1.5, -0.5], [[[1.0]]])
    return ("x", None, -1, size, 0.5, nan, True, [0.5], *laws, np.full((size + 3, size), 1.0))


@bad.register
def _(parameter: declared.Covariance, good: Any) -> tuple[Any, ...]:
    size = len(good)
    shapes = (1.0, np.ones((size, size + 1)), np.ones(size), np.ones(size + 1), np.eye(size)[None])
    numbers = (with_first(good, nan), np.full((size, size), nan), -np.eye(size))
    lopsided = (np.triu(np.ones((size, size))), 2.0 - np.eye(size)) if size > 1 else ()
    return (*NOT_NUMBERS, [], *shapes, *numbers, *lopsided)


@bad.register
def _(parameter: RowCovariances, good: Any) -> tuple[Any, ...]:
    return (*NOT_NUMBERS, [], *(np.array(good) * nan, [1.0, 1.0], [[1.0]], -np.eye(len(good))))


@bad.register
def _(parameter: declared.Probabilities, good: Any) -> tuple[Any, ...]:
    size = len(good)
    even = np.full(size, 1.0 / size)
    sums = (1.1 * even, even[:-1], np.concatenate([[1.5, -0.5], np.zeros(size - 2)]))
    return (*NOT_NUMBERS, [], [0.5], *sums, with_first(even, nan), even[None])


def outside(parameter: declared.Number | declared.Array) -> tuple[float, ...]:
    """Numbers beyond the ends of a range, and the ends that are not allowed."""
    least, most, ends = parameter.least, parameter.most, getattr(parameter, "ends", "[]")
    numbers = [least - max(abs(least), 1.0), least - 0.5] if np.isfinite(least) else []
    numbers += [0.5 * least, 0.0, -1.0] if least > 0.0 else []
    numbers += [most + max(abs(most), 0.5), 1.5 * abs(most)] if np.isfinite(most) else []
    return (*numbers, *([least] if ends[0] == "(" and np.isfinite(least) else []))


def with_first(array: Any, number: float) -> Any:
    """Return an array whose first entry is another number."""
    changed = np.array(array, dtype=np.float64)
    changed.flat[0] = number
    return changed


def unlike(name: str, good: Any) -> tuple[Any, ...]:
    """Bad values of an argument that is not declared: what is not of the type of a good one."""
    if name == "seed":
        return NOT_SEEDS
    if isinstance(good, bool):
        return ("no", 1, None)
    if isinstance(good, int):
        return NOT_COUNTS
    if isinstance(good, float):
        return NOT_ONE_NUMBER
    if isinstance(good, str):
        return (None, "no such word", 3)
    if hasattr(good, "belief"):
        return NOT_PRIORS
    if hasattr(good, "act"):
        return NOT_POLICIES
    if isinstance(good, np.ndarray):
        return (*NOT_NUMBERS, [], nan * good)
    return ()
