"""``priorwise example``: a prior file to start from."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from priorwise.cli.errors import fail
from priorwise.core.serial import Serializable
from priorwise.experiments import problems
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior


class Kind(StrEnum):
    """Families there is an example of."""

    gaussian = "gaussian"
    beta = "beta"
    finite = "finite"
    linear = "linear"
    exchangeable_gaussian = "exchangeable-gaussian"
    exchangeable_beta = "exchangeable-beta"


PAPER: Final[dict[Kind, Callable[[], problems.Problem[Any]]]] = {
    Kind.gaussian: problems.gaussian,
    Kind.linear: problems.linear,
    Kind.finite: problems.discrete,
}
OTHERS: Final[dict[Kind, Callable[[], Serializable]]] = {
    Kind.beta: lambda: BetaPrior(alpha=[2, 2, 3, 4], beta=[38, 28, 37, 36]),
    Kind.exchangeable_gaussian: lambda: ExchangeableGaussianPrior(
        mean=0.0, var=1.0, correlation=0.9, noise_var=1.0
    ),
    Kind.exchangeable_beta: lambda: ExchangeableBetaPrior(alpha=2, beta=38),
}


def example(
    kind: Annotated[
        Kind,
        typer.Argument(metavar="FAMILY", help=f"One of {', '.join(Kind)}.", show_default=False),
    ],
    misspecified: Annotated[
        bool,
        typer.Option(
            "--misspecified",
            help="The wrong prior of the paper instead; for gaussian, linear and finite.",
        ),
    ] = False,
) -> None:
    """Print a prior file to start from.

    gaussian, linear and finite are the paper's three problems.

    The exchangeable ones have no number of arms of their own; simulate takes it from --arms.

    \b
    [dim]# the tasks, and what a policy might wrongly believe about them[/]
    priorwise example gaussian > prior.json
    priorwise example gaussian --misspecified > wrong.json
    """  # noqa: D301 - a backspace keeps Typer from joining the lines
    if kind in OTHERS:
        if misspecified:
            fail(
                "--misspecified",
                f"the paper has no misspecified {kind.value} prior; there is one for "
                f"{', '.join(k.value for k in PAPER)}",
            )
        typer.echo(OTHERS[kind]().to_json())
        return
    problem = PAPER[kind]()
    prior = problem.misspecified if misspecified else problem.prior
    assert isinstance(prior, Serializable)
    typer.echo(prior.to_json())
