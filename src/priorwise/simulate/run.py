"""``simulate`` and ``compare``: one call each, from priors and policies to numbers with standard
errors.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.estimates import percent
from priorwise.core.progress import progress_of
from priorwise.core.protocols import MemoryPolicy, Policy, Prior
from priorwise.core.tiles import LANES
from priorwise.fitting.runs import Run
from priorwise.simulate.blocks import Clock, run_blocks
from priorwise.simulate.engine import Engine, FollowsFirstPulls, choose
from priorwise.simulate.results import Comparison, PairTally, RunBuilder
from priorwise.simulate.sizes import block_size, check_block, check_run, entries, threads_of
from priorwise.theory.influence import refuse_influence


def simulate(
    prior: Prior,
    policy: Policy | MemoryPolicy,
    *,
    horizon: int,
    tasks: int,
    seed: int,
    believed: Prior | None = None,
    available: Any = None,
    batch: int = 1,
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
        The prior the policy believes, if it is not the true one: ``R(theta, alg(theta'))``.
    available
        Which arms may be pulled, boolean, ``(arm,)`` or ``(task, arm)``.
    batch
        Rewards are seen after every so many pulls, at most ``horizon``; the last batch may be
        shorter. All pulls of a batch are chosen from one belief, as ``policy.allocate`` does;
        curves are still per pull.
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
    pairs = {type(policy).__name__: (policy, prior if believed is None else believed)}
    how = horizon, tasks, seed, available, batch, keep, engine, threads, block
    (run,) = Simulation(prior, pairs, *how).runs(progress).values()
    return run


def compare(
    prior: Prior,
    policies: Mapping[str, Policy | tuple[Policy, Prior]],
    *,
    horizon: int,
    tasks: int,
    seed: int,
    believed: Prior | None = None,
    available: Any = None,
    batch: int = 1,
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
        raise ArgumentTypeError(
            "policies",
            "must be a mapping with at least one name",
            cure="policy or (policy, believed)",
        )
    for name, value in policies.items():
        if not isinstance(name, str) or (isinstance(value, tuple) and len(value) != 2):
            raise ArgumentTypeError(
                "policies",
                "must map a name to a policy or to (policy, believed)",
                got={name: value},
            )
        validation.text("a name in policies", name)
    default = prior if believed is None else believed
    pairs = {
        name: value if isinstance(value, tuple) else (value, default)
        for name, value in policies.items()
    }
    how = horizon, tasks, seed, available, batch, keep, engine, threads, block
    simulation = Simulation(prior, pairs, *how)
    differences = PairTally({name: each.engine for name, each in simulation.runners.items()})
    return differences.build(simulation.runs(progress, differences))


class Simulation:
    """What to run and how, checked: policies by name, each with the prior it believes."""

    def __init__(
        self,
        prior: Prior,
        policies: Mapping[str, tuple[Any, Prior]],
        horizon: int,
        tasks: int,
        seed: int,
        available: Any,
        batch: int,
        keep: bool,
        engine: Engine,
        threads: int | None,
        block: int | None,
    ) -> None:
        """Raise an error for what cannot be run, and choose who runs each policy."""
        self.horizon = horizon = validation.count("horizon", horizon)
        self.tasks = tasks = validation.count("tasks", tasks)
        self.seed = validation.seed(seed)
        self.keep = keep = validation.flag("keep", keep)
        self.batch = validation.batch(batch, horizon)
        argument_checks.fixed_prior("prior", prior)
        if self.batch > 1:
            refuse_influence(prior, f"batch={batch}", "batch=1")
        for policy, believed in policies.values():
            argument_checks.believed(prior, believed)
            argument_checks.policy("policy", policy, memory=True)
            if isinstance(believed, FollowsFirstPulls):
                raise ArgumentError(
                    "believed",
                    "must not be learned by tasks one after the other",
                    got=type(believed),
                    cure="use simulate_meta",
                )
        self.policies = {name: policy for name, (policy, _) in policies.items()}
        check_run(prior, self.policies.values(), horizon=horizon, tasks=tasks, keep=keep)
        argument_checks.arms_to_mask(prior, available)
        self.mask = validation.availability("available", available, self.tasks, prior.arms)
        masked = self.mask is not None
        self.runners = {
            name: choose(prior, believed, policy, self.horizon, masked=masked, engine=engine)
            for name, (policy, believed) in policies.items()
        }
        literal = [policies[name] for name, each in self.runners.items() if each.engine == "numpy"]
        largest = 1
        for policy, believed in literal:
            largest = max(
                largest, entries(believed, argument_checks.playing(policy, believed, memory=True))
            )
        engines = {each.engine for each in self.runners.values()}
        self.block = block_size(self.horizon, largest, engines)
        if block is not None:
            self.block = -(-validation.count("block", block) // LANES) * LANES
        self.threads = threads_of(threads)
        if block is None and "compiled" in engines:  # few tasks keep every thread busy, too
            share = -(-self.tasks // (LANES * self.threads)) * LANES
            self.block = min(self.block, share)
        at_once = min(self.threads, -(-self.tasks // self.block))
        size = {"horizon": horizon, "block": min(self.block, self.tasks), "blocks": at_once}
        check_block(prior, [policy for policy, _ in literal], belief=largest, **size)

    def runs(self, progress: bool | None, pairs: PairTally | None = None) -> dict[str, Run]:
        """Run all tasks, block by block; ``pairs`` gets what each earned."""
        builders = {
            name: RunBuilder(self.tasks, self.horizon, self.seed, each.engine, self.keep)
            for name, each in self.runners.items()
        }
        played = self.policies.items()
        slow = [_why(*each, 1.0) for each in played if getattr(each[1], "slow_because", "")]
        why = f"may take long: {'; '.join(slow)}" if slow else ""
        with progress_of(self.tasks, "tasks", shown=progress, why=why) as bar:
            clock = Clock(self.runners) if bar.watched else None
            first = self.block if clock is None else clock.first_block(self.block)
            runners = self.runners if clock is None else clock.runners
            # blocks in the order of the tasks; a clock reads how long a small one takes, first
            bounds = pairwise([0, *range(first, self.tasks, self.block), self.tasks])
            shared = {"seed": self.seed, "horizon": self.horizon, "keep": self.keep}
            shared["batch"] = self.batch
            mask = self.mask
            parts: list[dict[str, Any]] = [
                {"first": at, "tasks": end - at, **shared}
                | {"available": None if mask is None else mask[at:end]}
                for at, end in bounds
            ]
            for blocks in run_blocks(runners, parts, self.threads):
                for name, block in blocks.items():
                    builders[name].add(block)
                if pairs is not None:
                    pairs.add(blocks)
                if clock is not None:
                    slowest = clock.slowest
                    left = clock.left(min(first, self.tasks), self.tasks, self.threads)
                    bar.expect(left, _why(slowest, self.policies[slowest], clock.share(slowest)))
                bar.advance(len(next(iter(blocks.values())).totals))
        return {name: builder.build() for name, builder in builders.items()}


def _why(name: str, policy: Any, share: float) -> str:
    """Who takes so long, and why, where the policy says so."""
    who = name + (f" takes {percent(share, 0)} of it" if share < 0.995 else "")
    reason = getattr(policy, "slow_because", "")
    return f"{who}, as it {reason}" if reason else who
