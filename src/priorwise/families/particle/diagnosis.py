"""How good the approximation was along the pulls of a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.frames import Table, Tabular
from priorwise.core.seen import Seen
from priorwise.core.types import FloatArray
from priorwise.families.particle.weights import FEWEST
from priorwise.fitting.runs import Run

if TYPE_CHECKING:
    from priorwise.figures.style import Picture

TASKS: Final = 64  # at a time


@final
@dataclass(frozen=True, eq=False)
class Diagnosis(Tabular):
    """How many particles count after each pull, and how far off posterior means may be.

    ``sizes`` are effective sample sizes, ``(task, step)``: as many independent draws from the
    posterior would give means as accurate. ``errors`` are the largest standard errors of a
    posterior mean of any arm, ``(task, step)``, in units of reward. Both are estimated from the
    particles themselves.
    """

    sizes: FloatArray
    errors: FloatArray
    particles: int

    @property
    def rough(self) -> FloatArray:
        """Share of the tasks with fewer than 100 effective particles after each pull."""
        return np.asarray((self.sizes < FEWEST).mean(axis=0))

    def table(self) -> Table:
        """Columns by name, one row for each step: the least, low (5 %) and median effective size
        over tasks, the share of rough tasks, and the root mean square error.
        """
        return {
            "step": np.arange(1, self.sizes.shape[1] + 1),
            "least": self.sizes.min(axis=0),
            "low": np.quantile(self.sizes, 0.05, axis=0),
            "median": np.median(self.sizes, axis=0),
            "rough": self.rough,
            "error": np.sqrt(np.square(self.errors).mean(axis=0)),
        }

    def __str__(self) -> str:
        """What is left after the last pull."""
        last = {name: column[-1] for name, column in self.table().items()}
        tasks, steps = self.sizes.shape
        low = f"{last['low']:,.0f} at 5 % of the tasks, {last['least']:,.0f}"
        lines = [
            f"{self.particles:,} particles after {steps} pulls of {tasks:,} tasks",
            f"  effective  {last['median']:,.0f} in the median, {low} at least",
            f"  means      off by {last['error']:.2g} (standard error, root mean square)",
        ]
        if last["rough"] > 0.0:
            lines.append(f"  warning: fewer than {FEWEST} in {last['rough']:.1%} of the tasks")
        return "\n".join(lines)

    def figure(self, title: str = "") -> "Picture":
        """Draw effective sizes pull by pull."""
        from priorwise.figures.particles import effective_sizes

        title = validation.text("title", title) or "How many particles count"
        return effective_sizes(dict(self.table()), self.particles, FEWEST, title)


def diagnosed(prior: Any, run: Any) -> Diagnosis:
    """Show the prior's belief the pulls of a kept run, one after the other."""
    validation.instance("run", run, Run, "a Run with keep=True")
    from priorwise.families.particle.statistics import ParticleStatistics as Kind

    played = Kind.of(run, **Kind.known(prior))
    sizes, errors = np.empty((2, played.tasks, played.actions.shape[1]))
    for start in range(0, played.tasks, TASKS):
        some = played.take(slice(start, start + TASKS))
        rows = slice(start, start + some.tasks)
        belief = prior.belief(some.tasks)
        for step in range(some.actions.shape[1]):
            signal = None if some.shown is None else some.shown[:, step]
            belief = belief._given(some.actions[:, step], some.rewards[:, step], signal)
            seen = Seen(step + 1, run.horizon, prior.arms, signal)
            sizes[rows, step] = belief.effective_sample_size(seen)
            errors[rows, step] = belief.mean_error(seen).max(axis=1)
    return Diagnosis(sizes, errors, prior.particles)
