"""Through how many of our functions a fit and a simulation run: ``python -m benchmarks.trace``.

A reader who follows a call has to read each function that does a step of the work. Counted are the
functions of ours that a call enters, by module and name, compiled ones included. Not counted are
the ground floor (checks of arguments, sizes and memory with all they call, the progress bar, the
compiler's shell, how numbers and functions are laid out for it, and the hash behind random
numbers),
constructors, properties, and comprehensions, which belong to the function they stand in. Each line
says how many functions there are with these, too.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import priorwise as pw

HOME = Path(pw.__file__).parent
CHECKS = {
    "core.validation",
    "core.argument_checks",
    "core.errors",
    "core.parameters",
    "core.sizes",
    "simulate.sizes",
}
GROUND_FLOOR = CHECKS | {
    "core.serial",
    "core.progress",
    "core.hashing",
    "core.streams",
    "core.tiles",
    "kernels.bandit",
    "kernels.compiling",
}
Place = tuple[str, str]
"""Module and name of a function."""


def traced(
    work: Callable[[], Any], until: Callable[[Place], bool] = lambda _: False
) -> list[Place]:
    """Functions of ours that ``work`` enters, in the order of their first call, up to the first
    that ``until`` names.
    """
    entered: dict[Place, None] = {}
    over = False

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal over
        code = frame.f_code
        if over or event != "call" or not code.co_filename.startswith(str(HOME)):
            return
        place = module_of(code), code.co_qualname
        if code.co_name in ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>", "<module>"):
            return
        over = until(place)
        if not over and place not in entered and not called_by_a_check(frame):
            entered[place] = None

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return list(entered)


def module_of(code: CodeType) -> str:
    """Name of a module of ours; of others something that none has."""
    path = Path(code.co_filename)
    ours = path.is_relative_to(HOME)
    return ".".join(path.relative_to(HOME).with_suffix("").parts) if ours else str(path)


def called_by_a_check(frame: FrameType | None) -> bool:
    """Whether a function runs because a check asked for it."""
    while (frame := frame.f_back if frame else None) is not None:
        if module_of(frame.f_code) in CHECKS:
            return True
    return False


def step_of_work(place: Place) -> bool:
    """Whether a reader who follows a call has to read this function."""
    module, name = place
    last = name.rpartition(".")[2]
    if module in GROUND_FLOOR or (last.endswith("__") and last != "__call__"):
        return False
    found: Any = import_module(f"priorwise.{module}")
    for part in name.split("."):
        found = getattr(found, part, None)
    return not isinstance(found, (property, cached_property))


def draws(place: Place) -> bool:
    """Whether a function draws random numbers: a method of a stream, or a compiled loop."""
    module, name = place
    stream = module == "core.streams" and name.startswith("Stream.") and not name.endswith("__")
    return stream or (module, name) == ("kernels.compiling", "LazyEntry.__call__")


def gaussian_fit() -> list[Place]:
    """Functions of a fit of six normal arms to 500 tasks, by maximum marginal likelihood."""
    from priorwise.experiments import problems

    prior = problems.gaussian().prior
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=500, seed=0, keep=True)
    statistics = pw.GaussianStatistics.from_run(run, arms=prior.arms)
    estimator = pw.GaussianMarginalLikelihood()
    estimator.fit(statistics)  # imports and compiles
    return traced(lambda: estimator.fit(statistics))


def simulation(engine: str) -> list[Place]:
    """Functions before the first random number of a simulation."""
    from priorwise.experiments import problems

    prior, policy = problems.gaussian().prior, pw.ThompsonSampling()

    def run() -> Any:
        return pw.simulate(prior, policy, horizon=5, tasks=64, seed=0, engine=engine, threads=1)

    run()
    return traced(run, until=draws)


def main() -> None:
    """Print the functions and how many they are."""
    for title, places in (
        ("a Gaussian fit", gaussian_fit()),
        ("simulate before its first random number, NumPy", simulation("numpy")),
        ("simulate before its first random number, compiled", simulation("compiled")),
    ):
        steps = [place for place in places if step_of_work(place)]
        modules = {module for module, _ in steps}
        print(f"{title}: {len(steps)} functions in {len(modules)} modules ({len(places)} in all)")
        for module, name in steps:
            print(f"  {module}: {name}")


if __name__ == "__main__":
    main()
