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
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.seen import RealActions, Seen
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
        raise MissingCapability(
            "policy",
            f"needs a belief with {', '.join(missing)}; {type(belief).__name__} lacks it",
            got=type(policy),
        )


def policy(name: str, value: Any, *, memory: bool = False) -> None:
    """Refuse what is not a policy, and one that remembers unless whoever plays it keeps the
    memory.
    """
    remembers = not isinstance(value, type) and hasattr(value, "decide")
    if remembers and not memory:
        raise ArgumentTypeError(
            name,
            "must be a policy without memory",
            cure=(
                f"{type(value).__name__} remembers from pull to pull, and only simulate, "
                "compare, simulate_meta and reward_tails keep what it does"
            ),
        )
    if not isinstance(value, type) and not remembers and not hasattr(value, "act"):
        raise ArgumentTypeError(
            name, f"must have a method act(belief, seen, rng), but {_kind(value)} has none"
        )
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
        raise ArgumentTypeError(
            name, "has no fixed number of arms", cure=f"pass {name}.for_arms(n)"
        )
    role(name, value, "a prior", "arms", "sample", "belief")
    real = getattr(value, "actions", None)
    if real is not None and not isinstance(real, RealActions):
        raise ArgumentTypeError(f"{name}.actions", "must be RealActions(...)", got=real)
    validation.count(f"{name}.arms", value.arms, least=1 if real is None else 0)


def believed(prior: Any, value: Any) -> None:
    """Refuse a prior that cannot be believed on these tasks: what they show and how they reward has
    to be what it expects.
    """
    fixed_prior("believed", value)
    if value.arms != prior.arms:
        raise ArgumentError("believed", f"has {value.arms} arms, but the tasks have {prior.arms}")
    mine, theirs = (getattr(each, "names", None) for each in (prior, value))
    if mine is not None and theirs is not None and mine != theirs:
        raise ArgumentError(
            "believed", f"must have the names of arms of the tasks, {mine}", got=theirs
        )
    if getattr(value, "actions", None) != getattr(prior, "actions", None):
        raise ArgumentError(
            "believed", "and prior must have the same actions, real numbers or arms"
        )
    shown, expected = (getattr(each, "contexts", None) for each in (prior, value))
    if expected is not None:
        if shown is None and hasattr(prior, "reward_law"):  # arms without features
            raise ArgumentError(
                "believed", f"expects contexts, but tasks of a {type(prior).__name__} show none"
            )
        theirs, ours = (getattr(each, "dim", None) for each in (prior, value))
        if shown is not None and theirs != ours:
            raise ArgumentError("believed", f"has {ours} features, but the tasks have {theirs}")
        # a law that belongs to the unknown task may be mistaken, as all of it may
        told = any(getattr(each, "of_environment", False) for each in (shown, expected))
        if shown is not None and shown != expected and not told:
            raise ArgumentError(
                "prior", "and believed must share the law of contexts", cure="pass one to both"
            )
    # what rewards can be, and what the belief can take in; None where nothing says so
    taken = getattr(getattr(value, "reward_law", None), "support", None)
    support = getattr(getattr(prior, "reward_law", None), "support", None)
    possible = getattr(prior, "reward_range", support)
    if possible and taken and not taken[0] <= possible[0] <= possible[1] <= taken[1]:
        expects, gets = (_range(*each) for each in (taken, possible))
        raise ArgumentError("believed", f"expects rewards {expects}, but those of prior are {gets}")


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
        raise ArgumentError(
            "available",
            f"is for arms, and the actions of a {type(prior).__name__} are real numbers",
            cure="bound them in RealActions(low=..., high=...)",
        )


def role(name: str, value: Any, what: str, *methods: str) -> None:
    """Refuse what does not have the methods of a role, and the class of a thing in place of the
    thing.
    """
    if isinstance(value, type):
        raise ArgumentTypeError(
            name,
            f"must be {what}, not the class {value.__name__}",
            cure=f"pass {value.__name__}(...)",
        )
    for method in methods:
        if not hasattr(value, method):
            raise ArgumentTypeError(
                name,
                f"must be {what} with "
                f"{' and '.join(filter(None, (', '.join(methods[:-1]), methods[-1])))}, but "
                f"{_kind(value)} has no {method}",
            )


def function(name: str, value: Any, *arguments: str) -> None:
    """Check that a value is a function that takes so many arguments by place."""
    what = f"must be a function of ({', '.join(arguments)})"
    if not callable(value):
        raise ArgumentTypeError(name, what, got=value)
    try:
        inspect.signature(value).bind(*arguments)
    except ValueError:  # some built-in functions have no signature
        return
    except TypeError as error:
        raise ArgumentTypeError(name, f"{what}, but calling it so fails: {error}") from None


def acting(policy: Any, belief: Any, seen: Any, rng: Any, *, real: bool = False) -> None:
    """Check what ``act`` is given: one batch of tasks with the arms of the belief, and a stream of
    random numbers for it. ``real``: the policy knows what to do where actions are real numbers.
    """
    _check_stream(rng)
    _check_seen(seen, rng.tasks)
    if seen.actions is not None and not real:
        raise ArgumentTypeError(
            "policy",
            "must choose real actions in this problem, not arms",
            got=type(policy),
            cure="use ThompsonSampling",
        )
    if not hasattr(belief, "update"):
        raise ArgumentTypeError(
            "belief", "must be a belief, as prior.belief(tasks) gives", got=_kind(belief)
        )
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
        raise ArgumentError("actions", f"must be arms 0..{arms - 1}", got=wrong)
    if seen.mask is not None and not (there := seen.mask[np.arange(tasks), chosen]).all():
        task = int(np.argmin(there))
        raise ArgumentError(
            "actions", f"must be available arms, but arm {chosen[task]} of task {task} is not"
        )
    if not (earned.min() >= low and earned.max() <= high):  # NaN is neither
        task = int(np.argmin((earned >= low) & (earned <= high)))
        wrong, name = f"got {earned[task]:g} in task {task}", type(belief).__name__
        if not np.isfinite(earned[task]):
            raise ArgumentError(
                "rewards", f"must be finite, {wrong}", cure="update when a reward is known"
            )
        raise ArgumentError(
            "rewards", f"must lie between {low:g} and {high:g} for a {name}, {wrong}"
        )
    if binary and not (possible := (earned == 0.0) | (earned == 1.0)).all():
        task = int(np.argmin(possible))
        raise ArgumentError(
            "rewards",
            f"must be 0 or 1 for a {type(belief).__name__} (task {task})",
            got=earned[task],
        )
    return chosen.astype(np.int64, copy=False), earned


def features(seen: Seen, tasks: int, arms: int, dim: int) -> FloatArray:
    """Return the features that ``seen`` shows, ``(task, arm, dim)``."""
    if not isinstance(seen, Seen):
        _check_seen(seen, tasks)
    signal, shape = seen.signal, (tasks, arms, dim)
    if not isinstance(signal, np.ndarray) or signal.shape != shape:
        got = f"shape {signal.shape}" if isinstance(signal, np.ndarray) else _kind(signal)
        raise ArgumentError(
            "seen.signal", f"must be the features of each task and arm, an array {shape}", got=got
        )
    if signal.dtype.kind not in "fiu" or isinstance(signal, np.ma.MaskedArray):
        raise ArgumentTypeError("seen.signal", "must be an array of numbers", got=signal.dtype)
    if not np.isfinite(signal).all():
        raise ArgumentError("seen.signal", "must be finite, but features are NaN or infinite")
    return signal


def chosen_features(seen: Seen, actions: IntArray, arms: int, dim: int) -> FloatArray:
    """Return the features of the arms pulled, ``(task, dim)``, if they are finite and their squares
    are.
    """
    x = features(seen, len(actions), arms, dim)[np.arange(len(actions)), actions]
    # NaN is neither
    if x.size and not (x.min() >= -validation.LARGEST and x.max() <= validation.LARGEST):
        raise ArgumentError(
            "seen.signal",
            f"must be finite, at most {validation.LARGEST:g} in size, but a pulled arm's is not",
        )
    return x


def drawing(belief: Any, rng: Any, draws: Any) -> int:
    """Check what ``Belief.sample`` is given: a stream of the belief's tasks, and a number of
    draws.
    """
    _check_stream(rng)
    if rng.tasks != belief.tasks:
        raise ArgumentError("belief", f"is about {belief.tasks} tasks, but rng has {rng.tasks}")
    return validation.count("draws", draws)


def level(value: Any) -> Any:
    """Check the level of a quantile, or those of each task ``(task,)``, which become a column."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind != "f" or not ((value > 0.0) & (value < 1.0)).all():
            raise ArgumentError("level", "must lie between 0 and 1 in each task, shape (task,)")
        return value[:, None]
    if not 0.0 < validation.number("level", value) < 1.0:
        raise ArgumentError("level", "must lie between 0 and 1", got=value)
    return float(value)


def tasks_of(value: Any) -> int:
    """Check what ``Prior.belief`` is given: a number of tasks that fits into memory, with at least
    a number about each.
    """
    tasks = validation.count("tasks", value)
    sizes.check_memory("tasks", tasks, 8.0 * sizes.as_float(tasks), "lower tasks")
    return tasks


def batch(rng: Any, tasks: Any) -> int:
    """Check what ``Prior.sample`` is given: a stream for so many tasks."""
    tasks = validation.count("tasks", tasks)
    _check_stream(rng)
    if rng.tasks != tasks:
        raise ArgumentError(
            "rng",
            f"must have a number for each of the {tasks} tasks, but is a stream of {rng.tasks}",
        )
    return tasks


def _check_stream(rng: Any) -> None:
    if not isinstance(rng, Stream):
        raise ArgumentTypeError(
            "rng",
            "must be a Stream, as priorwise.core.streams.streams(seed, tasks)(step) gives",
            got=_kind(rng),
        )


def _check_seen(seen: Any, tasks: int) -> None:
    if not isinstance(seen, Seen):
        raise ArgumentTypeError("seen", "must be a Seen(step, horizon, arms, ...)", got=_kind(seen))
    for name in ("step", "horizon"):
        value = getattr(seen, name)
        if isinstance(value, np.ndarray) and len(value) != tasks:
            raise ArgumentError(f"seen.{name}", f"has {len(value)} tasks, but there are {tasks}")
    if seen.mask is not None and len(seen.mask) != tasks:
        raise ArgumentError("seen.mask", f"has {len(seen.mask)} tasks, but there are {tasks}")


def _check_batch(belief: Any, seen: Seen, tasks: int, whose: str) -> None:
    held, arms = getattr(belief, "tasks", tasks), getattr(belief, "arms", seen.arms)
    if held != tasks:
        raise ArgumentError("belief", f"is about {held} tasks, but {whose} {tasks}")
    if arms != seen.arms:
        raise ArgumentError("seen.arms", f"is {seen.arms}, but the belief has {arms} arms")


def _per_task(name: str, value: ArrayLike, tasks: int, kinds: str, what: str) -> Any:
    array = validation.plain_array(name, value)
    if array.dtype.kind not in kinds:
        raise ArgumentTypeError(name, f"must be {what}, one for each task", got=array.dtype)
    if array.shape != (tasks,):
        hint = f"; write [{value!r}]" if array.ndim == 0 and tasks == 1 else ""
        raise ArgumentError(
            name, f"must have one entry for each task, shape ({tasks},)", got=array.shape, cure=hint
        )
    return array


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
