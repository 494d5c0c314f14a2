"""Choosing between models of the prior, by held-out likelihood, and between policies, under the priors the data leave plausible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.protocols import Policy
from priorwise.core.streams import Purpose, Streams, mix
from priorwise.core.types import FloatArray, IntArray
from priorwise.meta import beta_likelihood, finite_likelihood, gaussian_likelihood, linear_likelihood
from priorwise.meta.fit import Estimator, PriorFit
from priorwise.meta.statistics import BetaStatistics, FiniteStatistics, GaussianStatistics, LinearStatistics
from priorwise.meta.tasks import PerTask
from priorwise.priors.beta import BetaPrior
from priorwise.priors.exchangeable import ExchangeableBetaPrior, ExchangeableGaussianPrior
from priorwise.priors.finite import FinitePrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.simulate.results import Estimate, Run
from priorwise.simulate.run import compare


@dataclass(frozen=True, eq=False)
class Paired:
    """Scores of several candidates on the same items, ``(item,)`` each, so that differences are paired."""

    scores: dict[str, FloatArray]

    def estimate(self, name: str) -> Estimate:
        """Mean score with its standard error."""
        return _estimate(self.scores[self._known(name)])

    def difference(self, first: str, second: str) -> Estimate:
        """Mean of the score of ``first`` minus that of ``second``, with the standard error of the paired difference."""
        a, b = self.scores[self._known(first)], self.scores[self._known(second)]
        with np.errstate(invalid="ignore"):
            return _estimate(np.where(a == b, 0.0, a - b))

    @property
    def best(self) -> str:
        """Name of the candidate with the largest mean score."""
        return max(self.scores, key=lambda name: self.estimate(name).mean)

    def __str__(self) -> str:
        """Return a table: each candidate's score, and its difference from the best."""
        width, best = max(len(name) for name in self.scores), self.best
        lines = [f"{'':{width}}  {'score':>20}  {'minus ' + best:>22}"]
        for name in sorted(self.scores, key=lambda each: -self.estimate(each).mean):
            gap = "" if name == best else str(self.difference(name, best))
            lines.append(f"{name:{width}}  {self.estimate(name)!s:>20}  {gap:>22}".rstrip())
        return "\n".join(lines)

    def _known(self, name: str) -> str:
        if name not in self.scores:
            raise KeyError(f"no {name!r} in this comparison; there are {', '.join(self.scores)}")
        return name


@final
@dataclass(frozen=True, eq=False)
class ModelComparison(Paired):
    """Held-out log marginal likelihood of each task under each model, ``scores[name]`` ``(task,)``, and each model's fit to all.

    Standard errors are those of independent tasks; that tasks share the data which their priors were fitted to is not counted.
    """

    fits: dict[str, PriorFit] = field(repr=False)


@final
@dataclass(frozen=True, eq=False)
class PolicyComparison(Paired):
    """Mean reward of each policy under each plausible prior, ``scores[name]`` ``(draw,)``.

    The standard errors count both the spread over plausible priors and the simulation.
    """

    priors: list[Any] = field(repr=False)

    def spread(self, name: str) -> float:
        """Standard deviation of a policy's mean reward over plausible priors: how much hangs on what is not known of the prior."""
        values = self.scores[self._known(name)]
        return float(values.std(ddof=1)) if len(values) > 1 else np.inf

    def share_best(self) -> dict[str, float]:
        """Share of the plausible priors under which each policy earned most."""
        winners = np.stack(list(self.scores.values())).argmax(axis=0)
        return {name: float((winners == i).mean()) for i, name in enumerate(self.scores)}


def compare_models(models: Mapping[str, Estimator], data: Any, *, folds: int = 5, seed: int) -> ModelComparison:
    """Score estimators by how well priors fitted to some tasks predict others: K-fold cross-validation over tasks.

    Each task's score is ``log p(its rewards given its actions)`` under the prior that was fitted without its fold: all rewards of
    the task, also for estimators that read only some of them. So models with more parameters pay for what they overfit, and
    families, structures and regularisers can be compared on equal terms.

    Parameters
    ----------
    models
        Names and estimators.
    data
        A kept run, or per-task statistics that all the estimators read.
    folds
        Number of folds, from 2 to the number of tasks.
    seed
        Decides which tasks are in which fold.

    Examples
    --------
    >>> import priorwise as pw
    >>> from priorwise.meta.beta_likelihood import BetaMarginalLikelihood
    >>> truth = pw.BetaPrior(alpha=[1, 8, 4], beta=[8, 1, 4])
    >>> run = pw.simulate(truth, pw.ThompsonSampling(), horizon=10, tasks=200, seed=0, keep=True)
    >>> models = {"own": BetaMarginalLikelihood(), "one for all": BetaMarginalLikelihood("exchangeable")}
    >>> compare_models(models, run, seed=0).best
    'own'

    """
    if not isinstance(models, Mapping) or not models:
        raise TypeError("models must be a mapping with at least one {name: estimator}")
    fits = {name: estimator.fit(data) for name, estimator in models.items()}
    statistics = {name: _per_task(name, fit) for name, fit in fits.items()}
    whole = {name: _whole(fit.prior, data) for name, fit in fits.items()}
    _comparable({name: _measure(fit.prior, whole[name]) for name, fit in fits.items()})
    tasks = whole[next(iter(models))].tasks
    folds = validation.count("folds", folds, least=2)
    if folds > tasks:
        raise ValueError(f"folds must not exceed the number of tasks, {tasks}, got {folds}")
    fold = _folds(tasks, folds, validation.seed(seed))
    scores = {name: np.empty(tasks) for name in models}
    for k in range(folds):
        held = fold == k
        for name, estimator in models.items():
            prior = estimator.fit(statistics[name].take(~held)).prior
            scores[name][held] = log_marginal_likelihood(prior, whole[name].take(held))
    return ModelComparison(scores, fits)


def compare_policies(
    fit: PriorFit,
    policies: Mapping[str, Policy],
    *,
    horizon: int,
    tasks: int,
    draws: int,
    seed: int,
    arms: int | None = None,
) -> PolicyComparison:
    """Compare policies that hold the fitted prior, on tasks drawn from the priors that the data leave plausible.

    A policy that is best if the fitted prior were the truth may not be best on average over what the truth may be: what
    is simulated here is ``R(theta, alg(theta^))`` with theta drawn from the fit's uncertainty.

    Parameters
    ----------
    fit
        A fit with an uncertainty; its prior is what the policies believe.
    policies
        Names and policies.
    horizon, tasks
        Pulls in a task, and tasks simulated under each plausible prior.
    draws
        Number of plausible priors. Standard errors shrink with it; ``tasks`` can be small.
    seed
        The same seed gives the same numbers.
    arms
        Number of arms, for priors of exchangeable arms.

    """
    if not isinstance(fit, PriorFit):
        raise TypeError(f"fit must be a PriorFit, got {type(fit).__name__}")
    draws, seed = validation.count("draws", draws), validation.seed(seed)
    believed = _with_arms(fit.prior, arms)
    generator = np.random.Generator(np.random.Philox(key=seed))
    priors = [_with_arms(prior, arms) for prior in fit.draw(generator, draws)]
    scores: dict[str, list[float]] = {name: [] for name in policies}
    for number, prior in enumerate(priors):
        own = mix(mix(seed) ^ number)  # fresh tasks for each prior, so that their errors are independent
        runs = compare(prior, policies, horizon=horizon, tasks=tasks, seed=own, believed=believed).runs
        for name, run in runs.items():
            scores[name].append(run.mean_reward)
    return PolicyComparison({name: np.array(values) for name, values in scores.items()}, priors)


def log_marginal_likelihood(prior: Any, statistics: Any) -> FloatArray:
    """Log density of each task's rewards given its actions under a prior, ``(task,)``; see the function of the prior's family."""
    return _family(prior).likelihood(prior, statistics)


@dataclass(frozen=True)
class _Family:
    """What a family of priors can do with a task."""

    likelihood: Callable[[Any, Any], FloatArray]
    read: Callable[[Any, Run], PerTask]  # prior and kept run to statistics of all pulls


def _arms(prior: Any, run: Run) -> int:
    exchangeable = isinstance(prior, (ExchangeableBetaPrior, ExchangeableGaussianPrior))
    return int(run.actions.max()) + 1 if exchangeable else int(prior.arms)


_GAUSSIAN: Final = _Family(
    gaussian_likelihood.log_marginal_likelihood, lambda prior, run: GaussianStatistics.from_run(run, arms=_arms(prior, run))
)
_BETA: Final = _Family(
    beta_likelihood.log_marginal_likelihood, lambda prior, run: BetaStatistics.from_run(run, arms=_arms(prior, run))
)
_FAMILIES: Final = {
    GaussianPrior: _GAUSSIAN,
    ExchangeableGaussianPrior: _GAUSSIAN,
    BetaPrior: _BETA,
    ExchangeableBetaPrior: _BETA,
    LinearGaussianPrior: _Family(linear_likelihood.log_marginal_likelihood, lambda _, run: LinearStatistics.from_run(run)),
    FinitePrior: _Family(finite_likelihood.log_marginal_likelihood, lambda prior, run: FiniteStatistics.from_run(run, prior)),
}


def _family(prior: Any) -> _Family:
    if type(prior) not in _FAMILIES:
        raise TypeError(f"there is no marginal likelihood for a {type(prior).__name__}")
    return _FAMILIES[type(prior)]


def _whole(prior: Any, data: Any) -> PerTask:
    """All that the tasks saw, whatever part of it an estimator reads: only so are scores those of the same data."""
    return _family(prior).read(prior, data) if isinstance(data, Run) else data


def _estimate(values: FloatArray) -> Estimate:
    if not np.isfinite(values).all() or len(values) < 2:
        mean = float(values.mean()) if not (np.isposinf(values).any() and np.isneginf(values).any()) else float("nan")
        return Estimate(mean, np.inf)
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def _folds(tasks: int, folds: int, seed: int) -> IntArray:
    """Fold of each task: as many in one as in another, up to one, in an order drawn at random."""
    order = np.argsort(Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, 0).uniform(), kind="stable")
    fold = np.empty(tasks, dtype=np.int64)
    fold[order] = np.arange(tasks) % folds
    return fold


def _per_task(name: str, fit: PriorFit) -> PerTask:
    if not isinstance(fit.statistics, PerTask):
        raise TypeError(
            f"model {name!r} read {type(fit.statistics).__name__}, which cannot be split into tasks; pass a kept run or per-task "
            "statistics, not groups"
        )
    return fit.statistics


def _measure(prior: Any, statistics: PerTask) -> str:
    """What the likelihood is a density of: only like can be compared with like."""
    if isinstance(prior, (BetaPrior, ExchangeableBetaPrior)) or (isinstance(prior, FinitePrior) and prior.noise == "bernoulli"):
        return "probabilities of rewards 0 and 1"
    if isinstance(prior, FinitePrior) and prior.noise == "none":
        return "probabilities of noiseless rewards"
    if isinstance(statistics, GaussianStatistics) and statistics.squares is None:
        return f"densities of mean rewards with noise variance {np.unique(prior.noise_var).tolist()}"
    return "densities of real rewards"


def _comparable(measures: dict[str, str]) -> None:
    first = next(iter(measures))
    for name, measure in measures.items():
        if measure != measures[first]:
            raise ValueError(
                f"models {first!r} and {name!r} cannot be compared: one gives {measures[first]}, the other {measure}; "
                "compare models of one kind"
            )


def _with_arms(prior: Any, arms: int | None) -> Any:
    if isinstance(prior, (ExchangeableBetaPrior, ExchangeableGaussianPrior)):
        if arms is None:
            raise ValueError("the fitted prior has no fixed number of arms: pass arms=...")
        return prior.for_arms(arms)
    return prior
