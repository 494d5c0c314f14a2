"""Mixtures of priors of one family by maximum marginal likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
from attrs import evolve, field, frozen
from scipy.special import softmax

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Checked,
    Count,
    Number,
    Seed,
)
from priorwise.core.types import FloatArray
from priorwise.families.mixture.exchangeable import ExchangeableMixturePrior
from priorwise.families.mixture.likelihood.model import MixtureModel
from priorwise.families.mixture.likelihood.starts import begin, gain
from priorwise.families.mixture.likelihood.uncertainty import MixtureUncertainty
from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.registry import family_for
from priorwise.fitting.fits import PLAIN, PriorFit
from priorwise.fitting.newton import positive_root
from priorwise.fitting.task_facts import KnownTasks

TOOL: Final = "MixtureMarginalLikelihood"
EM_STEPS: Final = 10
"""Steps of EM from where the best start led; what is left is Newton's."""
LIKELIHOODS: Final = 200
"""Of all tasks, that a fit takes for each component, about."""
FEW: Final = 5.0
"""Tasks below which a component is hardly one."""
JACOBIAN: Final = 1e-5
"""Step of the derivatives of parameters in coordinates, in widths."""


@final
@frozen(slots=False)
class MixtureMarginalLikelihood:
    """Fit ``mu ~ sum_k probs_k P_k``, all P_k of one family, by EM on the marginal likelihood.

    Each task has one component. With ``p_k(t)`` the marginal likelihood of task t under component
    k, the fit climbs ``sum_t log sum_k probs_k p_k(t)``, which like that of one law does not depend
    on how arms were chosen. The belief of the fitted prior is the exact mixture of its components'
    beliefs. It has heavy tails where components differ in spread, and two or more groups of tasks
    where they differ in mean.

    Parameters
    ----------
    estimator
        Marginal-likelihood estimator of one law: of Beta, normal-gamma, Gaussian and exchangeable
        logit-normal priors, or of any family with ``coordinates``. Its structure is that of all
        components, and the noise that it finds is theirs.
    components
        Number of components, at least 2. Choose it by :func:`compare_models`.
    seed
        Decides how tasks are split to find where to begin.
    starts
        Number of splits. Likelihoods of mixtures have several maxima; the best one found is kept.
    regulariser
        Weight of a penalty that decides only where the data do not: one task more for each
        component, and a normal law of each coordinate around the fit of one law, with a standard
        deviation of ten prior standard deviations for a mean and 3 for logarithms and log odds. 0
        is plain maximum likelihood, which may end in a component without spread.
    max_iterations, tolerance
        Stop when a step promises a rise of the log likelihood below ``tolerance``.

    Notes
    -----
    Components are sorted by probability, the largest first. Standard errors are those of the
    observed information (Louis 1982; for components of more than 12 coordinates, the sum of the
    tasks' squared scores), given the noise.

    ``at_boundary`` says that the data leave a component's coordinate open, or that a component has
    fewer than 5 tasks; warnings say which, and what to do.

    Examples
    --------
    >>> from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood
    >>> from priorwise.families.beta.statistics import BetaStatistics
    >>> data = BetaStatistics([[9, 8], [1, 0], [0, 1], [8, 9], [1, 1], [0, 0]] * 9, [[10] * 2] * 54)
    >>> mixture = MixtureMarginalLikelihood(BetaMarginalLikelihood("exchangeable"), seed=0)
    >>> mixture.fit(data).prior.probs.round(2).tolist()
    [0.66, 0.34]

    """

    estimator: Any = field(validator=Checked(argument_checks.estimator))
    components: int = field(default=2, validator=Count(2))
    seed: int = field(kw_only=True, validator=Seed())
    starts: int = field(default=4, kw_only=True, validator=Count())
    regulariser: float = field(default=1.0, kw_only=True, validator=Number(0.0, cure=PLAIN))
    max_iterations: int = field(default=100, kw_only=True, validator=Count())
    tolerance: float = field(default=1e-4, kw_only=True, validator=Number(0.0, ends="()"))

    @property
    def reads(self) -> Any:
        """The statistics that the estimator of one law reads."""
        return self.estimator.reads

    @property
    def name(self) -> str:
        """Name of the estimator, as fits carry it."""
        one = getattr(self.estimator, "name", type(self.estimator).__name__)
        return f"MixtureMarginalLikelihood({one}, {self.components})"

    @property
    def microseconds(self) -> float:
        """About what a fit takes for a task; 0 where the estimator of one law does not say."""
        return LIKELIHOODS * self.components * float(getattr(self.estimator, "microseconds", 0.0))

    def for_tasks(self, known: KnownTasks) -> MixtureMarginalLikelihood:
        """Let the estimator of one law know the tasks."""
        return evolve(self, estimator=self.estimator.for_tasks(known))

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit what the estimator of one law fits; ``start`` is a fit or mixture to begin from, in
        place of splits.
        """
        one = self.estimator.fit(data)
        model = self._model(one)
        statistics, arms = one.statistics, _arms(one)
        if start is None:
            z = begin(model, self.starts, self.seed)
            for _ in range(EM_STEPS):
                z = model.em(z)
        else:
            z = self._given(model, start, arms)
        found = model.climbed(z, limit=self.max_iterations, tolerance=self.tolerance)
        z = self._sorted(model, found.place.x * model.widths())
        log_probs, x = model.split(z)
        root, notes = self._certainty(model, z)
        parts = [model.form.make(each) for each in x]
        make = ExchangeableMixturePrior if hasattr(parts[0], "for_arms") else MixturePrior
        return PriorFit(
            make(parts, np.exp(log_probs)),
            self.name,
            one.tasks,
            one.left_out,
            at_boundary=bool(notes),
            converged=found.converged,
            std_errors=self._errors(model, z, root),
            log_likelihood=model.log_likelihood(z),
            iterations=found.iterations,
            warnings=notes,
            uncertainty=MixtureUncertainty(z, root @ root.T, arms),
            statistics=statistics,
        )

    def may_pay(self, one: PriorFit) -> bool:
        """Whether a few hundred tasks of the fit of one law promise that a mixture is better: two
        splits, a few steps of EM, and BIC. A cheap look, no decision.
        """
        return gain(self._model(one), 2, self.seed) > 0.0

    def _model(self, one: PriorFit) -> MixtureModel:
        return MixtureModel(
            family_for(one.prior, TOOL).log_marginal,
            one.statistics,
            family_for(one.prior, TOOL).coordinates(one.prior, _arms(one)),
            self.components,
            float(self.regulariser),
        )

    def _given(self, model: MixtureModel, start: Any, arms: int) -> FloatArray:
        prior = start.prior if isinstance(start, PriorFit) else start
        parts: Sequence[Any] = getattr(prior, "components", ())
        if len(parts) != self.components:
            raise ArgumentError(
                "start", f"must be a fit or a mixture of {self.components} components", got=prior
            )
        forms = [family_for(part, TOOL).coordinates(part, arms) for part in parts]
        if any(form.x.shape != model.form.x.shape for form in forms):
            raise ArgumentError(
                "start", "must have components of the estimator's structure and arms"
            )
        log_probs = np.log(np.maximum(prior.probs, 1e-6))
        return model.joined(log_probs, np.stack([form.x for form in forms]))

    def _sorted(self, model: MixtureModel, z: FloatArray) -> FloatArray:
        """Largest probability first; equal ones by their coordinates."""
        log_probs, x = model.split(z)
        order = np.lexsort([*x.T[::-1], -log_probs])
        return model.joined(log_probs[order], x[order])

    def _certainty(self, model: MixtureModel, z: FloatArray) -> tuple[FloatArray, list[str]]:
        """Root of the covariance of all coordinates, and what the data leave open."""
        width, K = model.widths(), self.components
        # in widths: a direction with less than 1 is known no better than a factor of 20
        scaled = model.information(z) * width * width[:, None]
        root, _ = positive_root(scaled, floor=1.0)
        values, axes = np.linalg.eigh(scaled)
        notes, shares = [], softmax(model.terms(z), axis=1).sum(axis=0)
        for k, tasks in enumerate(shares):
            if tasks < FEW:
                notes.append(
                    f"component {k} has {tasks:.1f} tasks, too few to identify it; take fewer "
                    "components"
                )
        for axis in axes.T[values < 1.0]:
            place = int(np.abs(axis).argmax())
            k = (place - K + 1) // model.size
            what = f"a coordinate of component {k}" if place >= K - 1 else "the probabilities"
            notes.append(
                f"the data leave {what} open, as where a component has no spread or two are alike: "
                "the regulariser decides; take fewer components"
            )
        return np.asarray(root * width[:, None]), list(dict.fromkeys(notes))

    def _errors(self, model: MixtureModel, z: FloatArray, root: FloatArray) -> dict[str, Any]:
        """Standard errors by the delta method; NaN has no place here, as open directions are held
        to a width.
        """
        log_probs, x = model.split(z)
        K, probs = self.components, np.exp(log_probs)
        turn = (np.eye(K) - probs)[:, : K - 1] * probs[:, None]
        errors: dict[str, Any] = {"probs": np.sqrt(((turn @ root[: K - 1]) ** 2).sum(axis=1))}
        for k in range(K):
            own = root[K - 1 + k * model.size : K - 1 + (k + 1) * model.size]
            steps = np.diag(JACOBIAN * model.form.width)
            pairs = [(model.form.make(x[k] + h), model.form.make(x[k] - h)) for h in steps]
            for name in model.form.names:
                slopes = np.stack(
                    [
                        (np.asarray(getattr(up, name)) - np.asarray(getattr(down, name)))
                        / (2.0 * JACOBIAN * width)
                        for (up, down), width in zip(pairs, model.form.width, strict=True)
                    ]
                )
                moved = np.tensordot(own.T, slopes, axes=1)
                errors[f"components.{k}.{name}"] = np.sqrt((moved**2).sum(axis=0))
        return errors


def _arms(fit: PriorFit) -> int:
    return int(getattr(fit.statistics, "arms", 1))
