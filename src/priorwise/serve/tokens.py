"""Tokens of decisions: the step, a check, and the task."""

from __future__ import annotations

from priorwise.core import hashing
from priorwise.core.errors import shown
from priorwise.serve.errors import NotFound
from priorwise.serve.rows import Task


def token_of(task: Task, step: int) -> str:
    """Return the token of a decision."""
    return f"{step}.{check_of(task, step)}.{task.name}"


def check_of(task: Task, step: int) -> str:
    """Eight digits that tell tokens of this service from others."""
    return f"{hashing.mix(task.key + step) >> 32:08x}"


def parsed(token: object) -> tuple[str, int, str]:
    """Return the task, the step and the check of a token."""
    if isinstance(token, str):
        step, _, rest = token.partition(".")
        check, dot, task = rest.partition(".")
        if dot and len(check) == 8 and step.isascii() and step.isdigit() and len(step) < 19:
            return task, int(step), check
    raise NotFound(f"token must be one that a decision came with, got {shown(token)}")
