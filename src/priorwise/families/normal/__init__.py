"""What families with normal laws share."""

from typing import Any, Final

from priorwise.families.registry import LazyImport

PARTS: Final[dict[str, Any]] = {
    "widened": LazyImport("priorwise.families.normal.hyper:widened"),
    "cautious": True,
    "density": LazyImport("priorwise.families.normal.density:of_arms"),
    "pair": LazyImport("priorwise.families.normal.distance:GaussianPair.of"),
    "posteriors": LazyImport("priorwise.families.normal.posteriors:NormalPosteriors.start"),
    "parameters": ("mean", "cov"),
    "tail_conditions": LazyImport("priorwise.families.normal.tails:tail_conditions"),
    "diameter": LazyImport("priorwise.families.normal.tails:diameter"),
    "largest_diameter": LazyImport("priorwise.families.normal.tails:largest_diameter"),
}
"""Parts of a family that read no more than its normal law."""
