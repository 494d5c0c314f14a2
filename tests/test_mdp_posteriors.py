"""Distances between two posteriors of tabular MDPs, and the ladder that reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.families.tabular_mdp.posteriors import MdpPosteriors
from priorwise.sensitivity.bounds.pomdp import pomdp_trajectory_bound
from priorwise.sensitivity.ladder.ladder import sensitivity_ladder

EARNED = [[0.0, 0.3], [1.0, 0.2]]
ROW = np.array([[[2.0, 3.0], [4.0, 0.0]], [[0.0, 5.0], [1.0, 0.0]]])  # one row is uncertain
OTHER = ROW.copy()
OTHER[0, 0] = [3.5, 2.0]
TASKS = 20_000


def streams(seed: int, tasks: int = TASKS) -> Streams:
    return Streams(seed, np.arange(tasks, dtype=np.uint64))


def played(pair: Any, tasks: int) -> Any:
    """Action 0 in state 0, which leads to state 1 once and then to state 0."""
    for step, after in ((1, 1), (2, 0)):
        seen = Seen(step, 4, 2, np.zeros(tasks, dtype=np.int64))
        zeros = np.zeros(tasks, dtype=np.int64)
        pair = pair.update(seen, zeros, np.zeros(tasks), np.full(tasks, after))
    return pair


def mean_within(values: Any, exact: float) -> bool:
    """Within 5 standard errors: false alarms with probability 6e-7."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return bool(abs(values.mean() - exact) < 5 * error)


def test_the_distance_is_that_of_the_rows(seed: int) -> None:
    """A row with two outcomes is a Beta law, whose distance is known, before and after two moves;
    that of the prior is noticed after them.
    """
    p, q = (pw.DirichletMdpPrior(each, EARNED) for each in (ROW, OTHER))
    pair = MdpPosteriors.start(p, q, TASKS)
    before = pw.total_variation(pw.BetaPrior([2.0], [3.0]), pw.BetaPrior([3.5], [2.0])).value
    after = pw.total_variation(pw.BetaPrior([3.0], [4.0]), pw.BetaPrior([4.5], [3.0])).value
    assert mean_within(pair.total_variation(streams(seed).at(Purpose.WORLD, 1)), before)
    later = played(pair, TASKS).total_variation(streams(seed).at(Purpose.WORLD, 3))
    assert mean_within(later, after)
    assert not mean_within(later, before)
    shared = played(pair, TASKS).shared(streams(seed).at(Purpose.POLICY, 3), 1)[:, 0]
    assert mean_within(1.0 - shared, after)  # a maximal coupling parts as often as the laws differ
    assert not mean_within(1.0 - shared, before)


@pytest.mark.parametrize("kind", ["bernoulli", "normal"])
def test_rewards_count_too(kind: str, seed: int) -> None:
    """Known moves, and one reward that two priors judge differently."""
    sure = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    moved = np.array([[2.0, 1.0], [1.0, 1.0]])
    if kind == "bernoulli":
        make: Any = pw.families.BernoulliRewardPrior
        p, q = (pw.DirichletMdpPrior(sure, make(each, 1.0)) for each in (np.ones((2, 2)), moved))
        exact = pw.total_variation(pw.BetaPrior([1.0], [3.0]), pw.BetaPrior([2.0], [3.0])).value
    else:
        make = pw.families.NormalRewardPrior
        p, q = (
            pw.DirichletMdpPrior(sure, make(each, 0.5, 0.5)) for each in (np.ones((2, 2)), moved)
        )
        # two rewards of 0: variance 1/(2 + 4), means 1/3 and 2/3
        one, two = (pw.GaussianPrior([m], [[1 / 6]]) for m in (1 / 3, 2 / 3))
        exact = pw.total_variation(one, two).value
    pair = MdpPosteriors.start(p, q, TASKS)
    for step in (1, 2):
        zeros = np.zeros(TASKS, dtype=np.int64)
        pair = pair.update(Seen(step, 4, 2, zeros), zeros, np.zeros(TASKS), zeros)
    found = pair.total_variation(streams(seed).at(Purpose.WORLD, 3))
    assert mean_within(found, exact)
    assert not mean_within(found, 1.1 * exact)
    assert mean_within(1.0 - pair.shared(streams(seed).at(Purpose.POLICY, 3), 1)[:, 0], exact)


def test_priors_that_exclude_each_other(seed: int) -> None:
    p = pw.DirichletMdpPrior(ROW, EARNED)
    q = pw.DirichletMdpPrior(np.where(ROW > 0.0, ROW, [[[0.0, 0.0], [0.0, 1.0]]] * 2), EARNED)
    pair = MdpPosteriors.start(p, q, 5)
    assert (pair.total_variation(streams(seed, 5).at(Purpose.WORLD, 1)) == 1.0).all()
    assert (pair.shared(streams(seed, 5).at(Purpose.POLICY, 1), 2) == 0.0).all()


def test_the_same_prior_is_at_no_distance(seed: int) -> None:
    p = pw.DirichletMdpPrior(ROW, EARNED)
    pair = MdpPosteriors.start(p, p, 5)
    assert (pair.total_variation(streams(seed, 5).at(Purpose.WORLD, 1)) == 0.0).all()
    assert (pair.shared(streams(seed, 5).at(Purpose.POLICY, 1), 2) == 1.0).all()


@pytest.mark.slow
def test_the_ladder_of_dirichlet_priors(seed: int) -> None:
    p = pw.DirichletMdpPrior(np.full((3, 2, 3), 5.0), np.eye(3)[:, :2], round_steps=3)
    q = p.replaced(transitions=p.transitions * [1.0, 1.2, 1.0])
    ladder = sensitivity_ladder(p, q, pw.ThompsonSampling(), 6, seed=seed, tasks=4000)
    assert ladder.in_order, ladder
    names = {rung.name for rung in ladder.rungs}
    assert names >= {"worst case", "posteriors", "actions", "common random numbers"}
    assert ladder["posteriors"].delta < ladder["worst case"].delta
    assert ladder.trivial <= 6.0
    interval, gap = ladder.interval, ladder.gap
    assert interval is not None
    assert interval.low.mean < gap.mean - 5 * gap.std_error
    assert gap.mean + 5 * gap.std_error < interval.high.mean


def test_a_policy_that_keeps_draws_knows_its_redraws() -> None:
    p = pw.DirichletMdpPrior(ROW, EARNED, round_steps=2)
    q = p.replaced(transitions=OTHER)
    policy = pw.policies.RoundSampling(k=2, steps=2)
    bound = pomdp_trajectory_bound((p, q), policy, 6)
    eps = pw.total_variation(p, q).value
    assert bound.delta == pytest.approx(2 * 2 * 3 * eps)  # k = 2, R = 3
    assert pomdp_trajectory_bound((p, q), pw.KShotThompson(2), 6).delta == pytest.approx(24 * eps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["known", "bernoulli", "normal"])
def test_actions_that_a_state_lacks_do_not_count(name: str, seed: int) -> None:
    """A ladder has numbers throughout, and equal posteriors are at no distance."""
    rewards: Any = {
        "known": np.array([[0.3, 0.6], [1.0, 0.9]]),
        "bernoulli": pw.families.BernoulliRewardPrior([[1.0, 2.0], [3.0, 1.0]], 2.0),
        "normal": pw.families.NormalRewardPrior([[0.0, 0.2], [1.0, 0.5]], 1.0),
    }[name]
    moves = np.array([[[1.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]]])
    lacks = pw.DirichletMdpPrior(moves, rewards, round_steps=3)
    guess = lacks.replaced(transitions=moves * [1.0, 1.3])
    options: Any = {"seed": seed, "tasks": 200, "histories": 10}
    ladder = pw.sensitivity_ladder(lacks, guess, pw.ThompsonSampling(), 6, **options)
    assert ladder.in_order
    assert ladder.interval is not None
    assert ladder.interval.low.mean <= 0.0 <= ladder.interval.high.mean < np.inf
    assert all(0.0 < rung.delta < np.inf for rung in ladder.rungs)
    both = MdpPosteriors.start(lacks, lacks, 5)
    assert (both.total_variation(streams(seed, 5).at(Purpose.WORLD, 1)) == 0.0).all()
