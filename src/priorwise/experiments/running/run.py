"""Runs experiments: blocks in parallel, each stored as it finishes, then tables, figures and
claims.

What is written depends on the experiment, the seed and the replicates, never on where it ran, the
number of processes, or how often the work was interrupted: tables are made of the stored blocks,
figures and claims of the stored tables.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, final, runtime_checkable

from priorwise.core import sizes, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.progress import Progress, progress_of
from priorwise.experiments.experiment import WARM_UP, Block, Claim, Experiment, Files, WarmsUp
from priorwise.experiments.running import BLOCKS, Where, store
from priorwise.experiments.running.parquet import read_parquet, to_parquet
from priorwise.experiments.running.store import BlockStore, Finished, write_whole
from priorwise.experiments.running.workers import Call, Workers, start_workers
from priorwise.figures.tables import Table

DRAWS_PER_REPLICATE: Final = 1e7
"""Of a large experiment, about."""


@runtime_checkable
class Costed(Protocol):
    """An experiment that knows how long its blocks take; without it, they count alike in the time
    left.
    """

    def cost(self, block: Block) -> float:
        """Time that a block takes, in units that are the same for all of them."""
        ...


@final
@dataclass(frozen=True)
class Outcome:
    """What came out of one experiment."""

    name: str
    title: str
    constants: Mapping[str, Any]
    digest: str
    tables: Mapping[str, Table]
    figures: Mapping[str, Files]
    claims: tuple[Claim, ...]
    # on the wall, in this call, since the experiment before was done, without compiling
    seconds: float
    block_seconds: float  # of all blocks together, when they ran
    blocks: int
    resumed: int  # blocks that were there already, and cost nothing in this call
    # on the wall, about: what all workers spent on it, divided by their number
    compiling: float = 0.0

    @property
    def failed(self) -> tuple[Claim, ...]:
        """Claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)


@final
@dataclass(frozen=True)
class Results:
    """What came out of all experiments, and how."""

    outcomes: tuple[Outcome, ...]
    seed: int
    replicates: int
    out: Path
    workers: str  # how many, and where
    # of earlier calls with the same seed, replicates and sources; nothing of them ran now
    kept: tuple[Outcome, ...] = ()
    # experiments that earlier calls left in ``out`` with another seed, replicates or sources
    stale: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Outcome, ...]:
        """What the report shows: what ran now, then what is kept."""
        return (*self.outcomes, *self.kept)

    @property
    def seconds(self) -> float:
        """Time on the wall, compiling included."""
        return sum(each.seconds + each.compiling for each in self.outcomes)

    @property
    def compiling(self) -> float:
        """Time on the wall that compiling took, about."""
        return sum(each.compiling for each in self.outcomes)

    @property
    def failed(self) -> tuple[Claim, ...]:
        """Claims that do not hold."""
        return tuple(claim for each in self.outcomes for claim in each.failed)


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    seed: int,
    replicates: int,
    out: Path,
    jobs: int | None = None,
    where: Where = "local",
    scheduler: str | None = None,
    progress: bool | None = None,
    others: Sequence[Experiment] = (),
) -> Results:
    """Run experiments, and write their tables and figures.

    Finished blocks are kept in ``out/blocks``. Interrupted at any moment, even killed, the same
    call goes on from there and writes the same tables, bit for bit.

    Parameters
    ----------
    experiments
        One after the other, the blocks of each in parallel.
    seed, replicates
        Of every experiment.
    out
        Directory for ``<experiment>/<table>.parquet``, ``<experiment>/<figure>.png`` and ``.svg``,
        and the blocks. One run at a time.
    jobs
        Worker processes; by default one for each processor. Not used with a scheduler.
    where, scheduler
        ``"local"``: processes on this machine. ``"dask"``: the Dask cluster at the address
        ``scheduler``, or one on this machine.
    progress
        Show a progress bar with the time left: True always, False never, None on a terminal if it
        takes long.
    others
        Experiments that earlier calls may have finished in ``out``: those whose blocks are all
        there, made with this seed, these replicates and this code, are listed among the results as
        ``kept``; those with other blocks as ``stale``. None of them runs.
    """
    validation.one_of("where", where, Where)
    if jobs is not None:
        validation.count("jobs", jobs)
    check_replicates(replicates)
    _check_names([*experiments, *others])
    work = [_prepare(each, validation.seed(seed), replicates, out) for each in experiments]
    total = sum(each.cost(block) for each in work for block in each.blocks)
    bar_of = progress_of(total, "", shown=progress, parallel=None)
    with store.claimed(out), start_workers(where, jobs, scheduler) as workers, bar_of as bar:
        outcomes = _run(work, workers, bar)
        kept, stale = [], []
        for each in (_prepare(other, seed, replicates, out) for other in others):
            done = each.stored()
            if len(done) == len(each.blocks):
                kept.append(each.finish(done))
            elif (out / each.experiment.name).is_dir():
                stale.append(each.experiment.name)
        about = workers.about
        return Results(tuple(outcomes), seed, replicates, out, about, tuple(kept), tuple(stale))


def check_replicates(replicates: int) -> int:
    """Return a number of replicates that someone may wait for."""
    draws = DRAWS_PER_REPLICATE * sizes.as_float(validation.count("replicates", replicates))
    sizes.check_work("replicates", replicates, draws, "lower replicates")
    return replicates


def _check_names(experiments: Sequence[Experiment]) -> None:
    names = [each.name for each in experiments]
    for name in names:
        if not name.replace("-", "_").isidentifier() or name == BLOCKS or names.count(name) > 1:
            raise ArgumentError(
                "experiments",
                f"need names that differ and can name a directory other than {BLOCKS!r}",
                got=name,
            )


def _run(work: "Sequence[_Work]", workers: Workers, bar: Progress) -> list[Outcome]:
    """Run the blocks of one experiment after the other; tables and figures are made while the next
    one's blocks run.
    """
    marks = [time.perf_counter()]
    spent: list[float] = []
    finishing: list[Future[Outcome]] = []
    # each worker compiles something else for the experiments after the first, the longest first
    missing = [each for each in work if isinstance(each.experiment, WarmsUp) and each.lacks_blocks]
    ahead = [each.call(WARM_UP) for each in reversed(missing[1:])]
    with ThreadPoolExecutor(1) as pool:
        for each in work:
            bar.say(f"{each.experiment.name}, compiling first" if ahead else each.experiment.name)
            done, compiling = each.run(workers, bar, ahead)
            spent.append(compiling / workers.count)
            finishing.append(pool.submit(each.finish, done))
            ahead = []
            finishing[-1].add_done_callback(lambda _: marks.append(time.perf_counter()))
        outcomes = [future.result() for future in finishing]
    return [
        replace(outcome, seconds=max(end - start - compiling, 0.0), compiling=compiling)
        for outcome, start, end, compiling in zip(outcomes, marks, marks[1:], spent, strict=False)
    ]


_Done = dict[Block, tuple[Finished, bool]]
"""Finished blocks, each with whether it ran now."""


@final
@dataclass(frozen=True)
class _Work:
    """An experiment, its blocks, and where what they return is kept."""

    experiment: Experiment
    seed: int
    replicates: int
    out: Path
    store: BlockStore
    blocks: tuple[Block, ...]

    @property
    def lacks_blocks(self) -> bool:
        return any(not self.store.path(block).exists() for block in self.blocks)

    def cost(self, block: Block) -> float:
        return self.experiment.cost(block) if isinstance(self.experiment, Costed) else 1.0

    def call(self, block: Block) -> Call:
        return Call(self.experiment, block, self.seed, store.code_stamp())

    def stored(self) -> _Done:
        found = {block: self.store.load(block) for block in self.blocks}
        return {block: (each, False) for block, each in found.items() if each is not None}

    def run(self, workers: Workers, bar: Progress, ahead: Sequence[Call]) -> tuple[_Done, float]:
        """Read the blocks that are there and run the others, longest first, after what is to run
        ahead; and sum what they compiled.

        What ran now is read back too: arrays come from the same files, in the same layout, whenever
        they were made.
        """
        out, compiling = self.stored(), 0.0
        for block in out:
            bar.skip(self.cost(block))
        missing = (block for block in self.blocks if block not in out)
        calls = [*ahead, *map(self.call, sorted(missing, key=self.cost, reverse=True))]
        if calls:
            with closing(workers.run(calls)) as running:
                for block, finished in running:
                    compiling += finished.compiling
                    if block == WARM_UP:
                        continue
                    self.store.save(block, finished)
                    written = self.store.load(block)
                    if written is None:
                        raise OSError(
                            f"{self.store.path(block)} does not hold what was just written to it; "
                            "is the disk full or failing?"
                        )
                    out[block] = written, True
                    bar.advance(self.cost(block))
        return out, compiling

    def finish(self, done: _Done) -> Outcome:
        """Make tables of the blocks, then figures and claims of the tables."""
        experiment = self.experiment
        directory = self.out / experiment.name
        about = {"experiment": experiment.name, "seed": self.seed, "replicates": self.replicates}
        tables = experiment.tables([(block, done[block][0].arrays) for block in self.blocks])
        for name, table in tables.items():
            write_whole(directory / f"{name}.parquet", to_parquet(name, table, about))
        tables = {name: read_parquet(directory / f"{name}.parquet") for name in tables}
        claims = tuple(experiment.claims(tables))
        figures = experiment.figures(tables)
        for name, files in figures.items():
            for suffix, content in files.items():
                write_whole(directory / f"{name}.{suffix}", content)
        return Outcome(
            name=experiment.name,
            title=experiment.title,
            constants=experiment.constants(),
            digest=self.store.digest,
            tables=tables,
            figures=figures,
            claims=claims,
            seconds=0.0,
            block_seconds=sum(finished.seconds for finished, _ in done.values()),
            blocks=len(self.blocks),
            resumed=sum(not fresh for _, fresh in done.values()),
        )


def _prepare(experiment: Experiment, seed: int, replicates: int, out: Path) -> "_Work":
    digest = store.digest_of(experiment, seed)
    kept = BlockStore(out / BLOCKS / experiment.name / digest, digest)
    return _Work(experiment, seed, replicates, out, kept, tuple(experiment.blocks(replicates)))
