"""A model of your own: any prior that can be sampled, any law of rewards whose density is known.

    phi ~ sample,    r given (phi, a) ~ exp(log_density(phi, a, r)),    E[r] = mean_reward(phi)_a.

The posterior is carried by weighted particles. They are drawn once, from the prior's own seed, and
shared by all tasks, so that a task is its weights. With the density of the prior, particles of a
task are resampled and moved where too few of them count.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.core.streams import Purpose, Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.contexts import Contexts
from priorwise.families.particle import checking
from priorwise.families.particle.belief import ParticleBelief
from priorwise.families.particle.described import Described
from priorwise.families.particle.diagnosis import Diagnosis, diagnosed
from priorwise.families.particle.enumerated import Enumerated
from priorwise.families.particle.environment import ContextualEnvironment, ParticleEnvironment
from priorwise.families.particle.looking import begun
from priorwise.families.particle.model import Model
from priorwise.families.registry import seen_by

Impossible = Literal["error", "reset"]


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class ParticlePrior(Enumerated, Described):
    """A prior and a law of rewards given by functions, with beliefs by weighted particles.

    Parameters
    ----------
    sample
        Draws parameters from the prior: a function of a stream of random numbers that returns
        ``(n, d)``, one row for each of the ``n = rng.tasks`` rows it serves. ``rng.normal(3)`` is
        ``(n, 3)``; there are ``uniform``, ``gamma``, ``beta`` and others too. Or draws made
        elsewhere, ``(n, d)``: then these rows, and no others, are the possible tasks.
    log_density
        Log density of a reward: a function of ``(parameters, arm, reward)``, with parameters ``(n,
        d)``, arm an integer and reward ``(k, 1)``, that returns ``(k, n)``; -inf for what is
        impossible. With contexts a function of ``(parameters, arm, reward, context)``, where the
        context is that of one task, ``(arm, dim)``.
    mean_reward
        Mean reward of each arm: a function of ``parameters`` (and ``context``) that returns ``(n,
        arm)``. None: the parameters are the means, or where ``rewards`` are given the sum over
        them.
    sample_reward
        Draws rewards: a function of ``(parameters, arm, rng)`` (and ``context``) that returns
        ``(n,)``. Needed to draw tasks and to look ahead with draws; with ``rewards`` it may be left
        out.
    particles
        How many stand for the prior.
    seed
        Of the particles; needed unless draws are given.
    weights
        Of given draws, summing to 1; equal ones without.
    log_prior
        Log density of the prior: a function of ``parameters`` that returns ``(n,)``, -inf outside
        its support. With it particles move; its constant matters for distances between priors only.
    rewards
        Possible rewards, if there are few: then ``log_density`` is a log probability, and exact
        look-ahead is possible.
    reward_range
        Least and largest reward, where they are known.
    arms
        Number of arms; needed if nothing else says it.
    contexts, dim
        Law of the features that a pull shows, as in
        :class:`~priorwise.families.linear.prior.LinearGaussianPrior`, and their number where the
        law does not show.
    resample_below, moves
        Share of the particles below which they are resampled, and Metropolis steps of each then; 0
        steps: weights alone, also with ``log_prior``.
    impossible
        What to do if no particle allows a reward: ``"error"``, or ``"reset"``, which starts the
        task's belief again and counts it in ``run.resets``.
    names
        Names of the arms.

    Examples
    --------
    >>> from scipy import stats
    >>> prior = ParticlePrior(
    ...     sample=lambda rng: rng.normal(2),
    ...     log_density=lambda mu, arm, reward: stats.norm.logpdf(reward, mu[:, arm]),
    ...     sample_reward=lambda mu, arm, rng: mu[:, arm] + rng.normal(),
    ...     seed=0,
    ... )
    >>> prior.arms, prior.particles
    (2, 4096)

    """

    family: ClassVar[str] = "particle"

    source: Any  # what sample was
    weights: FloatArray | None
    log_prior: Callable[..., Any] | None
    reward_law: Model
    arms: int
    particles: int
    seed: int | None
    resample_below: float
    moves: int
    impossible: Impossible
    names: tuple[str, ...] | None
    # what follows from them
    key: int  # seed of the random numbers of particles
    parameters: FloatArray  # (particle, d)
    probs: FloatArray  # (particle,)
    log_probs: FloatArray  # (particle,), with a largest of 0
    values: FloatArray | None  # (arm, particle): mean rewards; None with contexts
    orders: IntArray | None  # (arm, particle): places of the values in ascending order

    def __init__(
        self,
        sample: Callable[[Stream], Any] | ArrayLike,
        log_density: Callable[..., Any],
        mean_reward: Callable[..., Any] | None = None,
        sample_reward: Callable[..., Any] | None = None,
        *,
        particles: int = 4096,
        seed: int | None = None,
        weights: ArrayLike | None = None,
        log_prior: Callable[..., Any] | None = None,
        rewards: ArrayLike | None = None,
        reward_range: Any = None,
        arms: int | None = None,
        contexts: Contexts | ArrayLike | None = None,
        dim: int | None = None,
        resample_below: float = 0.25,
        moves: int = 5,
        impossible: Impossible = "error",
        names: Any = None,
    ) -> None:
        """Check and freeze the parameters, draw the particles, and try the functions on a few."""
        checking.function("log_density", log_density, "(parameters, arm, reward)", needed=True)
        checking.function("mean_reward", mean_reward, "parameters")
        checking.function("sample_reward", sample_reward, "(parameters, arm, rng)")
        checking.function("log_prior", log_prior, "parameters")
        validation.one_of("impossible", impossible, Impossible)
        source: Any = sample
        given: bool = not callable(sample) or isinstance(sample, type)
        if given and log_prior is not None:
            raise ArgumentError(
                "log_prior",
                "is for a prior with a density, but given draws are the only possible tasks",
                cure="pass a function for sample, or leave log_prior out",
            )
        key = checking.key_of(0 if given else seed)
        if given:
            draws: Any = sample
            source = parameters = validation.matrix("sample", draws)
        else:
            parameters = checking.particles(source, key, particles)
        probs = checking.weights_of(weights, len(parameters), given)
        few = checking.possible(rewards)
        between = checking.range_of(reward_range, few)
        law, features = checking.contexts_of(contexts, dim)
        model = Model(log_density, mean_reward, sample_reward, few, between, 1, law, features)
        model = replace(model, arms=checking.arms_of(model, arms, parameters))
        with np.errstate(divide="ignore"):
            log_probs = np.log(probs / probs.max())
        validation.freeze(
            self,
            source=source,
            weights=None if weights is None else probs,
            log_prior=log_prior,
            reward_law=model,
            arms=model.arms,
            particles=len(parameters),
            seed=None if given else seed,
            resample_below=validation.share("resample_below", resample_below),
            moves=validation.count("moves", moves, least=0),
            impossible=impossible,
            names=validation.names(names, model.arms),
            key=key,
            parameters=parameters,
            probs=probs,
            log_probs=log_probs,
        )
        self._try()
        values = None if law is not None else np.ascontiguousarray(model.means(parameters).T)
        orders = None if values is None else np.argsort(values, axis=1, kind="stable")
        validation.freeze(self, values=values, orders=orders)

    def _try(self) -> None:
        """Raise an error for functions that do not fit together."""
        few, context = min(checking.TRIED, self.particles), None
        rng = checking.streams(self.key, few).at(Purpose.REWARD, 1)
        if self.contexts is not None:
            context = self.contexts.draw(rng.at(2), self.dim)[0]
        self.reward_law.tried(self.parameters, rng, context)
        if self.log_prior is not None:
            outside = np.isneginf(self.log_prior_at(self.parameters))
            if outside.any():
                row = self.parameters[int(np.argmax(outside))]
                raise ArgumentError(
                    "log_prior", f"must be finite where sample draws, but is not at {row}"
                )

    @property
    def given(self) -> bool:
        """Whether the particles are the prior itself, as draws were given."""
        return isinstance(self.source, np.ndarray)

    @property
    def contexts(self) -> Any:
        """Law of the features that a pull shows; None where it shows none."""
        return self.reward_law.contexts

    @property
    def dim(self) -> int:
        """Number of features; 0 where there are none."""
        return self.reward_law.dim or 0

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Least and largest reward, where they are known."""
        return self.reward_law.reward_range

    def _arguments(self) -> dict[str, Any]:
        model, held = self.reward_law, vars(self)
        return {
            "sample": self.source,
            "log_density": model.log_density,
            "mean_reward": model.mean_reward,
            "sample_reward": model.sample_reward,
            "rewards": None if model.rewards is None else model.rewards[::-1],
            "reward_range": model.reward_range if model.rewards is None else None,
            "contexts": model.contexts,
            "dim": model.dim,
            **{name: held[name] for name in ("particles", "seed", "weights", "log_prior", "arms")},
            **{name: held[name] for name in ("resample_below", "moves", "impossible", "names")},
        }

    def log_prior_at(self, parameters: FloatArray) -> FloatArray:
        """Log density of the prior at some parameters ``(n, d)``, ``(n,)``."""
        if self.log_prior is None:
            raise MissingCapability(
                "log_prior", "is missing, without which the density of this prior is not known"
            )
        return checking.log_prior_at(self.log_prior, parameters)

    # -- tasks and beliefs

    def sample_parameters(self, rng: Stream) -> FloatArray:
        """Draw parameters, ``(task, d)``."""
        if not self.given:
            return checking.rows_of(self.source, rng)
        running = np.cumsum(self.probs)
        index = np.searchsorted(running, rng.uniform() * running[-1], side="right")
        return self.parameters[np.minimum(index, np.flatnonzero(self.probs)[-1])]

    def sample(self, rng: Stream, tasks: int) -> ParticleEnvironment:
        """Draw the parameters of each task."""
        argument_checks.batch(rng, tasks)
        made = ParticleEnvironment if self.contexts is None else ContextualEnvironment
        return made(self.sample_parameters(rng), self.reward_law)

    def belief(self, tasks: int) -> ParticleBelief:
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        size = f"{sizes.amount(tasks)} with {sizes.amount(self.particles)} particles"
        needed = 8.0 * self.particles * sizes.as_float(tasks)
        sizes.check_memory("tasks", size, needed, "take fewer tasks at once, or lower particles")
        return begun(self, tasks)

    def belief_given(self, statistics: Any) -> ParticleBelief:
        """Return the belief about tasks of which all that was seen is in their statistics, which
        are their histories: the belief of one update for each pull, in their order.
        """
        return seen_by(self, statistics).belief_from(self.belief)

    def refuse_impossible(self, task: int, actions: IntArray, rewards: FloatArray) -> None:
        """Raise what no particle allows, unless tasks are to start again then."""
        if self.impossible == "error":
            checking.refuse_impossible(self.particles, task, actions, rewards)

    def diagnose(self, run: Any) -> Diagnosis:
        """How many particles count after each pull of a kept run, and how far off posterior means
        may be; see :class:`~priorwise.families.particle.diagnosis.Diagnosis`.
        """
        return diagnosed(self, run)
