"""The Riccati recursion: what the best controller of a known system does with so many steps left.

With k steps left a state x costs ``x'P_k x`` and a constant: ``P_0 = F``, and from ``P = P_k`` on
``K = (R + B'PB)^-1 B'PA``, ``P_(k+1) = Q + A'P(A - BK)``. The best action is ``-K x``.

Every system is worked out by itself, whatever stands beside it. Its recursion ends early in two
cases. It has converged: then further steps left change nothing. Or it explodes, as a system does
that grows and that no action reaches: then ``P`` would overflow, and the last gain is kept, since
what cannot be helped does not depend on the steps left either.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from priorwise.families.linear_quadratic.plant import Plant

CONVERGED: Final = 1e-14
"""Change of an entry of P in one step, relative to ``sqrt(P_ii P_jj)``: states may cost very
different amounts, so each counts by its own.
"""

EXPLODED: Final = 1e100
"""Of P, relative to the costs."""


def values(
    transition: FloatArray, control: FloatArray, plant: "Plant", steps: int
) -> list[FloatArray]:
    """``P_0, ..., P_steps`` of each system, ``(system, state, state)`` each; not finite once a
    system explodes.
    """
    cost = np.broadcast_to(plant.final_cost, transition.shape).copy()
    out = [cost]
    for _ in range(steps):
        cost = _backed_up(transition, control, plant, cost)[1]
        out.append(cost)
    return out


def gains(
    transition: FloatArray, control: FloatArray, plant: "Plant", left: IntArray
) -> FloatArray:
    """``K`` of each system with so many steps left, ``(system, control, state)``."""
    systems, states, controls = control.shape
    found = np.zeros((systems, controls, states))
    cost = np.broadcast_to(plant.final_cost, transition.shape).copy()
    todo = np.flatnonzero(left > 0)
    for k in range(1, int(left.max(initial=0)) + 1):
        gain, then = _backed_up(transition[todo], control[todo], plant, cost[todo])
        fine = _finite(then, plant)
        found[todo[fine]] = gain[fine]
        change = np.abs(then - cost[todo])
        cost[todo] = then
        size = np.sqrt(np.maximum(np.diagonal(then, axis1=1, axis2=2), 0.0))
        with np.errstate(over="ignore", invalid="ignore"):
            own = CONVERGED * size[:, :, None] * size[:, None, :]
        settled = (change <= own).all(axis=(1, 2))
        todo = todo[fine & ~settled & (left[todo] > k)]
        if not todo.size:
            break
    return found


def _finite(cost: FloatArray, plant: "Plant") -> BoolArray:
    scale = max(np.abs(plant.state_cost).max(), np.abs(plant.final_cost).max(), 1e-100)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(cost) <= EXPLODED * scale).all(axis=(1, 2)))


def _backed_up(
    transition: FloatArray, control: FloatArray, plant: "Plant", cost: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the gain with one more step left, and what states cost then."""
    with np.errstate(over="ignore", invalid="ignore"):
        reach = control.transpose(0, 2, 1) @ cost  # B'P
        gain = np.linalg.solve(plant.action_cost + reach @ control, reach @ transition)
        # A'P(A - BK) as a sum of squares: rounding cannot make it indefinite
        loop = transition - control @ gain
        then = plant.state_cost + loop.transpose(0, 2, 1) @ cost @ loop
        then = then + gain.transpose(0, 2, 1) @ plant.action_cost @ gain
    return np.asarray(gain, dtype=np.float64), (then + then.transpose(0, 2, 1)) / 2.0
