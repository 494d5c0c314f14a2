"""Checks at the doors of policies and beliefs that people also use by hand: ``act``, ``update``,
``belief`` and ``sample``.

They stand once for a whole batch of tasks, never inside a loop over arms or draws; what a policy
imagines passes no door.
"""

import inspect
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import sizes, validation
from priorwise.core.errors import shown
from priorwise.core.protocols import Seen
from priorwise.core.seen import RealActions
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray


@cache
def members(protocol: type) -> tuple[str, ...]:
    """Names that a protocol asks for."""
    names = (name for base in protocol.__mro__ for name in vars(base))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def offering(policy: Any, belief: Any) -> None:
    """Refuse a belief that lacks what a policy needs of it, as its ``needs`` say."""
    needs = [name for needed in getattr(policy, "needs", ()) for name in members(needed)]
    missing = [name for name in needs if not hasattr(belief, name)]
    if missing:
        lacks = f"{', '.join(missing)}; {type(belief).__name__} lacks it"
        raise TypeError(f"{type(policy).__name__} needs a belief with {lacks}")


def policy(name: str, value: Any, *, memory: bool = False) -> None:
    """Refuse what is not a policy, and one that remembers unless whoever plays it keeps the
    memory.
    """
    remembers = not isinstance(value, type) and hasattr(value, "decide")
    if remembers and not memory:
        raise TypeError(
            f"{name} must be a policy without memory: {type(value).__name__} remembers from pull "
            "to pull, and only simulate, compare, simulate_meta and reward_tails keep what it does"
        )
    if not isinstance(value, type) and not remembers and not hasattr(value, "act"):
        wrong = f"{_kind(value)} has none"
        raise TypeError(f"{name} must have a method act(belief, seen, rng), but {wrong}")
    role(name, value, "a policy", *(("begin",) if remembers else ()))


def player(name: str, value: Any) -> None:
    """Refuse what is not a policy; it may remember."""
    policy(name, value, memory=True)


def estimator(name: str, value: Any) -> None:
    """Refuse what cannot fit."""
    role(name, value, "an estimator", "fit")


def prior(name: str, value: Any) -> None:
    """Refuse what is not a prior, with a number of arms or not."""
    role(name, value, "a prior", "sample", "belief")


def fixed_prior(name: str, value: Any) -> None:
    """Refuse what is not a prior with a number of arms, or with real actions."""
    if not isinstance(value, type) and hasattr(value, "for_arms"):
        raise TypeError(f"{name} has no fixed number of arms: pass {name}.for_arms(n)")
    role(name, value, "a prior", "arms", "sample", "belief")
    real = getattr(value, "actions", None)
    if real is not None and not isinstance(real, RealActions):
        raise TypeError(f"{name}.actions must be RealActions(...), got {shown(real)}")
    validation.count(f"{name}.arms", value.arms, least=1 if real is None else 0)


def believed(prior: Any, value: Any) -> None:
    """Refuse a prior that cannot be believed on these tasks: what they show and how they reward has
    to be what it expects.
    """
    fixed_prior("believed", value)
    if value.arms != prior.arms:
        raise ValueError(f"believed has {value.arms} arms, but the tasks have {prior.arms}")
    mine, theirs = (getattr(each, "names", None) for each in (prior, value))
    if mine is not None and theirs is not None and mine != theirs:
        raise ValueError(f"the tasks have arms with names {mine}, but believed has {theirs}")
    if getattr(value, "actions", None) != getattr(prior, "actions", None):
        raise ValueError("believed and prior must have the same actions, real numbers or arms")
    shown, expected = (getattr(each, "contexts", None) for each in (prior, value))
    if expected is not None:
        if shown is None and hasattr(prior, "reward_law"):  # arms without features
            kind = type(prior).__name__
            raise ValueError(f"believed expects contexts, but tasks of a {kind} show none")
        theirs, ours = (getattr(each, "dim", None) for each in (prior, value))
        if shown is not None and theirs != ours:
            raise ValueError(f"believed has {ours} features, but the tasks have {theirs}")
        # a law that belongs to the unknown task may be mistaken, as all of it may
        told = any(getattr(each, "of_environment", False) for each in (shown, expected))
        if shown is not None and shown != expected and not told:
            raise ValueError("prior and believed must share the law of contexts: pass one to both")
    # what rewards can be, and what the belief can take in; None where nothing says so
    taken = getattr(getattr(value, "reward_law", None), "support", None)
    support = getattr(getattr(prior, "reward_law", None), "support", None)
    possible = getattr(prior, "reward_range", support)
    if possible and taken and not taken[0] <= possible[0] <= possible[1] <= taken[1]:
        expects, gets = (_range(*each) for each in (taken, possible))
        raise ValueError(f"believed expects rewards {expects}, but those of prior are {gets}")


def _range(low: float, high: float) -> str:
    if low == -np.inf and high == np.inf:
        return "any numbers"
    return f"of at least {low:g}" if high == np.inf else f"between {low:g} and {high:g}"


def playing(value: Any, believed: Any, *, memory: bool = False) -> Any:
    """Refuse what is not a policy, and one that needs more than this prior's belief offers; return
    that belief about one task.
    """
    policy("policy", value, memory=memory)
    belief = believed.belief(1)
    role(f"the return value of {type(believed).__name__}.belief", belief, "a belief", "update")
    offering(value, belief)
    return belief


def arms_to_mask(prior: Any, available: Any) -> None:
    """Refuse a mask where there are no arms."""
    if available is not None and getattr(prior, "actions", None) is not None:
        raise ValueError(
            f"available is for arms, and the actions of a {type(prior).__name__} are real numbers: "
            "bound them in RealActions(low=..., high=...)"
        )


def role(name: str, value: Any, what: str, *methods: str) -> None:
    """Refuse what does not have the methods of a role, and the class of a thing in place of the
    thing.
    """
    if isinstance(value, type):
        raise TypeError(
            f"{name} must be {what}, not the class {value.__name__}: pass {value.__name__}(...)"
        )
    for method in methods:
        if not hasattr(value, method):
            names = " and ".join(filter(None, (", ".join(methods[:-1]), methods[-1])))
            wrong = f"{_kind(value)} has no {method}"
            raise TypeError(f"{name} must be {what} with {names}, but {wrong}")


def function(name: str, value: Any, *arguments: str) -> None:
    """Check that a value is a function that takes so many arguments by place."""
    what = f"{name} must be a function of ({', '.join(arguments)})"
    if not callable(value):
        raise TypeError(f"{what}, got {shown(value)}")
    try:
        inspect.signature(value).bind(*arguments)
    except ValueError:  # some built-in functions have no signature
        return
    except TypeError as error:
        raise TypeError(f"{what}, but calling it so fails: {error}") from None


def acting(policy: Any, belief: Any, seen: Any, rng: Any, *, real: bool = False) -> None:
    """Check what ``act`` is given: one batch of tasks with the arms of the belief, and a stream of
    random numbers for it. ``real``: the policy knows what to do where actions are real numbers.
    """
    _check_stream(rng)
    _check_seen(seen, rng.tasks)
    if seen.actions is not None and not real:
        raise TypeError(
            f"{type(policy).__name__} chooses among arms, and the actions of this problem are real "
            "numbers: use ThompsonSampling, which plays the best action of a drawn system"
        )
    if not hasattr(belief, "update"):
        wrong = _kind(belief)
        raise TypeError(f"belief must be a belief, as prior.belief(tasks) gives, got {wrong}")
    offering(policy, belief)
    _check_batch(belief, seen, rng.tasks, "rng has")


def played(
    belief: Any,
    seen: Any,
    actions: ArrayLike,
    rewards: ArrayLike,
    *,
    low: float = -validation.LARGEST,
    high: float = validation.LARGEST,
    binary: bool = False,
) -> tuple[IntArray, FloatArray]:
    """Return the arms pulled and the rewards earned, ``(task,)`` each, if they can have happened.

    ``belief`` has ``tasks`` and ``arms``. A reward from ``low`` to ``high`` is possible, or only 0
    and 1 if rewards are ``binary``.
    """
    tasks, arms = belief.tasks, belief.arms
    _check_seen(seen, tasks)
    _check_batch(belief, seen, tasks, "belief has")
    chosen = _per_task("actions", actions, tasks, "iu", "arms as integers")
    # where limits are no infinities
    earned = _per_task("rewards", rewards, tasks, "iuf", "numbers").astype(np.float64, copy=False)
    if tasks == 0:
        return chosen.astype(np.int64), earned
    if chosen.min() < 0 or chosen.max() >= arms:
        wrong = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ValueError(f"actions must be arms 0..{arms - 1}, got {wrong}")
    if seen.mask is not None and not (there := seen.mask[np.arange(tasks), chosen]).all():
        task = int(np.argmin(there))
        raise ValueError(
            f"actions must be available arms, but arm {chosen[task]} of task {task} is not"
        )
    if not (earned.min() >= low and earned.max() <= high):  # NaN is neither
        task = int(np.argmin((earned >= low) & (earned <= high)))
        wrong, name = f"got {earned[task]:g} in task {task}", type(belief).__name__
        if not np.isfinite(earned[task]):
            raise ValueError(f"rewards must be finite, {wrong}; update when a reward is known")
        raise ValueError(f"rewards must lie between {low:g} and {high:g} for a {name}, {wrong}")
    if binary and not (possible := (earned == 0.0) | (earned == 1.0)).all():
        task = int(np.argmin(possible))
        wrong, name = f"got {earned[task]:g} in task {task}", type(belief).__name__
        raise ValueError(f"rewards must be 0 or 1 for a {name}, {wrong}")
    return chosen.astype(np.int64, copy=False), earned


def features(seen: Seen, tasks: int, arms: int, dim: int) -> FloatArray:
    """Return the features that ``seen`` shows, ``(task, arm, dim)``."""
    if not isinstance(seen, Seen):
        _check_seen(seen, tasks)
    signal, shape = seen.signal, (tasks, arms, dim)
    if not isinstance(signal, np.ndarray) or signal.shape != shape:
        got = f"shape {signal.shape}" if isinstance(signal, np.ndarray) else _kind(signal)
        what = f"the features of each task and arm, an array {shape}"
        raise ValueError(f"seen.signal must be {what}, got {got}")
    if signal.dtype.kind not in "fiu" or isinstance(signal, np.ma.MaskedArray):
        raise TypeError(
            f"seen.signal must be an array of numbers, got {type(signal).__name__} {signal.dtype}"
        )
    if not np.isfinite(signal).all():
        raise ValueError("seen.signal must be finite, but features are NaN or infinite")
    return signal


def chosen_features(seen: Seen, actions: IntArray, arms: int, dim: int) -> FloatArray:
    """Return the features of the arms pulled, ``(task, dim)``, if they are finite and their squares
    are.
    """
    x = features(seen, len(actions), arms, dim)[np.arange(len(actions)), actions]
    # NaN is neither
    if x.size and not (x.min() >= -validation.LARGEST and x.max() <= validation.LARGEST):
        most = f"at most {validation.LARGEST:g} in size"
        raise ValueError(f"seen.signal must be finite, {most}, but a pulled arm's is not")
    return x


def drawing(belief: Any, rng: Any, draws: Any) -> int:
    """Check what ``Belief.sample`` is given: a stream of the belief's tasks, and a number of
    draws.
    """
    _check_stream(rng)
    if rng.tasks != belief.tasks:
        raise ValueError(f"belief is about {belief.tasks} tasks, but rng has {rng.tasks}")
    return validation.count("draws", draws)


def level(value: Any) -> Any:
    """Check the level of a quantile, or those of each task ``(task,)``, which become a column."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind != "f" or not ((value > 0.0) & (value < 1.0)).all():
            raise ValueError("level must lie between 0 and 1 in each task, shape (task,)")
        return value[:, None]
    if not 0.0 < validation.number("level", value) < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {value:g}")
    return float(value)


def tasks_of(value: Any) -> int:
    """Check what ``Prior.belief`` is given: a number of tasks that fits into memory, with at least
    a number about each.
    """
    tasks = validation.count("tasks", value)
    sizes.check_memory(f"tasks={sizes.amount(tasks)}", 8.0 * sizes.as_float(tasks), "lower tasks")
    return tasks


def batch(rng: Any, tasks: Any) -> int:
    """Check what ``Prior.sample`` is given: a stream for so many tasks."""
    tasks = validation.count("tasks", tasks)
    _check_stream(rng)
    if rng.tasks != tasks:
        raise ValueError(
            f"rng must have a number for each of the {tasks} tasks, but is a stream of {rng.tasks}"
        )
    return tasks


def _check_stream(rng: Any) -> None:
    if not isinstance(rng, Stream):
        made = "as priorwise.core.streams.streams(seed, tasks)(step) gives"
        raise TypeError(f"rng must be a Stream, {made}, got {_kind(rng)}")


def _check_seen(seen: Any, tasks: int) -> None:
    if not isinstance(seen, Seen):
        raise TypeError(f"seen must be a Seen(step, horizon, arms, ...), got {_kind(seen)}")
    for name in ("step", "horizon"):
        value = getattr(seen, name)
        if isinstance(value, np.ndarray) and len(value) != tasks:
            raise ValueError(f"seen.{name} has {len(value)} tasks, but there are {tasks}")
    if seen.mask is not None and len(seen.mask) != tasks:
        raise ValueError(f"seen.mask has {len(seen.mask)} tasks, but there are {tasks}")


def _check_batch(belief: Any, seen: Seen, tasks: int, whose: str) -> None:
    held, arms = getattr(belief, "tasks", tasks), getattr(belief, "arms", seen.arms)
    if held != tasks:
        raise ValueError(f"belief is about {held} tasks, but {whose} {tasks}")
    if arms != seen.arms:
        raise ValueError(f"seen.arms is {seen.arms}, but the belief has {arms} arms")


def _per_task(name: str, value: ArrayLike, tasks: int, kinds: str, what: str) -> Any:
    array = validation.plain_array(name, value)
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} must be {what}, one for each task, got {array.dtype}")
    if array.shape != (tasks,):
        hint = f"; write [{value!r}]" if array.ndim == 0 and tasks == 1 else ""
        raise ValueError(
            f"{name} must have one entry for each task, shape ({tasks},), got {array.shape}{hint}"
        )
    return array


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
