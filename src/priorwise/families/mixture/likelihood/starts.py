"""Where to begin with a mixture: splits of the tasks by what they would change in one law."""

from dataclasses import replace
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.families.mixture.likelihood.model import MixtureModel

MOST_TASKS: Final = 500
"""Tasks that starts are tried on."""
SURE: Final = 0.9
"""Share of a task's own component at the start."""
FIXED, FREE = 3, 8
"""Steps of EM with the shares of the split, and with its own."""


def begin(model: MixtureModel, starts: int, seed: int) -> FloatArray:
    """Return the coordinates to which the best of some splits leads."""
    return _best(model, starts, seed)[0]


def gain(model: MixtureModel, starts: int, seed: int) -> float:
    """By how much the best of some splits beats one law in log likelihood, on a few hundred tasks,
    less what as many parameters more gain by chance: ``log(tasks) / 2`` each (BIC).
    """
    z, some = _best(model, starts, seed)
    tasks = some.statistics.tasks
    one = float(some.log_density(some.form.x).sum())
    more = (model.components - 1) * (model.size + 1)
    return some.log_likelihood(z) - one - 0.5 * more * float(np.log(tasks))


def _best(model: MixtureModel, starts: int, seed: int) -> tuple[FloatArray, MixtureModel]:
    """Coordinates, and the model of the tasks that they were found on."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    tasks = model.statistics.tasks
    if tasks > MOST_TASKS:
        some = np.sort(rng.choice(tasks, MOST_TASKS, replace=False))
        model = replace(model, statistics=model.statistics.take(some), _seen={})
    K, one = model.components, model.form.x
    scores = model.scores(one) * model.form.width
    scores = scores - scores.mean(axis=0)
    spread = np.linalg.eigh(scores.T @ scores / len(scores) + 1e-9 * np.eye(model.size))
    whitened = scores @ spread[1] / np.sqrt(spread[0])  # (task, direction)
    found = []
    for number in range(starts):
        z = model.joined(np.full(K, -np.log(K)), np.tile(one, (K, 1)))
        group = _split(whitened, K, number, rng)
        shares = np.where(group[:, None] == np.arange(K), SURE, (1.0 - SURE) / (K - 1))
        for step in range(FIXED + FREE):
            z = model.em(z, shares if step < FIXED else None)
        found.append((model.value(z), -number, z))
    return max(found, key=lambda each: each[:2])[2], model


def _split(whitened: FloatArray, K: int, number: int, rng: np.random.Generator) -> IntArray:
    """Group of each task: by how far out it is, by the scores' coordinates along a direction, or by
    the nearest of some tasks drawn at random.
    """
    kind = number % 3
    if kind == 1:  # those far out, and the others
        along = (whitened**2).sum(axis=1)
    elif kind == 0:
        along = whitened @ rng.standard_normal(whitened.shape[1])
    else:
        centres = whitened[rng.choice(len(whitened), K, replace=len(whitened) < K)]
        apart = ((whitened[:, None] - centres) ** 2).sum(axis=2)
        return np.asarray(apart.argmin(axis=1))
    ranks = np.argsort(np.argsort(along, kind="stable"), kind="stable")
    return np.asarray(ranks * K // len(ranks))
