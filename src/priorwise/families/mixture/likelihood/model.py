"""The likelihood of a mixture, its EM step, its slopes, and its information.

With ``p_k(t)`` the marginal likelihood of task t under component k and ``r_tk`` the probability
that t came from k,

    L = sum_t log sum_k probs_k p_k(t) + regulariser,
    dL / dx_k = sum_t r_tk d log p_k(t) / dx_k                              (Fisher's identity),
    -d2L = sum_t [ sum_k r_tk (-H_tk - u_tk u_tk') + u_t u_t' ],  u_t = sum_k r_tk u_tk    (Louis).

Derivatives of ``log p_k`` are those of the family's coordinates. Where these have none, they are
central differences, so any family with a marginal likelihood and coordinates has mixtures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from scipy.special import logsumexp, softmax

from priorwise.core.types import FloatArray
from priorwise.fitting.coordinates import Coordinates
from priorwise.fitting.newton import HALVINGS, Climb, Spot, climb

STEP: Final = 1e-4  # of a first difference, in widths
CURVE: Final = 1e-3  # of a second one
MOST: Final = 12  # coordinates of a component up to which second derivatives are taken
LONGEST: Final = 0.5  # step of the ascent, in widths


@final
@dataclass(frozen=True, eq=False)
class MixtureModel:
    """Mixtures of K priors of one form; coordinates are log odds of the probabilities against the
    last, ``(K - 1,)``, then those of each component.

    The regulariser adds ``r sum_k log probs_k``, one task more for each component, and ``-r / 2``
    times the squared distance of each component from the fit of one law, in widths.
    """

    density: Callable[[Any, Any], FloatArray]  # (prior, statistics) -> (task,)
    statistics: Any
    form: Coordinates  # of the fit of one law
    components: int
    regulariser: float
    _seen: dict[bytes, tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Coordinates of a component."""
        return self.form.x.size

    def log_density(self, x: FloatArray) -> FloatArray:
        """``log p_k(t)`` at the coordinates of a component, ``(task,)``; minus infinity where no
        prior has them.
        """
        return self._scored(x)[0]

    def _scored(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``log p_k(t)``, with its slopes if the coordinates have them; the last are kept."""
        key = x.tobytes()
        if key not in self._seen:
            if len(self._seen) >= 4 * self.components:
                self._seen.pop(next(iter(self._seen)))
            self._seen[key] = self._evaluated(x)
        return self._seen[key]

    def _evaluated(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        none = np.zeros((self.statistics.tasks, self.size))
        try:
            prior = self.form.make(x)
        except ValueError:  # too far out
            return np.full(len(none), -np.inf), none
        if self.form.scored is None:
            return self.density(prior, self.statistics), none
        return self.form.scored(prior, self.statistics)

    def _density(self, x: FloatArray) -> FloatArray:
        return self._evaluated(x)[0]

    def split(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log probabilities ``(component,)`` and coordinates ``(component, size)``."""
        odds = np.append(z[: self.components - 1], 0.0)
        return odds - logsumexp(odds), z[self.components - 1 :].reshape(self.components, -1)

    def joined(self, log_probs: FloatArray, x: FloatArray) -> FloatArray:
        """The coordinates of both."""
        return np.concatenate([log_probs[:-1] - log_probs[-1], x.ravel()])

    def terms(self, z: FloatArray) -> FloatArray:
        """``log probs_k p_k(t)``, ``(task, component)``."""
        log_probs, x = self.split(z)
        return log_probs + np.stack([self.log_density(each) for each in x], axis=1)

    def log_likelihood(self, z: FloatArray) -> float:
        """Of the data alone."""
        return float(logsumexp(self.terms(z), axis=1).sum())

    def value(self, z: FloatArray) -> float:
        """With the regulariser."""
        log_probs, x = self.split(z)
        return self.log_likelihood(z) + self._leaning(log_probs, x)

    def _leaning(self, log_probs: FloatArray, x: FloatArray) -> float:
        off = (x - self.form.x) / self.form.width
        return self.regulariser * float(log_probs.sum() - 0.5 * (off**2).sum())

    def scores(self, x: FloatArray, *, rough: bool = False) -> FloatArray:
        """Slopes of ``log p_k(t)`` in the coordinates of a component, ``(task, size)``; ``rough``
        differences are one-sided.
        """
        if self.form.scored is not None:
            return self._scored(x)[1]
        out = np.empty((self.statistics.tasks, self.size))
        with np.errstate(invalid="ignore"):
            for i, h in enumerate(STEP * self.form.width):
                step = np.zeros(self.size)
                step[i] = h
                low = self.log_density(x) if rough else self._density(x - step)
                out[:, i] = (self._density(x + step) - low) / (h if rough else 2.0 * h)
        return np.where(np.isfinite(out), out, 0.0)

    def curves(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Second derivatives of ``sum_t w_t log p_k(t)``, ``(size, size)``."""
        steps = np.diag(CURVE * self.form.width)
        if self.form.scored is not None:
            pairs = [(self._evaluated(x + h)[1], self._evaluated(x - h)[1]) for h in steps]
            rows = np.stack([weights @ (up - down) for up, down in pairs])
            return rows / (2.0 * CURVE * self.form.width[:, None])

        def at(move: FloatArray) -> float:
            return float(weights @ self._density(x + move))

        out, here = np.empty((self.size, self.size)), at(np.zeros(self.size))
        for i, a in enumerate(steps):
            out[i, i] = (at(a) - 2.0 * here + at(-a)) / a[i] ** 2
            for j, b in enumerate(steps[:i]):
                across = at(a + b) - at(a - b) - at(b - a) + at(-a - b)
                out[i, j] = out[j, i] = across / (4.0 * a[i] * b[j])
        return out

    def em(self, z: FloatArray, shares: FloatArray | None = None) -> FloatArray:
        """One step of generalised EM, which never lowers the value: probabilities in closed form,
        each component by a step uphill of its weighted likelihood. Without given ``shares`` of
        components in tasks, ``(task, component)``, they are those at z.
        """
        r = softmax(self.terms(z), axis=1) if shares is None else shares
        total = r.sum(axis=0) + self.regulariser
        _, x = self.split(z)
        x = np.stack([self._uphill(each, w) for each, w in zip(x, r.T, strict=True)])
        with np.errstate(divide="ignore"):
            log_probs = np.maximum(np.log(total / total.sum()), -700.0)
        return self.joined(log_probs, x)

    def _uphill(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """A step that raises ``sum_t w_t log p(t; x)``, scaled by the scores' own squares."""
        r, width = self.regulariser, self.form.width

        def value(x: FloatArray) -> float:
            logs = self.log_density(x)
            known = np.where(weights > 0.0, logs, 0.0)
            return float(weights @ known) - 0.5 * r * float(
                (((x - self.form.x) / width) ** 2).sum()
            )

        scores = self.scores(x, rough=True) * width  # in widths
        gradient = weights @ scores - r * (x - self.form.x) / width
        squares = (scores.T * weights) @ scores + (r + 1e-9) * np.eye(self.size)
        step = np.linalg.lstsq(squares, gradient)[0]
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        here = value(x)
        for _ in range(HALVINGS):
            there = x + step * width
            if value(there) >= here:
                return there
            step = step / 2.0
        return x

    def slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and information, with the regulariser."""
        by_task = self._by_task(z)
        gradient, bend = self._regularised(z)
        return by_task[0].sum(axis=0) + gradient, self._louis(z, *by_task) + bend

    def information(self, z: FloatArray) -> FloatArray:
        """Observed information of the data alone."""
        return self._louis(z, *self._by_task(z))

    def _louis(
        self, z: FloatArray, mean: FloatArray, shares: FloatArray, own: list[FloatArray]
    ) -> FloatArray:
        """Observed information after Louis (1982); of components with many coordinates, the
        squares of the tasks' scores.
        """
        K = self.components
        log_probs, x = self.split(z)
        probs = np.exp(log_probs)[:-1]
        out = mean.T @ mean
        if not self.curved:
            return np.asarray(out)
        out[: K - 1, : K - 1] += len(mean) * (np.diag(probs) - np.outer(probs, probs))
        for k in range(K):
            part = slice(K - 1 + k * self.size, K - 1 + (k + 1) * self.size)
            out[part, part] -= self.curves(x[k], shares[:, k])
            out -= (own[k].T * shares[:, k]) @ own[k]
        return np.asarray((out + out.T) / 2.0)

    def _by_task(self, z: FloatArray) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Scores of tasks ``(task, coordinate)``, shares of components in tasks, and the scores of
        tasks that are known to be of a component.
        """
        K, tasks = self.components, self.statistics.tasks
        log_probs, x = self.split(z)
        shares = softmax(self.terms(z), axis=1)
        own = []
        for k in range(K):
            each = np.zeros((tasks, z.size))
            each[:, : K - 1] = (np.arange(K - 1) == k) - np.exp(log_probs)[:-1]
            each[:, K - 1 + k * self.size : K - 1 + (k + 1) * self.size] = self.scores(x[k])
            own.append(each)
        mean = sum(own[k] * shares[:, k, None] for k in range(K))
        return np.asarray(mean), shares, own

    def _regularised(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and information of the regulariser."""
        r, K = self.regulariser, self.components
        log_probs, x = self.split(z)
        probs = np.exp(log_probs)[:-1]
        gradient = np.concatenate(
            [r * (1.0 - K * probs), -r * ((x - self.form.x) / self.form.width**2).ravel()]
        )
        bend = np.diag(np.concatenate([np.zeros(K - 1), np.tile(r / self.form.width**2, K)]))
        bend[: K - 1, : K - 1] = r * K * (np.diag(probs) - np.outer(probs, probs))
        return gradient, bend

    def widths(self) -> FloatArray:
        """A long way in each coordinate."""
        each = [self.form.width] * self.components
        return np.concatenate([np.full(self.components - 1, 3.0), *each])

    def climbed(self, z: FloatArray, *, limit: int, tolerance: float) -> Climb[Spot]:
        """Newton's method, from where EM is slow; coordinates are in widths."""
        width = self.widths()

        def slopes(y: FloatArray) -> tuple[FloatArray, FloatArray]:
            gradient, information = self.slopes(y * width)
            return gradient * width, information * width * width[:, None]

        def at(y: FloatArray) -> Spot:
            return Spot(y, self.value(y * width), slopes)

        return climb(at, z / width, tolerance=tolerance, limit=limit, longest=LONGEST)

    @property
    def curved(self) -> bool:
        """Whether second derivatives are worth their cost."""
        return self.size <= MOST
