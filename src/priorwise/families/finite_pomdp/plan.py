"""A plan that people can read: what to do first, and after each reward and observation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray
from priorwise.families.finite_pomdp.planning import (
    MOST_BELIEFS,
    Model,
    Policy,
    first_best,
    tied,
)
from priorwise.figures.plan import plan_figure
from priorwise.figures.style import Picture
from priorwise.theory.enumeration import rounded_logs

if TYPE_CHECKING:
    from priorwise.families.finite_pomdp.prior import FinitePomdpPrior

PRINTED: Final = 40  # nodes that are printed at most


class Branch(NamedTuple):
    """What an action may show, and where it leads."""

    reward: float
    observation: str
    chance: float
    after: int | None  # number of the node; None at the end


class Node(NamedTuple):
    """A belief about the state at a step, and what to do."""

    step: int
    belief: FloatArray  # (state,)
    action: str
    as_good: tuple[str, ...]  # actions that tie with it
    value: float  # what the plan earns from here on
    branches: tuple[Branch, ...]


@final
@dataclass(frozen=True, eq=False)
class PomdpPlan(Tabular):
    """What to do in one candidate, from its start to the end of a round.

    ``value`` is what the plan earns in that candidate. Of actions whose values tie the plan takes
    the first; nodes name the others. Histories that lead to one belief at one step share a node.
    """

    candidate: int
    exact: bool
    nodes: tuple[Node, ...]

    @property
    def value(self) -> float:
        """Expected reward of the plan."""
        return self.nodes[0].value

    def table(self) -> Table:
        """Columns by name, one row for each outcome of each node."""
        rows = [
            (number, node, branch)
            for number, node in enumerate(self.nodes, start=1)
            for branch in node.branches
        ]
        return {
            "node": np.array([number for number, *_ in rows]),
            "step": np.array([node.step for _, node, _ in rows]),
            "action": np.array([node.action for _, node, _ in rows]),
            "as_good": np.array([", ".join(node.as_good) for _, node, _ in rows]),
            "value": np.array([node.value for _, node, _ in rows]),
            "belief": np.array([_words(node.belief) for _, node, _ in rows]),
            "reward": np.array([branch.reward for *_, branch in rows]),
            "observation": np.array([branch.observation for *_, branch in rows]),
            "probability": np.array([branch.chance for *_, branch in rows]),
            # 0 at the end
            "next": np.array([branch.after or 0 for *_, branch in rows]),
        }

    def figure(self, title: str = "") -> Picture:
        """Draw what is done at each step, and what leads where."""
        steps = self.nodes[-1].step
        head = f"Plan for {steps} steps in candidate {self.candidate}"
        return plan_figure(self.table(), validation.text("title", title) or head, self._how())

    def _how(self) -> str:
        return "exact" if self.exact else "QMDP, which takes the state to be shown after one step"

    def __str__(self) -> str:
        """Every node with its action, and what leads where."""
        steps = self.nodes[-1].step
        head = f"plan for {steps} step{'s' * (steps > 1)} in candidate {self.candidate}: "
        lines = [f"{head}earns {self.value:.4f} ({self._how()}, {len(self.nodes)} nodes)"]
        for number, node in enumerate(self.nodes[:PRINTED], start=1):
            also = f" (as good: {', '.join(node.as_good)})" if node.as_good else ""
            state = _words(node.belief)
            lines.append(f"#{number} step {node.step}, state {state}: {node.action}{also}")
            lines += [f"     {each}" for each in _arrows(node)]
        if len(self.nodes) > PRINTED:
            lines.append(f"... and {len(self.nodes) - PRINTED:,} more; to_frame() has all")
        return "\n".join(lines)


def _arrows(node: Node) -> list[str]:
    places = {branch.after for branch in node.branches}
    if places == {None}:
        return []
    if len(places) == 1:
        return [f"-> #{node.branches[0].after}"]
    rewards_differ = len({branch.reward for branch in node.branches}) > 1
    return [
        (f"reward {branch.reward:g}, " if rewards_differ else "")
        + f"{branch.observation} ({branch.chance:.3g}) -> #{branch.after}"
        for branch in node.branches
    ]


def _words(belief: FloatArray) -> str:
    return " ".join(f"{p:.3g}" for p in belief)


def plan_of(prior: FinitePomdpPrior, steps: int, candidate: int) -> PomdpPlan:
    """Follow the plan of a candidate from its start."""
    model, policy = prior.models[candidate], prior.plans(steps)[candidate]
    arms = prior.names or tuple(f"action {arm}" for arm in range(prior.arms))
    count = prior.contexts.observations
    sights = prior.observation_names or tuple(f"observation {y}" for y in range(count))
    return PomdpPlan(candidate, policy.exact, _followed(model, policy, arms, sights))


def _followed(
    model: Model, policy: Policy, arms: Sequence[str], sights: Sequence[str]
) -> tuple[Node, ...]:
    """Nodes that the plan reaches, step by step."""
    beliefs, first = model.start[None], 1  # those of a step, and the number of its first node
    nodes: list[Node] = []
    for step, vectors in enumerate(policy.depths, start=1):
        values, sizes = vectors.best(beliefs)
        actions, ties = first_best(values, sizes), tied(values, sizes)
        found: dict[tuple[int, ...], int] = {}
        then: list[FloatArray] = []
        for belief, chosen, equal in zip(beliefs, actions, ties, strict=True):
            arm = int(chosen)
            chances, after = model.followed(belief[None], arm)
            branches = []
            for chance, learned, (reward, y) in zip(
                chances[0].tolist(), after[0], model.shown[arm], strict=True
            ):
                if chance == 0.0:
                    continue
                place = None
                if step < len(policy.depths):
                    place = found.setdefault(_key(learned), len(found)) + first + len(beliefs)
                    if len(found) > len(then):
                        then.append(learned)
                branches.append(Branch(reward, sights[int(y)], chance, place))
            as_good = tuple(arms[a] for a in np.flatnonzero(equal).tolist() if a != arm)
            now = float(belief @ model.rewards[:, arm])
            nodes.append(Node(step, belief, arms[arm], as_good, now, tuple(branches)))
        if len(nodes) + len(then) > MOST_BELIEFS:
            raise ArgumentError(
                "horizon",
                "must be shorter",
                cure=f"the plan reaches more than {MOST_BELIEFS:,} beliefs after {step} steps",
            )
        first += len(beliefs)
        beliefs = np.array(then)
    for place in reversed(range(len(nodes))):
        node = nodes[place]
        later = sum(b.chance * nodes[b.after - 1].value for b in node.branches if b.after)
        nodes[place] = node._replace(value=node.value + later)
    return tuple(nodes)


def _key(belief: FloatArray) -> tuple[int, ...]:
    with np.errstate(divide="ignore"):
        return tuple(rounded_logs(np.log(belief)).tolist())
