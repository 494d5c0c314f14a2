"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from priorwise.cli.inputs import at_least_one, seed_range

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
