"""Functions that JSON may name.

A file cannot hold a function, and reading one must not run code that the file names. So a file
holds the name under which a function was registered, in this process, by code that its user chose
to run; nothing is ever imported because a file says so.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, shown
from priorwise.core.serial import discover

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}

Function = TypeVar("Function", bound=Callable[..., Any])


def register_function(function: Function, name: str | None = None) -> Function:
    """Let JSON name a function of a :class:`~priorwise.families.particle.prior.ParticlePrior`;
    returns the function, so that it may stand above a ``def`` as a decorator.

    Parameters
    ----------
    function
        The function.
    name
        Its name in files; by default ``"module:function"``, which a lambda and a function inside
        another do not have.

    Examples
    --------
    >>> @register_function
    ... def log_density(parameters, arm, reward): ...
    >>> name_of("log_density", log_density).endswith(":log_density")
    True

    """
    if not callable(function):
        raise ArgumentTypeError("function", "must be a function", got=function)
    if name is None:
        name = _own_name(function)
    else:
        validation.word("name", name)
    known = _FUNCTIONS.get(name)
    if known is not None and known is not function and not _redefined(known, function):
        raise ArgumentError("name", "is taken by another function", got=name, cure="choose another")
    _FUNCTIONS[name] = function
    return function


def name_of(argument: str, function: Callable[..., Any]) -> str:
    """Return the name under which a function was registered; raise an error for others."""
    for name, known in _FUNCTIONS.items():
        if known is function:
            return name
    raise ArgumentTypeError(
        argument,
        "is a function, which JSON cannot hold",
        cure=(
            "register it, here and where the file is read, with "
            f"priorwise.families.register_function({argument}), and the file holds its name"
        ),
    )


def function_named(argument: str, name: Any) -> Callable[..., Any]:
    """Return the function that was registered under a name; nothing is imported to find it."""
    validation.instance(argument, name, str, "the name of a function")
    if name not in _FUNCTIONS:
        discover()  # packages that were installed with models, never what the file says
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS)) or "none"
        raise ArgumentError(
            argument,
            f"must be the name of a registered function (there are {known})",
            got=name,
            cure="import the module that has it and calls priorwise.families.register_function",
        )
    return _FUNCTIONS[name]


def _own_name(function: Callable[..., Any]) -> str:
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "")
    if not module or not name or not all(part.isidentifier() for part in name.split(".")):
        raise ArgumentError(
            "name",
            f"is missing, and {shown(function)} has none by which code elsewhere would find it",
            cure="pass name=..., or define the function in a module",
        )
    return f"{module}:{name}"


def _redefined(known: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Whether a function stands where the known one stood: a cell or a module that ran again."""
    places = [
        (getattr(each, "__module__", None), getattr(each, "__qualname__", None))
        for each in (known, function)
    ]
    return places[0] == places[1] and places[0][1] is not None and "<" not in str(places[0][1])
