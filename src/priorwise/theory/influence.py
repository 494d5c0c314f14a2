"""Whether what is played changes what is shown later: regret and the bounds for bandits are about
problems in which it does not.
"""

from typing import Any

import numpy as np

from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.protocols import OutspokenEnvironment
from priorwise.core.seen import Signal
from priorwise.core.streams import Purpose, Streams


def actions_influence_signals(environment: Any, signal: Signal) -> bool:
    """Ask an environment that shows ``signal``; refuse one that shows signals and does not say."""
    if not isinstance(environment, OutspokenEnvironment):
        if signal is None:
            return False
        raise MissingCapability(
            f"{type(environment).__name__}.actions_influence_signals",
            "is missing, and the environment shows signals",
            cure="write False in its class for contexts drawn afresh, True for a state",
        )
    said = environment.actions_influence_signals
    if not isinstance(said, (bool, np.bool_)):
        raise ArgumentTypeError(
            f"{type(environment).__name__}.actions_influence_signals",
            "must be True or False",
            got=said,
        )
    return bool(said)


def has_state(prior: Any) -> bool:
    """Whether actions influence later signals in the environments of a prior."""
    # a bound from given numbers needs no more than the number of arms
    return hasattr(prior, "sample") and actions_influence_signals(*_first(prior))


def shows_task_first(prior: Any) -> bool:
    """Whether what a task shows before its first action may depend on the unknown task.

    Contexts say so themselves (``of_environment``). If they do not, they are those of all tasks in
    a bandit, and in a problem with a state nothing is assumed.
    """
    if not hasattr(prior, "sample") or _first(prior)[1] is None:
        return False
    contexts = getattr(prior, "contexts", None)
    declared: bool | None = getattr(contexts, "of_environment", None)
    return contexts is None or has_state(prior) if declared is None else declared


def refuse_influence(prior: Any, tool: str, instead: str) -> None:
    """Refuse a prior over environments whose actions influence later signals, and point to what
    holds for them.
    """
    if has_state(prior):
        raise ArgumentError(
            "prior",
            "must have actions that do not influence later signals, unlike "
            f"{type(_first(prior)[0]).__name__}, for {tool}",
            cure=f"use {instead}",
        )


def _first(prior: Any) -> tuple[Any, Signal]:
    """Draw an environment and what it shows first."""
    streams = Streams(0, np.zeros(1, dtype=np.uint64))
    environment: Any = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), 1)
    signal = environment.start(streams.world(0)) if hasattr(environment, "start") else None
    return environment, signal
