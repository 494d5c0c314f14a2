"""Tile functions of policies that explore first and then hand over to another policy."""

from __future__ import annotations

from priorwise.kernels.compiling import ACT, LANES, caller, tile

call_policy = caller(ACT)


@tile(ACT)
def uniform_then(
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """Rounds, the two addresses, the four sizes of the uniform policy, the sizes of the other."""
    rest = (keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)
    if step <= pn[0]:
        call_policy(pn[1], pp, pn[3:7], *rest)
    else:
        call_policy(pn[2], pp, pn[7:], *rest)


@tile(ACT)
def arms_then(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Length of the sequence, address of the policy after it or 0, the sequence, the sizes of that
    policy.
    """
    length = pn[0]
    if step <= length or pn[1] == 0:
        arm = pn[1 + min(step, length)]
        for lane in range(LANES):
            actions[lane] = arm
    else:
        rest = (keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)
        call_policy(pn[1], pp, pn[2 + length :], *rest)
