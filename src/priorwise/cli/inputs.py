"""What several commands take: options, and priors and policies read from files and words. Every
mistake names the option it was made in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from priorwise.cli.output import fail
from priorwise.cli.policies import parse_policy

if TYPE_CHECKING:
    from priorwise.core.protocols import Policy, Prior

MOST: Final = (1 << 63) - 1
MOST_PROCESSES: Final = 4096
MOST_HISTORIES: Final = 10_000_000
HOW_TO: Final = "priorwise example gaussian > prior.json makes a valid file"


@dataclass(frozen=True)
class Entry:
    """A line of the comparison: a policy and the prior it believes."""

    word: str
    policy: Policy
    believed: Prior
    believed_name: str
    true_prior: bool

    @property
    def name(self) -> str:
        """Name in tables and figures."""
        return self.word if self.true_prior else f"{self.word} ({self.believed_name})"


def at_least_one(value: int | None) -> int | None:
    """Check a count, as a callback of an option; what it takes is estimated by those who know
    it.
    """
    return _between_one_and(MOST, value)


def few(value: int | None) -> int | None:
    """Check a number of processes or threads, as a callback of an option."""
    return _between_one_and(MOST_PROCESSES, value)


def histories_range(value: int | None) -> int | None:
    """Check a number of histories, as a callback of an option."""
    return _between_one_and(MOST_HISTORIES, value)


def _between_one_and(most: int, value: int | None) -> int | None:
    if value is not None and not 1 <= value <= most:
        from priorwise.core.validation import shown

        limit = "at least 1" if value < 1 else f"at most {most:,}"
        raise typer.BadParameter(f"must be {limit}, got {shown(value)}")
    return value


def check_size(prior: Prior, policies: Sequence[Policy], horizon: int, tasks: int) -> None:
    """Stop before work that no one would wait for, or that has no room."""
    from priorwise.simulate.sizes import check_run

    try:
        check_run(prior, policies, horizon=horizon, tasks=tasks)
    except ValueError as error:
        fail("--horizon, --tasks", error)


def seed_range(value: int) -> int:
    """Check a seed, as a callback of an option."""
    from priorwise.core import validation

    try:
        return validation.seed(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def read_prior(option: str, path: str) -> Any:
    """Read a prior file, the prior of a saved fit, or standard input for ``-``."""
    from priorwise.core.serial import load_prior
    from priorwise.core.validation import SHOWN_PATH, shown

    if not path:
        fail(option, f"is empty, as an unset variable of the shell is; pass a prior file; {HOW_TO}")
    try:
        return load_prior(Path(path)) if path != "-" else load_prior(_standard_input())
    except FileNotFoundError as error:
        folder = os.path.isdir(path)  # noqa: PTH112 - unlike Path's, it also answers for names that cannot be
        name = shown(path, quoted=False, most=SHOWN_PATH)
        fail(option, f"{error if folder else f'no such file: {name}'}; {HOW_TO}")
    except (OSError, TypeError, ValueError) as error:
        fail(option, f"{'standard input: ' if path == '-' else ''}{error}; {HOW_TO}")


def _standard_input() -> str:
    """Return all of it; what is no JSON must not be taken for the name of a file."""
    if sys.stdin is None:
        raise ValueError("it is closed")
    content = sys.stdin.buffer.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start:,})") from None
    if not text.lstrip().startswith(("{", "[")):
        raise ValueError(
            "not valid JSON: it does not start with { or [" if text.strip() else "it is empty"
        )
    return text


def name_of(path: str) -> str:
    """Return a short name of a prior file, other than ``true``."""
    stem = "stdin" if path == "-" else Path(path).stem
    return "true, believed" if stem == "true" else stem


def with_arms(option: str, prior: Any, arms: int | None) -> Prior:
    """Give an exchangeable prior its number of arms."""
    for_arms = getattr(prior, "for_arms", None)
    if for_arms is None:
        return cast("Prior", prior)
    if arms is None:
        fail(
            "--arms",
            f"missing, and {option} is exchangeable (arms are new in every task); say how many, "
            "such as --arms 4",
        )
    try:
        return cast("Prior", for_arms(arms))
    except (MemoryError, ValueError) as error:
        fail("--arms", error)


def read_priors(
    path: str, believed_path: str | None, arms: int | None, option: str = "--believed"
) -> tuple[Prior, Prior | None]:
    """Read the true prior and the one the policies believe, given by ``option``, and check that
    they go together.
    """
    if path == believed_path == "-":
        fail(option, "standard input is taken by PRIOR; pass a file")
    loaded = read_prior("PRIOR", path)
    prior = with_arms("PRIOR", loaded, arms)
    if arms is not None and prior is loaded:
        fail(
            "--arms",
            "only for exchangeable priors, and PRIOR has its own number of arms; leave --arms out",
        )
    _try("PRIOR", prior, None, prior)
    if believed_path is None:
        return prior, None
    believed = with_arms(option, read_prior(option, believed_path), prior.arms)
    _try(option, prior, None, believed)
    return prior, believed


def entries(
    words: Sequence[str],
    prior: Prior,
    believed: Prior | None,
    believed_name: str,
    *,
    horizon: int,
    tasks: int,
) -> list[Entry]:
    """Pair every policy with the true prior, and with the believed one if there is one; refuse
    absurd sizes before any pull.
    """
    priors = [("true", prior)] + ([] if believed is None else [(believed_name, believed)])
    out: list[Entry] = []
    for word in words:
        policy = read_policy(word)
        if word in (each.word for each in out):
            fail("--policy", f"{word} is given twice; leave one out")
        check_size(prior, [*(each.policy for each in out), *[policy] * len(priors)], horizon, tasks)
        for name, belief in priors:
            _try(f"--policy: {word}", prior, policy, belief)
            out.append(Entry(word, policy, belief, name, belief is prior))
    return out


def read_policy(word: str) -> Policy:
    """Return the policy that a word of ``--policy`` stands for."""
    try:
        return parse_policy(word)
    except (TypeError, ValueError) as error:
        from priorwise.core.validation import shown

        fail("--policy", f"{shown(word, quoted=False)}: {error}")


def _try(option: str, prior: Prior, policy: Policy | None, believed: Prior) -> None:
    """Let one pull of one task say whether these go together."""
    import priorwise as pw

    rule = policy or pw.Uniform()
    try:
        pw.simulate(prior, rule, horizon=1, tasks=1, seed=0, believed=believed, engine="numpy")
    except (ArithmeticError, AttributeError, MemoryError, TypeError, ValueError) as error:
        fail(option, error)


PriorFile = Annotated[
    str,
    typer.Argument(
        metavar="PRIOR",
        help="Prior file, or saved fit, that the tasks are drawn from; - reads standard input.",
        show_default=False,
    ),
]
Horizon = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=at_least_one,
        help="Pulls in a task, such as --horizon 10.",
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=seed_range,
        help="A whole number from 0 on, such as --seed 0; the same seed gives the same numbers.",
        show_default=False,
    ),
]
Arms = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=at_least_one,
        help="Number of arms, for exchangeable priors.",
        show_default=False,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the numbers as JSON instead of the table.")
]
Out = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Directory for the figure, as .png and .svg, and the numbers, as .json.",
        show_default="out; no files with --json",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]
