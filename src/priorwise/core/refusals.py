"""Whether an error refuses what a user passed, or is a bug of ours."""

import dis
from importlib import import_module
from types import TracebackType

from priorwise.core.errors import ArgumentError


def refused(error: BaseException) -> bool:
    """Whether an error was raised on purpose, as the library does where input cannot be: by a
    ``raise`` of its own, or of the package of a registered family. Errors of the operating system
    count too. What NumPy or Python raise in our code is a bug.
    """
    if isinstance(error, (OSError, ArgumentError)):
        return True
    last = _last(error.__traceback__)
    if last is None:
        return False
    code, home = last.tb_frame.f_code, str(last.tb_frame.f_globals.get("__name__", ""))
    raised = dis.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
    return raised and home.partition(".")[0] in _ours()


def _last(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _ours() -> set[str]:
    classes = [
        each
        for family in import_module("priorwise.families.registry").families()
        for each in family.priors
    ]
    return {"priorwise"} | {each.__module__.partition(".")[0] for each in classes}
