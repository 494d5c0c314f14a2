"""``priorwise backtest``: what policies would have earned on the later tasks of a log."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from priorwise.cli import inputs
from priorwise.cli.inputs import number, word
from priorwise.cli.output import end, fail, finish, finite, refusing, results_directory
from priorwise.cli.reading import LogFile, Reading, reads_log

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

PROPENSITY: Final = (
    "How likely the recorded action was; adds inverse-propensity and doubly robust estimates."
)
RUN_OUT: Final = (
    "Replay fewer pulls where records do not last: at most this share of them may draw a reward "
    "again."
)


def _share(value: float | None) -> float | None:
    if value is not None and not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must lie between 0 and 1, got {value:g}")
    return value


@reads_log()
def backtest(
    log: LogFile,
    *,
    policy: Annotated[
        list[str],
        word("A policy, such as ts or sum:8; repeat it to compare.", "WORD", "--policy", "-p"),
    ],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    batch: inputs.Batch = 1,
    train: Annotated[
        float, number("Share of the tasks, the earliest, to learn from.", _share, True)
    ] = 0.5,
    most_run_out: Annotated[float | None, number(RUN_OUT, _share, "any share")] = None,
    propensity: Annotated[str | None, word(PROPENSITY, "COLUMN")] = None,
    reading: Reading,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, learn, replay, write."""
    from priorwise.advise.backtesting import backtest as replay
    from priorwise.core.progress import Interrupted

    directory = results_directory("backtest", out, as_json)
    policies = {each: inputs.read_policy(each) for each in policy}
    if len(policies) < len(policy):
        twice = next(each for each in policy if policy.count(each) > 1)
        fail("--policy", f"{twice} is given twice; leave one out")
    inputs.check_batch(batch, horizon)
    how: Any = {"horizon": horizon, "batch": batch, "seed": seed, "train": train}
    how |= {"most_run_out": most_run_out, "propensity": propensity}
    how |= {**reading.options, "progress": False if quiet else None}
    try:
        with refusing():
            found = replay(log, policies, **how)
    except Interrupted as stop:
        found = stop.partial
    table = found.table()
    rows = [
        {name: finite(cells[i]) for name, cells in table.items()} for i in range(len(found.lines))
    ]
    ends: Any = {"uniform": float(found.uniform.mean()), "best": float(found.best.mean())}
    size = {"tasks": len(found.uniform), "horizon": found.horizon, "asked": horizon}
    size |= {"batch": batch, "seed": seed}
    names = {"prior": found.fit.chosen, "chosen": found.chosen, "interrupted": found.interrupted}
    text = json.dumps({**size, **names, **ends, "policies": rows}, indent=1)

    def show(console: "Console") -> None:
        console.print(f"{found}\n\n{found.card}", markup=False, soft_wrap=True)

    picture = found.figure() if directory is not None else {}
    printed = None if as_json or quiet else show
    finish("backtest", directory, picture, text, printed, found.interrupted)
    if as_json:
        typer.echo(text)
    end(found.interrupted)
