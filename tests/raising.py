"""Errors about arguments, as tests expect them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from priorwise.core.errors import ArgumentError


@contextmanager
def raises(
    argument: str | tuple[str, str], problem: str = "", kind: type[Exception] = ArgumentError
) -> Iterator[pytest.ExceptionInfo[ArgumentError]]:
    """Expect an error about this argument whose problem has this piece; both may be one pair."""
    name, piece = (argument, problem) if isinstance(argument, str) else argument
    with pytest.raises(kind) as error:
        yield error
    assert isinstance(error.value, ArgumentError), error.value
    assert (error.value.argument, piece in error.value.problem) == (name, True), error.value
