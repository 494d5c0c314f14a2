"""The command line: one file per command."""

import os
import signal
from typing import Annotated

import typer

from priorwise._starting import INTERRUPTED, is_command, leave
from priorwise.cli import (
    backtest,
    bound,
    certify,
    example,
    fit,
    keys,
    recommend,
    refit,
    reproduce,
    simulate,
)
from priorwise.cli import serve as live
from priorwise.cli.output import Command, Group, plain_where_needed

app = typer.Typer(
    cls=Group,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def _priorwise(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Many short decision tasks that resemble each other: which policy earns most, and what a \
wrong prior costs.

    \b
    [bold]Start here[/]
    priorwise example gaussian > prior.json
    priorwise simulate prior.json --policy ts --policy sum:8 --policy greedy --horizon 10 --seed 0
    """  # noqa: D301 - a backspace keeps Typer from joining the lines
    plain_where_needed()
    if version:
        from priorwise import __version__

        typer.echo(f"priorwise {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command(cls=Command, help=fit.HELP)(fit.fit)
app.command(cls=Command, help=certify.HELP)(certify.certify)
app.command(cls=Command, help=recommend.HELP)(recommend.recommend)
app.command(cls=Command, help=backtest.HELP)(backtest.backtest)
app.command(cls=Command, help=simulate.HELP)(simulate.simulate)
app.command(cls=Command, help=bound.HELP)(bound.bound)
app.command(cls=Command, help=live.HELP)(live.serve)
app.add_typer(keys.app, name="keys")
app.command(cls=Command, help=refit.HELP)(refit.refit)
app.command(cls=Command)(example.example)
app.command(cls=Command, help=reproduce.HELP)(reproduce.reproduce)


def main() -> None:
    """Run the command line."""
    # from here on, an interruption is an exception: files are tidied up
    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # figures go to files; a name in the environment may be of no backend at all
    os.environ["MPLBACKEND"] = "agg"
    try:
        app()
    # before a command began, or once more while the first was being dealt with
    except KeyboardInterrupt:
        os.write(2, b"Interrupted.\n")
        os._exit(INTERRUPTED)
    finally:
        if is_command():
            # all is done but what Python itself tidies up
            signal.signal(signal.SIGINT, signal.SIG_DFL)
