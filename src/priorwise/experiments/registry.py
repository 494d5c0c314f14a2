"""Which experiments there are, by name and group. Nothing is imported before it is asked for."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from priorwise.experiments.experiment import Experiment

from priorwise.core.errors import ArgumentError

ALL: Final = "all"

FULL_SIZE: Final = 100
"""Replicates of the paper. With fewer, claims may fail by chance."""

# Name: (group, module and attribute). In the order in which they run.
EXPERIMENTS: Final[dict[str, tuple[str, str]]] = {
    "gaussian": ("paper", "priorwise.experiments.gaussian:EXPERIMENT"),
    "linear": ("paper", "priorwise.experiments.linear:EXPERIMENT"),
    "discrete": ("paper", "priorwise.experiments.discrete:EXPERIMENT"),
    "theory": ("theory", "priorwise.experiments.theory:EXPERIMENT"),
    "general": ("general", "priorwise.experiments.general.experiment:EXPERIMENT"),
    "ours": ("ours", "priorwise.experiments.ours:EXPERIMENT"),
}


def groups() -> dict[str, list[str]]:
    """Names of the experiments by group, and ``all``."""
    out: dict[str, list[str]] = {}
    for name, (group, _) in EXPERIMENTS.items():
        out.setdefault(group, []).append(name)
    return out | {ALL: list(EXPERIMENTS)}


def group_of(name: str) -> str:
    """Group of an experiment; its own name for one that is not registered."""
    return EXPERIMENTS[name][0] if name in EXPERIMENTS else name


def names_of(targets: Sequence[str]) -> list[str]:
    """Experiments that names and groups stand for, each once, in the order in which they run."""
    known = groups()
    chosen: set[str] = set()
    for target in targets:
        if target not in known and target not in known[ALL]:
            words = list(dict.fromkeys([*known[ALL], *known]))
            near = get_close_matches(target, words, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ArgumentError(
                "target", f"must be an experiment, one of {', '.join(words)}", got=target, cure=hint
            )
        chosen.update(known.get(target, [target]))
    return [name for name in known[ALL] if name in chosen]


def load(name: str) -> "Experiment":
    """Import an experiment."""
    module, _, attribute = EXPERIMENTS[name][1].partition(":")
    experiment: Experiment = getattr(import_module(module), attribute)
    return experiment
