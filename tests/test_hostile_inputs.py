"""Every bad input of ``hostile_inputs`` is refused by the name of the argument; none is let in,
hangs, or fails deep inside.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from types import ModuleType
from typing import Any

import hostile_inputs
import pytest
from hostile_inputs import ACCEPTED, Case, doors, refused

import priorwise as pw
from priorwise.core.errors import ArgumentError

SECONDS = 120
"""After which a call counts as hanging; the slowest takes a few hundredths."""

CASES = {
    door: list(cases)
    for door, cases in groupby(refused(), key=lambda case: case.label.split(":")[0])
}


@contextmanager
def not_hanging() -> Iterator[None]:
    """Interrupt a call that hangs."""

    def stop(*_: Any) -> None:
        raise AssertionError(f"not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def verdict(case: Case) -> str:
    """Return what is wrong with the way a bad input is met; empty if nothing is."""
    try:
        with not_hanging():
            case.call()
    except (TypeError, ValueError, KeyError, IndexError, OSError) as error:
        named = (
            f"{error.argument} {error.problem}" if isinstance(error, ArgumentError) else str(error)
        )
        fits = any(word.strip() in named for word in case.words)
        return "" if fits else f"unnamed: {type(error).__name__}: {error}"
    except Exception as error:
        return f"raw: {type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.parametrize("door", CASES)
def test_bad_inputs_are_refused_by_name(door: str) -> None:
    offenders = {case.label: found for case in CASES[door] if (found := verdict(case))}
    assert not offenders


@pytest.mark.parametrize("door", doors(), ids=lambda door: door.name)
def test_the_same_calls_are_right_but_for_the_bad_input(door: hostile_inputs.Door) -> None:
    """The control: a door that refuses everything would pass the test above."""
    door.call(**door.good)


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_odd_inputs_are_let_in_for_a_reason(case: tuple[Any, str]) -> None:
    call, reason = case
    call()
    assert reason


def test_a_case_can_fail() -> None:
    """The control of the control: what is let in, fails deep inside or is not named is called
    so.
    """
    assert verdict(Case("", lambda: None, ("x",))) == "accepted"
    assert verdict(Case("", lambda: [].arms, ("arms",))).startswith("raw")
    assert verdict(Case("", lambda: int("y"), ("x",))).startswith("unnamed")


def test_every_public_constructor_and_function_has_its_bad_inputs() -> None:
    results = {
        "Backtest",
        "BayesUCB", "Bound", "BreakEven", "Certificate", "CertaintyEquivalence", "Comparison",
        "Distance", "Estimate",
        "Greedy", "Ladder", "Recommendation",
        "Interval", "FormalLowerBound",
        "MetaLearner", "MetaRun",
        "ModelComparison", "PolicyComparison", "PomdpPlan", "Run", "Rung", "SampleComplexity",
        "SamplingPolicy",
        "Serializable",
        # results, or without arguments
        "TailExpectation", "ThompsonSampling", "Uniform", "AsFitted", "Drawn", "__version__",
        "Approximation", "Seen", "Stream", "pick",  # the last three in test_hostile.py
        # as RecedingHorizon and exact_evaluation; made by simulate_meta
        "KnowledgeGradient", "exact_rewards", "Setting", "Interrupted",
        # a record of what a family has; what asks it names its parts
        "Family", "LazyImport", "family_of",
        "ArgumentError", "ArgumentTypeError", "MissingCapability",
    }  # fmt: skip
    packages = (pw.advise, pw.core, pw.families, pw.meta, pw.policies, pw.sensitivity)
    folders = {each for each in pw.__all__ if isinstance(getattr(pw, each), ModuleType)}
    public = {*pw.__all__, *(name for package in packages for name in package.__all__)} - folders
    tried = {door.name.split(".")[0].split(",")[0] for door in doors()}
    assert public - tried - results == set()
    assert sum(len(cases) for cases in CASES.values()) > 1500
