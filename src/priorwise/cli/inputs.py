"""What several commands take: options, and priors and policies read from files and words. Every
mistake names the option it was made in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from priorwise.cli.output import fail, refusing
from priorwise.cli.policies import parse_policy
from priorwise.core.errors import SHOWN_PATH, ArgumentError, shown

if TYPE_CHECKING:
    from priorwise.core.protocols import Policy, Prior

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


def between_one_and(most: int) -> Callable[[int | None], int | None]:
    """Check of a count, as a callback of an option."""

    def check(value: int | None) -> int | None:
        if value is not None and not 1 <= value <= most:
            limit = "at least 1" if value < 1 else f"at most {most:,}"
            raise typer.BadParameter(f"must be {limit}, got {shown(value)}")
        return value

    return check


at_least_one: Final = between_one_and((1 << 63) - 1)  # what it takes, others estimate
few: Final = between_one_and(4096)  # processes or threads
histories_range: Final = between_one_and(10_000_000)


def check_size(prior: Prior, policies: Sequence[Policy], horizon: int, tasks: int) -> None:
    """Stop before work that no one would wait for, or that has no room."""
    from priorwise.simulate.sizes import check_run

    check_run(prior, policies, horizon=horizon, tasks=tasks)


def check_batch(batch: int, horizon: int) -> None:
    """Stop before the work if a batch is longer than a task."""
    from priorwise.core.validation import batch as checked

    checked(batch, horizon)


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

    return _read(load_prior, option, path, HOW_TO)


def read_fit(option: str, path: str) -> Any:
    """Read a saved fit, or standard input for ``-``."""
    from priorwise.fitting.fits import PriorFit

    return _read(PriorFit.load, option, path, "priorwise fit log.csv --seed 0 writes one")


def _read(load: Callable[[Any], Any], option: str, path: str, cure: str) -> Any:
    if not path:
        fail(option, f"is empty, as an unset variable of the shell is; pass a prior file; {cure}")
    try:
        return load(Path(path)) if path != "-" else load(_standard_input())
    except FileNotFoundError as error:
        folder = os.path.isdir(path)  # noqa: PTH112 - unlike Path's, it also answers for names that cannot be
        name = shown(path, quoted=False, most=SHOWN_PATH)
        fail(option, f"{error if folder else f'no such file: {name}'}; {cure}")
    except (OSError, ArgumentError) as error:
        fail(option, f"{'standard input: ' if path == '-' else ''}{error}; {cure}")


def _standard_input() -> str:
    """Return all of it; what is no JSON must not be taken for the name of a file."""
    if sys.stdin is None:
        raise ArgumentError("standard input", "is closed")
    content = sys.stdin.buffer.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError("standard input", f"is not UTF-8 text (byte {error.start:,})") from None
    if not text.lstrip().startswith(("{", "[")):
        other = "not valid JSON: it does not start with { or ["
        raise ArgumentError("standard input", other if text.strip() else "is empty")
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
        new = f"{option} is exchangeable (arms are new in every task)"
        fail("--arms", f"missing, and {new}; say how many, such as --arms 4")
    return cast("Prior", for_arms(arms))


def with_features(option: str, value: Any, words: Sequence[str] | None) -> Any:
    """Take what a prior or fit that depends on features of tasks says of those with given ones."""
    prior = getattr(value, "prior", value)
    if not hasattr(prior, "for_features"):
        if words:
            fail("--features", f"only for a prior that depends on features, unlike {option}")
        return value
    names = ",".join(f"{each}=..." for each in prior.features.names)
    if not words:
        fail("--features", f"missing, and {option} depends on task_features: --features {names}")
    pairs = [each.partition("=") for word in words for each in word.split(",")]
    if not all(sign for _, sign, _ in pairs):
        fail("--features", f"must be names with values, {names}, got {','.join(words)}")
    with refusing("--features"):
        return value.for_features({name.strip(): each.strip() for name, _, each in pairs})


def read_priors(
    path: str,
    believed_path: str | None,
    arms: int | None,
    option: str = "--believed",
    features: Sequence[str] | None = None,
) -> tuple[Prior, Prior | None]:
    """Read the true prior and the one the policies believe, given by ``option``, and check that
    they go together.
    """
    if path == believed_path == "-":
        fail(option, "standard input is taken by PRIOR; pass a file")
    loaded = with_features("PRIOR", read_prior("PRIOR", path), features)
    prior = with_arms("PRIOR", loaded, arms)
    if arms is not None and prior is loaded:
        own = "PRIOR has its own number of arms"
        fail("--arms", f"only for exchangeable priors, and {own}; leave --arms out")
    _try("PRIOR", prior, None, prior)
    if believed_path is None:
        return prior, None
    loaded = read_prior(option, believed_path)
    if hasattr(loaded, "for_features"):
        loaded = with_features(option, loaded, features)
    believed = with_arms(option, loaded, prior.arms)
    _try(option, prior, None, believed)
    return prior, believed


def entries(
    words: Sequence[str], priors: Mapping[str, Prior], *, horizon: int, tasks: int
) -> list[Entry]:
    """Pair every policy with the prior called true and with the others; refuse absurd sizes before
    any pull.
    """
    prior = priors["true"]
    out: list[Entry] = []
    for word in words:
        policy = read_policy(word)
        if word in (each.word for each in out):
            fail("--policy", f"{word} is given twice; leave one out")
        check_size(prior, [*(each.policy for each in out), *[policy] * len(priors)], horizon, tasks)
        for name, belief in priors.items():
            _try(f"--policy: {word}", prior, policy, belief)
            out.append(Entry(word, policy, belief, name, belief is prior))
    return out


def read_policy(word: str) -> Policy:
    """Return the policy that a word of ``--policy`` stands for."""
    try:
        return parse_policy(word)
    except ArgumentError as error:
        fail("--policy", f"{shown(word, quoted=False)}: {error}")


def _try(option: str, prior: Prior, policy: Policy | None, believed: Prior) -> None:
    """Let one pull of one task say whether these go together."""
    import priorwise as pw

    real = getattr(prior, "actions", None) is not None  # these have no arms to choose from
    rule = policy or (pw.ThompsonSampling() if real else pw.Uniform())
    with refusing(option):
        pw.simulate(prior, rule, horizon=1, tasks=1, seed=0, believed=believed, engine="numpy")


def number(text: str, check: Callable[[Any], Any] | None, shown: bool | str = False) -> Any:
    """Option that takes a number; ``shown`` is what help says of its default."""
    return typer.Option(metavar="N", callback=check, help=text, show_default=shown)


def word(
    text: str,
    metavar: str | None,
    *names: str,
    shown: bool | str = False,
    panel: str | None = None,
) -> Any:
    """Option that takes a word; help shows it in a ``panel``."""
    return typer.Option(
        *names, metavar=metavar, help=text, show_default=shown, rich_help_panel=panel
    )


def argument(text: str, metavar: str, shown: bool | str = False) -> Any:
    """Word that stands without the name of an option."""
    return typer.Argument(metavar=metavar, help=text, show_default=shown)


PRIOR: Final = "Prior file, or saved fit, that the tasks are drawn from; - reads standard input."
SEED: Final = "A whole number from 0 on, such as --seed 0; the same seed gives the same numbers."
FILES: Final = "Directory for the figure, as .png and .svg, and the numbers, as .json."

PriorFile = Annotated[str, argument(PRIOR, "PRIOR")]
BATCH: Final = "Rewards are seen after every so many pulls, at most those of a task."

Horizon = Annotated[int, number("Pulls in a task, such as --horizon 10.", at_least_one)]
Batch = Annotated[int, number(BATCH, at_least_one, True)]
Seed = Annotated[int, number(SEED, seed_range)]
Arms = Annotated[int | None, number("Number of arms, for exchangeable priors.", at_least_one)]
FEATURES: Final = "Features of the tasks, such as words=9,section=news, if the prior has any."
Features = Annotated[list[str] | None, word(FEATURES, "NAME=VALUE")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the numbers as JSON instead of the table.")
]
Out = Annotated[str | None, word(FILES, "DIR", shown="out; no files with --json")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]
