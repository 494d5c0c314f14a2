"""``fit_prior``: from a log to a prior, with the choice of family and structure, and whether it
fits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Final, Unpack, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, option
from priorwise.core.estimates import Estimate, percent
from priorwise.core.frames import Table, Tabular
from priorwise.core.protocols import for_arms
from priorwise.core.types import FloatArray
from priorwise.figures.style import Picture
from priorwise.fitting.fits import PriorFit, named
from priorwise.logs.choosing import candidates, compared_with, mixtures_of, simplest
from priorwise.logs.drift import Drift, drift_of, faded_by
from priorwise.logs.features import (
    against_none,
    gain_in_words,
    many_for,
    with_features,
    with_intervals,
)
from priorwise.logs.options import (
    Arms,
    HalfLife,
    ReadingFeatures,
    RowsRead,
    complete,
    part_of,
    takes,
)
from priorwise.logs.predictive import PredictiveCheck, predictive_check
from priorwise.logs.recent import Recent
from priorwise.logs.reducing import Log, read_log
from priorwise.logs.rows import fading, kept_in_words, task_clock, unit_of
from priorwise.logs.times import half_life_or_none, positive_or_none
from priorwise.logs.worth import in_words, worth
from priorwise.meta.selection.models import ModelComparison, compare_models

FOLDS: Final = 5
CHOICES: Final = (
    "which arm was pulled may depend on anything that is in the log, and on nothing else that "
    "tells about rewards."
)
LINEAR: Final = (
    "the prior's mean is linear in the task features, and its covariance does not depend on them."
)
SHOWN: Final = 12
"""Arms whose names are told."""
MANY: Final = 0.2
"""Share of zeros from which positive rewards look like amounts that most rows do not have."""
AMOUNTS: Final = (
    "{share} of the rewards are 0 and the others positive, as values per conversion are, and "
    "one law was fitted to both. Better fit whether there is one "
    f"({option('reward_as', 'converted')}) and how "
    "much, where there is one (reward_as='value')."
)


@final
@dataclass(frozen=True, eq=False)
class LogFit(Tabular):
    """A prior learned from a log: the fit, how it was chosen, and whether it fits.

    ``models`` has the held-out likelihood of every structure that was tried, None where there was
    nothing to choose. ``check`` compares the log with what the prior generates; None where that is
    not known for the family. ``worth`` says how many pulls of an arm tell as much about it as the
    prior does, ``(arm,)``; None where the family does not say. ``estimator`` made the fit.
    ``drift`` says whether the prior changes over time, by the column of times or else by the order
    of the log, and how old tasks fade if it does.

    With ``task_features`` the prior depends on them: ``prior_for`` says what it is for a task, and
    ``gain`` how much likelier, in log likelihood, held-out tasks are than without them.
    """

    fit: PriorFit
    chosen: str
    models: ModelComparison | None
    check: PredictiveCheck | None
    worth: FloatArray | None
    log: Log = field(repr=False)
    estimator: Any = field(default=None, repr=False)
    drift: Drift | None = None
    gain: Estimate | None = None

    @property
    def prior(self) -> Any:
        """The fitted prior; where all tasks share their arms, of these arms with their names."""
        return self._of_arms(self.fit.prior)

    def prior_for(self, features: Any) -> Any:
        """Return the prior of a task with these features, ``{"words": 9}``, of a fit with
        ``task_features``; a list of priors where the values are columns of many tasks.
        """
        found = many_for(self.fit.prior, features)
        each = [self._of_arms(prior) for prior in (found if isinstance(found, list) else [found])]
        return each if isinstance(found, list) else each[0]

    def for_features(self, features: Any) -> PriorFit:
        """Return the fit of tasks with these features: what :func:`certify` takes, and files."""
        return self.fit.for_features(features)

    @property
    def recent(self) -> Recent | None:
        """How old tasks fade, if the prior changes over time and a half-life was chosen."""
        return None if self.drift is None else self.drift.recent

    def draw(self, rng: np.random.Generator, n: int) -> list[Any]:
        """Return ``n`` priors that the log leaves plausible."""
        return [self._of_arms(each) for each in self.fit.draw(rng, n)]

    def _of_arms(self, prior: Any) -> Any:
        names = getattr(self.fit.statistics, "names", None)
        return prior if names is None else named(for_arms(prior, len(names)), names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit as JSON; every command that takes a prior file takes it."""
        self.fit.save(path)

    def table(self) -> Table:
        """The parameters: see :meth:`PriorFit.table`; with ``task_features`` also the ends of 95 %
        intervals, ``low`` and ``high``, of means and effects.
        """
        return self.fit.table() if self.gain is None else with_intervals(self.fit.table())

    def figure(self, title: str = "") -> Picture:
        """Draw the fitted prior."""
        return self.fit.figure(title)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a fit takes for granted."""
        said = [CHOICES, *(f"{each}." for each in self.log.left)]
        if self.gain is not None:
            said.append(LINEAR)
        if self.log.dropped:
            said.append(
                f"the rewards of {self.log.dropped:,} rows without one, which were left out, would "
                "be like those of the others."
            )
        if self.log.odd is not None and not self.log.columns.summed and self.log.zeros > MANY:
            said.append(AMOUNTS.format(share=percent(self.log.zeros, 0)))
        return tuple(said)

    def __str__(self) -> str:
        """A readable summary."""
        log = self.log
        arms = "told by their features"
        if log.gram is None:
            new = self.fit.statistics.names is None
            arms = "new in every task" if new else f"the same in all tasks{_listed(log.names)}"
        head = (
            f"{log.rows:,} rows: {len(log.tasks):,} tasks, {log.pulls.sum():,.0f} pulls; arms are "
            f"{arms}."
        )
        lines = [head, *(f"({each})" for each in log.said), "", str(self.fit)]
        if self.worth is not None:
            lines.append(f"  as good as {in_words(self.worth)} pulls of each arm")
        if self.models is not None:
            lines += ["", f"Chosen by held-out likelihood of tasks: {self.chosen}"]
            lines += [f"  {line}" for line in str(self.models).splitlines()]
        if self.gain is not None:
            lines += ["", gain_in_words(self.gain)]
        if self.check is not None:
            lines += ["", "Does the prior generate tasks like the log's?"]
            lines += [f"  {line}" for line in str(self.check).splitlines()]
        if self.drift is not None:
            lines += ["", self.drift.verdict]
        return "\n".join([*lines, "", *(f"Assumed: {each}" for each in self.assumptions)])


def _listed(names: tuple[str, ...]) -> str:
    """Names of arms in the order of a prior's numbers, if they are few."""
    return f": {', '.join(names)}" if len(names) <= SHOWN else f" ({len(names):,} of them)"


@takes(ReadingFeatures)
def fit_prior(
    log: Any, family: str = "auto", *, seed: int, **reading: Unpack[ReadingFeatures]
) -> LogFit:
    """Learn a prior from a log of past tasks, by marginal likelihood.

    The likelihood does not depend on how arms were chosen, as long as choices depended on what is
    in the log. A log has one row per pull, or, with ``pulls``, one row for several pulls of an arm.

    Parameters
    ----------
    log
        Path of a Parquet, CSV or Arrow file or of a folder of Parquet files, a pandas or Polars
        frame, an Arrow table, or an Ibis table of any engine.
    family
        Name of a registered family (``"gaussian"``, ``"beta"``, ...), with a structure of it after
        a colon if you like (``"gaussian:diagonal"``), or ``"auto"``: families and structures are
        compared by held-out likelihood over tasks, and of those that are as good as the best, up to
        one standard error, the one with the fewest parameters is taken. Where the log has what no
        single law explains, mixtures of two are compared too; ``"two of gaussian"`` (or three, four
        or five) asks for a mixture.
    seed
        Decides on which tasks are held out, and the generated tasks of the check.
    task, action, reward, pulls, squares, rate, context, time
        Columns of the log: see :func:`read_log`.
    missing, since, until, window, reward_as, encoding, decimal
        How the log is read, and which of its rows count: see :func:`read_log`. The result says
        whether the prior changes over time, or in the order of the log if no column has times.
    contexts
        Where the features of future tasks come from, for a fit with ``context``.
    task_features
        Columns that describe a task, numbers or words, the same in all its rows: the prior's mean
        is then linear in them, for Gaussian and logit-normal families. Exchangeable arms share
        their effects, others have each their own. Words count as 0 or 1 each, against the most
        common. The fit says whether the features help, and :meth:`LogFit.prior_for` gives priors.
    arms
        ``"same"`` arms in all tasks, or ``"new"`` ones in every task; ``"auto"`` looks.
    noise_var
        Variance of a single reward around the mean of its arm, where it is known; by default it is
        learned, from arms that a task pulled more than once or from ``squares``.
    half_life
        Let old tasks fade: a task is kept with probability ``2^(-age / half_life)``, its age being
        how long before the last task it began, in days, in the unit of ``time``, or in tasks where
        the order of the log stands for time. ``"auto"`` does so only if the prior changes over
        time, with the longest half-life that predicts later tasks as well as the best, up to one
        standard error; the result says which. ``None`` or ``"none"`` never does.

    Examples
    --------
    >>> import pandas, priorwise as pw
    >>> past = pandas.DataFrame(
    ...     {
    ...         "task": [1, 1, 2, 2, 3, 3],
    ...         "action": ["a", "b"] * 3,
    ...         "reward": [3, 0, 1, 2, 0, 4],
    ...         "pulls": [10] * 6,
    ...     }
    ... )
    >>> print(pw.fit_prior(past, "beta:exchangeable", seed=0).fit.tasks)
    3

    """
    how = complete(reading, ReadingFeatures, "fit_prior")
    read = read_log(log, **part_of(how, RowsRead))
    return fit_read(
        read, family, seed=seed, contexts=how["contexts"], arms=how["arms"],
        noise_var=how["noise_var"], starts=task_clock(read), half_life=how["half_life"],
    )  # fmt: skip


def fit_read(
    read: Log,
    family: str = "auto",
    *,
    seed: int,
    contexts: Any = None,
    arms: Arms = "auto",
    noise_var: float | None = None,
    starts: NDArray[Any] | None = None,
    half_life: HalfLife = None,
) -> LogFit:
    """Learn a prior from a log that was read: see :func:`fit_prior`. ``starts`` says when each task
    began, to see whether the prior changes, and ``half_life`` how old tasks fade.
    """
    seed, fade = validation.seed(seed), half_life_or_none(half_life)
    if isinstance(fade, float):
        read, starts = fading(read, starts, fade, seed)
    if len(read.tasks) < 2:
        raise ArgumentError(
            "task",
            f"must have several tasks in the column {read.columns.task!r}, to learn a prior from",
        )
    if len(read.arms) < 2 and read.gram is None:
        raise ArgumentError(
            "action",
            f"must have arms to choose between in the column {read.columns.action!r}",
            got=str(read.arms[0]),
        )
    noise_var = positive_or_none("noise_var", noise_var)
    models, statistics = candidates(read, family, arms, contexts, noise_var, seed)
    if read.features:
        models, statistics = with_features(models, statistics, read)
    comparison = None
    chosen = next(iter(models))
    if len(models) > 1:
        folds = min(FOLDS, statistics.tasks)
        comparison = compare_models(models, statistics, folds=folds, seed=seed)
        chosen = simplest(comparison)
    fit = models[chosen].fit(statistics) if comparison is None else comparison.fits[chosen]
    check = None
    if read.gram is None:
        exists = read.grid(np.ones(len(read.task)), arms) > 0.0
        if statistics.names is not None:
            exists[:] = True
        check = predictive_check(fit.prior, statistics, exists, seed=seed)
        more = {}
        if family == "auto" and not read.features:
            doubts = bool(check.doubts)
            more = mixtures_of(models, comparison, chosen, fit, doubts=doubts, seed=seed)
        if more:
            models |= more
            folds = min(FOLDS, statistics.tasks)
            comparison = compared_with(more, comparison, models, chosen, statistics, folds, seed)
            chosen, one = simplest(comparison), chosen
            if chosen != one:
                fit = comparison.fits[chosen]
                check = predictive_check(fit.prior, statistics, exists, seed=seed)
    drift = None
    if starts is not None and read.gram is None:
        ordered = read.columns.time is None
        drift = drift_of(models[chosen], fit, starts, exists, seed=seed, ordered=ordered)
    if starts is not None and drift is not None and drift.suspected and fade == "auto":
        unit = unit_of(read)
        drift, fit, kept = faded_by(drift, models[chosen], fit, starts, unit=unit, seed=seed)
        if not kept.all():
            check = predictive_check(fit.prior, fit.statistics, exists[kept], seed=seed)
            read = replace(read.part(kept), left=(*read.left, kept_in_words(kept)))
    gain = None
    if read.features:
        comparison, gain = against_none(models, comparison, chosen, statistics, FOLDS, seed)
    told = worth(getattr(fit.prior, "base", fit.prior))
    return LogFit(fit, chosen, comparison, check, told, read, models[chosen], drift, gain)
