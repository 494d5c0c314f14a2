"""What a fit of normal arms reads: tasks in units of order one, what is known of the noise, and
where a fit to few tasks leans: to independent arms with one variance, around what is known of each
arm's mean.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.groups import NO_SQUARES, GaussianGroups, check_unit
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal.likelihood.tasks import NormalTasks, Units

WORTH_GROUPING: Final = 1024  # tasks from which merging those with equal pulls pays
ROUNDS: Final = 12  # of scoring, towards the target


@final
@dataclass(frozen=True, eq=False)
class ArmData:
    """Tasks that pulled arms, in units of the fit, and what was left of the data."""

    tasks: NormalTasks
    units: Units
    total: int
    left_out: int
    # variance of a pull in whose unit ``pulls`` are precisions; None if they are numbers of pulls
    unit: float | None
    lossy: bool  # whether rounding of large squares is a good part of what remains around the means

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.tasks.dim

    @property
    def pulled(self) -> BoolArray:
        """Whether any task pulled each arm."""
        return np.asarray((self.tasks.pulls > 0.0).any(axis=0))

    def of_arms(self, active: BoolArray) -> "ArmData":
        """Keep some of the arms; the others must not have been pulled."""
        tasks, units = self.tasks.of_arms(active), self.units.of_arms(active)
        return replace(self, tasks=tasks, units=units)


def read_arms(data: GaussianStatistics | GaussianGroups, arms: int | None) -> "ArmData":
    """Prepare statistics or groups: subtract what each arm earns on average, and scale."""
    n, s, q = data.pulls, data.sums, data.squares
    width = n.shape[1]
    if arms not in (None, width):
        kind = "groups" if isinstance(data, GaussianGroups) else "statistics"
        raise ArgumentError("data", f"must have arms={arms}, but the {kind} have {width}")
    groups = data if isinstance(data, GaussianGroups) else None
    t = np.ones((1, 1)) if groups is None else groups.tasks[:, None]
    pulled = (n * t).sum(axis=0)
    if not pulled.any():
        raise ArgumentError("data", "must have a task with a pull")
    shift = float(s.sum()) / float(pulled.sum())
    # mean reward of each arm; large offsets would round away the rest
    own = np.where(pulled > 0.0, s.sum(axis=0) / np.where(pulled > 0.0, pulled, 1.0), shift)
    sums, squares, products = s - own * n * t, None, None
    centring = []  # squares before and after it, and how many
    if q is not None:
        squares = q - 2.0 * own * s + own**2 * n * t
        centring.append((q, squares, pulled))
    if groups is not None:
        crossed = s[:, :, None] * (own * n)[:, None, :]
        products = groups.products - crossed - crossed.transpose(0, 2, 1)
        products += t[:, :, None] * (own * n)[:, :, None] * (own * n)[:, None, :]
        diagonals = [np.einsum("gaa->ga", each) for each in (groups.products, products)]
        centring.append((*diagonals, (t * (n > 0.0)).sum(axis=0)))
        tasks = groups.tasks
    elif isinstance(data, GaussianStatistics) and len(n) > WORTH_GROUPING:
        grouped = data.shifted(own).grouped()
        n, tasks, sums = grouped.pulls, grouped.tasks, grouped.sums
        products, squares = grouped.products, grouped.squares
    else:
        tasks = np.ones(len(n))
    # whether rounding exceeds, for some arm, a twentieth of what centring leaves of all of them
    lossy = False
    for before, after, count in centring:
        rounding = np.finfo(np.float64).eps * before.sum(axis=0)
        usual = max(float(after.sum()), 0.0) / float(count.sum())
        lossy |= bool((rounding > 0.05 * usual * count)[count > 1.0].any())
    share = 1.0 / np.where(n > 0.0, n, np.inf)  # y = share * s
    means = sums * share / tasks[:, None]
    scatter, second = np.empty((0, width, width)), means**2
    if products is not None:
        second = np.einsum("gaa->ga", products) * share**2
        scatter = products * share[:, :, None] * share[:, None, :]
        scatter -= tasks[:, None, None] * means[:, :, None] * means[:, None, :]
        scatter[tasks == 1.0] = 0.0
    within = None
    if squares is not None:
        within = np.maximum((squares - second * n).sum(axis=0), 0.0)
    means = np.where(n > 0.0, means + (own - shift), 0.0)
    moment = float(tasks @ (means**2).sum(axis=1) + np.einsum("gaa->", scatter))
    scale = float(np.sqrt(moment / float((tasks @ (n > 0.0)).sum())))
    if within is not None:
        scale = scale or float(np.sqrt(within.sum() / max(float((tasks @ n).sum()), 1.0)))
    scale = scale if scale > 1e-150 else 1.0
    used = n.any(axis=1)
    free = tasks[used] @ np.maximum(n[used] - 1.0, 0.0)
    return ArmData(
        NormalTasks(
            turn=np.empty((0, width, width)),
            pulls=n[used].copy(),
            tasks=tasks[used],
            means=means[used] / scale,
            scatter=scatter[used] / scale**2 if len(scatter) else scatter,
            within=None if within is None else within / scale**2,
            freedom=free if data.unit is None else np.zeros(width),
        ),
        Units(np.full(width, shift), np.full(width, scale), scale),
        total=round(float(tasks[used].sum())),
        left_out=round(float(tasks[~used].sum())),
        unit=data.unit,
        lossy=lossy,
    )


@final
@dataclass(frozen=True, eq=False)
class Noise:
    """Noise of each arm, in the unit of the rewards, and of which arms it is an estimate that a fit
    improves.
    """

    kind: Literal["known", "shared", "per-arm"]
    value: FloatArray  # (arm,): what is known, or where the estimate starts
    free: BoolArray  # (arm,): whether it is estimated
    # whether the rewards of some arm never differ, so that a noise of zero is likeliest
    silent: bool = False
    notes: tuple[str, ...] = ()


def noise_of(data: "ArmData", given: ArrayLike | None, start: FloatArray | None) -> Noise:
    """Noise that is given, or where its estimate starts: the spread of rewards around their task's
    mean.

    With no repeated pull at all, or rewards that never differ, the noise is held at that of
    ``start``. An arm that alone is like that, where each has its own noise, is given the one that
    all arms have together.
    """
    none, arms = np.zeros(data.arms, dtype=bool), data.arms
    if given is None and data.unit is not None:
        given = np.array(data.unit)
    if isinstance(given, np.ndarray):
        value = np.array(validation.per_arm("noise_var", given, arms))
        check_unit(data.unit, value, "the estimator")
        return Noise("known", value, none)
    if data.unit is not None:
        raise ArgumentError(
            "estimates",
            "with standard errors do not determine the noise of a pull",
            cure="leave noise_var out to take theirs",
        )
    within, freedom = data.tasks.within, data.tasks.freedom
    if within is None:
        raise ArgumentError(*NO_SQUARES)
    within = within * data.units.reward**2
    repeated = freedom > 0.0
    if not repeated.any() or within.sum() <= 0.0:
        why = "the rewards of an arm never differ within a task, so that their noise is zero"
        if not repeated.any():
            spread = "the noise cannot be distinguished from the spread of the arms"
            why = f"{spread}: no arm is ever pulled twice in a task"
        if start is None:
            raise ArgumentError(
                "noise_var",
                f"is missing: {why}",
                cure="pass it, or a start whose noise to keep until the data determine it",
            )
        note = f"{why}; that of the start was held"
        return Noise("known", start, none, bool(repeated.any()), (note,))
    shared = np.full(arms, within.sum() / freedom.sum())
    if given != "per-arm":
        return Noise("shared", shared, ~none)
    free = repeated & (within > 0.0)
    lacking = np.flatnonzero(~free & data.pulled).tolist()
    which = f"arm{'s' * (len(lacking) > 1)} {', '.join(map(str, lacking))}"
    note = f"too few repeated pulls determine the noise of {which}: it is that of all arms together"
    value = np.where(free, within / np.maximum(freedom, 1.0), shared)
    silent = bool((repeated & ~free).any())
    return Noise("per-arm", value, free, silent, (note,) * bool(lacking))


@final
@dataclass(frozen=True, eq=False)
class Target:
    """Mean and variance of each arm, and the pulls that an average task gave an arm."""

    mean: FloatArray  # (arm,)
    var: FloatArray  # (arm,)
    pulls: float


def target(tasks: NormalTasks, noise: FloatArray, *, alike: bool) -> Target:
    """Fit ``mu_a ~ N(mean_a, var)``, independent over tasks and arms, with one variance for all
    arms.

    ``alike`` arms (exchangeable ones) share one mean. Others have means of their own, ``mean_a ~
    N(centre, between)``: each is shrunk towards the centre as far as the arms' means agree, so that
    an arm with few pulls leans on the others, and an offset between arms does not count as
    variance. With a single task the two cannot be distinguished, and all is variance. The variance
    gets one standard error more, and that of the arm's mean, which keeps it positive when few tasks
    happen to agree, and vanishes as tasks come in. With a single mean reward, which shows nothing
    of the variance, it is that of a pull.

    Given ``var``, the variance between arms is the moment estimate of DerSimonian and Laird; given
    that, ``var`` takes a step of Fisher scoring with the arms' means integrated out.
    """
    seen = tasks.pulls > 0.0
    pulls = float((tasks.tasks @ tasks.pulls).sum()) / float(tasks.tasks.sum() * tasks.dim)
    # by group and arm: number of tasks, 0 where an arm was not pulled, sums of squared deviations
    # over them, and noise over pulls
    t, y, s = np.where(seen, tasks.tasks[:, None], 0.0), tasks.means, np.zeros_like(tasks.means)
    if len(tasks.scatter):
        s[-len(tasks.scatter) :] = np.einsum("gaa->ga", tasks.scatter)
    noise_share = noise / np.where(seen, tasks.pulls, 1.0)
    each, total = np.ones(tasks.dim), float(t.sum())
    if total < 2.0:
        return Target(float(y[seen][0]) * each, float(noise.mean()) * each, pulls)
    # all arms with one mean
    mean, pull = float((t * y).sum()) / total, float((t * noise_share).sum()) / total
    var: float = max(float((t * (y - mean) ** 2 + s).sum()) / total - pull, 0.1 * pull)
    for _ in range(ROUNDS):
        spread = var + noise_share
        mean = float((t * y / spread).sum() / (t / spread).sum())
        score = 0.5 * float(((t * (y - mean) ** 2 + s) / spread**2 - t / spread).sum())
        information = 0.5 * float((t / spread**2).sum())
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    most = var + (0.5 * float((t / (var + noise_share) ** 2).sum())) ** -0.5
    if alike or tasks.dim == 1:
        return Target(mean * each, most * each, pulls)
    # each arm with its own
    count = t.sum(axis=0)  # (arm,)
    freedom = float(np.maximum(count - 1.0, 0.0).sum())
    if freedom > 0.0:
        centred = y - (t * y).sum(axis=0) / count
        var = max(float((t * centred**2 + s).sum()) / freedom - pull, 0.01 * var)
    for _ in range(ROUNDS):
        spread = var + noise_share
        precision = (t / spread).sum(axis=0)
        own = (t * y / spread).sum(axis=0) / precision
        middle = float(precision @ own / precision.sum())
        excess = float(precision @ (own - middle) ** 2) - (len(own) - 1)
        between = max(excess / float(precision.sum() - (precision**2).sum() / precision.sum()), 0.0)
        weight = precision / (1.0 + between * precision)
        centre = float(weight @ own / weight.sum())
        trust = between * weight  # in [0, 1): how far an arm's mean is its own
        means = centre + trust * (own - centre)
        more = between / (1.0 + between * precision) + (1.0 - trust) ** 2 / weight.sum()
        score = 0.5 * float(((t * ((y - means) ** 2 + more) + s) / spread**2 - t / spread).sum())
        known = float(((t / spread**2).sum(axis=0) * (1.0 - trust / count)).sum())
        information = max(0.5 * known, 1e-300)
        before, var = var, max(var + score / information, 0.0)
        if abs(var - before) < 1e-3 * (var + information**-0.5):
            break
    return Target(means, np.asarray(min(var + information**-0.5, most) + more), pulls)
