"""``simulate`` and ``compare``: one call each, from priors and policies to numbers with standard
errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from priorwise.core import doors, sizes, validation
from priorwise.core.progress import progress_of
from priorwise.core.protocols import MemoryPolicy, Policy, Prior
from priorwise.core.runs import Run
from priorwise.core.tiles import LANES
from priorwise.core.types import BoolArray
from priorwise.simulate.engine import (
    Clock,
    Engine,
    FollowsFirstPulls,
    Plan,
    available_threads,
    block_size,
    entries,
    plan,
    run_blocks,
)
from priorwise.simulate.results import Comparison, PairTally, RunBuilder
from priorwise.simulate.sizes import check_block, check_run

MOST_THREADS: Final = 4096
"""Threads that a run may ask for."""


def simulate(
    prior: Prior,
    policy: Policy | MemoryPolicy,
    *,
    horizon: int,
    tasks: int,
    seed: int,
    believed: Prior | None = None,
    available: Any = None,
    keep: bool = False,
    engine: Engine = "auto",
    threads: int | None = None,
    block: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Estimate what a policy earns: the mean total reward of ``horizon`` pulls over ``tasks`` tasks
    drawn from a prior.

    Parameters
    ----------
    prior
        The law the tasks are drawn from.
    policy
        The algorithm that pulls.
    horizon, tasks
        Pulls in a task, and number of tasks.
    seed
        The same seed gives the same numbers, whatever the threads, blocks and engine; two policies
        on one seed meet the same environments and the same reward noise.
    believed
        The prior the policy holds, if it is not the true one: ``R(theta, alg(theta'))``.
    available
        Which arms may be pulled, boolean, ``(arm,)`` or ``(task, arm)``.
    keep
        Return actions and rewards of every task too, ``(task, step)``.
    engine
        ``"compiled"`` or ``"numpy"``; by default the compiled loop if prior, believed prior and
        policy all take part in it.
    threads
        Of the compiled loop; by default all processors.
    block
        Tasks run at once; memory grows with it, and not with ``tasks`` unless ``keep``.
    progress
        Show a progress bar, with the time it will take: True always, False never, None on a
        terminal if it takes long.

    Examples
    --------
    >>> import priorwise as pw
    >>> prior = pw.GaussianPrior(mean=[0.5, 0.0], cov=[[1.0, 0.9], [0.9, 1.0]])
    >>> run = pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=1000, seed=0)
    >>> bool(run.std_error < 0.5)
    True

    """
    believed = prior if believed is None else believed
    return _run(
        {"": (policy, believed)},
        prior,
        horizon,
        tasks,
        seed,
        available,
        keep,
        engine,
        threads,
        block,
        progress,
    ).runs[""]


def compare(
    prior: Prior,
    policies: Mapping[str, Policy | tuple[Policy, Prior]],
    *,
    horizon: int,
    tasks: int,
    seed: int,
    believed: Prior | None = None,
    available: Any = None,
    keep: bool = False,
    engine: Engine = "auto",
    threads: int | None = None,
    block: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run several policies on the same tasks with the same reward noise, and estimate their paired
    differences.

    ``policies`` maps a name to a policy, or to a pair of a policy and the prior it believes. The
    other parameters are those of :func:`simulate`; each policy's numbers are the same as if it ran
    alone.
    """
    if not isinstance(policies, Mapping) or not policies:
        raise TypeError(
            "policies must be a mapping with at least one {name: policy} or {name: (policy, "
            "believed)}"
        )
    for name, value in policies.items():
        if not isinstance(name, str) or (isinstance(value, tuple) and len(value) != 2):
            raise TypeError(
                "policies must map a name to a policy or to (policy, believed), got "
                f"{validation.shown({name: value})}"
            )
        validation.text("a name in policies", name)
    default = prior if believed is None else believed
    pairs = {
        name: value if isinstance(value, tuple) else (value, default)
        for name, value in policies.items()
    }
    return _run(
        pairs, prior, horizon, tasks, seed, available, keep, engine, threads, block, progress
    )


def _run(
    policies: dict[str, tuple[Any, Prior]],
    prior: Prior,
    horizon: int,
    tasks: int,
    seed: int,
    available: Any,
    keep: bool,
    engine: Engine,
    threads: int | None,
    block: int | None,
    progress: bool | None,
) -> Comparison:
    horizon, tasks, seed = (
        validation.count("horizon", horizon),
        validation.count("tasks", tasks),
        validation.seed(seed),
    )
    keep = validation.flag("keep", keep)
    doors.fixed_prior("prior", prior)
    for policy, believed in policies.values():
        doors.believed(prior, believed)
        doors.playing(policy, believed, memory=True)
        if isinstance(believed, FollowsFirstPulls):
            name = type(believed).__name__
            raise ValueError(
                f"{name} is held by tasks one after the other, which simulate does not play: use "
                "simulate_meta"
            )
    check_run(
        prior, [policy for policy, _ in policies.values()], horizon=horizon, tasks=tasks, keep=keep
    )
    doors.arms_to_mask(prior, available)
    mask: BoolArray | None = validation.availability("available", available, tasks, prior.arms)
    plans: dict[str, Plan] = {
        name: plan(prior, believed, policy, horizon, masked=mask is not None, engine=engine)
        for name, (policy, believed) in policies.items()
    }
    largest = max(entries(held) for _, held in policies.values())
    size = block_size(horizon, largest, {each.engine for each in plans.values()})
    if block is not None:
        size = -(-validation.count("block", block) // LANES) * LANES
    workers = available_threads() if threads is None else validation.count("threads", threads)
    if workers > MOST_THREADS:
        raise ValueError(f"threads must be at most {MOST_THREADS:,}, got {sizes.amount(workers)}")
    check_block(
        prior,
        [policy for name, (policy, _) in policies.items() if plans[name].engine == "numpy"],
        horizon=horizon,
        block=min(size, tasks),
        belief=largest,
        numpy=any(each.engine == "numpy" for each in plans.values()),
        blocks=min(workers, -(-tasks // size)),
    )
    builders = {
        name: RunBuilder(tasks, horizon, seed, each.engine, keep=keep)
        for name, each in plans.items()
    }
    pairs = PairTally({name: each.engine for name, each in plans.items()})
    options: dict[str, Any] = {
        "seed": seed,
        "tasks": tasks,
        "horizon": horizon,
        "available": mask,
        "keep": keep,
        "threads": workers,
        "block": size,
    }
    slow = "; ".join(
        _why(name, policy, 1.0)
        for name, (policy, _) in policies.items()
        if getattr(policy, "slow_because", "")
    )
    with progress_of(
        tasks, "tasks", shown=progress, why=f"may take long: {slow}" if slow else ""
    ) as bar:
        clock = Clock(plans) if bar.watched else None
        first = size if clock is None else clock.first_block(size)
        for columns in run_blocks(plans if clock is None else clock.plans, first=first, **options):
            earned = {name: builders[name].add(each) for name, each in columns.items()}
            pairs.add(earned)
            if clock is not None:
                slowest = clock.slowest
                bar.expect(
                    clock.left(min(first, tasks), tasks, workers),
                    _why(slowest, policies[slowest][0], clock.share(slowest)),
                )
            bar.advance(len(next(iter(earned.values()))))
    return Comparison({name: builder.build() for name, builder in builders.items()}, pairs.build())


def _why(name: str, policy: Any, share: float) -> str:
    """Who takes so long, and why, where the policy says so."""
    who = f"{name or type(policy).__name__}" + (
        f" takes {share:.0%} of it" if share < 0.995 else ""
    )
    reason = getattr(policy, "slow_because", "")
    return f"{who}, as it {reason}" if reason else who
