"""Tile functions of policies that explore first and then hand over to another policy."""

from __future__ import annotations

from priorwise.kernels.compiling import ACT, LANES, caller, tile

call_policy = caller(ACT)


@tile(ACT)
def first_then(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Rounds of the first policy, addresses of both, how many sizes the first has, all sizes."""
    first = step <= pn[0]
    sizes = pn[4 : 4 + pn[3]] if first else pn[4 + pn[3] :]
    rest = (keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)
    call_policy(pn[1 if first else 2], pp, sizes, *rest)


@tile(ACT)
def given_arms(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Play the arms in order, the last of them to the end."""
    arm = pn[min(step, len(pn)) - 1]
    for lane in range(LANES):
        actions[lane] = arm
