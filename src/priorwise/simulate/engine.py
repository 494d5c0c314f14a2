"""Which loop runs a policy's blocks of tasks: the compiled one or NumPy's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import Prior
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.tiles import CompiledPolicy, CompiledPrior
from priorwise.core.trajectories import Block
from priorwise.core.types import FloatArray, IntArray
from priorwise.simulate.loop import run_numpy
from priorwise.simulate.sizes import threads_of

Engine = Literal["auto", "compiled", "numpy"]


@dataclass(frozen=True)
class Runner:
    """How to run one policy on blocks of tasks."""

    engine: str  # "compiled" or "numpy"
    run: Callable[..., Block]


@runtime_checkable
class FollowsFirstPulls(Protocol):
    """A prior of which consecutive tasks believe each their own version: it follows from the first
    pulls of the tasks before, which must not read it.
    """

    before: Prior  # what first pulls, which do not read it, are played with

    def belief(self, tasks: int) -> Any:
        """Return a belief that must not be read."""
        ...

    def given_first_pulls(self, actions: IntArray, rewards: FloatArray) -> Prior:
        """Return what the tasks believe, one first pull each, in order."""
        ...


def choose(
    prior: Prior, believed: Prior, policy: Any, horizon: int, *, masked: bool, engine: Engine
) -> Runner:
    """Take the compiled loop if prior, believed prior and policy all provide tile functions, the
    NumPy loop otherwise.
    """
    validation.one_of("engine", engine, Engine)
    if isinstance(believed, FollowsFirstPulls):
        return _after_first_pulls(prior, believed, policy, horizon, masked=masked, engine=engine)
    in_numpy = Runner("numpy", partial(run_numpy, prior, believed, policy))
    if engine == "numpy":
        return in_numpy
    tiled = policy if isinstance(policy, CompiledPolicy) else None
    uses = frozenset() if tiled is None else tiled.uses
    belief = believed.tiles(horizon, uses) if isinstance(believed, CompiledPrior) else None
    environment = belief
    if believed is not prior:
        of = prior if isinstance(prior, CompiledPrior) else None
        environment = None if of is None else of.tiles(horizon, frozenset())
    lacking = belief and any(getattr(belief, each, 0) is None for each in uses & {"mean", "look"})
    rule = tiled.tiles(belief, horizon, masked) if belief and tiled and not lacking else None
    if environment and environment.first_rows is None and belief and rule:
        from priorwise.kernels.loop import run_compiled

        return Runner("compiled", partial(run_compiled, environment, [belief], rule))
    if engine == "compiled":
        role, value = "policy", policy
        if not (environment and belief):
            role, value = "prior", believed if environment else prior
        raise ArgumentError(
            "engine",
            f"must be 'auto' or 'numpy' here: the {role} {type(value).__name__} has no tile "
            "functions",
        )
    return in_numpy


def threads_for(
    prior: Prior, pairs: Iterable[tuple[Any, Prior]], horizon: int, *, masked: bool
) -> int:
    """Return how many threads may run comparisons of these policies, with the priors they believe,
    side by side: one unless all are compiled, because a user's policy need not be safe to call from
    several threads.
    """
    runners = (
        choose(prior, believed, policy, horizon, masked=masked, engine="auto")
        for policy, believed in pairs
    )
    return threads_of(None) if all(each.engine == "compiled" for each in runners) else 1


def _after_first_pulls(
    prior: Prior, believed: FollowsFirstPulls, policy: Any, horizon: int, **how: Any
) -> Runner:
    """Play the first pulls of a block by themselves, then everything with the prior that follows
    from them.
    """
    # an error here if it reads the belief
    seen, rng = Seen(1, horizon, prior.arms), Streams(0, np.zeros(1, np.uint64))
    policy.act(believed.belief(1), seen, rng.at(Purpose.POLICY, 1))

    def chosen(learned: Prior, pulls: int) -> Runner:
        return choose(prior, learned, policy, pulls, **how)

    def run(**block: Any) -> Block:
        first = chosen(believed.before, 1).run(**block | {"horizon": 1, "keep": True}).columns
        assert first is not None
        learned = believed.given_first_pulls(first.actions[0], first.rewards[0])
        return chosen(learned, horizon).run(**block)

    return Runner(chosen(believed.before, horizon).engine, run)
