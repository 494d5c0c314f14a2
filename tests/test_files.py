"""Files of priors and fits: what is wrong with one is said by name, in one line, and nothing half
read is used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.errors import ArgumentError, shown
from priorwise.testing import base_seed

PRIOR = pw.GaussianPrior([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])
FIT = pw.PriorFit(
    PRIOR,
    "by hand",
    5,
    std_errors={"mean": [0.1, np.nan]},
    log_likelihood=-1.5,
    warnings=["beware"],
)


def text(family: str, **fields: Any) -> str:
    return json.dumps({"priorwise": 1, "family": family, **fields})


def refused(path: Path, content: str | bytes) -> str:
    """Return how ``load_prior`` refuses a file: by its name, in one line, at bearable length."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ArgumentError) as caught:
        pw.load_prior(path)
    assert caught.value.argument.startswith(str(path))
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    return message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (bytes(range(256)), "must be UTF-8 text"),
        (PRIOR.to_json().encode("utf-16"), "but is UTF-16"),
        ('{"priorwise": 1, "family": "bêta"}'.encode("latin-1"), "must be UTF-8 text"),
        (b"\x80\x04\x95\x0a\x00\x00\x00", "must be UTF-8 text"),  # a pickle
        (b"", "is not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (
            '{"priorwise": 1, "family": "beta", "beta": 1, "alpha": '
            + "[" * 500
            + "1"
            + "]" * 500
            + "}",
            "must not be lists within lists",
        ),
        (
            '{"priorwise": 1, "family": "beta", "beta": 1, "alpha": ' + "7" * 5_000 + "}",
            "has a number of 5,000 digits",
        ),
        (text("beta", alpha=10**250, beta=1), "must be numbers"),
        ('{"priorwise": 1, "family": "beta", "alpha": NaN, "beta": 1}', "must be finite"),
        ('{"priorwise": 1, "family": "beta", "alpha": 1e999, "beta": 1}', "must be finite"),
        (
            '{"priorwise": 1, "family": "beta", "alpha": 1, "beta": 1, "alpha": 2}',
            "has the field 'alpha' twice",
        ),
        (
            '{"priorwise": 1, "priorwise": 1, "family": "beta"}',
            "has the field 'priorwise' twice",
        ),
        (text("x" * 1_000_000), "must be one of "),
        (
            text("beta", alpha=1, beta=1, **{"y" * 1_000_000: 1}),
            "has no field 'yyy",
        ),
        (
            text("beta", alpha="z" * 1_000_000, beta=1),
            "must be numbers",
        ),
        (text("beta", alpha=["z"] * 100_000, beta=1), "must be numbers"),
        (
            json.dumps({"priorwise": ["v"] * 100_000, "family": "beta"}),
            "must be 1 for this priorwise",
        ),
        (text("finite", means=[[1, 0]], probs=[1], noise="n" * 1_000_000), "must be one of none"),
        (
            text("linear-gaussian", mean=[1], cov=[[1]], contexts="c" * 1_000_000),
            "must say where the features",
        ),
        (
            text(
                "linear-gaussian",
                mean=[1],
                cov=[[1]],
                contexts={"family": "sphere-contexts", "arms": 10**13},
            ),
            "GB, and this machine",
        ),
        (
            text(
                "linear-gaussian",
                mean=[1],
                cov=[[1]],
                contexts={"family": "beta", "alpha": 1, "beta": 1},
            ),
            "must say where the features",
        ),
        (text("exchangeable-beta", alpha=[1], beta=1), "must be a number"),
    ],
)
def test_a_bad_file_is_named_and_its_mistake_too(
    content: str | bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    message = refused(path, content)
    sources = [path, content] if content[:1] == "{" else [path]
    for source in sources:
        with pytest.raises(ArgumentError) as error:
            pw.load_prior(source)
        assert says in error.value.problem
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tasks", -1),
        ("tasks", "5"),
        ("tasks", 1.5),
        ("left_out", None),
        ("iterations", -3),
        ("prior", {"family": "sphere-contexts", "arms": 3}),
        ("prior", None),
        ("prior", 3),
        ("uncertainty", {"family": "beta", "alpha": [1], "beta": [1]}),
        ("uncertainty", "large"),
        ("converged", "no"),
        ("at_boundary", 1),
        ("estimator", 3),
        ("std_errors", {"mean": ["large", 1]}),
        ("std_errors", {"mean": [-1, 1]}),
        ("std_errors", {"mean": [[1], [1, 2]]}),
        ("std_errors", [1, 2]),
        ("log_likelihood", "much"),
        ("log_likelihood", [1]),
        ("warnings", "beware"),
        ("warnings", [1]),
        ("statistics", {"family": "beta", "alpha": [1], "beta": [1]}),
    ],
)
def test_impossible_fields_of_a_fit_are_refused(field: str, value: Any, tmp_path: Path) -> None:
    content = json.loads(FIT.to_json())
    assert field in content
    (tmp_path / "fit.json").write_text(json.dumps({**content, field: value}))
    for load in (pw.PriorFit.load, pw.load_prior):
        with pytest.raises(ArgumentError) as error:
            load(tmp_path / "fit.json")
        assert error.value.argument.startswith(f"{tmp_path / 'fit.json'}: prior-fit.{field}")


OWN = {
    "gaussian": (pw.GaussianPrior([0.0, 1.0], np.eye(2)), pw.GaussianMarginalLikelihood(arms=2)),
    "gaussian moments": (
        pw.GaussianPrior([0.0, 1.0], np.eye(2)),
        pw.GaussianMoments("full", arms=2),
    ),
    "three arms": (pw.GaussianPrior(np.zeros(3), np.eye(3)), pw.GaussianMarginalLikelihood(arms=3)),
    "exchangeable": (
        pw.GaussianPrior(np.zeros(3), np.eye(3)),
        pw.GaussianMarginalLikelihood("exchangeable", arms=3),
    ),
    "beta": (pw.BetaPrior([2.0, 2.0], [3.0, 3.0]), pw.BetaMarginalLikelihood(arms=2)),
    "beta moments": (pw.BetaPrior([2.0, 2.0], [3.0, 3.0]), pw.BetaMoments(arms=2)),
    "finite": (
        PAIR := pw.FinitePrior([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5]),
        pw.FiniteMarginalLikelihood(PAIR),
    ),
    "finite counts": (PAIR, pw.FiniteCounts(PAIR)),
    "linear": (
        FEATURES := pw.LinearGaussianPrior(np.zeros(1), np.eye(1), 1.0, pw.SphereContexts(arms=3)),
        pw.LinearMarginalLikelihood(FEATURES.contexts),
    ),
    "linear moments": (FEATURES, pw.LinearMoments(FEATURES.contexts)),
}


@pytest.fixture(scope="module")
def saved() -> dict[str, dict[str, Any]]:
    """Fits of every family, as their files hold them."""
    options: dict[str, Any] = {"horizon": 4, "tasks": 60, "seed": base_seed(), "keep": True}
    return {
        name: json.loads(estimator.fit(pw.simulate(prior, pw.Uniform(), **options)).to_json())
        for name, (prior, estimator) in OWN.items()
    }


def test_an_uncertainty_belongs_to_the_fit_it_is_saved_with(
    saved: dict[str, dict[str, Any]],
) -> None:
    """Every pair of fits: what their files hold of each other is read exactly where the priors
    drawn are of the same form.
    """
    form = {name: name.removesuffix(" moments").removesuffix(" counts") for name in saved}
    for name, content in saved.items():
        for other, lent in saved.items():
            mixed = json.dumps({**content, "uncertainty": lent["uncertainty"]})
            if form[name] == form[other]:
                assert pw.PriorFit.load(mixed).uncertainty is not None
            else:
                with raises("prior-fit.uncertainty", "must draw priors like this"):
                    pw.PriorFit.load(mixed)


def test_a_saved_fit_is_a_prior_file(tmp_path: Path) -> None:
    FIT.save(tmp_path / "fit.json")
    assert pw.load_prior(tmp_path / "fit.json") == PRIOR
    assert pw.load_prior(FIT.to_json()) == PRIOR
    assert pw.PriorFit.load(tmp_path / "fit.json") == FIT
    with raises("source", "a prior or a"):
        pw.load_prior(pw.SphereContexts(3).to_json())


def test_save_names_the_place_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for place, error in (
        ("missing/prior.json", FileNotFoundError),
        ("file/prior.json", NotADirectoryError),
        ("folder", IsADirectoryError),
        ("n" * 300, OSError),
    ):
        with pytest.raises(error) as caught:
            PRIOR.save(tmp_path / place)
        assert str(tmp_path / place) in str(caught.value)
        assert ".tmp" not in str(caught.value)
    for nothing in ("", None, 3):
        with raises("path", "must be the path of a file"):
            PRIOR.save(nothing)  # type: ignore[arg-type]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]


def test_only_files_are_read(tmp_path: Path) -> None:
    with raises("source", "must be a path or JSON"):
        pw.load_prior(os.fsencode(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="it is a directory"):
        pw.load_prior(tmp_path)
    with pytest.raises(FileNotFoundError, match="it is no file"):
        pw.load_prior("prior\0.json")
    with pytest.raises(OSError, match="5,000 letters"):
        pw.load_prior("n" * 5_000)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(1 << 40)  # a file of holes
    with raises(f"{large}: file", "must have at most"):
        pw.load_prior(large)


@pytest.mark.slow
def test_a_name_of_20_megabytes_is_not_printed(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.write_text(text("n" * 20_000_000))
    done = subprocess.run([sys.executable, "-m", "priorwise", "simulate", path, "-p", "ts",
    "--horizon", "1", "--seed", "0"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr) < 1_000
    assert "20,000,000 letters" in done.stderr


def test_values_are_shown_short() -> None:
    assert shown("a b") == "'a b'"
    assert shown([1, 2]) == "[1, 2]"

    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    for value in (
        "x" * 10_000,
        list(range(10_000)),
        {"k": "v" * 10_000},
        np.zeros((100, 100)),
        10**5_000,
        Rude(),
        "é\n" * 50,
    ):
        assert len(shown(value)) < 150
        assert "\n" not in shown(value)


def test_threads_that_save_one_file_do_not_meet(tmp_path: Path) -> None:
    """They shared one temporary name, which the first to be done took away from the others."""
    prior, path = pw.BetaPrior([1.0, 2.0], [3.0, 4.0]), tmp_path / "prior.json"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: prior.save(path), range(200)))
    assert pw.load_prior(path) == prior
    assert [each.name for each in tmp_path.iterdir()] == ["prior.json"]
