"""Choosing between policies, under the priors that the data leave plausible."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.hashing import mix
from priorwise.core.progress import progress_of
from priorwise.core.protocols import Policy, for_arms
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.runs import Run
from priorwise.meta.selection.paired import Paired
from priorwise.simulate.blocks import in_order
from priorwise.simulate.engine import threads_for
from priorwise.simulate.run import compare
from priorwise.simulate.sizes import check_run


@final
@dataclass(frozen=True, eq=False)
class PolicyComparison(Paired):
    """Mean reward of each policy under each plausible prior, ``scores[name]`` ``(draw,)``.

    The standard errors count both the spread over plausible priors and the simulation.
    """

    candidate: ClassVar[str] = "policy"
    score: ClassVar[str] = "reward"

    priors: list[Any] = field(repr=False)

    def spread(self, name: str) -> float:
        """Standard deviation of a policy's mean reward over plausible priors: how much hangs on
        what is not known of the prior.
        """
        values = self.scores[self._known(name)]
        return float(values.std(ddof=1)) if len(values) > 1 else np.inf

    def share_best(self) -> dict[str, float]:
        """Share of the plausible priors under which each policy earned most."""
        winners = np.stack(list(self.scores.values())).argmax(axis=0)
        return {name: float((winners == i).mean()) for i, name in enumerate(self.scores)}


def compare_policies(
    fit: PriorFit,
    policies: Mapping[str, Policy],
    *,
    horizon: int,
    tasks: int,
    draws: int,
    seed: int,
    arms: int | None = None,
    available: Any = None,
    batch: int = 1,
    progress: bool | None = None,
) -> PolicyComparison:
    """Compare policies that hold the fitted prior, on tasks drawn from the priors that the data
    leave plausible.

    A policy that is best if the fitted prior were the truth may not be best on average over what
    the truth may be: what is simulated here is ``R(theta, alg(theta^))`` with theta drawn from the
    fit's uncertainty.

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
    available, batch
        As in :func:`~priorwise.simulate.run.simulate`.
    progress
        Show a progress bar: True always, False never, None on a terminal if it takes long.

    """
    validation.instance("fit", fit, PriorFit)
    draws, seed = validation.count("draws", draws), validation.seed(seed)
    if not isinstance(policies, Mapping) or not policies:
        raise ArgumentTypeError("policies", "must be a mapping with at least one {name: policy}")
    for name, policy in policies.items():
        argument_checks.policy(f"policies[{name!r}]", policy)
    believed = _with_arms(fit.prior, arms)
    horizon, tasks = validation.count("horizon", horizon), validation.count("tasks", tasks)
    size: Any = {"horizon": horizon, "tasks": tasks}
    check_run(believed, policies.values(), **size, times=draws, times_named="draws")
    generator = np.random.Generator(np.random.Philox(key=seed))
    priors = [_with_arms(prior, arms) for prior in fit.draw(generator, draws)]
    scores: dict[str, list[float]] = {name: [] for name in policies}
    size |= {"available": available, "batch": batch}
    players = {name: (policy, believed) for name, policy in policies.items()}
    with progress_of(draws, "plausible priors", shown=progress) as bar:
        for runs in runs_under(priors, players, **size, seed=seed):
            for name, run in runs.items():
                scores[name].append(run.mean_reward)
            bar.advance(1)
    return PolicyComparison({name: np.array(values) for name, values in scores.items()}, priors)


def runs_under(
    truths: Sequence[Any], players: Mapping[str, tuple[Policy, Any]], *, seed: int, **how: Any
) -> Iterator[dict[str, Run]]:
    """Simulate all players under each truth; one that believes None believes the truth.

    Each truth has tasks of its own, so that their errors are independent; under one truth all
    players meet the same tasks. ``how`` is what :func:`~priorwise.simulate.run.compare` takes.
    """
    pairs = [
        (policy, truths[0] if believed is None else believed)
        for policy, believed in players.values()
    ]
    masked = how.get("available") is not None
    threads = threads_for(truths[0], pairs, how["horizon"], masked=masked)

    def run(numbered: tuple[int, Any]) -> dict[str, Run]:
        number, truth = numbered
        pairs = {
            name: (policy, truth if believed is None else believed)
            for name, (policy, believed) in players.items()
        }
        own: Any = {"seed": mix(mix(seed) ^ number), "threads": None if threads == 1 else 1}
        return compare(truth, pairs, **how, **own).runs

    yield from in_order(run, enumerate(truths), threads)


def _with_arms(prior: Any, arms: int | None) -> Any:
    if hasattr(prior, "for_arms"):
        if arms is None:
            raise ArgumentError("arms", "is missing, and the fitted prior has no fixed number")
        return for_arms(prior, arms)
    if arms is not None and validation.count("arms", arms) != prior.arms:
        raise ArgumentError(
            "arms", f"must be {prior.arms}, as the fitted prior has, or be left out", got=arms
        )
    return prior
