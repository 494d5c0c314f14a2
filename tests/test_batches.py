"""Rewards that are seen batch by batch: one belief for all pulls of a batch, in either engine, and
what ``allocate`` chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.policies.allocation import allocate, counted
from priorwise.policies.play_arms import PlayArms
from priorwise.simulate.steps import environments, steps
from priorwise.testing.twins import same_run, some_arms

HORIZON, BATCH, TASKS = 7, 3, 70

PRIORS: dict[str, Any] = {
    "gaussian": pw.GaussianPrior([0.3, 0.0, -0.2], 0.6 * np.eye(3) + 0.4, [1.0, 0.5, 2.0]),
    "beta": pw.BetaPrior([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]),
    "logit-normal": pw.LogitNormalPrior([-1.0, -1.2, -0.8], 0.5 * np.eye(3) + 0.4),
    "finite": pw.FinitePrior(
        np.array([[0.2, 0.5, 0.4], [0.7, 0.5, 0.4]]), [0.5, 0.5], noise="bernoulli"
    ),
    "normal-gamma": pw.NormalGammaPrior([0.0, 0.1, 0.0], [1.0, 1.0, 2.0], 2.0, 1.0),
    "linear": pw.LinearGaussianPrior(np.zeros(2), np.eye(2), contexts=pw.SphereContexts(arms=3)),
}
POLICIES: dict[str, Any] = {
    "thompson": pw.ThompsonSampling(),
    "softmax": pw.PosteriorSampling(2, "softmax"),
    "receding-horizon": pw.RecedingHorizon(2, 2, "online"),
    "top-two": pw.TopTwoThompson(most_draws=20),
    "greedy": pw.Greedy(),
    "bayes-ucb": pw.BayesUCB(),
    "exact-knowledge-gradient": pw.ExactKnowledgeGradient(),
    "uniform-then": pw.policies.UniformThen(2, pw.BayesUCB()),
    "play-arms": PlayArms((0, 1, 2), pw.Greedy()),
}


def kept(prior: Any, policy: Any, seed: int, batch: int = BATCH, **options: Any) -> Any:
    size = {"horizon": HORIZON, "tasks": TASKS} | options
    return pw.simulate(prior, policy, seed=seed, batch=batch, keep=True, **size)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("of", ["thompson", "greedy", "bayes-ucb", "exact-knowledge-gradient"])
def test_engines_agree_on_every_family(name: str, of: str, seed: int) -> None:
    prior, policy = PRIORS[name], POLICIES[of]
    same_run(*(kept(prior, policy, seed, engine=each) for each in ("compiled", "numpy")))


@pytest.mark.parametrize("of", POLICIES)
def test_engines_agree_for_every_policy(of: str, seed: int) -> None:
    """With some arms missing and a wrong prior believed, too."""
    prior, believed = PRIORS["beta"], pw.BetaPrior([2.0, 1.0, 1.0], [2.0, 1.0, 9.0])
    mask = None if of == "play-arms" else some_arms(TASKS, 3, seed)
    options = {"believed": believed, "available": mask}
    same_run(*(kept(prior, POLICIES[of], seed, engine=e, **options) for e in ("compiled", "numpy")))


def test_a_run_does_not_depend_on_threads_or_blocks(seed: int) -> None:
    runs = [
        kept(PRIORS["logit-normal"], pw.ThompsonSampling(), seed, threads=threads, block=block)
        for threads, block in ((1, None), (2, 64))
    ]
    assert runs[0].rewards.tobytes() == runs[1].rewards.tobytes()
    assert runs[0].mean_reward == runs[1].mean_reward


@pytest.mark.parametrize("name", ["gaussian", "beta", "logit-normal", "linear"])
def test_pulls_of_a_batch_share_a_belief_that_then_knows_them_all(name: str, seed: int) -> None:
    """The belief of a batch is that of one update per earlier pull; batches are 3, 3 and 1."""
    prior = PRIORS[name]
    streams = Streams(seed, np.arange(5, dtype=np.uint64))
    done = list(
        steps(
            environments(prior, streams), prior.belief(5), pw.ThompsonSampling(), streams,
            horizon=HORIZON, arms=3, batch=BATCH,
        )
    )  # fmt: skip
    assert [each.belief is before.belief for before, each in pairwise(done)] == [
        True, True, False, True, True, False,
    ]  # fmt: skip
    belief = prior.belief(5)
    for number, each in enumerate(done):
        if number % BATCH == 0:
            np.testing.assert_allclose(
                each.belief.mean(each.seen), belief.mean(each.seen), rtol=1e-9
            )
        belief = belief.update(each.seen, each.actions, each.rewards, each.after)
    last = done[-1].learned()
    np.testing.assert_allclose(
        last.mean(done[-1].seen),
        belief.mean(done[-1].seen),
        rtol=1e-9,  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize("of", [each for each in POLICIES if each != "softmax"])
def test_allocate_is_the_first_batch_of_simulate(of: str, seed: int) -> None:
    prior, policy = PRIORS["gaussian"], POLICIES[of]
    rng = Streams(seed, np.arange(TASKS, dtype=np.uint64)).at(Purpose.POLICY, 1)
    chosen = policy.allocate(prior.belief(TASKS), Seen(1, HORIZON, 3), rng, pulls=BATCH)
    run = kept(prior, policy, seed, engine="numpy")
    np.testing.assert_array_equal(chosen, run.actions[:, :BATCH])


def test_allocate_goes_on_where_tasks_stand(seed: int) -> None:
    """In parts, at different steps, and for policies and beliefs that have no more than their
    role.
    """
    prior, policy, streams = (
        PRIORS["beta"],
        pw.ThompsonSampling(),
        Streams(seed, np.arange(4, dtype=np.uint64)),
    )
    belief, at = prior.belief(4), np.array([1, 5, 2, 3])
    whole = allocate(policy, belief, Seen(at, 30, 3), streams.at(Purpose.POLICY, at), pulls=9)
    later = at + 4
    rest = allocate(policy, belief, Seen(later, 30, 3), streams.at(Purpose.POLICY, later), pulls=5)
    np.testing.assert_array_equal(whole[:, 4:], rest)

    class Plain:
        """A belief without take."""

        def __init__(self, held: Any) -> None:
            self.held, self.tasks, self.arms = held, held.tasks, held.arms

        def sample(self, *given: Any) -> Any:
            return self.held.sample(*given)

        def update(self, *given: Any) -> Any:
            return Plain(self.held.update(*given))

    one = Seen(1, 30, 3)
    together, by_pull = (
        allocate(policy, each, one, streams.at(Purpose.POLICY, 1), pulls=9)
        for each in (belief, Plain(belief))
    )
    np.testing.assert_array_equal(together, by_pull)


def law_p_value(policy: Any, seed: int, *, pulls: int = 4000) -> float:
    """Chi-squared p-value of one task's allocation against the law of ``act``."""
    belief, seen = PRIORS["beta"].belief(1), Seen(1, pulls, 3)
    law = pw.ThompsonSampling().probabilities(belief, seen)
    assert law is not None
    rng = Streams(seed, np.zeros(1, dtype=np.uint64)).at(Purpose.POLICY, 1)
    counts = counted(allocate(policy, belief, seen, rng, pulls=pulls), 3)[0]
    return float(stats.chisquare(counts, pulls * law.probs[0]).pvalue)


def test_allocation_of_a_randomised_policy_has_the_law_of_act(seed: int) -> None:
    """False alarm 1e-4; the control is another law, which 4,000 pulls tell apart."""
    assert law_p_value(pw.ThompsonSampling(), seed) > 1e-4
    assert law_p_value(pw.KShotThompson(3), seed) < 1e-4


def test_scores_serve_a_batch_and_ties_share_it(seed: int) -> None:
    """Two arms tie at first: both are played within the batch, but for chance (2e-5). After it the
    better one is.
    """
    alpha, beta = np.array([1.0, 1.0, 0.5]), np.array([2.0, 2.0, 3.0])
    prior, size = pw.BetaPrior(alpha, beta), {"horizon": 40, "tasks": 8, "batch": 20}
    run = pw.simulate(prior, pw.Greedy(), seed=seed, keep=True, **size)
    counts = counted(run.actions[:, :20], 3)
    assert (counts[:, :2] >= 1).all()
    assert (counts[:, 2] == 0).all()
    for actions, rewards, pulls in zip(run.actions, run.rewards, counts, strict=True):
        successes = np.bincount(actions[:20], weights=rewards[:20], minlength=3)
        means = (alpha + successes) / (alpha + beta + pulls)
        assert means[actions[20:]] == pytest.approx(means.max(), rel=1e-12)


def test_seeing_rewards_late_costs(seed: int) -> None:
    """Greater batches earn less, by more than 4 standard errors; batch = 1 is the default, bit for
    bit, and a batch as long as the task learns nothing.
    """
    prior, options = PRIORS["beta"], {"horizon": 60, "tasks": 4_000, "seed": seed}
    means = [pw.simulate(prior, pw.Greedy(), batch=b, **options) for b in (1, 20, 60)]
    assert means[0].mean_reward == pw.simulate(prior, pw.Greedy(), **options).mean_reward
    for one, other in ((means[0], means[1]), (means[1], means[2])):
        apart = one.mean_reward - other.mean_reward
        assert apart > 4.0 * np.hypot(one.std_error, other.std_error)
    assert abs(means[2].mean_reward - 20.0) < 4.0 * means[2].std_error  # 60 pulls of mean 1/3


@dataclass(frozen=True)
class Counter:
    """A user's policy with memory: plays arms in turn, and forgets nothing within a batch."""

    def begin(self, tasks: int) -> Any:
        return np.zeros(tasks, dtype=np.int64)

    def decide(self, belief: Any, seen: Seen, rng: Any, memory: Any) -> tuple[Any, Any]:
        return memory % seen.arms, memory + 1


def test_memory_and_contexts(seed: int) -> None:
    run = kept(PRIORS["beta"], Counter(), seed)
    np.testing.assert_array_equal(run.actions, np.broadcast_to(np.arange(HORIZON) % 3, (TASKS, 7)))
    greedy = kept(PRIORS["linear"], pw.Greedy(), seed, engine="numpy")
    assert len(np.unique(greedy.actions[:, :BATCH])) == 3  # fresh contexts within a batch


def test_refusals(seed: int) -> None:
    prior, rng = PRIORS["beta"], Streams(seed, np.zeros(1, dtype=np.uint64)).at(Purpose.POLICY, 1)
    with raises("batch", "must be at least 1"):
        pw.simulate(prior, pw.Greedy(), horizon=5, tasks=5, seed=seed, batch=0)
    with raises("batch", "must be at most"):
        pw.simulate(prior, pw.Greedy(), horizon=5, tasks=5, seed=seed, batch=6)
    river = pw.families.riverswim(states=2)
    with raises("prior", "batch=5"):
        pw.compare(river, {"ts": pw.ThompsonSampling()}, horizon=5, tasks=5, seed=seed, batch=5)
    with raises("pulls", "must be at most those left, 2"):
        pw.Greedy().allocate(prior.belief(1), Seen(4, 5, 3), rng, pulls=3)
    with raises("policy", "memory"):
        allocate(Counter(), prior.belief(1), Seen(1, 5, 3), rng, pulls=3)
    with raises("rng", "must be a Stream, as priorwise.core.streams.streams(seed"):
        pw.Greedy().allocate(prior.belief(1), replace(Seen(1, 5, 3), step=2), None, pulls=3)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Counted:
    """Greedy, with a list of the steps at which it scores."""

    steps: list[int]
    needs = pw.Greedy.needs

    def act(self, belief: Any, seen: Seen, rng: Any) -> Any:
        return pw.Greedy().act(belief, seen, rng)

    def scores(self, belief: Any, seen: Seen) -> Any:
        self.steps.append(int(seen.step))
        return pw.Greedy().scores(belief, seen)

    def monte_carlo_n(self, arms: int) -> None:
        return None


@pytest.mark.parametrize("before", ["uniform", "given", "nested"])
def test_a_policy_after_rounds_decides_once_a_batch(before: str, seed: int) -> None:
    """Rounds 1 to 4, then batches 5-6 (what is left of the second), 7-9 and 10; the same pulls by
    ``allocate`` from the belief before any, whose pulls before the policy are those of ``act``.
    """
    then = Counted([])
    policy: Any = {
        "uniform": pw.policies.UniformThen(4, then),
        "given": PlayArms((0, 1, 2, 0), then),
        "nested": pw.policies.UniformThen(2, pw.policies.UniformThen(4, then)),
    }[before]
    kept(PRIORS["beta"], policy, seed, horizon=10)
    assert then.steps == [5, 7, 10]
    belief, streams = PRIORS["beta"].belief(5), Streams(seed, np.arange(5, dtype=np.uint64))
    rng = streams.at(Purpose.POLICY, 1)
    alone = allocate(policy, belief, Seen(1, 20, 3), rng, pulls=12)
    assert then.steps == [5, 7, 10, 5]
    early = allocate(pw.Uniform(), belief, Seen(1, 20, 3), rng, pulls=4)
    if before != "given":
        np.testing.assert_array_equal(alone[:, :4], early)
    late = allocate(pw.Greedy(), belief, Seen(5, 20, 3), streams.at(Purpose.POLICY, 5), pulls=8)
    np.testing.assert_array_equal(alone[:, 4:], late)
    # tasks at different steps
    mixed = replace(Seen(1, 20, 3), step=np.array([1, 5, 1, 5, 9]))
    found = allocate(policy, belief, mixed, rng, pulls=8)
    np.testing.assert_array_equal(found[[0, 2]], alone[[0, 2], :8])
    np.testing.assert_array_equal(found[[1, 3]], alone[[1, 3], 4:])
