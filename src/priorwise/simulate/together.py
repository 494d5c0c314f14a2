"""One policy that believes several priors, on the same tasks: what they share is done once."""

from collections.abc import Sequence
from typing import Any

from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import Prior
from priorwise.core.tiles import CompiledPolicy, CompiledPrior
from priorwise.core.types import FloatArray
from priorwise.simulate.engine import Engine, choose


def run_together(
    prior: Any,
    believed: Sequence[Prior],
    policy: Any,
    *,
    seed: int,
    first: int,
    tasks: int,
    horizon: int,
    begins: Sequence[int],
    engine: Engine = "auto",
) -> list[FloatArray]:
    """Total rewards of one policy that believes each of several priors, from each one's first task
    ``first + begin`` on.

    Each is, bit for bit, what a run by itself gives. In the compiled loop, priors of one family
    share what does not depend on them: environments, signals, and the policy's normals.
    """
    if len(believed) != len(begins):
        raise ArgumentError(
            "begins", f"must have one entry for each prior, {len(believed)}", got=len(begins)
        )

    def block(begin: int) -> dict[str, int]:
        return {"seed": seed, "first": first + begin, "tasks": tasks - begin, "horizon": horizon}

    tiled = policy if isinstance(policy, CompiledPolicy) else None
    true = _compiled_prior(prior)
    if len(believed) > 1 and engine in ("auto", "compiled") and tiled and true is not None:
        from priorwise.kernels.loop import run_alike, run_beliefs

        environment = true.tiles(horizon, frozenset())
        compiled = [each for each in believed if isinstance(each, CompiledPrior)]
        beliefs = [each.tiles(horizon, tiled.uses) for each in compiled]
        alike = [each for each in beliefs if each and beliefs[0] and run_alike(beliefs[0], each)]
        rule = None
        if environment and environment.first_rows is None and len(alike) == len(believed):
            rule = tiled.tiles(alike[0], horizon, False)
        if environment and rule:
            begin = min(begins)
            later = [each - begin for each in begins]
            totals = run_beliefs(environment, alike, rule, begins=later, **block(begin))
            return [row[each:] for row, each in zip(totals, later, strict=True)]
    out = []
    for each, begin in zip(believed, begins, strict=True):
        chosen = choose(prior, each, policy, horizon, masked=False, engine=engine)
        out.append(chosen.run(**block(begin), available=None, keep=False).totals)
    return out


def _compiled_prior(prior: Any) -> CompiledPrior | None:
    return prior if isinstance(prior, CompiledPrior) else None
