"""Which two priors can be compared.

A distance between priors says something about trajectories only if everything else is shared:
number of arms, reward law and law of contexts. Priors that differ in those raise an error, here or
by their family.
"""

from __future__ import annotations

from typing import Any

from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.families.registry import family_for, family_of, has_part, priors_with
from priorwise.theory.distance import DivergentPair, Pair


def pair_of(p: Any, q: Any, tool: str) -> Pair:
    """Return the pair of two priors that differ in nothing but their law over tasks."""
    _check_comparable(p, q, tool)
    pair: Pair = family_for(p, tool).pair(p, q)
    return pair


def ordered_pair(p: Any, q: Any, tool: str) -> Pair:
    """Return the pair in an order that does not depend on that of the arguments, so that distances
    are symmetric bit for bit.
    """
    _check_comparable(p, q, tool)
    names = family_for(p, tool).parameters if has_part(p, "parameters") else ()

    def order(prior: Any) -> list[Any]:
        return [getattr(prior, name).tolist() for name in names]

    first, second = sorted((p, q), key=order)
    return pair_of(first, second, tool)


def with_divergences(pair: Pair, prior: Any, tool: str) -> DivergentPair:
    """Raise an error for a pair that knows its total variation only."""
    if not isinstance(pair, DivergentPair):
        raise MissingCapability(
            "prior",
            f"has no densities, which {tool} needs: the pair of {type(prior).__name__}s, a "
            f"{type(pair).__name__}, has none",
            cure="add the methods of priorwise.theory.distance.DivergentPair",
        )
    return pair


def _check_comparable(p: Any, q: Any, tool: str) -> None:
    """Check that two priors differ only in their law over tasks, as far as any family goes."""
    for name, prior in (("p", p), ("q", q)):
        if hasattr(prior, "for_arms"):
            raise ArgumentError(
                "q",
                "must have a fixed number of arms",
                got=type(prior),
                cure="pass prior.for_arms(n) for both",
            )
        if not has_part(prior, "pair"):
            family = family_of(prior)
            whose = f"the family {family.name!r}" if family else f"a {type(prior).__name__}"
            raise MissingCapability(
                name,
                f"has no distance to another prior, which {tool} needs, as {whose}",
                cure=(
                    f"distances are known for {priors_with('pair')}; register it with "
                    "Family(pair=...), or pass tv=... to bounds and the ladder"
                ),
            )
    if type(p) is not type(q) and family_of(p) is not family_of(q):
        raise ArgumentError(
            "q",
            "must be of the family of the other prior",
            got=[type(p), type(q)],
            cure="write both in one family to compare them",
        )
    check_shared(p, q)


def check_shared(p: Any, q: Any) -> None:
    """Raise an error for priors of different arms, reward laws or contexts: nothing bounds what
    those do.
    """
    if p.arms != q.arms:
        raise ArgumentError(
            "q",
            f"must have the {p.arms} arms of the other prior",
            got=q.arms,
            cure="restrict both to the arms they share",
        )
    mine, theirs = (getattr(prior, "contexts", None) for prior in (p, q))
    if mine is not theirs and mine != theirs:
        raise ArgumentError("q", "must have the law of contexts of the other prior")
    mine, theirs = (getattr(prior, "reward_law", None) for prior in (p, q))
    if mine != theirs:
        raise ArgumentError(
            "q",
            f"must have the reward law of the other prior: {mine}, not {theirs}",
            cure="give both the same noise (and noise_var)",
        )
