"""Errors as a service sends them, and back."""

from __future__ import annotations

from typing import Final

from priorwise.core.errors import ArgumentError, printable
from priorwise.serve.errors import Conflict, NotFound, Refused, TooLate, Unavailable
from priorwise.serve.types import OneRewarded, Outcome, Problem

LONGEST: Final = 1000
"""Letters of a message."""
WRONG: Final = "wrong_value"
SENT: Final = {each.code: each for each in (Conflict, NotFound, TooLate, Unavailable)}
"""What a code is raised as; other problems are ValueErrors."""


class Sent(Exception):  # noqa: N818 - what a client reads
    """Carries what a client is to read."""

    problem: Problem


def problem_of(error: BaseException) -> Problem | None:
    """Return what a client is to read of an error; None for a bug. An argument is a field."""
    if isinstance(error, Sent):
        return error.problem
    if isinstance(error, Refused):
        return problem(error.code, str(error))
    if isinstance(error, Unavailable):
        return problem(error.code, error.public)
    if isinstance(error, ArgumentError):
        return problem(WRONG, str(error), f"$.{error.argument}")
    return None


def problem(code: str, message: str, where: str | None = None) -> Problem:
    """Return a problem whose message is on one line, and not too long."""
    line = printable(message)
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    return Problem(code, line, where)


def error_of(sent: Problem) -> Exception:
    """Return the exception that a decider would raise."""
    text = sent.message if sent.where is None else f"{sent.message} (at {sent.where})"
    return SENT.get(sent.code, ValueError)(text)


def sent(outcomes: list[Outcome | Exception]) -> list[OneRewarded]:
    """Return outcomes of several rewards as a service sends them."""
    result = []
    for place, outcome in enumerate(outcomes):
        wrong = problem_of(outcome) if isinstance(outcome, Exception) else None
        if wrong is not None and wrong.where is not None:
            wrong = Problem(wrong.code, wrong.message, f"$.rewards[{place}]{wrong.where[1:]}")
        result.append(OneRewarded(None if isinstance(outcome, Exception) else outcome, wrong))
    return result


def received(outcomes: list[OneRewarded]) -> list[Outcome | Exception]:
    """Return the same with errors as a decider would raise them."""
    return [each.outcome or error_of(each.error or Problem("", "")) for each in outcomes]
