"""Normal equations: what estimators of priors over weights read of past tasks."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numba import types
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.fitting.columns import Pulls, counts, table
from priorwise.fitting.statistics import PerTask
from priorwise.kernels.compiling import F, entry

ROUNDING: Final = 1e-8
"""How far sums may be from those of any features and rewards, relative to their size."""

READ_ROW, READ_ROWS, READ_CUBE = (types.Array(F, axes, "C", readonly=True) for axes in (1, 2, 3))


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class LinearStatistics(PerTask):
    """Normal equations of each task of a linear contextual bandit.

    Parameters
    ----------
    gram
        ``X'X`` over the features of the pulled arms, ``(task, dim, dim)``.
    moments
        ``X'r``, ``(task, dim)``.
    squares
        ``r'r``, ``(task,)``.
    pulls
        Number of pulls, ``(task,)``.
    log_noise
        Sum over the pulls of the logarithm of their noise variance, ``(task,)``, where
        ``noise_var`` is given.
    noise_var
        Where the noise differs between arms: its variances, ``(arm,)``, in whose units ``gram``,
        ``moments`` and ``squares`` are. None: plain sums.
    names
        Names of the arms.

    """

    family: ClassVar[str] = "linear-statistics"
    shared: ClassVar[tuple[str, ...]] = ("noise_var", "names")

    gram: FloatArray
    moments: FloatArray
    squares: FloatArray
    pulls: FloatArray
    log_noise: FloatArray | None
    noise_var: FloatArray | None
    names: tuple[str, ...] | None

    def __init__(
        self,
        gram: ArrayLike,
        moments: ArrayLike,
        squares: ArrayLike,
        pulls: ArrayLike,
        *,
        log_noise: ArrayLike | None = None,
        noise_var: ArrayLike | None = None,
        names: Any = None,
    ) -> None:
        """Check and freeze the arrays."""
        m = table("moments", moments, (None, None))
        tasks, dim = m.shape
        g = table("gram", gram, (tasks, dim, dim))
        gap = np.abs(g - g.transpose(0, 2, 1)).max()
        if gap > 1e-8 * np.abs(g).max():
            raise ArgumentError(
                "gram", f"must be symmetric in each task, but entries differ by up to {gap:g}"
            )
        q = table("squares", squares, (tasks,))
        if q.min() < 0:
            raise ArgumentError("squares", "must not be negative", got=q.min())
        n = counts("pulls", pulls, (tasks,))
        for task in np.flatnonzero(n == 0):
            if g[task].any() or m[task].any() or q[task]:
                raise ArgumentError(
                    "gram", f"and moments and squares must be 0 where pulls is 0 (task {task})"
                )
        g, m, q = (np.ascontiguousarray(array) for array in (g, m, q))
        if (first := int(impossible(g, m, q, ROUNDING))) >= 0:
            raise ArgumentError(
                "gram",
                "must be positive semi-definite, and squares at least what the features "
                f"explain (task {first})",
            )
        if (log_noise is None) != (noise_var is None):
            raise ArgumentError(
                "log_noise", "and noise_var belong together", cure="give both or none"
            )
        noise = None
        if noise_var is not None:
            noise = validation.positive("noise_var", validation.vector("noise_var", noise_var))
        if names is not None:
            names = validation.names(names, len(names) if noise is None else noise.size)
        if log_noise is not None:
            log_noise = table("log_noise", log_noise, (tasks,))
        self._set(gram=g, moments=m, squares=q, pulls=n)
        self._set(log_noise=log_noise, noise_var=noise, names=names)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.moments.shape[1]

    @classmethod
    def from_trajectory(cls, features: ArrayLike, rewards: ArrayLike) -> Self:
        """Sum up the features of the pulled arms ``(task, step, dim)`` and their rewards ``(task,
        step)``.
        """
        x = table("features", features, (None, None, None))
        r = table("rewards", rewards, x.shape[:2])
        gram = x.transpose(0, 2, 1) @ x
        moments = np.einsum("tsj,ts->tj", x, r)
        return cls(gram, moments, np.einsum("ts,ts->t", r, r), np.full(len(r), r.shape[1]))

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """Features, names, and the noise where it differs between arms: sums over arms cannot
        distinguish noises, and so must be in its units.
        """
        noise = prior.noise_var if np.ptp(prior.noise_var) > 0.0 else None
        return {"dim": prior.dim, "noise_var": noise, "names": prior.names}

    @classmethod
    def empty(
        cls, tasks: int, dim: int = 1, noise_var: Any = None, names: Any = None, **known: Any
    ) -> Self:
        """Return the statistics of tasks before their first pull."""
        tasks, dim = validation.count("tasks", tasks), validation.count("dim", dim)
        none, log_noise = np.zeros(tasks), None if noise_var is None else np.zeros(tasks)
        sums = np.zeros((tasks, dim, dim)), np.zeros((tasks, dim)), none, none
        return cls(*sums, log_noise=log_noise, noise_var=noise_var, names=names)

    @classmethod
    def read(
        cls, played: Trajectory, *, noise_var: Any = None, names: Any = None, **known: Any
    ) -> Self:
        """Sum up played tasks; with ``noise_var`` ``(arm,)`` in units of the noise."""
        if played.log is None:
            raise ArgumentError("run", "must show features, as a linear contextual bandit does")
        if noise_var is None:
            made = cls.from_trajectory(played.log, played.rewards)
            return made._with(made._columns(), names=names)
        noise = np.asarray(noise_var)[played.actions]
        scale = np.sqrt(noise)
        made = cls.from_trajectory(played.log / scale[:, :, None], played.rewards / scale)
        columns = made._columns() | {"log_noise": np.log(noise).sum(axis=1)}
        return made._with(columns, noise_var=np.array(noise_var), names=names)

    def _add(self, columns: dict[str, Any], pulls: Pulls) -> None:
        rows, actions, rewards, signal = pulls
        features = validation.matrix("signal", signal, (self.tasks, None, self.dim))
        pulls.check(features.shape[1])
        x = features[rows, actions]
        if self.noise_var is not None:
            pulls.check(self.noise_var.size)
            scale = np.sqrt(self.noise_var[actions])
            x, rewards = x / scale[:, None], rewards / scale
            columns["log_noise"][rows] += np.log(self.noise_var[actions])
        columns["gram"][rows] += x[:, :, None] * x[:, None, :]
        columns["moments"][rows] += x * rewards[:, None]
        columns["squares"][rows] += rewards**2
        columns["pulls"][rows] += 1.0

    def _agreed(self, name: str, mine: Any, yours: Any) -> Any:
        if name == "noise_var" and (mine is None) != (yours is None):
            raise ArgumentError(
                "plain", "sums and sums in units of the noise cannot be put together"
            )
        return super()._agreed(name, mine, yours)


def _impossible(gram: FloatArray, moments: FloatArray, squares: FloatArray, slack: float) -> int:
    """First task whose ``[X'X, X'r; r'X, r'r]`` has a negative eigenvalue, its diagonal scaled to
    1; -1 if there is none.
    """
    tasks, d = moments.shape
    H, scale = np.empty((d + 1, d + 1)), np.empty(d + 1)
    for t in range(tasks):
        for i in range(d + 1):
            size = gram[t, i, i] if i < d else squares[t]
            if size < 0.0:
                return t
            scale[i] = np.sqrt(size)
        for i in range(d + 1):
            for j in range(i + 1):
                s = gram[t, i, j] if i < d else moments[t, j] if j < d else squares[t]
                unit = scale[i] * scale[j]
                if unit > 0.0:
                    s /= unit
                elif s != 0.0:
                    return t
                if i == j:
                    s += slack
                for m in range(j):
                    s -= H[i, m] * H[j, m]
                if i > j:
                    H[i, j] = s / H[j, j]
                elif s <= 0.0:
                    return t
                else:
                    H[i, i] = np.sqrt(s)
    return -1


impossible: Any = entry(types.int64(READ_CUBE, READ_ROWS, READ_ROW, F))(_impossible)
