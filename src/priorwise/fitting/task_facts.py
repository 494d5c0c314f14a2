"""What is known of tasks before the first one is met, and how an estimator is asked whether it can
fit them.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np

from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.types import FloatArray


@final
@dataclass(frozen=True, eq=False)
class KnownTasks:
    """All but the law that tasks are drawn from: an estimator takes from here what it left open,
    and refuses what it cannot fit.

    Parameters
    ----------
    family
        Name of the prior that the tasks are drawn from.
    arms
        Number of arms.
    noise_var
        Variance of a reward, ``(arm,)``: that of the prior held before the first fit, otherwise
        that of the tasks; None where rewards are not normal.
    binary
        Whether rewards are 0 or 1; None where nothing says so.
    features
        Whether each pull shows features; None where nothing says so.
    contexts
        Their law.
    start
        The prior that a fit begins from, where the learner has one.

    """

    family: str
    arms: int
    noise_var: FloatArray | None
    binary: bool | None
    features: bool | None
    contexts: Any
    start: Any = None

    @classmethod
    def of(cls, prior: Any, *, held: Any = None, start: Any = None) -> Self:
        """Read what a prior says of its tasks, with the noise that ``held`` states, if it does."""
        law, contexts = getattr(prior, "reward_law", None), getattr(prior, "contexts", None)
        binary = getattr(prior, "binary", getattr(law, "binary", None))
        features = None if law is None and contexts is None else contexts is not None
        noise = getattr(held, "noise_var", None)
        noise = getattr(prior, "noise_var", None) if noise is None else noise
        if noise is not None:
            noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), (prior.arms,))
        return cls(type(prior).__name__, prior.arms, noise, binary, features, contexts, start)

    def check_arms(self, estimator: Any, **sizes: int | None) -> None:
        """Refuse arguments of an estimator that are made for another number of arms."""
        for argument, size in sizes.items():
            if size is not None and size != self.arms:
                raise ArgumentError(
                    argument,
                    f"of {type(estimator).__name__} must be for the {self.arms} arms of the tasks",
                    got=size,
                )

    def check_contexts(self, estimator: Any, contexts: Any) -> None:
        """Refuse tasks without features, or with features of another law than an estimator's."""
        if self.features is False:
            raise ArgumentTypeError(
                "estimator",
                f"reads features, but tasks of a {self.family} show none",
                got=type(estimator),
                cure="take an estimator for that prior",
            )
        if self.contexts is not None and self.contexts != contexts:
            raise ArgumentError(
                "contexts", f"must be those of the tasks, {self.contexts!r}", got=contexts
            )

    def check_binary(self, estimator: Any) -> None:
        """Refuse rewards other than 0 and 1."""
        if self.binary is False:
            raise ArgumentTypeError(
                "estimator",
                f"reads rewards that are 0 or 1, and those of a {self.family} are not",
                got=type(estimator),
                cure="take an estimator for that prior",
            )

    def noise_for(self, estimator: Any, given: Any, *, one_for_all: bool) -> Any:
        """Variance of a reward that an estimator is to take for known; ``given`` as it is where
        that is no contradiction.

        None stays None, to be estimated, where nothing is known, or where the arms differ and the
        estimator takes ``one_for_all``.
        """
        if self.noise_var is None or isinstance(given, str):
            return given
        alike = np.ptp(self.noise_var) == 0.0
        if given is None:
            return float(self.noise_var[0]) if alike else None if one_for_all else self.noise_var
        if np.ndim(given):
            self.check_arms(estimator, noise_var=np.size(given))
        if not np.allclose(given, self.noise_var, rtol=1e-9, atol=0.0):
            raise ArgumentError(
                "noise_var",
                f"of {type(estimator).__name__} must be that of a reward before the first fit, "
                f"{_shown(self.noise_var)}",
                got=given,
                cure="leave it out, or let the learner start from a prior with that noise",
            )
        return given


@runtime_checkable
class ForTasks(Protocol):
    """An estimator that says before the first task whether it can fit such tasks."""

    def for_tasks(self, known: KnownTasks) -> Any:
        """Return the estimator for these tasks, with what it left open taken from them; raise where
        it cannot fit them.
        """


def adapted(estimator: Any, known: KnownTasks) -> Any:
    """Ask an estimator for the one that fits such tasks; one that cannot be asked is taken as it
    is.
    """
    return estimator.for_tasks(known) if isinstance(estimator, ForTasks) else estimator


def _shown(values: Any) -> str:
    array = np.asarray(values, dtype=np.float64)
    return f"{array.flat[0]:g}" if np.ptp(array) == 0.0 else str(array.tolist())
