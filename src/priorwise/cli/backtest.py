"""``priorwise backtest``: what policies would have earned on the later tasks of a log."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from priorwise.cli import columns, inputs
from priorwise.cli.fit import ArmsAre
from priorwise.cli.inputs import argument, number, word
from priorwise.cli.output import fail, finish, finite, results_directory

if TYPE_CHECKING:
    from rich.console import Console

HELP: Final = """What would policies have earned on the later tasks of a log?

Learns a prior from the earlier tasks and replays the later ones: the k-th pull of an arm earns \
the k-th of its recorded rewards, in an order drawn once for all policies. Each policy plays with \
the learned prior and with a vague one. Prints a table (reward, share of the gap between any arm \
and the best one in hindsight, what simulation had predicted) and what it means in words.

Rewards other than 0 and 1 need a log with one row per pull.

\b
[bold]Examples[/]
priorwise example headlines > log.csv
priorwise backtest log.csv -p greedy -p ts --family beta:exchangeable \\
    --horizon 50 --seed 0
[dim]# tasks by time; decisions are made after every 20 pulls[/]
priorwise backtest visits.parquet --time started -p ts --horizon 200 --batch 20 --seed 0
"""

TIME: Final = "When a row was; without it, tasks come in the order of the log."
PROPENSITY: Final = (
    "How likely the recorded action was; adds inverse-propensity and doubly robust estimates."
)


def _share(value: float) -> float:
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must lie between 0 and 1, got {value:g}")
    return value


def backtest(
    log: Annotated[str, argument("Parquet, CSV or Arrow file of past tasks.", "LOG")],
    policy: Annotated[
        list[str],
        word("A policy, such as ts or sum:8; repeat it to compare.", "WORD", "--policy", "-p"),
    ],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    batch: Annotated[
        int, number("Rewards are seen after every so many pulls.", inputs.at_least_one, True)
    ] = 1,
    time: Annotated[str | None, word(TIME, "COLUMN")] = None,
    train: Annotated[
        float, number("Share of the tasks, the earliest, to learn from.", _share, True)
    ] = 0.5,
    family: columns.FamilyName = "auto",
    task: columns.Task = None,
    action: columns.Action = None,
    reward: columns.Reward = None,
    pulls: columns.Pulls = None,
    squares: columns.Squares = None,
    propensity: Annotated[str | None, word(PROPENSITY, "COLUMN")] = None,
    arms: Annotated[
        ArmsAre, typer.Option(help="Do tasks share their arms, or has each new ones?")
    ] = ArmsAre.auto,
    noise_var: columns.NoiseVar = None,
    drop_missing: columns.DropMissing = False,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, learn, replay, write."""
    from priorwise.advise.backtesting import backtest as replay

    directory = results_directory("backtest", out, as_json)
    policies = {each: inputs.read_policy(each) for each in policy}
    if len(policies) < len(policy):
        twice = next(each for each in policy if policy.count(each) > 1)
        fail("--policy", f"{twice} is given twice; leave one out")
    try:
        found = replay(
            log, policies, horizon=horizon, seed=seed, batch=batch, time=time, train=train,
            family=family, task=task, action=action, reward=reward, pulls=pulls,
            squares=squares, propensity=propensity, arms=arms.value, noise_var=noise_var,
            missing="drop" if drop_missing else "refuse", progress=False if quiet else None,
        )  # fmt: skip
    except (ModuleNotFoundError, OSError, TypeError, ValueError) as error:
        fail("LOG", error)
    table = found.table()
    rows = [
        {name: finite(cells[i]) for name, cells in table.items()} for i in range(len(found.lines))
    ]
    ends: Any = {"uniform": float(found.uniform.mean()), "best": float(found.best.mean())}
    size = {"tasks": len(found.uniform), "horizon": horizon, "batch": batch, "seed": seed}
    text = json.dumps({**size, "prior": found.fit.chosen, **ends, "policies": rows}, indent=1)

    def show(console: "Console") -> None:
        console.print(f"{found}\n\n{found.card}", markup=False, soft_wrap=True)

    picture = found.figure() if directory is not None else {}
    finish("backtest", directory, picture, text, None if as_json or quiet else show)
    if as_json:
        typer.echo(text)
