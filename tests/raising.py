"""Errors about arguments, as tests expect them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from priorwise.core.errors import ArgumentError


@contextmanager
def raises(
    argument: str | tuple[str, str], problem: str = "", kind: type[Exception] = ArgumentError
) -> Iterator[pytest.ExceptionInfo[ArgumentError]]:
    """Expect an error about this argument whose problem has this piece. Both may be one pair, or
    one text: the argument, and how the problem starts.
    """
    name, piece = (argument, problem) if isinstance(argument, str) else argument
    with pytest.raises(kind) as error:
        yield error
    wrong = error.value
    assert isinstance(wrong, ArgumentError), wrong
    if piece or " " not in name:
        assert (wrong.argument, piece in wrong.problem) == (name, True), wrong
    else:
        assert f"{wrong.argument} {wrong.problem}".startswith(name), wrong
