"""Plans of exploration: which policy plays how many episodes, for designs that differ from episode
to episode.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.hashing import mix
from priorwise.core.parameters import Checked, Count
from priorwise.core.protocols import Policy
from priorwise.core.streams import Purpose, Streams
from priorwise.core.trajectories import joined
from priorwise.fitting.runs import Run
from priorwise.policies.play_arms import PlayArms
from priorwise.simulate.run import simulate

PAIRS: Final = 0x5061697273
"""Sets the draw of pairs of arms apart from what else a seed is used for."""

Segment = tuple[Policy, int]
"""A policy and the number of episodes it plays."""


@runtime_checkable
class Exploration(Protocol):
    """A plan of exploration whose policy changes between episodes."""

    def segments(self, episodes: int, *, seed: int) -> Sequence[Segment]:
        """Policies in the order of play, with how many episodes each; their numbers add up to
        ``episodes``.

        ``seed`` is for what is drawn at random about the plan; a learner passes another one in each
        replicate.
        """
        ...


def segments(exploration: Policy | Exploration, episodes: int, *, seed: int) -> Sequence[Segment]:
    """Segments of any exploration; a plain policy plays all episodes."""
    episodes = validation.count("episodes", episodes, least=0)
    if not isinstance(exploration, Exploration):
        if isinstance(exploration, type) or not hasattr(exploration, "act"):
            raise ArgumentTypeError(
                "exploration",
                "must be a policy or have segments(episodes, seed=...)",
                got=exploration,
            )
        return [(exploration, episodes)] if episodes else []
    plan = [segment for segment in exploration.segments(episodes, seed=seed) if segment[1]]
    if sum(number for _, number in plan) != episodes:
        raise ArgumentError("exploration", f"must have segments that add up to {episodes} episodes")
    return plan


@final
@frozen(slots=False)
class OneArmBlocks:
    """Arm 1 in the first T/A episodes, arm 2 in the next T/A, and so on (the exploration of the
    Beta theorem).

    Where A does not divide T, the first blocks have one episode more.

    Parameters
    ----------
    arms
        Number of arms.
    rounds
        Rounds at the start of an episode that pull the block's arm; by default all.
    then
        The policy of the rounds after; fit on the first ``rounds`` pulls only if there is one.

    """

    arms: int = field(validator=Count())
    rounds: int | None = field(default=None, validator=Count())
    then: Policy | None = field(default=None, validator=Checked(argument_checks.policy))

    def __attrs_post_init__(self) -> None:
        if (self.rounds is None) != (self.then is None):
            raise ArgumentError(
                "rounds",
                "and then belong together",
                cure="give both or none: then plays the rounds after the first ones",
            )

    def segments(self, episodes: int, *, seed: int) -> Sequence[Segment]:
        """One block per arm; nothing is drawn."""
        validation.seed(seed)
        size, more = divmod(validation.count("episodes", episodes, least=0), self.arms)
        return [
            (PlayArms((arm,) * (self.rounds or 1), self.then), size + (arm < more))
            for arm in range(self.arms)
        ]


@final
@frozen(slots=False)
class PairedArms:
    """Two arms drawn uniformly, the same in two consecutive episodes (the exploration of the
    difference estimator).

    Tasks are exchangeable, so the order in which the pairs of arms come does not matter to an
    estimate from all episodes. It is drawn how often each pair comes, ``Multinomial(T/2; 1/A^2,
    ...)``, and those episodes are played together. An odd episode at the end plays a pair on its
    own, which the estimator leaves out.

    Parameters
    ----------
    arms
        Number of arms.
    then
        The policy from the third round on; by default the second arm goes on to the end. Fit on the
        first two pulls either way.

    """

    arms: int = field(validator=Count())
    then: Policy | None = field(default=None, validator=Checked(argument_checks.policy))

    def segments(self, episodes: int, *, seed: int) -> Sequence[Segment]:
        """One segment per pair of arms that was drawn."""
        episodes = validation.count("episodes", episodes, least=0)
        seed = mix(validation.seed(seed) ^ PAIRS)
        if not episodes:
            return []
        streams = Streams(seed, np.arange((episodes + 1) // 2, dtype=np.uint64))
        drawn = streams.at(Purpose.POLICY, 0).integers(self.arms**2)
        counts = 2 * np.bincount(drawn[: episodes // 2], minlength=self.arms**2)
        plan = [(pair, int(counts[pair])) for pair in np.flatnonzero(counts).tolist()]
        if episodes % 2:
            plan.append((int(drawn[-1]), 1))
        return [(PlayArms(divmod(pair, self.arms), self.then), number) for pair, number in plan]


def explored(
    prior: Any, exploration: Policy | Exploration, episodes: int, horizon: int, *, seed: int
) -> Run:
    """Kept run of an exploration; of one with several segments only the trajectory, tasks and
    horizon describe the whole.
    """
    runs = []
    for i, (policy, number) in enumerate(segments(exploration, episodes, seed=seed)):
        own = mix(seed + i) if i else seed
        runs.append(simulate(prior, policy, horizon=horizon, tasks=number, seed=own, keep=True))
    if len(runs) == 1:
        return runs[0]
    return replace(runs[0], trajectory=joined([run.kept for run in runs]), tasks=episodes)


def replicate_seed(seed: int, replicate: int) -> int:
    """Seed of one replicate."""
    return mix(mix(seed) ^ replicate)
