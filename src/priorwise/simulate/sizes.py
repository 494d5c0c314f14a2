"""What a simulation takes, before it starts: posterior draws, and the bytes of its blocks and of
what is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from priorwise.core import sizes
from priorwise.core.tiles import LANES

KEPT_BYTES = 28
"""Of a kept pull: its action and reward, while blocks are gathered and once more in the result."""


def check_run(
    prior: Any,
    policies: Iterable[Any],
    *,
    horizon: int,
    tasks: int,
    keep: bool = False,
    times: int = 1,
    named: str = "tasks",
    times_named: str = "",
) -> None:
    """Refuse a simulation of absurd size, by the names of its arguments.

    Parameters
    ----------
    prior
        The law of the tasks; its number of arms matters to policies that look at each.
    policies
        The policies to run, each on all the tasks.
    horizon, tasks, keep
        As in :func:`~priorwise.simulate.run.simulate`.
    times
        How often all that is run: replicates, plausible priors. It multiplies the work and not the
        memory.
    named, times_named
        What the caller calls ``tasks`` and ``times``.

    """
    sizes.check_horizon(horizon)
    run, arms = list(policies), int(prior.arms)
    what, cure = (
        f"{named}={sizes.amount(tasks)} and horizon={sizes.amount(horizon)}",
        f"lower {named} or horizon",
    )
    if times_named:
        what, cure = (
            f"{times_named}={sizes.amount(times)}, {what}",
            f"lower {times_named}, {named} or horizon",
        )
    most = max(sizes.draws_per_pull(policy, arms) for policy in run)
    if most > 1:
        costly = next(policy for policy in run if sizes.draws_per_pull(policy, arms) == most)
        what, cure = f"{what} with {costly}", f"{cure}, or the draws of the policy"
    pulls = sizes.as_float(times) * sizes.as_float(tasks) * horizon
    draws = sum(sizes.draws_per_pull(policy, arms) for policy in run)
    sizes.check_work(what, pulls * draws, cure)
    # means and squares of rewards and regrets, of one tile and of all
    reports = 64.0 * (horizon + 1) * len(run)
    sizes.check_memory(f"horizon={sizes.amount(horizon)}", reports, "lower horizon")
    if keep:
        entries = 16.0 * getattr(prior, "dim", 0)
        kept = (KEPT_BYTES + entries) * sizes.as_float(tasks) * horizon * len(run)
        sizes.check_memory(
            f"keep=True with {named}={sizes.amount(tasks)} and horizon={sizes.amount(horizon)}",
            kept,
            f"lower {named} or horizon, or leave keep out",
        )


def check_block(
    prior: Any,
    policies: Iterable[Any],
    *,
    horizon: int,
    block: int,
    belief: int,
    numpy: bool,
    blocks: int,
) -> None:
    """Refuse blocks that do not fit: ``belief`` numbers about each of ``block`` tasks, ``blocks``
    of them at once.
    """
    rows = (
        20.0 * horizon + 24.0 * belief
        if numpy
        else 32.0 * horizon / LANES + 32.0 * prior.arms * getattr(prior, "dim", 1)
    )
    sizes.check_memory(
        f"block={sizes.amount(block)} with horizon={sizes.amount(horizon)} and "
        f"arms={sizes.amount(prior.arms)}",
        rows * block * blocks,
        "lower block, horizon or arms",
    )
    if not numpy:
        return
    for policy in policies:
        drawn = sizes.drawn_at_once(policy)
        sizes.check_memory(
            f"{policy} for arms={sizes.amount(prior.arms)} and block={sizes.amount(block)} in "
            "NumPy",
            8.0 * sizes.ARRAYS * drawn * prior.arms * block,
            "ask for fewer draws, or lower block",
        )
