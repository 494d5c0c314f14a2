"""Two-step receding-horizon control, 2-RHC(alpha, k1, k2), and its case alpha = 1, the Monte-Carlo
knowledge gradient.

For each arm a and i <= k1: draw an environment, draw its reward at a, condition the posterior on
that reward, draw k2 look-ahead environments. Play the arm with the largest

    V_a = sum_i [ (1 - alpha) mu_a^(a,i) + alpha max_a' mean_j muhat_a'^(a,i,j) ].

In a contextual problem the look-ahead is to fresh contexts, drawn from their law anew for every (a,
i).

In a problem with a state (MDPs, POMDPs) the drawn environment also draws what is shown next, the
state or an observation, and the posterior is conditioned on both. ``mu`` is the mean reward of the
step in the drawn environment, ``muhat`` the planned value from the next step on. Lemma 2-RHC covers
this form with Y = (reward, what is shown next), X_0 the drawn environment and X_j those drawn after
Y. Given the history, the drawn environment alone decides the law of Y, a hidden state included, and
given Y all X are independent draws of one posterior. V_a is a function of X, Y and the history. The
proof of the lemma bounds the total variation of X and Y together, so n = A k1 (2 k2 + 3) stands.

The exact law of its action enumerates everything it draws. Of an imagined pull of arm a it keeps
two numbers: its share of V_a, and the drawn value, which breaks ties. Their sums over k1 pulls are
independent between arms. With p_a the law of arm a's pair over the ranks r of all pairs, and
F_b(r-) the probability that arm b ranks lower,

    Pr[a] = sum_r p_a(r) sum_j [z^j] prod_{b != a} (F_b(r-) + p_b(r) z) / (1 + j),

where j arms tie with a, and each of them is as likely to be played.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.choosing import TIE_TOLERANCE, level, pick, sizes_of, ties
from priorwise.core.parameters import Checked, Choice, Count
from priorwise.core.protocols import CollapsingBelief, ImaginingBelief, SizedDrawsBelief, offers
from priorwise.core.seen import Seen
from priorwise.core.separable import by_step
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.policies.allocation import Allocates
from priorwise.policies.laws import repeated
from priorwise.policies.shared import Alpha, alpha_at, alphas_to, check_alpha
from priorwise.theory import enumeration
from priorwise.theory.action_laws import ActionLaw, tied_law
from priorwise.theory.enumeration import Look

Ties = Literal["draws", "random"]
WhenCertain = Literal["draws", "best"]
BLOCK: Final = 1 << 21  # probabilities kept at a time


@final
@frozen(slots=False)
class RecedingHorizon(Allocates):
    """Two-step receding-horizon control.

    Parameters
    ----------
    k1, k2
        Imagined pulls of each arm, and look-ahead draws after each of them.
    alpha
        Weight of the look-ahead: a number from 0 (none) to 1 (the knowledge gradient); ``'online'``
        for (H - h) / (H - h + 1), the number of pulls left after this one against this one; or a
        function of (step, horizon).
    ties
        ``'draws'``: among arms with the largest V_a the one with the largest sum of drawn values,
        then any. ``'random'``: any.
    when_certain
        ``'best'``: once the posterior has collapsed on one environment, play its best arm.
        ``'draws'``: V_a as always.

    """

    needs: ClassVar[tuple[type, ...]] = (ImaginingBelief,)

    k1: int = field(validator=Count())
    k2: int = field(validator=Count())
    alpha: Alpha = field(validator=Checked(check_alpha))
    ties: Ties = field(default="draws", validator=Choice(Ties))
    when_certain: WhenCertain = field(default="draws", validator=Choice(WhenCertain))

    def __attrs_post_init__(self) -> None:
        sizes.check_draws("k1 * k2", self.k1 * self.k2)

    @property
    def uses(self) -> frozenset[str]:
        """Which tile functions of a belief it calls."""
        return frozenset({"look", "mean", "certain"} if self.when_certain == "best" else {"look"})

    def monte_carlo_n(self, arms: int) -> int | None:
        """Return n = A k1 (2 k2 + 3), or A k1 without look-ahead; None with
        ``when_certain="best"``.

        That rule looks at the posterior itself, not only at draws from it. Ties broken by chance
        alone are covered: chance does not depend on the posterior.
        """
        pulls = validation.count("arms", arms) * self.k1
        if self.when_certain == "best":
            return None
        return pulls if self.alpha == 0 else pulls * (2 * self.k2 + 3)

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull, for the estimate of work."""
        return arms * self.k1 * (self.k2 + 1)

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return self.k2

    @property
    def slow_because(self) -> str:
        """Why a run may take long."""
        return f"looks ahead with {self.k1:,} × {self.k2:,} draws for each arm and pull"

    @by_step
    def act(self, belief: ImaginingBelief, seen: Seen, rng: Stream) -> IntArray:
        """Play the arm with the largest V_a."""
        argument_checks.acting(self, belief, seen, rng)
        breaker = rng.uniform()
        alpha = alpha_at(self.alpha, seen.step, seen.horizon)
        now, ahead, now_size, ahead_size = np.zeros((4, rng.tasks, seen.arms))
        for arm in range(seen.arms):
            actions = np.full(rng.tasks, arm)
            for _ in range(self.k1):
                imagined = belief.imagine(rng, actions, seen)
                best, size = _best_mean(imagined.belief, rng, self.k2, imagined.seen)
                now[:, arm] += imagined.value
                ahead[:, arm] += best
                now_size[:, arm] += np.abs(imagined.value)
                ahead_size[:, arm] += size
        # V_a
        total = level(
            seen.masked((1.0 - alpha) * now + alpha * ahead),
            (1.0 - alpha) * now_size + alpha * ahead_size,
        )
        if self.ties == "draws":
            total = level(np.where(ties(total), now, -np.inf), now_size)
        chosen = pick(total, breaker)
        if self.when_certain == "best" and isinstance(belief, CollapsingBelief):
            known = pick(seen.masked(belief.mean(seen)), breaker)
            chosen = np.where(belief.certain(), known, chosen)
        return chosen

    @by_step
    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the arm with the largest V_a, by enumeration of few draws from finitely many
        points.
        """
        if offers(belief, enumeration.EnumerableRewards):
            looks_of, points = _reward_looks, len(belief.points(seen))
            if any(belief.likelihoods(arm) is None for arm in range(seen.arms)):
                return None
        elif offers(belief, enumeration.LookingBelief):
            looks_of, points = _state_looks, belief.probabilities().shape[1]
        else:
            return None
        weights = belief.probabilities()
        count = points * enumeration.multiset_count(points, self.k2)
        if count > enumeration.MOST_OUTCOMES:
            return None
        out = np.zeros((len(weights), seen.arms))
        step = 1 if offers(belief, enumeration.HiddenStateBelief) else max(1, BLOCK // count)
        for sight, tasks in enumeration.by_sight(seen, len(weights)):
            there = np.ones(seen.arms, dtype=bool) if sight.mask is None else sight.mask[0]
            arms = np.flatnonzero(there)
            for start in range(0, len(tasks), step):
                part = tasks[start : start + step]
                some = belief if len(part) == len(weights) else belief.take(part)
                asked = repeated(sight, 1, len(part))
                laws = [
                    self._arm_law(asked, weights[part], *looks_of(some, asked, arm), there)
                    for arm in arms.tolist()
                ]
                known = [law for law in laws if law is not None]
                if len(known) < len(laws):
                    return None
                out[np.ix_(part, arms)] = _choice(known)
        out /= out.sum(axis=1, keepdims=True)
        if self.when_certain == "best" and isinstance(belief, CollapsingBelief):
            out = np.where(belief.certain()[:, None], tied_law(seen.masked(belief.mean(seen))), out)
        return ActionLaw(out)

    def _arm_law(
        self, seen: Seen, weights: FloatArray, now: FloatArray, after: list[Look], there: BoolArray
    ) -> "_Pairs | None":
        """Law of the sums over k1 imagined pulls of an arm that is worth ``now``, ``(point,)``."""
        points, alpha = len(now), alpha_at(self.alpha, seen.step, seen.horizon)
        looks, log_orders = enumeration.multisets(points, self.k2)
        # what is drawn after outcomes of one table of values has the same values
        tables = {look.values.tobytes(): look for look in after}
        if points * len(looks) * len(tables) > enumeration.MOST_OUTCOMES:
            return None
        every = []
        for table, first in tables.items():
            values = first.values[looks][:, :, there].mean(axis=1)
            sizes = first.sizes[looks][:, :, there].mean(axis=1)
            winner = values.argmax(axis=1)[:, None]  # (look, 1)
            # (look,)
            best, best_size = (
                np.take_along_axis(each, winner, axis=1)[:, 0] for each in (values, sizes)
            )
            joint = np.zeros((len(weights), points, len(looks)))
            for outcome in (look for look in after if look.values.tobytes() == table):
                odds = enumeration.outcome_probabilities(outcome.weights, looks, log_orders)
                joint += (weights * outcome.chance)[:, :, None] * odds[:, None, :]
            drawn = np.repeat(now, len(looks))
            value = (1.0 - alpha) * drawn + alpha * np.tile(best, points)
            size = (1.0 - alpha) * np.abs(drawn) + alpha * np.tile(best_size, points)
            breaker = drawn if self.ties == "draws" else np.zeros_like(drawn)
            rows = np.stack([value, breaker, size, np.abs(breaker)])
            every.append(_Pairs(rows, joint.reshape(len(weights), -1)))
        one = _Pairs(
            np.concatenate([each.rows for each in every], axis=1),
            np.concatenate([each.probability for each in every], axis=1),
        ).gathered()
        outcomes = one.rows.shape[1]
        if enumeration.multiset_count(outcomes, self.k1) > enumeration.MOST_OUTCOMES:
            return None
        pulls, log_orders = enumeration.multisets(outcomes, self.k1)
        probability = enumeration.outcome_probabilities(one.probability, pulls, log_orders)
        return _Pairs(
            np.stack([row[pulls].sum(axis=1) for row in one.rows]), probability
        ).gathered()

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Tile function for the compiled loop; None with more look-ahead draws than it can count,
        or keep the keys of.
        """
        from priorwise.kernels import policies as kernels

        if self.k2 > kernels.MOST_COUNTED or (
            family.look_keeps_keys and family.arms * self.k1 * self.k2 > kernels.MOST_KEYED
        ):
            return None
        ties = kernels.TIES_RANDOM if self.ties == "random" else kernels.TIES_BY_DRAWS
        switches = [ties, self.when_certain == "best", family.draws_cancel]
        sizes = np.array([family.arms, self.k1, self.k2, masked, *switches])
        uses = self.uses
        if family.look_many is not None and family.arms * self.k1 >= family.many_pulls:
            uses = uses - {"look"} | {"look_many"}
        return PolicyTiles(alphas_to(self.alpha, horizon), sizes, kernels.receding_horizon, uses)


def _best_mean(belief: Any, rng: Stream, draws: int, seen: Seen) -> tuple[FloatArray, FloatArray]:
    """Largest mean of look-ahead draws, and the size of the numbers it is a mean of, ``(task,)``
    both.
    """
    if not offers(belief, SizedDrawsBelief):
        best = seen.masked(belief.sample_mean(rng, draws, seen)).max(axis=1)
        return best, np.abs(best)
    means, size = belief.sample_mean_and_size(rng, draws, seen)
    arm = seen.masked(means).argmax(axis=1)[:, None]
    return np.take_along_axis(means, arm, axis=1)[:, 0], np.take_along_axis(size, arm, axis=1)[:, 0]


def _reward_looks(belief: Any, seen: Seen, arm: int) -> tuple[FloatArray, list[Look]]:
    """Mean of an arm in each possible environment, and what may be drawn after each reward."""
    points, weights = belief.points(seen), belief.probabilities()
    sizes, out = np.abs(points), []
    for _, chance in belief.likelihoods(arm):
        drawn = weights * chance
        total = drawn.sum(axis=1, keepdims=True)
        out.append(Look(chance, drawn / np.where(total > 0.0, total, 1.0), points, sizes))
    return points[:, arm], out


def _state_looks(belief: Any, seen: Seen, arm: int) -> tuple[FloatArray, list[Look]]:
    """The same in a problem with a state, for tasks that see the same."""
    return belief.rewards_now(seen)[0, :, arm], belief.looks(seen, arm)


def KnowledgeGradient(
    k1: int, k2: int, *, ties: Ties = "draws", when_certain: WhenCertain = "draws"
) -> RecedingHorizon:
    """Monte-Carlo knowledge gradient: receding horizon with all the weight on what is learned,
    alpha = 1.

    The experiments of the paper use ``ties="random", when_certain="best"``.
    """
    return RecedingHorizon(k1, k2, 1.0, ties=ties, when_certain=when_certain)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Law of what is kept of one arm: the first of its rows decides, the second breaks ties."""

    rows: FloatArray  # (4, outcome): value, drawn value, sizes of the numbers these are sums of
    probability: FloatArray  # (task, outcome)

    def gathered(self) -> "_Pairs":
        """Gather outcomes that agree but for rounding."""
        first, group = enumeration.row_groups(np.stack(_levels_of(self.rows), axis=1))
        total = np.zeros((len(first), len(self.probability)))
        np.add.at(total, group, self.probability.T)
        return _Pairs(self.rows[:, first], total.T)


def _choice(laws: "list[_Pairs]") -> FloatArray:
    """Probability that each arm has the largest pair, ``(task, arm)``; ties at random."""
    tasks = len(laws[0].probability)
    value, now = _levels_of(np.concatenate([law.rows for law in laws], axis=1))
    _, rank = np.unique(value * (now.max() + 1) + now, return_inverse=True)
    ranks = np.split(rank.reshape(-1), np.cumsum([law.rows.shape[1] for law in laws])[:-1])
    at = np.zeros((len(laws), int(rank.max()) + 1, tasks))
    for row, law, places in zip(at, laws, ranks, strict=True):
        np.add.at(row, places, law.probability.T)
    below = np.cumsum(at, axis=1) - at
    out = np.empty((tasks, len(laws)))
    for arm in range(len(laws)):
        ties = np.zeros_like(at)  # (number of arms that tie, rank, task)
        ties[0] = 1.0
        for other in range(len(laws)):
            if other != arm:
                more = ties[:-1] * at[other]
                ties *= below[other]
                ties[1:] += more
        out[:, arm] = np.einsum("rt,jrt,j->t", at[arm], ties, 1.0 / np.arange(1, len(laws) + 1))
    return out


def _levels_of(rows: FloatArray) -> tuple[IntArray, IntArray]:
    return _levels(rows[0], rows[2]), _levels(rows[1], rows[3])


def _levels(values: FloatArray, sizes: FloatArray) -> IntArray:
    """Rank of each value, the same for values that tie, as :func:`priorwise.core.choosing.level`
    judges.
    """
    order = np.argsort(values, kind="stable")
    half = TIE_TOLERANCE / 2.0 * sizes_of(values, sizes)[order]
    rises = np.diff(values[order]) > half[1:] + half[:-1]
    levels = np.empty(len(values), dtype=np.int64)
    levels[order] = np.concatenate([[0], np.cumsum(rises)])
    return levels
