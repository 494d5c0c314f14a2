"""``simulate_meta``: a learner meets a sequence of tasks, many times over.

Episode e = 0, 1, ... of replicate r is task number ``r 2^32 + e`` of the seed's streams. So every
learner meets the same tasks with the same reward noise, learners are compared in pairs, and nothing
depends on how replicates are spread over processes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import joblib
import numpy as np

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.hashing import task_keys
from priorwise.core.progress import progress_of
from priorwise.core.protocols import Prior
from priorwise.core.streams import Purpose, Stream
from priorwise.core.trajectories import Trajectory, joined, trajectory_of
from priorwise.core.types import BoolArray, FloatArray, UIntArray
from priorwise.meta.learners.learner import MetaLearner, Play, Setting
from priorwise.meta.learners.meta_run import Held, MetaRun, Replicate
from priorwise.simulate.engine import Engine, Runner, choose
from priorwise.simulate.sizes import KEPT_BYTES, available_threads, block_size, check_run, entries

NUMBERS: Final = 1 << 32
"""Task numbers that a replicate has; the last one is the learner's own."""

REPLICATE_DRAWS: Final = 2e5
"""Draws that take as long as the bookkeeping of a replicate: milliseconds."""

PARTS: Final = 4
"""Parts of each process's share of the replicates, to even out the load."""


def simulate_meta(
    prior: Prior,
    learner: MetaLearner,
    *,
    episodes: int,
    replicates: int,
    horizon: int,
    seed: int,
    available: Any = None,
    jobs: int | None = None,
    progress: bool | None = None,
    keep: bool = False,
    engine: Engine = "auto",
    first: int = 0,
) -> MetaRun:
    """Estimate what a meta-learner earns: ``episodes`` tasks one after the other, drawn from a
    prior it does not know.

    Parameters
    ----------
    prior
        The law the tasks are drawn from.
    learner
        The meta-learner; :class:`~priorwise.meta.learners.learner.FixedPrior` for an oracle or a
        prior that is never learned.
    episodes, replicates
        Tasks in a sequence, and number of independent sequences.
    horizon
        Pulls in a task.
    seed
        The same seed gives the same tasks and noise to every learner, and the same numbers whatever
        ``jobs`` and ``engine``.
    available
        Which arms may be pulled, boolean, ``(arm,)`` or ``(episode, arm)``; the same in every
        replicate.
    jobs
        Processes, through joblib. With 1 everything runs in this process; by default what
        ``joblib.parallel_config`` says, else one process for each processor.
    progress
        Show a progress bar, with the time it will take: True always, False never, None on a
        terminal if it takes long.
    keep
        Keep actions and step rewards, what the learner held and when, and its last state.
    engine
        As in :func:`~priorwise.simulate.run.simulate`.
    first
        Number of the first replicate; to run a part of them here and the rest elsewhere.

    Examples
    --------
    >>> import priorwise as pw
    >>> from priorwise.meta.learners.learner import FixedPrior
    >>> prior = pw.GaussianPrior(mean=[0.5, 0.0], cov=[[1.0, 0.9], [0.9, 1.0]])
    >>> options = dict(episodes=50, replicates=20, horizon=10, seed=0, jobs=1)
    >>> oracle = simulate_meta(prior, FixedPrior(pw.ThompsonSampling()), **options)
    >>> wrong = simulate_meta(
    ...     prior, FixedPrior(pw.ThompsonSampling(), pw.GaussianPrior([0, 9], np.eye(2))), **options
    ... )
    >>> bool(wrong.shortfall(oracle).mean > 0)
    True

    """
    episodes = validation.count("episodes", episodes)
    replicates = validation.count("replicates", replicates)
    horizon, seed = validation.count("horizon", horizon), validation.seed(seed)
    first = validation.count("first", first, least=0)
    last = "first + replicates" if first else "replicates"
    for name, value in (("episodes", episodes), (last, first + replicates)):
        if value >= NUMBERS:
            raise ArgumentError(name, "must be below 2**32", got=value)
    keep = validation.flag("keep", keep)
    argument_checks.fixed_prior("prior", prior)
    _check_learner(learner)
    policy = getattr(learner, "policy", None)
    # a class raises an error below, where the learner starts
    players = [None if isinstance(policy, type) else policy]
    size: Any = {"horizon": horizon, "tasks": episodes, "times": replicates}
    check_run(prior, players, **size, named="episodes", times_named="replicates")
    sizes.check_work(
        "replicates", replicates, float(replicates) * REPLICATE_DRAWS, "lower replicates"
    )
    sizes.check_memory(
        "replicates",
        f"{sizes.amount(replicates)} of {sizes.amount(episodes)} "
        f"episodes{', kept,' if keep else ''}",
        replicates * (200.0 + episodes * (8.0 + (KEPT_BYTES * horizon if keep else 0))),
        "lower replicates or episodes" + (", or leave keep out" if keep else ""),
    )
    argument_checks.arms_to_mask(prior, available)
    mask = validation.availability("available", available, episodes, prior.arms)
    meta = _Meta(prior, learner, episodes, horizon, seed, keep, engine, mask)
    meta.check(first)
    workers = _workers(jobs, replicates)
    part_size = max(1, -(-replicates // (PARTS * workers))) if workers > 1 else 1
    numbers = range(first, first + replicates)
    parts = [numbers[i : i + part_size] for i in range(0, replicates, part_size)]
    rewards = np.empty((replicates, episodes))
    kept: list[Replicate] = []
    with progress_of(replicates, "replicates", shown=progress, parallel=workers) as bar:
        for part, results in zip(parts, meta.run_parts(parts, workers), strict=True):
            for replicate, (totals, rest) in zip(part, results, strict=True):
                rewards[replicate - first] = totals
                kept += [] if rest is None else [rest]
            bar.advance(len(part))
    return MetaRun(rewards, horizon, seed, prior, tuple(kept) if keep else None, first)


Result = tuple[FloatArray, Replicate | None]


@final
@dataclass(frozen=True, eq=False)
class _Meta:
    """What all replicates share; a value that travels to workers."""

    prior: Prior
    learner: MetaLearner
    episodes: int
    horizon: int
    seed: int
    keep: bool
    engine: Engine
    mask: BoolArray | None

    def run_parts(self, parts: list[range], workers: int) -> Iterator[list[Result]]:
        if workers == 1:
            yield from map(self.run_part, parts)
        else:
            yield from joblib.Parallel(n_jobs=workers, return_as="generator")(
                joblib.delayed(self.run_part)(part) for part in parts
            )

    def run_part(self, part: range) -> list[Result]:
        return [self.run(replicate) for replicate in part]

    def run(self, replicate: int) -> Result:
        """Alternate between the learner's plans and blocks of episodes."""
        keys, state = self._start(replicate)
        totals = np.empty(self.episodes)
        history: list[Held] = []
        columns: list[Trajectory] = []
        done = 0
        held: Play | None = None
        chosen, largest = None, 0
        while done < self.episodes:
            play = self.learner.plan(state, Stream(keys, done + 1))
            if held is None or play.believed is not held.believed or play.policy is not held.policy:
                argument_checks.believed(
                    self.prior, play.believed
                )  # the compiled loop trusts its sizes
                if (
                    held is None
                    or play.policy is not held.policy
                    or type(play.believed) is not type(held.believed)
                ):
                    argument_checks.playing(play.policy, play.believed, memory=True)
                chosen = self._choose(play)
                literal = chosen.engine == "numpy"
                numbers = entries(play.believed, play.believed.belief(1)) if literal else 1
                largest = block_size(self.horizon, numbers, {chosen.engine})
            held = play
            assert chosen is not None
            count = min(play.episodes, self.episodes - done, largest)
            block = chosen.run(
                seed=self.seed,
                first=replicate * NUMBERS + done,
                tasks=count,
                horizon=self.horizon,
                available=None if self.mask is None else self.mask[done : done + count],
                keep=True,
            )
            played = trajectory_of([block])
            state = self.learner.step(state, play, played)
            totals[done : done + count] = block.totals
            if self.keep:
                history.append(Held(done + 1, count, play.policy, play.believed))
                columns.append(played)
            done += count
        return totals, Replicate(state, tuple(history), joined(columns)) if self.keep else None

    def check(self, replicate: int) -> None:
        """Start the learner once, so that what it cannot learn from such tasks raises an error here
        and not inside a worker.
        """
        keys, state = self._start(replicate)
        play = self.learner.plan(state, Stream(keys, 1))
        if not isinstance(play, Play):
            raise ArgumentTypeError(
                f"{type(self.learner).__name__}.plan",
                "must return a Play(policy, believed, episodes)",
                got=type(play),
            )
        argument_checks.believed(self.prior, play.believed)
        argument_checks.playing(play.policy, play.believed, memory=True)
        self._choose(play)

    def _start(self, replicate: int) -> tuple[UIntArray, Any]:
        """Key of the learner's random numbers, and its state before the first task."""
        keys = _learner_keys(self.seed, replicate)
        setting = Setting(self.prior, self.horizon, int(Stream(keys, 0).bits()[0]))
        return keys, self.learner.init(setting)

    def _choose(self, play: Play) -> Runner:
        held, masked = (self.prior, play.believed, play.policy), self.mask is not None
        return choose(*held, self.horizon, masked=masked, engine=self.engine)


def _learner_keys(seed: int, replicate: int) -> UIntArray:
    """Key of the learner's own random numbers: their task number is that of no episode."""
    last = replicate * NUMBERS + NUMBERS - 1
    return task_keys(seed, Purpose.POLICY, np.array([last], dtype=np.uint64))


def _workers(jobs: int | None, replicates: int) -> int:
    if jobs is not None:
        return min(validation.count("jobs", jobs), replicates)
    configured = int(joblib.effective_n_jobs(None))
    return min(configured if configured > 1 else available_threads(), replicates)


def _check_learner(learner: Any) -> None:
    if isinstance(learner, type):
        name = learner.__name__
        raise ArgumentTypeError(
            "learner", f"must be a meta-learner, not the class {name}", cure=f"pass {name}(...)"
        )
    for method in ("init", "plan", "step"):
        if not hasattr(learner, method):
            name = type(learner).__name__
            plays = f"; FixedPrior({name}()) plays a policy that learns nothing"
            hint = plays if hasattr(learner, "act") else ""
            raise ArgumentTypeError(
                "learner",
                f"must have init, plan and step, but {name} has no {method}{hint}",
            )
