"""What candidates of ``recommend`` earn on the later tasks of a log.

A simulation is only as good as the prior it draws tasks from. If that prior fails its check, the
later half of the log decides: the prior is learned again from the earlier half, and the best
candidates are replayed on tasks that it never saw.
"""

from collections.abc import Mapping
from typing import Any, Final

from priorwise.advise.backtest_result import Backtest
from priorwise.advise.backtest_words import MUCH
from priorwise.advise.backtesting import LEARNING, Halves, learned_from, replay_on
from priorwise.advise.candidates import UNIFORM, Candidate
from priorwise.advise.plausible import vague
from priorwise.core.errors import ArgumentError
from priorwise.core.progress import progress_of
from priorwise.core.protocols import for_arms
from priorwise.logs.options import Reading, part_of

TRAIN: Final = 0.5
"""Share of the tasks, the earliest, from which the prior is learned."""
CLEAR: Final = 2.0
"""Standard errors by which another candidate has to earn more on later tasks to be chosen."""


def player_of(name: str, candidate: Candidate, halves: Halves) -> Any:
    """Return the policy with what it believes: the vague prior, if it knows nothing of the log."""
    if name == UNIFORM:
        return candidate.policy
    _, width, _ = halves.later.places(halves.arms)
    learned = for_arms(halves.fit.prior, width)
    return candidate.policy, learned if candidate.learned else vague(learned) or learned


def on_later_tasks(
    log: Any,
    candidates: Mapping[str, Candidate],
    picked: str,
    *,
    family: str,
    horizon: int,
    batch: int,
    seed: int,
    reading: Mapping[str, Any],
    progress: bool | None = False,
) -> Backtest | str:
    """Replay candidates on the later half of a log, for as many pulls as records last; why not, if
    that cannot be done. ``picked`` is the candidate that the simulation chose.
    """
    if reading["context"]:
        return "a backtest takes no contexts"
    own = part_of(reading, Reading)
    try:
        with progress_of(1, LEARNING, shown=progress, parallel=None):
            halves = learned_from(log, TRAIN, family, None, seed, own)
        players = {name: player_of(name, each, halves) for name, each in candidates.items()}
        how: Any = {"horizon": horizon, "batch": batch, "seed": seed, "progress": progress}
        return replay_on(halves, players, **how, limit=MUCH, picked=picked)
    except ArgumentError as error:
        return str(error)


def trusted(replayed: Backtest, simulated: str) -> str:
    """Return the candidate that the later tasks speak for: the one that simulation chose, unless
    another earned more on them than chance explains.
    """
    gains = {name: replayed.difference(name, simulated) for name in replayed.lines}
    best = max(gains, key=lambda name: gains[name].mean)
    clear = gains[best].mean > CLEAR * gains[best].std_error
    return best if clear else simulated
