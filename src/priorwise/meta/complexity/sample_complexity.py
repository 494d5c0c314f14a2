"""How many tasks do I need? By simulation: explore, estimate, and measure how far the estimate is
from the truth.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.progress import progress_of
from priorwise.core.protocols import Policy, for_arms
from priorwise.core.streams import Purpose, Streams
from priorwise.families.registry import family_for
from priorwise.fitting.design import Rate
from priorwise.fitting.fits import Estimator
from priorwise.fitting.task_facts import KnownTasks, adapted
from priorwise.meta.complexity.theory import covered_rate
from priorwise.meta.exploration import Exploration, explored, replicate_seed
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.bounds.bandits import Bound, reward_bound
from priorwise.sensitivity.distance.measures import of_pair
from priorwise.sensitivity.distance.pairs import ordered_pair, with_divergences
from priorwise.simulate.sizes import available_threads, check_run

DRAWS: Final = 20_000


@dataclass(frozen=True)
class Tried:
    """One number of tasks: the share of replicates within eps, and the (1 - delta)-quantile of the
    total variation.
    """

    tasks: int
    share: float
    quantile: float


@dataclass(frozen=True)
class SampleComplexity:
    """Number of tasks after which the estimate is within ``eps`` of the truth with probability ``1
    - delta``.

    ``tasks`` is the least number tried that reached it (None if even ``most`` did not); the largest
    one that did not is ``not_enough`` (0 if none). ``curve`` lists every number tried. ``theory``
    is the rate of the theorem that covers this estimator with this exploration, None where no
    theorem does (:func:`~priorwise.meta.complexity.theory.covered_rate`). A share of replicates is
    a random number: it is off by about ``sqrt(delta (1 - delta) / replicates)``.
    """

    eps: float
    delta: float
    tasks: int | None
    not_enough: int
    curve: tuple[Tried, ...]
    theory: Rate | None
    prior: Any
    replicates: int

    def reward_loss(self, policy: Policy, horizon: int) -> Bound:
        """What the plug-in policy loses at most, with probability ``1 - delta`` over the
        exploration (PAC corollary).

        ``|R(theta, alg(theta)) - R(theta, alg(theta^))| <= 2 n H^2 eps Psi(2 n H eps)`` for a
        policy with a Monte-Carlo constant n.
        """
        return reward_bound(self.prior, None, policy, horizon, tv=self.eps)

    def __str__(self) -> str:
        """Answer in one line."""
        answer = f"more than {self.curve[-1].tasks if self.curve else 0:,} tasks"
        if self.tasks is not None:
            answer = f"{self.tasks:,} tasks ({self.not_enough:,} do not)"
        near = f"within {self.eps:g} in total variation"
        return f"{answer} bring the estimate {near} with probability {1 - self.delta:g}"


def sample_complexity(
    prior: Any,
    eps: float,
    delta: float,
    *,
    horizon: int,
    seed: int,
    estimator: Estimator | None = None,
    exploration: Policy | Exploration | None = None,
    replicates: int = 100,
    least: int = 64,
    most: int = 1_000_000,
    precision: float = 1.25,
    draws: int = DRAWS,
    progress: bool | None = None,
) -> SampleComplexity:
    """Search for the number of tasks by simulation: doubling, then halving the gap on a logarithmic
    scale.

    Parameters
    ----------
    prior
        The true prior.
    eps, delta
        Accuracy in total variation, and the probability of missing it.
    horizon
        Pulls in an exploration episode.
    seed
        Of tasks, rewards, exploration and distances. Replicate r meets the same tasks whatever
        their number, so that a larger number of tasks contains the smaller one's.
    estimator
        By default the moment estimator of the family (all rounds).
    exploration
        A policy or an :class:`~priorwise.meta.exploration.Exploration`; by default uniform.
    replicates
        Simulated meta-learners.
    least, most
        Smallest and largest number of tasks tried.
    precision
        Stop when the answer is known up to this factor.
    draws
        Draws of an estimated total variation, at least 1.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long.

    """
    eps, delta = validation.share("eps", eps), validation.share("delta", delta)
    horizon = validation.count("horizon", horizon)
    replicates = validation.count("replicates", replicates)
    seed, least = validation.seed(seed), validation.count("least", least)
    most, draws = validation.count("most", most, least=least), validation.count("draws", draws)
    if not validation.number("precision", precision) > 1.0:
        raise ArgumentError("precision", "is a factor larger than 1", got=precision)
    argument_checks.fixed_prior("prior", prior)
    if estimator is None:
        estimator = family_for(prior, "sample_complexity without an estimator").moments(prior)
    argument_checks.estimator("estimator", estimator)
    used = adapted(estimator, KnownTasks.of(prior))
    explore = Uniform() if exploration is None else exploration
    size: Any = {"horizon": horizon, "tasks": most, "times": replicates}
    check_run(prior, [explore], **size, keep=True, named="most", times_named="replicates")
    sizes.check_memory("draws", draws, 64.0 * sizes.as_float(draws), "lower draws")
    tried: dict[int, Tried] = {}

    def error(tasks: int, replicate: int) -> float:
        key = replicate_seed(seed, replicate)
        fitted = used.fit(explored(prior, explore, tasks, horizon, seed=key)).prior
        return _distance(prior, for_arms(fitted, prior.arms), key, draws)

    def enough(tasks: int) -> bool:
        errors = np.empty(replicates)
        workers = ThreadPoolExecutor(available_threads())  # most of the time is NumPy's
        bar_of = progress_of(replicates, f"replicates of {tasks:,} tasks", shown=progress)
        with bar_of as bar, workers:
            for r, value in enumerate(workers.map(partial(error, tasks), range(replicates))):
                errors[r] = value
                bar.advance(1)
        share, quantile = np.mean(errors <= eps), np.quantile(errors, 1.0 - delta, method="higher")
        tried[tasks] = Tried(tasks, float(share), float(quantile))
        return tried[tasks].share >= 1.0 - delta

    low, high = 0, least
    while not enough(high):
        low = high
        if high == most:
            break
        high = min(2 * high, most)
    while 0 < low < high and high > precision * low:
        middle = round(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    theory = covered_rate(prior, used, explore, horizon, eps, delta)
    curve, reached = tuple(tried[tasks] for tasks in sorted(tried)), None if low == high else high
    return SampleComplexity(eps, delta, reached, low, curve, theory, prior, replicates)


def _distance(prior: Any, fitted: Any, seed: int, draws: int) -> float:
    """Total variation; by sampling where an exact value takes long."""
    pair = ordered_pair(prior, fitted, "sample_complexity")
    if not getattr(pair, "slow", False):
        return of_pair(pair, prior, seed, draws).value
    sampled = with_divergences(pair, prior, "sample_complexity")
    stream = Streams(seed, np.arange(draws, dtype=np.uint64)).at(Purpose.POLICY, 0)
    ratios = sampled.log_ratios(stream)
    return float(np.mean([np.abs(np.tanh(ratio / 2.0)).mean() for ratio in ratios]))
