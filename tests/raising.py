"""Errors about arguments, as tests expect them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from priorwise.core.errors import ArgumentError


@contextmanager
def raises(
    argument: str, problem: str = "", kind: type[ArgumentError] = ArgumentError
) -> Iterator[pytest.ExceptionInfo[ArgumentError]]:
    """Expect an error about this argument whose problem has this piece."""
    with pytest.raises(kind) as error:
        yield error
    assert (error.value.argument, problem in error.value.problem) == (argument, True), error.value
