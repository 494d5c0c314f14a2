"""``priorwise reproduce``: the experiments, from simulation to tables, figures, claims and a
report.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, get_args

import typer

from priorwise.cli.inputs import argument, at_least_one, few, number, seed_range, word
from priorwise.cli.output import fail, out_directory, output, unwritten
from priorwise.experiments import registry
from priorwise.experiments.registry import FULL_SIZE
from priorwise.experiments.running import BLOCKS, Where

QUICK_REPLICATES: Final = 8
PLACES: Final = "|".join(get_args(Where))
REPLICATES: Final = (
    "Independent repetitions of each experiment; four times as many halve the standard errors."
)
SCHEDULER: Final = (
    "Dask scheduler, such as tcp://localhost:8786; without it, --where dask starts a cluster here."
)

_GROUPS: Final = "\n".join(
    f"[cyan]{group:<9}[/] {', '.join(names)}" for group, names in registry.groups().items()
)

HELP: Final = f"""\
Run the experiments: the paper's figures, and its claims held against what is measured.

Writes tables (Parquet), figures and one page with everything, report.html. The page keeps the \
sections of experiments that earlier calls ran with the same seed, replicates and sources. Ends \
with 1 if a claim does not hold, unless there are fewer than {FULL_SIZE} replicates: then it may \
fail by chance.

It may be interrupted at any moment, even killed: finished blocks are kept, and the same command \
goes on from there and writes the same tables. They do not depend on the number of processes, nor \
on where they run.

\b
[bold]Examples[/]
[dim]# everything; the report says what holds[/]
priorwise reproduce
[dim]# one experiment, only to see it work[/]
priorwise reproduce gaussian --quick --out look
[dim]# the paper again with other random numbers, and more of them[/]
priorwise reproduce paper --seed 7 --replicates 400 --out seed7
[dim]# on a cluster: start a scheduler and workers, then name the scheduler[/]
dask scheduler --port 8786
dask worker tcp://localhost:8786 --nworkers 4 --nthreads 1
priorwise reproduce --where dask --scheduler tcp://localhost:8786

\b
[bold]What there is[/]
{_GROUPS}
"""


def reproduce(
    target: Annotated[
        list[str] | None, argument("Experiments or groups of them.", "TARGET", "all")
    ] = None,
    replicates: Annotated[int | None, number(REPLICATES, at_least_one, str(FULL_SIZE))] = None,
    seed: Annotated[
        int,
        number("A whole number from 0 on; the same seed gives the same tables.", seed_range, True),
    ] = 0,
    out: Annotated[
        str, word("Directory for report.html, tables, figures and blocks.", "DIR", shown=True)
    ] = "out",
    where: Annotated[
        str,
        word("This machine, or a Dask cluster.", PLACES, "--where", "--engine", shown=True),
    ] = "local",
    scheduler: Annotated[str | None, word(SCHEDULER, "ADDRESS")] = None,
    jobs: Annotated[int | None, number("Processes on this machine.", few, "all processors")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Only {QUICK_REPLICATES} replicates, to see it work.")
    ] = False,
) -> None:
    """Check, run, write, judge."""
    from priorwise.experiments.running.report import NAME, write_report
    from priorwise.experiments.running.run import check_replicates, run_experiments
    from priorwise.experiments.running.store import InUseError
    from priorwise.experiments.running.summary import print_summary, reduced
    from priorwise.experiments.running.workers import WorkersError

    place = _where(where, scheduler, jobs)
    if quick and replicates is not None:
        fail("--quick", f"means --replicates {QUICK_REPLICATES}; leave out one of the two")
    count = check_replicates(QUICK_REPLICATES if quick else replicates or FULL_SIZE)
    names = registry.names_of(target or [registry.ALL])
    chosen = [registry.load(name) for name in names]
    directory = out_directory(out, files=(NAME,), folders=(BLOCKS, *names))
    left = [name for name in registry.EXPERIMENTS if (directory / name).is_dir()]
    others = [registry.load(name) for name in left if name not in names]
    with _interrupts_resume(directory):
        try:
            results = run_experiments(
                chosen,
                seed=seed,
                replicates=count,
                out=directory,
                jobs=jobs,
                where=place,
                scheduler=scheduler,
                progress=sys.stderr.isatty(),
                others=others,
            )
            report = write_report(results)
        except InUseError as error:
            fail("--out", f"{error}; wait for it, or choose another directory")
        except OSError as error:
            unwritten(error)
        except WorkersError as error:
            fail("--scheduler" if scheduler else "--where" if place == "dask" else "--jobs", error)
    print_summary(results, report, output())
    if results.failed and not reduced(results):
        raise typer.Exit(1)


def _where(where: str, scheduler: str | None, jobs: int | None) -> Where:
    known = {word: word for word in get_args(Where)}
    if where not in known:
        fail("--where", f"{where!r} is not one of {', '.join(known)}")
    if scheduler is not None and not scheduler.strip():
        address = "name an address such as tcp://localhost:8786"
        fail("--scheduler", f"is empty; {address}, or leave it out for a local cluster")
    if scheduler is not None and where != "dask":
        fail("--scheduler", "only for a Dask cluster; add --where dask")
    if scheduler is not None and jobs is not None:
        fail("--jobs", "the cluster has its own number of workers; leave out --jobs or --scheduler")
    return known[where]


@contextmanager
def _interrupts_resume(out: Path) -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does, and say in both cases that nothing is lost."""
    handles = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if handles else None
    try:
        yield
    except KeyboardInterrupt:
        kept = f"Finished blocks are kept in {out / BLOCKS}: the same command goes on from there."
        raise KeyboardInterrupt(kept) from None
    finally:
        if handles:
            signal.signal(signal.SIGTERM, before)
