"""What every registered family must keep."""

import numpy as np
import pytest

from priorwise.core.protocols import MeanBelief
from priorwise.core.serial import Serializable
from priorwise.families.registry import family_for, family_of, has_part, seen_by, unseen
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.serve.choosing import LivePrior
from priorwise.simulate.run import simulate
from priorwise.testing.playing import play
from priorwise.testing.seeds import Seeded
from priorwise.theory.influence import has_state

TASKS, PULLS = 40, 6


class FamilyContract(Seeded):
    """Tests of a family by one of its priors; override the fixture ``prior``.

    Nothing is asked of parts that the family does not have.
    """

    @pytest.fixture
    def prior(self) -> LivePrior:
        """A prior of the family."""
        raise NotImplementedError("override the fixture `prior` to return a prior of the family")

    def test_it_is_registered(self, prior: LivePrior) -> None:
        """Tools find the family by the prior, and JSON finds the prior."""
        family = family_of(prior)
        assert family is not None, "call priorwise.register(Family(...)) where the prior is defined"
        assert type(prior) in family.priors
        assert Serializable.load(prior.to_json()) == prior

    def test_statistics_tell_the_belief_all(self, prior: LivePrior, seed: int) -> None:
        """The belief given the statistics is that of sequential updates, up to rounding.

        Where actions move a state, what is shown before a pull does not tell where it led: such a
        family has to test this by itself.
        """
        if not has_part(prior, "statistics") or not hasattr(prior, "belief_given"):
            return
        if has_state(prior):
            return
        played = play(prior, tasks=TASKS, pulls=PULLS, seed=seed)
        statistics = unseen(prior, TASKS, "FamilyContract")
        for pull in played.pulls:
            statistics = statistics.observe(pull.actions, pull.rewards, pull.seen.signal)
        start, given = prior.belief(TASKS), prior.belief_given(statistics)
        if isinstance(played.belief, MeanBelief):
            assert isinstance(start, MeanBelief)
            assert isinstance(given, MeanBelief)
            updated = played.belief.mean(played.seen)
            np.testing.assert_allclose(given.mean(played.seen), updated, rtol=1e-7, atol=1e-9)
            assert not np.allclose(start.mean(played.seen), updated)  # control

    def test_statistics_add_up(self, prior: LivePrior, seed: int) -> None:
        """Tasks taken apart and joined, and pulls seen in two parts, give the whole again."""
        if not has_part(prior, "statistics"):
            return
        run = simulate(prior, Uniform(), horizon=PULLS, tasks=TASKS, seed=seed, keep=True)
        whole = seen_by(prior, run)
        assert whole.tasks == TASKS
        assert whole.take(slice(0, 7)) + whole.take(slice(7, TASKS)) == whole
        assert whole.merged(unseen(prior, TASKS, "FamilyContract")) == whole
        assert Serializable.load(whole.to_json()) == whole

    def test_densities_are_of_tasks(self, prior: LivePrior, seed: int) -> None:
        """One finite log density for each task, which does not depend on the others."""
        if not has_part(prior, "log_marginal") or not has_part(prior, "statistics"):
            return
        run = simulate(prior, Uniform(), horizon=PULLS, tasks=TASKS, seed=seed, keep=True)
        statistics, density = seen_by(prior, run), family_for(prior, "FamilyContract").log_marginal
        values = np.asarray(density(prior, statistics))
        assert values.shape == (TASKS,)
        assert np.isfinite(values).all()
        alone = density(prior, statistics.take([3]))
        np.testing.assert_allclose(alone, values[3:4], rtol=1e-9)

    def test_distance_to_itself_is_nothing(self, prior: LivePrior, seed: int) -> None:
        """A prior has total variation 0 from itself."""
        if has_part(prior, "pair"):
            assert abs(total_variation(prior, prior, seed=seed).value) < 1e-12

    def test_a_vague_start_is_of_the_same_tasks(self, prior: LivePrior, seed: int) -> None:
        """The vague prior can be believed on these tasks."""
        if has_part(prior, "blank"):
            blank = family_for(prior, "FamilyContract").blank(prior)
            assert blank.arms == prior.arms
            run = simulate(prior, Uniform(), believed=blank, horizon=2, tasks=3, seed=seed)
            assert np.isfinite(run.mean_reward)
