"""Errors are values that read as a sentence and survive a process of joblib."""

import pickle

import numpy as np
import pytest

from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability


def test_an_error_reads_as_one_sentence() -> None:
    error = ArgumentError("alpha", "must be positive", got=-1.5, cure="pass a larger one")
    assert str(error) == "alpha must be positive, got -1.5; pass a larger one"
    assert str(ArgumentError("alpha", "is missing")) == "alpha is missing"
    assert str(ArgumentError("alpha", "is missing", got=None)) == "alpha is missing, got None"


@pytest.mark.parametrize("kind", [ArgumentError, ArgumentTypeError, MissingCapability])
def test_an_error_survives_pickling(kind: type[ArgumentError]) -> None:
    error = kind("policy", "must be a policy", got=lambda: 0, cure="pass Uniform()")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert (copy.argument, copy.problem, copy.cure) == ("policy", "must be a policy", error.cure)


def test_wrong_types_are_both_errors_that_python_users_expect() -> None:
    assert issubclass(MissingCapability, (ValueError, TypeError))
    assert issubclass(ArgumentTypeError, TypeError)


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (np.float64(0.1), "0.1"),
        (1 / 3, "0.33333333"),
        (1.0, "1.0"),
        (int, "int"),
        ("a\x1bb", r"'a\x1bb'"),
        ((3, None), "(3, None)"),
    ],
)
def test_values_are_shown_on_one_line(got: object, text: str) -> None:
    assert ArgumentError("x", "is wrong", got=got).got == text
