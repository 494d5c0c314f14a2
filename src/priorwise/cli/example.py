"""``priorwise example``: a prior file, or a log, to start from."""

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from priorwise.cli.output import fail


class Kind(StrEnum):
    """Families there is an example of, and a log."""

    gaussian = "gaussian"
    beta = "beta"
    finite = "finite"
    linear = "linear"
    exchangeable_gaussian = "exchangeable-gaussian"
    exchangeable_beta = "exchangeable-beta"
    headlines = "headlines"
    finite_mdp = "finite-mdp"
    finite_pomdp = "finite-pomdp"
    dirichlet_mdp = "dirichlet-mdp"
    logit_normal = "logit-normal"
    exchangeable_logit_normal = "exchangeable-logit-normal"
    normal_gamma = "normal-gamma"
    exchangeable_normal_gamma = "exchangeable-normal-gamma"


PAPER: Final = {Kind.gaussian: "gaussian", Kind.linear: "linear", Kind.finite: "discrete"}
"""The paper's problems."""

EXCHANGEABLE: Final = {"mean": 0.0, "var": 1.0, "correlation": 0.9, "noise_var": 1.0}

OTHERS: Final[dict[Kind, tuple[str, dict[str, Any]]]] = {
    Kind.beta: ("BetaPrior", {"alpha": [2, 2, 3, 4], "beta": [38, 28, 37, 36]}),
    Kind.exchangeable_gaussian: ("ExchangeableGaussianPrior", EXCHANGEABLE),
    Kind.exchangeable_beta: ("ExchangeableBetaPrior", {"alpha": 2, "beta": 38}),
    # a first step that leads to a good or to a bad state, and nobody knows which way
    Kind.finite_mdp: (
        "FiniteMdpPrior",
        {
            "transitions": [
                [[[0, 0.9, 0.1], [0, 0.2, 0.8]], [[0, 1, 0]] * 2, [[0, 0, 1]] * 2],
                [[[0, 0.2, 0.8], [0, 0.9, 0.1]], [[0, 1, 0]] * 2, [[0, 0, 1]] * 2],
            ],
            "rewards": [[0.5, 0.5], [0.8, 0.8], [0.2, 0.2]],
            "probs": [0.7, 0.3],
            "noise": "bernoulli",
            "round_steps": 3,
        },
    ),
    # the tiger problem: how well one hears is not known
    Kind.finite_pomdp: ("tiger", {}),
    Kind.dirichlet_mdp: ("riverswim", {}),
    Kind.logit_normal: (
        "LogitNormalPrior",
        {"mean": [-4, -4, -3.5], "cov": [[0.2, 0.18, 0.1], [0.18, 0.2, 0.1], [0.1, 0.1, 0.3]]},
    ),
    Kind.exchangeable_logit_normal: (
        "ExchangeableLogitNormalPrior",
        {"mean": -4, "var": 0.2, "correlation": 0.9},
    ),
    Kind.normal_gamma: (
        "NormalGammaPrior",
        {"mean": [0.5, 0.0, 0.0], "pulls": 1, "shape": 3, "rate": 3},
    ),
    Kind.exchangeable_normal_gamma: (
        "ExchangeableNormalGammaPrior",
        {"mean": 0, "pulls": 1, "shape": 3, "rate": 3},
    ),
}
"""Names in priorwise.families, which is imported when an example is asked for, and parameters."""


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
    """Print a prior file to start from, or a log of headline tests.

    gaussian, linear and finite are the paper's three problems.

    The exchangeable ones have no number of arms of their own; simulate takes it from --arms.

    \b
    [dim]# the tasks, and what a policy might wrongly believe about them[/]
    priorwise example gaussian > prior.json
    priorwise example gaussian --misspecified > wrong.json
    [dim]# 5,000 made-up headline tests, each with headlines of its own; see priorwise fit[/]
    priorwise example headlines > log.csv
    """  # noqa: D301 - a backspace keeps Typer from joining the lines
    if kind in (*OTHERS, Kind.headlines):
        if misspecified:
            none, known = f"the paper has no misspecified {kind.value} prior", ", ".join(PAPER)
            fail("--misspecified", f"{none}; there is one for {known}")
        if kind is Kind.headlines:
            from priorwise.experiments.headlines import headline_log

            typer.echo(headline_log(seed=0), nl=False)
            return
        from priorwise import families

        name, parameters = OTHERS[kind]
        typer.echo(getattr(families, name)(**parameters).to_json())
        return
    from priorwise.experiments import problems

    problem = problems.ALL[PAPER[kind]]()
    typer.echo((problem.misspecified if misspecified else problem.prior).to_json())
