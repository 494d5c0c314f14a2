"""Errors about what a user passes, as values: the argument, what is wrong with it, what it was, and
what to do.
"""

import reprlib
from collections.abc import Callable
from contextvars import ContextVar
from numbers import Real
from typing import Any, Final, Self

SHOWN: Final = 80  # characters of a value that an error shows
SHOWN_PATH: Final = 300
"""Characters of a path that an error shows: enough for most paths."""

_NOTHING: Final = object()


class ArgumentError(ValueError):
    """An argument is wrong: ``"{argument} {problem}, got {got}; {cure}"``.

    Parameters
    ----------
    argument
        Its name.
    problem
        What is wrong, starting with a verb, such as ``"must be positive"``.
    got
        The value passed, if it helps; a class stands for any of its values.
    cure
        What to do, if the problem does not say.

    """

    def __init__(
        self, argument: str, problem: str, *, got: object = _NOTHING, cure: str = ""
    ) -> None:
        self.argument, self.problem, self.cure = argument, problem, cure
        # as a text: an error must pickle, whatever was passed
        self.got = "" if got is _NOTHING else shown(got)
        super().__init__(argument, problem)

    def __str__(self) -> str:
        return self.sentence(self.argument)

    def sentence(self, argument: str) -> str:
        """Return the error in words, with this name of the argument."""
        got = f", got {self.got}" if self.got else ""
        return f"{argument} {self.problem}{got}" + (f"; {self.cure}" if self.cure else "")

    def inside(self, outer: str, joint: str = ".") -> Self:
        """Return the same error about ``outer.argument``."""
        error = type(self)(f"{outer}{joint}{self.argument}", self.problem, cure=self.cure)
        error.got = self.got
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.argument, self.problem), self.__dict__


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a wrong type."""


class MissingCapability(ArgumentTypeError):  # noqa: N818 - it names what is missing
    """A family, a belief or a policy lacks what a tool needs."""


SPELLING: Final[ContextVar[Callable[[str, object], str]]] = ContextVar("SPELLING")
"""How :func:`option` writes an argument, where the user does not write Python."""


def option(name: str, value: object = None) -> str:
    """Name an argument as the user writes it: ``time=``, or ``--time`` on the command line; an
    ellipsis stands for any value.
    """
    spell = SPELLING.get(None)
    if spell is not None:
        return spell(name, value)
    return f"{name}={'' if value is None else '...' if value is ... else repr(value)}"


def shown(value: object, *, quoted: bool = True, most: int = SHOWN) -> str:
    """Return a value as an error shows it: on one line, and only its start and end if it has more
    than ``most`` letters.
    """
    if isinstance(value, str):
        clipped = value if len(value) <= most else f"{value[: most - 20]}...{value[-12:]}"
        text = repr(clipped) if quoted else printable(" ".join(clipped.split()))
        return text + f" ({len(value):,} letters)" * (clipped is not value)
    item: Callable[[], object] | None = getattr(value, "item", None)
    if item is not None and isinstance(value, Real):  # a scalar of NumPy
        value = item()
    if isinstance(value, float):
        return repr(float(f"{value:.8g}"))
    if isinstance(value, type):
        return value.__name__
    try:
        text = " ".join(_SHORT.repr(value).split())
    except Exception:  # a class of a user, or an integer of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 20]}...{text[-12:]}"


def printable(text: str) -> str:
    """Return text with codes in place of the characters that would steer a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


_SHORT: Final = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxarray = 8
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = SHOWN
