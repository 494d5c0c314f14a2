"""How far a prior may be off before something simpler earns more.

Along a path of believed priors ``theta'(s)`` with ``theta'(0) = theta``, the advantage over a
fallback is

    advantage(s) = R(theta, alg(theta'(s))) - R(theta, fallback),

and the break-even is the first s at which it turns negative. The advantage is signed and need not
fall at first: a wrong prior may earn more than the true one. All simulations share tasks and noise,
so that the curve is smooth in s for its standard error.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.estimates import Estimate
from priorwise.core.frames import Table, Tabular
from priorwise.core.progress import progress_of
from priorwise.core.protocols import Policy, Prior
from priorwise.core.types import FloatArray
from priorwise.families.registry import family_for, has_part
from priorwise.figures.break_even import break_even_figure
from priorwise.figures.style import Picture
from priorwise.policies.uniform import Uniform
from priorwise.simulate.run import compare

Path = Callable[[float], Any]

GRID: Final = 9
HALVINGS: Final = 6
SIGMAS: Final = 2.0


@final
@dataclass(frozen=True, eq=False)
class BreakEven(Tabular):
    """Where holding the perturbed prior stops paying.

    ``scale`` is the break-even, None if the fallback never earns more within ``largest``.
    ``between`` are the scales at which the advantage is seen to be positive and negative by two
    standard errors; it holds the break-even with about 95 % confidence. ``scales``, ``advantages``
    and ``std_errors`` are the curve. ``losses`` is the curve against the true prior instead,
    ``R(theta, alg(theta'(s))) - R(theta, alg(theta))``; positive where the wrong prior earns more.
    """

    scale: float | None
    between: tuple[float, float]
    scales: FloatArray
    advantages: FloatArray
    std_errors: FloatArray
    losses: FloatArray
    losses_std_errors: FloatArray
    largest: float
    fallback: str
    policy: str
    horizon: int

    def table(self) -> Table:
        """Columns by name, one row for each scale; ``loss`` is against the true prior, positive
        where the wrong one earns more.
        """
        return {
            "scale": self.scales,
            "advantage": self.advantages,
            "std_error": self.std_errors,
            "loss": self.losses,
            "loss_std_error": self.losses_std_errors,
        }

    def figure(self, title: str = "") -> Picture:
        """Draw the curve."""
        head = f"How wrong may the prior of {self.policy} be in {self.horizon} pulls?"
        named = validation.text("title", title) or head
        return break_even_figure(self.table(), self.scale, self.between, named, self.fallback)

    def __str__(self) -> str:
        """Break-even, and where it may lie."""
        if self.scale is None:
            never = f"{self.policy} earns no less than {self.fallback}"
            return f"{never} at every scale up to {self.largest:.4g}"
        low, high = self.between
        known = f"between {low:.4g} and {high:.4g}" if math.isfinite(high) else f"above {low:.4g}"
        return f"break-even at {self.scale:.4g} ({known}): beyond it {self.fallback} earns more"


def break_even(
    prior: Any,
    direction: Path | Prior | ArrayLike | Mapping[str, ArrayLike],
    policy: Policy,
    horizon: int,
    *,
    seed: int,
    fallback: Policy | Prior | None = None,
    largest: float = 1.0,
    tasks: int = 50_000,
    progress: bool | None = None,
) -> BreakEven:
    """Find how far the believed prior may be off before the fallback earns more.

    Parameters
    ----------
    prior
        The true prior.
    direction
        Which way the believed prior is wrong: a function from the scale to a prior; or another
        prior of the family, reached at scale 1 (normal and Beta priors by mixing their parameters,
        finite ones by mixing their probabilities); or a shift of the mean, ``(arm,)`` or
        ``(dim,)``, for normal priors; or shifts by name, such as ``{"alpha": ..., "beta": ...}``.
    policy
        The policy that believes it.
    horizon
        Pulls in a task.
    seed
        All simulations share tasks and noise.
    fallback
        What would be played instead: a policy that needs no good prior (uniform play by default),
        or a prior, such as a vague one, that the same policy would believe. Problems whose actions
        are real numbers have no uniform play and need one.
    largest
        Scale up to which to look.
    tasks
        Tasks simulated at each scale.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long.

    Examples
    --------
    >>> import priorwise as pw
    >>> prior = pw.GaussianPrior([0.5, 0.0], [[0.1, 0.0], [0.0, 0.1]])
    >>> found = break_even(prior, [-2.0, 0.0], pw.ThompsonSampling(), 10, seed=0, tasks=2000)
    >>> found.scale is not None
    True

    """
    horizon = validation.count("horizon", horizon)
    tasks = validation.count("tasks", tasks, least=2)
    seed = validation.seed(seed)
    largest = validation.number("largest", largest)
    if largest <= 0.0:
        raise ArgumentError("largest", "must be positive", got=largest)
    path = _path(prior, direction)
    if fallback is None and getattr(prior, "actions", None) is not None:
        raise ArgumentTypeError(
            "fallback",
            "must be given where actions are real numbers, because uniform play needs arms",
            cure="pass a policy, such as CertaintyEquivalence(), or another prior",
        )
    instead = Uniform() if fallback is None else fallback
    if isinstance(instead, type) or not hasattr(instead, "belief"):
        argument_checks.policy("fallback", instead)
    rival: tuple[Any, Any] = (policy, instead) if hasattr(instead, "belief") else (instead, prior)
    seen: dict[float, tuple[Estimate, Estimate]] = {}

    def advantage(scale: float) -> Estimate:
        if scale not in seen:
            believed = _at(path, scale)
            policies = {"believed": (policy, believed), "fallback": rival, "true": (policy, prior)}
            result = compare(prior, policies, horizon=horizon, tasks=tasks, seed=seed)
            seen[scale] = (
                result.difference("believed", "fallback"),
                result.difference("believed", "true"),
            )
        return seen[scale][0]

    grid = [float(scale) for scale in np.linspace(0.0, largest, GRID)]
    scale: float | None = None
    with progress_of(GRID + HALVINGS, "scales", shown=progress) as bar:

        def tried(scale: float) -> Estimate:
            gain = advantage(scale)
            bar.advance(1)
            return gain

        losing = [i for i, gain in enumerate([tried(scale) for scale in grid]) if gain.mean < 0.0]
        if losing:
            scale = _bisect(tried, grid[max(losing[0] - 1, 0)], grid[losing[0]])
    scales = np.array(sorted(seen))
    curve, against = ([seen[float(s)][i] for s in scales] for i in (0, 1))
    name = type(instead).__name__
    return BreakEven(
        scale=scale,
        between=_between(scales, curve, scale),
        scales=scales,
        advantages=np.array([each.mean for each in curve]),
        std_errors=np.array([each.std_error for each in curve]),
        losses=np.array([each.mean for each in against]),
        losses_std_errors=np.array([each.std_error for each in against]),
        largest=largest,
        fallback=f"a {name} believed instead" if hasattr(instead, "belief") else name,
        policy=type(policy).__name__,
        horizon=horizon,
    )


def _at(path: Path, scale: float) -> Any:
    """Return the believed prior at a scale; say where a path leaves the family."""
    try:
        believed = path(scale)
    except ValueError as error:
        raise ArgumentError(
            "direction",
            f"leads out of the family at scale {scale:g} ({error})",
            cure="pass a smaller largest=...",
        ) from None
    argument_checks.prior(f"direction({scale:g})", believed)
    return believed


def _bisect(advantage: Callable[[float], Estimate], low: float, high: float) -> float:
    """Halve the bracket while it can be distinguished, then draw a straight line through its
    ends.
    """
    if low == high:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        here = advantage(middle)
        low, high = (middle, high) if here.mean >= 0.0 else (low, middle)
        if abs(here.mean) < here.std_error / 4.0:
            break
    first, second = advantage(low).mean, advantage(high).mean
    return low + (high - low) * first / (first - second) if first > second else (low + high) / 2.0


def _between(scales: FloatArray, curve: list[Estimate], scale: float | None) -> tuple[float, float]:
    """Last scale before the crossing that is clearly positive, and first after it that is clearly
    negative.
    """
    if scale is None:
        return float(scales[-1]), math.inf
    clear = [each.mean / max(SIGMAS * each.std_error, 1e-300) for each in curve]
    gains = [s for s, size in zip(scales, clear, strict=True) if s <= scale and size > 1.0]
    losses = [s for s, size in zip(scales, clear, strict=True) if s >= scale and size < -1.0]
    return float(max(gains, default=0.0)), float(min(losses, default=math.inf))


def _path(prior: Any, direction: Any) -> Path:
    """Read the direction."""
    if callable(direction):
        path: Path = direction
        return path
    kind = type(prior).__name__
    if hasattr(prior, "for_arms") or not has_part(prior, "parameters"):
        raise ArgumentTypeError(
            "direction", f"must be a function from the scale to a prior for a {kind}"
        )
    names = family_for(prior, "break_even").parameters
    if hasattr(direction, "belief"):
        direction = _between_priors(prior, direction, names)
    elif not isinstance(direction, Mapping):
        if "mean" not in names:
            raise ArgumentTypeError(
                "direction",
                f"must name what it shifts, such as {{{names[0]!r}: ...}}, for a {kind}",
            )
        direction = {"mean": direction}
    shifts = {}
    for name, value in direction.items():
        if name not in names:
            raise ArgumentError(
                "direction", f"must shift one of {', '.join(names)} of a {kind}", got=name
            )
        shifts[name] = validation.matrix(f"direction[{name!r}]", value, getattr(prior, name).shape)
    return lambda scale: prior.replaced(
        **{name: getattr(prior, name) + scale * shift for name, shift in shifts.items()}
    )


def _between_priors(prior: Any, end: Any, names: tuple[str, ...]) -> dict[str, FloatArray]:
    """Differences of the parameters: scale 1 leads to the other prior, and beyond goes past it."""
    if type(end) is not type(prior):
        raise ArgumentError(
            "direction", f"must be of the family of prior, a {type(prior).__name__}", got=type(end)
        )
    if end.arms != prior.arms:
        raise ArgumentError("direction", f"must have the {prior.arms} arms of prior", got=end.arms)
    mine, theirs = (getattr(each, "reward_law", None) for each in (prior, end))
    if theirs != mine:
        raise ArgumentError("direction", f"must have the reward law of prior, {mine}", got=theirs)
    for name in inspect.signature(type(prior)).parameters:
        if name not in names and not np.array_equal(getattr(prior, name), getattr(end, name)):
            raise ArgumentError(
                "direction",
                f"must have the {name} of prior, in the same order",
                cure="pass a function of the scale otherwise",
            )
    return {name: getattr(end, name) - getattr(prior, name) for name in names}
