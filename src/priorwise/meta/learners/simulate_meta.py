"""``simulate_meta``: a learner meets a sequence of tasks, many times over.

Episode e = 0, 1, ... of replicate r is task number ``r 2^32 + e`` of the seed's streams. So every
learner meets the same tasks with the same reward noise, learners are compared in pairs, and nothing
depends on how replicates are spread over processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import joblib
import numpy as np

from priorwise.core import doors, sizes, validation
from priorwise.core.progress import progress_of
from priorwise.core.protocols import Prior
from priorwise.core.runs import Trajectory, joined, trajectory_of
from priorwise.core.streams import Purpose, Stream, task_keys
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
    episodes, replicates = (
        validation.count("episodes", episodes),
        validation.count("replicates", replicates),
    )
    horizon, seed = validation.count("horizon", horizon), validation.seed(seed)
    first = validation.count("first", first, least=0)
    for name, value in (
        ("episodes", episodes),
        ("first + replicates" if first else "replicates", first + replicates),
    ):
        if value >= NUMBERS:
            raise ValueError(f"{name} must be below 2**32, got {value}")
    keep = validation.flag("keep", keep)
    doors.fixed_prior("prior", prior)
    _check_learner(learner)
    policy = getattr(learner, "policy", None)
    check_run(
        prior,
        # a class is refused below, where the learner starts
        [None if isinstance(policy, type) else policy],
        horizon=horizon,
        tasks=episodes,
        times=replicates,
        named="episodes",
        times_named="replicates",
    )
    sizes.check_work(
        f"replicates={sizes.amount(replicates)}",
        float(replicates) * REPLICATE_DRAWS,
        "lower replicates",
    )
    pulls = KEPT_BYTES * horizon if keep else 0
    sizes.check_memory(
        f"replicates={sizes.amount(replicates)} of episodes={sizes.amount(episodes)}"
        + (" with keep=True" if keep else ""),
        replicates * (200.0 + episodes * (8.0 + pulls)),
        "lower replicates or episodes" + (", or leave keep out" if keep else ""),
    )
    doors.arms_to_mask(prior, available)
    mask = validation.availability("available", available, episodes, prior.arms)
    _check_start(prior, learner, horizon, seed, first, engine, masked=mask is not None)
    workers = _workers(jobs, replicates)
    one = (prior, learner, episodes, horizon, seed, keep, engine, mask)
    size = max(1, -(-replicates // (PARTS * workers))) if workers > 1 else 1
    parts = [
        range(first + start, first + min(start + size, replicates))
        for start in range(0, replicates, size)
    ]
    rewards = np.empty((replicates, episodes))
    kept: list[Replicate] = []
    with progress_of(replicates, "replicates", shown=progress, parallel=workers) as bar:
        for part, results in zip(parts, _run_parts(parts, workers, one), strict=True):
            for replicate, (totals, rest) in zip(part, results, strict=True):
                rewards[replicate - first] = totals
                kept += [] if rest is None else [rest]
            bar.advance(len(part))
    return MetaRun(rewards, horizon, seed, prior, tuple(kept) if keep else None, first)


Result = tuple[FloatArray, Replicate | None]


def _run_parts(parts: list[range], workers: int, one: tuple[Any, ...]) -> Iterator[list[Result]]:
    if workers == 1:
        yield from (_run_part(part, *one) for part in parts)
    else:
        yield from joblib.Parallel(n_jobs=workers, return_as="generator")(
            joblib.delayed(_run_part)(part, *one) for part in parts
        )


def _run_part(part: range, *one: Any) -> list[Result]:
    return [_run_replicate(replicate, *one) for replicate in part]


def _run_replicate(
    replicate: int,
    prior: Prior,
    learner: MetaLearner,
    episodes: int,
    horizon: int,
    seed: int,
    keep: bool,
    engine: Engine,
    mask: BoolArray | None,
) -> Result:
    """Alternate between the learner's plans and blocks of episodes."""
    keys = _learner_keys(seed, replicate)
    state = learner.init(_setting(prior, horizon, keys))
    totals = np.empty(episodes)
    history: list[Held] = []
    columns: list[Trajectory] = []
    first_number, done = replicate * NUMBERS, 0
    held: Play | None = None
    chosen, largest = None, 0
    while done < episodes:
        play = learner.plan(state, Stream(keys, done + 1))
        if held is None or play.believed is not held.believed or play.policy is not held.policy:
            doors.believed(prior, play.believed)  # the compiled loop trusts its sizes
            if (
                held is None
                or play.policy is not held.policy
                or type(play.believed) is not type(held.believed)
            ):
                doors.playing(play.policy, play.believed, memory=True)
            masked = mask is not None
            chosen = choose(
                prior, play.believed, play.policy, horizon, masked=masked, engine=engine
            )
            largest = _largest_block(chosen, play, horizon)
        held = play
        assert chosen is not None
        count = min(play.episodes, episodes - done, largest)
        block = chosen.run(
            seed=seed,
            first=first_number + done,
            tasks=count,
            horizon=horizon,
            available=None if mask is None else mask[done : done + count],
            keep=True,
        )
        played = trajectory_of([block])
        state = learner.step(state, play, played)
        totals[done : done + count] = block.totals
        if keep:
            history.append(Held(done + 1, count, play.policy, play.believed))
            columns.append(played)
        done += count
    return totals, Replicate(state, tuple(history), joined(columns)) if keep else None


def _check_start(
    prior: Prior,
    learner: MetaLearner,
    horizon: int,
    seed: int,
    replicate: int,
    engine: Engine,
    *,
    masked: bool,
) -> None:
    """Start the learner once, so that what it cannot learn from such tasks is refused here and not
    inside a worker.
    """
    keys = _learner_keys(seed, replicate)
    play = learner.plan(learner.init(_setting(prior, horizon, keys)), Stream(keys, 1))
    if not isinstance(play, Play):
        raise TypeError(
            f"{type(learner).__name__}.plan must return a Play(policy, believed, episodes), got "
            f"{type(play).__name__}"
        )
    doors.believed(prior, play.believed)
    doors.playing(play.policy, play.believed, memory=True)
    choose(prior, play.believed, play.policy, horizon, masked=masked, engine=engine)


def _setting(prior: Prior, horizon: int, keys: UIntArray) -> Setting:
    return Setting(prior, horizon, int(Stream(keys, 0).bits()[0]))


def _learner_keys(seed: int, replicate: int) -> UIntArray:
    """Key of the learner's own random numbers: their task number is that of no episode."""
    return task_keys(
        seed, Purpose.POLICY, np.array([replicate * NUMBERS + NUMBERS - 1], dtype=np.uint64)
    )


def _largest_block(chosen: Runner, play: Play, horizon: int) -> int:
    literal = chosen.engine == "numpy"
    largest = entries(play.believed, play.believed.belief(1)) if literal else 1
    return block_size(horizon, largest, {chosen.engine})


def _workers(jobs: int | None, replicates: int) -> int:
    if jobs is not None:
        return min(validation.count("jobs", jobs), replicates)
    configured = int(joblib.effective_n_jobs(None))
    return min(configured if configured > 1 else available_threads(), replicates)


def _check_learner(learner: Any) -> None:
    if isinstance(learner, type):
        raise TypeError(
            f"learner must be a meta-learner, not the class {learner.__name__}: pass "
            f"{learner.__name__}(...)"
        )
    for method in ("init", "plan", "step"):
        if not hasattr(learner, method):
            name = type(learner).__name__
            hint = (
                f"; FixedPrior({name}()) plays a policy that learns nothing"
                if hasattr(learner, "act")
                else ""
            )
            raise TypeError(
                f"learner must be a meta-learner with init, plan and step, but {name} has no "
                f"{method}{hint}"
            )
