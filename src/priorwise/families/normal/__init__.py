"""What families with normal laws share."""

from typing import Any, Final

from priorwise.families.registry import Later

PARTS: Final[dict[str, Any]] = {
    "widened": Later("priorwise.families.normal.hyper:widened"),
    "cautious": True,
    "density": Later("priorwise.families.normal.density:of_arms"),
    "pair": Later("priorwise.families.normal.distance:GaussianPair.of"),
    "posteriors": Later("priorwise.families.normal.posteriors:NormalPosteriors.start"),
    "parameters": ("mean", "cov"),
    "tail_conditions": Later("priorwise.families.normal.tails:tail_conditions"),
    "diameter": Later("priorwise.families.normal.tails:diameter"),
    "largest_diameter": Later("priorwise.families.normal.tails:largest_diameter"),
}
"""Parts of a family that read no more than its normal law."""
