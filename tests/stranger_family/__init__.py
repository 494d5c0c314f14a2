"""A family from another package: mu_a ~ Gamma(shape_a, rate_a), rewards ~ Poisson(mu_a)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammainc, gammaln, lambertw, pdtrik

from priorwise.core import Serializable, validation
from priorwise.core.rewards import BanditEnvironment
from priorwise.families.registry import Family, register, seen_by
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.statistics import PerArm
from priorwise.theory.conditions import SubGamma


@dataclass(frozen=True)
class PoissonRewards:
    support: ClassVar = (0.0, np.inf)
    binary: ClassVar = False

    def draw(self, means, actions, rng):  # the least r with P(R <= r) >= u
        return np.maximum(np.ceil(pdtrik(np.clip(rng.uniform(), 1e-12, 1.0 - 1e-12), means)), 0.0)


@dataclass(frozen=True, eq=False)
class PoissonPrior(Serializable):
    family: ClassVar = "poisson-gamma"
    reward_law: ClassVar = PoissonRewards()
    shape: np.ndarray
    rate: np.ndarray

    def __post_init__(self):
        for name in ("shape", "rate"):
            checked = validation.vector(name, getattr(self, name), np.size(self.shape))
            object.__setattr__(self, name, validation.positive(name, checked))

    arms = property(lambda self: self.shape.size)

    def sample(self, rng, tasks):
        return BanditEnvironment(self.belief(tasks).sample(rng, 1, None)[:, 0], self.reward_law)

    def belief(self, tasks):
        return self.belief_given(PoissonStatistics.empty(tasks, self.arms))

    def belief_given(self, statistics):
        seen = seen_by(self, statistics)
        return PoissonBelief(self.shape + seen.sums, self.rate + seen.pulls)


@dataclass(frozen=True)
class PoissonBelief:
    a: np.ndarray  # (task, arm)
    b: np.ndarray  # (task, arm)

    def sample(self, rng, draws, seen):
        return rng.gamma(self.a, draws) / self.b[:, None, :]

    def update(self, seen, actions, rewards, after):
        chosen = np.arange(self.a.shape[1]) == actions[:, None]
        return PoissonBelief(self.a + chosen * rewards[:, None], self.b + chosen)

    def mean(self, seen):
        return self.a / self.b


@dataclass(frozen=True, eq=False, repr=False)
class PoissonStatistics(PerArm):
    family: ClassVar = "poisson-statistics"
    pulls: np.ndarray
    sums: np.ndarray
    logs: np.ndarray  # sums of log r!

    @classmethod
    def addends(cls, rewards):
        return {"pulls": 1.0, "sums": rewards, "logs": gammaln(rewards + 1.0)}


def log_marginal(prior, seen):  # negative binomial
    return (gain(prior.shape, prior.rate, seen.sums, seen.pulls) - seen.logs).sum(axis=1)


def gain(a, b, s, n):
    return gammaln(a + s) - gammaln(a) + a * np.log(b) - (a + s) * np.log(b + n)


@dataclass(frozen=True)
class PoissonLikelihood:
    reads: ClassVar = PoissonStatistics

    def fit(self, data, *, start=None):
        seen = PoissonStatistics.of(data)
        arms = [self.arm(*each) for each in zip(seen.sums.T, seen.pulls.T, strict=True)]
        prior = PoissonPrior(*np.transpose(arms))
        value = float(log_marginal(prior, seen).sum())
        return PriorFit(prior, "likelihood", seen.tasks, log_likelihood=value, statistics=seen)

    def arm(self, s, n):  # from the moments, E[s (s - 1)] = n^2 E[mu^2]
        mean = (s.sum() + 0.5) / (n.sum() + 0.5)
        spread = max((s * (s - 1.0)).sum() / max((n**2).sum(), 1.0) - mean**2, 0.05 * mean**2)

        def loss(x):  # with a weak pull towards a shape of 1
            return 0.05 * x[0] ** 2 - gain(*np.exp(np.clip(x, -9.0, 9.0)), s, n).sum()

        return np.exp(minimize(loss, np.log([mean**2 / spread, mean / spread])).x)


@dataclass(frozen=True)
class PoissonPair:
    p: PoissonPrior
    q: PoissonPrior

    def total_variation(self):  # the densities of an arm cross where their ratio is 1
        rows = zip(self.p.shape, self.p.rate, self.q.shape, self.q.rate, strict=True)
        different = [(a, b, c, d) for a, b, c, d in rows if (a, b) != (c, d)]
        if len(different) > 1:
            raise ValueError("known where one arm differs: pass tv=...")
        return sum(self.arm(*each) for each in different)

    def arm(self, a, b, c, d):  # log ratio: level + (c - a) log x - (d - b) x
        level = c * np.log(d) - a * np.log(b) - gammaln(c) + gammaln(a)
        with np.errstate(all="ignore"):
            x = (a - c) / (d - b) * lambertw((b - d) / (c - a) * np.exp(-level / (c - a)), [0, -1])
            x = np.array([np.exp(-level / (c - a)), level / (d - b)]) if c == a or d == b else x
        x = np.sort(x.real[(np.abs(x.imag) < 1e-9) & (x.real > 0) & np.isfinite(x.real)])
        gaps = gammainc(a, b * x) - gammainc(c, d * x)
        return float(np.abs(np.diff(gaps, prepend=0.0, append=0.0)).sum() / 2.0)


def tail_conditions(p):
    return (SubGamma.bernstein(p.shape / p.rate, max(p.shape / p.rate**2), max(1.0 / p.rate)),)


FAMILY = register(
    Family(
        name="poisson-gamma",
        priors=(PoissonPrior,),
        statistics=PoissonStatistics,
        blank=lambda prior: prior.replaced(shape=np.ones(prior.arms), rate=np.ones(prior.arms)),
        log_marginal=log_marginal,
        measure=lambda prior, seen: "probabilities of counts",
        moments=lambda prior: PoissonLikelihood(),
        models=lambda **facts: {"separate": PoissonLikelihood()} if facts["asked"] else {},
        pair=PoissonPair,
        parameters=("shape", "rate"),
        tail_conditions=tail_conditions,
    )
)
