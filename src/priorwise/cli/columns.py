"""Options of the commands that read a log: its family and its columns."""

from typing import Annotated, Any, Final

import typer

from priorwise.cli.inputs import word

FAMILY: Final = "A family, or family:structure, such as beta:exchangeable; auto compares."


def column(words: str) -> Any:
    """Option that names a column."""
    return word(words, "COLUMN", shown="guessed")


FamilyName = Annotated[str, word(FAMILY, "NAME", shown=True)]
Task = Annotated[str | None, column("Which task a row belongs to.")]
Action = Annotated[str | None, column("Which arm was pulled.")]
Reward = Annotated[str | None, column("What it earned, or the sum over the pulls.")]
Pulls = Annotated[str | None, column("How many pulls a row sums up.")]
Squares = Annotated[str | None, column("Sum of squared rewards of a row.")]
NoiseVar = Annotated[
    float | None,
    word("Variance of a single reward, where it is known.", "NUMBER", shown="learned"),
]
DropMissing = Annotated[
    bool,
    typer.Option("--drop-missing", help="Leave out rows without a reward, and count them."),
]
