"""Dirichlet MDP priors by maximum marginal likelihood: right however the actions were chosen.

Rows are independent, so each is fitted by itself. The coordinates of a row are the logits of its
mean ``m`` (the last one 0) and the log of its concentration ``c``. The objective is the
Dirichlet-multinomial likelihood (see ``evidence``), which needs only how often each count occurs.
For two outcomes it is the Beta-binomial one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Instance,
    Number,
)
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.likelihood.arm import ArmCounts, alpha_beta, fit_arm
from priorwise.families.beta.likelihood.rising import RisingSums
from priorwise.families.tabular_mdp.evidence import log_marginal
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior
from priorwise.families.tabular_mdp.rewards import BernoulliRewardPrior, NormalRewardPrior
from priorwise.families.tabular_mdp.statistics import MdpStatistics
from priorwise.families.tabular_mdp.uncertainty import (
    LARGEST,
    SMALLEST,
    DirichletMdpUncertainty,
    parameters,
)
from priorwise.fitting.fits import PLAIN, PriorFit
from priorwise.fitting.newton import Spot, climb
from priorwise.fitting.task_facts import KnownTasks

FURTHEST: Final = 16.0  # logits


@final
@dataclass(frozen=True, eq=False)
class RowObjective:
    """Log likelihood of one row plus ``regulariser / 2 * (sum_j log m_j + log rho (1 - rho))``
    with ``rho = 1 / (c + 1)``.
    """

    outcomes: tuple[RisingSums, ...]
    total: RisingSums
    sums: FloatArray  # (outcome,): moves of all tasks
    regulariser: float

    def _parts(self, at: FloatArray) -> tuple[FloatArray, float]:
        logits = np.append(at[:-1], 0.0)
        return logits - np.logaddexp.reduce(logits), float(at[-1])

    def value(self, at: FloatArray) -> float:
        """Objective at (logits, log concentration)."""
        log_m, log_c = self._parts(at)
        own = [each.value(a) for each, a in zip(self.outcomes, np.exp(log_c + log_m), strict=True)]
        weak = log_m.sum() - np.logaddexp(0.0, log_c) - np.logaddexp(0.0, -log_c)
        return float(
            self.sums @ log_m
            + sum(own)
            - self.total.value(float(np.exp(log_c)))
            + 0.5 * self.regulariser * weak
        )

    def slopes(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and information, by the chain rule through ``log alpha_j = log c + log m_j``."""
        log_m, log_c = self._parts(at)
        m, alpha, half = np.exp(log_m), np.exp(log_c + log_m), 0.5 * self.regulariser
        first, second = np.array(
            [each.slopes(float(a)) for each, a in zip(self.outcomes, alpha, strict=True)]
        ).T
        n1, n2 = self.total.slopes(float(np.exp(log_c)))
        rho = 1.0 / (1.0 + np.exp(log_c))
        g = self.sums + first + half
        free = len(m) - 1
        # d log m_j / d z_i = [i = j] - m_i
        d = np.eye(len(m))[:free] - m[:free, None]
        gradient = np.append(d @ g, first.sum() - n1 + half * (2.0 * rho - 1.0))
        hessian = np.empty((len(m), len(m)))
        spread = np.diag(m[:free]) - np.outer(m[:free], m[:free])
        hessian[:free, :free] = (d * second) @ d.T - g.sum() * spread
        hessian[free, :free] = hessian[:free, free] = d @ second
        hessian[free, free] = second.sum() - n2 - 2.0 * half * rho * (1.0 - rho)
        return gradient, -hessian


@final
@dataclass(frozen=True, eq=False)
class RowFit:
    """What is known of one row after its fit."""

    alpha: FloatArray  # (outcome,)
    errors: FloatArray  # (outcome,)
    at: FloatArray  # logits and log concentration
    information: FloatArray
    reason: str | None  # why the likelihood alone has no maximum in the interior
    converged: bool
    iterations: int


def fit_row(counts: IntArray, regulariser: float, start: FloatArray | None = None) -> RowFit:
    """Fit a Dirichlet law to moves ``(task, outcome)``; ``start`` is one to begin from."""
    sums = counts.sum(axis=0).astype(np.float64)
    outcomes = tuple(RisingSums.of(np.ascontiguousarray(each)) for each in counts.T)
    total = RisingSums.of(counts.sum(axis=1))
    reason = _why_boundary(sums, outcomes, total)
    size = len(sums)
    begin = np.log(sums + 0.5) if start is None else np.log(start)
    begin = np.append(begin[:-1] - begin[-1], 1.0 if start is None else np.log(start.sum()))
    objective = RowObjective(outcomes, total, sums, regulariser)
    low = np.append(np.full(size - 1, -FURTHEST), np.log(SMALLEST))
    high = np.append(np.full(size - 1, FURTHEST), np.log(LARGEST))
    found = climb(
        lambda at: Spot(at, objective.value(at), objective.slopes),
        begin,
        longest=3.0,
        low=low,
        high=high,
    )
    at = found.place.x
    alpha = parameters(at)
    held = bool(((at <= low) | (at >= high)).any())
    if held and reason is None:
        reason = "has its largest likelihood at an end of the range"
    information, errors = found.place.information(), np.full(size, np.nan)
    if not held and np.linalg.eigvalsh(information)[0] > 0.0:
        m = np.exp(objective._parts(at)[0])
        jacobian = np.column_stack([np.eye(size)[:, :-1] - m[:-1], np.ones(size)]) * alpha[:, None]
        errors = np.sqrt(np.einsum("ki,ij,kj->k", jacobian, np.linalg.inv(information), jacobian))
    return RowFit(alpha, errors, at, information, reason, found.converged, found.iterations)


def _why_boundary(
    sums: FloatArray, outcomes: tuple[RisingSums, ...], total: RisingSums
) -> str | None:
    if sums.sum() == 0:
        return "was never seen to lead anywhere"
    if (sums == 0).any():
        return "never led to some of its possible states"
    pairs = total.pairs()
    if pairs == 0:
        return "was not seen to lead anywhere twice in a task, which leaves its concentration open"
    shares = sums / sums.sum()
    within = sum(each.pairs() / share for each, share in zip(outcomes, shares, strict=True))
    if within <= pairs * (1.0 + 1e-13):
        return "varies no more between tasks than chance alone would make it"
    return None


@final
@frozen(slots=False)
class DirichletMdpMarginalLikelihood:
    """Dirichlet MDP prior by maximum marginal likelihood (type II, empirical Bayes).

    Parameters
    ----------
    like
        A prior of the same tasks: its possible moves, known rewards, rounds and law of first states
        are taken for known, its other numbers are not read. A learner may leave it open: then it is
        the one that the learner starts from.
    regulariser
        Weight r of ``r / 2 * (sum_j log m_j + log rho (1 - rho))`` in each row, with m its mean and
        ``rho = 1 / (c + 1)`` the correlation between two moves of a task; 0 is plain maximum
        likelihood. The default decides only where the data do not: a row never played has
        Dirichlet(1 / K) on its K possible states.

    """

    reads: ClassVar[type] = MdpStatistics

    like: DirichletMdpPrior | None = field(
        default=None, validator=Instance(DirichletMdpPrior, "a DirichletMdpPrior of the same tasks")
    )
    regulariser: float = field(default=1.0, kw_only=True, validator=Number(0.0, cure=PLAIN))

    def for_tasks(self, known: KnownTasks) -> DirichletMdpMarginalLikelihood:
        """Take from the learner's start what was left open; raise an error for other tasks."""
        start = getattr(known.start, "prior", known.start)
        like = start if self.like is None else self.like
        validation.instance(
            "like",
            like,
            DirichletMdpPrior,
            "a DirichletMdpPrior of the tasks, to know which moves are possible",
        )
        known.check_contexts(self, like.contexts)
        known.check_arms(self, like=like.arms)
        return evolve(self, like=like)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or :class:`MdpStatistics`; ``start`` is a fit or prior to begin from."""
        begin = getattr(start, "prior", start)
        like = begin if self.like is None else self.like
        if not isinstance(like, DirichletMdpPrior):
            raise ArgumentTypeError(
                "like", "is missing: a DirichletMdpPrior of the tasks, to fit one"
            )
        statistics = MdpStatistics.of(data, **MdpStatistics.known(like))
        played = statistics.pulls.reshape(statistics.tasks, -1).any(axis=1)
        if not played.any():
            raise ArgumentError("data", "must have a task with a step")
        alpha, errors = like.transitions.copy(), np.zeros_like(like.transitions)
        moves = statistics.moves.astype(np.int64)
        impossible = np.argwhere((moves > 0) & ~like.possible)
        if len(impossible):
            task, state, action, after = impossible[0]
            raise ArgumentError(
                "like",
                f"rules out the move of task {task} from state {state} to {after} by action "
                f"{action}",
                cure="give it a positive number there",
            )
        warm = isinstance(begin, DirichletMdpPrior) and np.array_equal(
            begin.possible, like.possible
        )
        fits: dict[tuple[int, int], RowFit] = {}
        for state, action in np.ndindex(like.states, like.arms):
            places = np.flatnonzero(like.possible[state, action])
            if places.size < 2:
                continue
            first = begin.transitions[state, action, places] if warm and start is not None else None
            row = fit_row(moves[:, state, action][:, places], self.regulariser, first)
            fits[state, action] = row
            alpha[state, action, places] = row.alpha
            errors[state, action, places] = row.errors
        rewards, reasons = _fit_rewards(like.reward_model, statistics, self.regulariser)
        prior = like.replaced(transitions=alpha, rewards=rewards)
        reasons = [(each.reason, place) for place, each in fits.items() if each.reason] + reasons
        return PriorFit(
            prior,
            type(self).__name__,
            int(played.sum()),
            int((~played).sum()),
            at_boundary=bool(reasons),
            converged=all(each.converged for each in fits.values()),
            std_errors={"transitions": errors},
            log_likelihood=float(log_marginal(prior, statistics).sum()),
            iterations=max((each.iterations for each in fits.values()), default=0),
            warnings=_warnings(reasons),
            uncertainty=DirichletMdpUncertainty.of(
                [(each.at, each.information) for each in fits.values()]
            )
            if fits
            else None,
            statistics=statistics,
        )


def _fit_rewards(model: Any, data: MdpStatistics, regulariser: float) -> tuple[Any, list[Any]]:
    """Return what is believed of the rewards, and where their likelihood has no maximum inside."""
    if isinstance(model, BernoulliRewardPrior):
        parameters, reasons = np.empty((*model.alpha.shape, 2)), []
        for state, action in np.ndindex(*model.alpha.shape):
            s, n = (each[:, state, action].astype(np.int64) for each in (data.sums, data.pulls))
            fit = fit_arm(ArmCounts.of(s, n), regulariser, None)
            parameters[state, action] = alpha_beta(fit.at)
            if fit.reason is not None:
                said = f"earns what {fit.reason}" if n.any() else "was never played"
                reasons.append((said, (state, action)))
        return BernoulliRewardPrior(parameters[..., 0], parameters[..., 1]), reasons
    if isinstance(model, NormalRewardPrior):
        from priorwise.families.tabular_mdp.normal_means import fit_means

        mean, var, edge = fit_means(data.pulls, data.sums, model.noise_var)
        where = [
            ("earns the same in all tasks, as far as the data show", tuple(map(int, at)))
            for at in np.argwhere(edge)
        ]
        return NormalRewardPrior(mean, var, model.noise_var), where
    return model.means, []


def _warnings(reasons: list[Any]) -> list[str]:
    """One sentence per reason, naming the pairs of state and action."""
    lines = []
    for reason in dict.fromkeys(each for each, _ in reasons):
        places = [f"action {a} in state {s}" for each, (s, a) in reasons if each == reason]
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        who = "each of " * (len(places) > 1) + ", ".join(places[:3]) + more
        lines.append(f"{who} {reason}: the likelihood has no maximum in the interior")
    return lines
