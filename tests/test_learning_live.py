"""Learning from closed tasks: the alarm, and proposals with their backtests."""

import numpy as np
import pytest
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.serve.errors import Refused
from priorwise.serve.values import LAST_FIT
from priorwise.testing.seeds import base_seed

pytestmark = pytest.mark.slow

RATES = np.linspace(0.1, 0.9, 12)


def played(prior, names, means, strength=20.0, tasks=40, pulls=60, seed=0, **options):
    """Close tasks whose rates have these means."""
    rng = np.random.default_rng(seed + base_seed())
    options = {"propensities": False} | options
    made = pw.Decider(
        prior, pw.ThompsonSampling(), horizon=pulls, seed=seed + base_seed(), **options
    )
    for k in range(tasks):
        rates = dict(zip(names, rng.beta(strength * means, strength * (1.0 - means)), strict=True))
        for _ in range(pulls):
            d = made.decide(f"t{k}")
            made.reward(d.token, float(rng.random() < rates[d.arm]))
        made.close(f"t{k}")
    return made


@pytest.mark.parametrize("named", [False, True])
def test_a_backtest_knows_the_arms_of_the_prior_in_use_by_name(named):
    """Names sort otherwise than arms stand, "10" before "2": the right prior must not lose. With
    arms mixed up it earned a tenth less.
    """
    names = [f"n{k}" for k in range(12, 0, -1)] if named else [str(k) for k in range(12)]
    prior = pw.BetaPrior(20 * RATES, 20 * (1 - RATES), names=names if named else None)
    made = played(prior, names, RATES, tasks=40, pulls=80, floor=0.05)
    found = made.refit("beta", seed=base_seed())
    assert found.gain is not None, found.why_not
    in_use = found.backtest.to_frame().set_index("policy")["reward"]
    assert in_use["in use"] > 0.95 * in_use["proposed"]
    assert found.gain.mean < 4.0 * found.gain.std_error
    assert made.prior(2).names == tuple(sorted(names))


def test_an_alarm_knows_arms_by_name():
    means, names = np.array([0.8, 0.5, 0.2]), ["zeta", "mid", "alpha"]
    prior = pw.BetaPrior(20 * means, 20 * (1 - means), names=names)
    made = played(prior, names, means, tasks=60, floor=0.1)
    right = made.alarm()
    assert not right.raised
    # control: the same tasks under the prior of other arms
    other = pw.BetaPrior(20 * means[::-1], 20 * (1 - means[::-1]), names=names)
    wrong = played(other, names, means, tasks=60, floor=0.1).alarm()
    assert wrong.raised
    assert wrong.p_value < 1e-6


def test_arms_that_nobody_played_end_no_alarm_and_are_not_learned():
    means, names = np.array([0.9, 0.5, 0.01]), ["zeta", "mid", "alpha"]
    prior = pw.BetaPrior(200 * means, 200 * (1 - means), names=names)
    made = played(prior, names, means, tasks=41, pulls=5)
    assert not made.alarm().raised
    with pytest.raises(Refused, match="floor"):
        made.refit(seed=base_seed())
    assert len(made.versions()) == 1


def test_the_alarm_never_falls_as_tasks_are_closed():
    """The evidence of tasks does not change when others come: looking often gains nothing."""
    means, names = np.array([0.6, 0.4]), ["a", "b"]
    prior = pw.BetaPrior(20 * means, 20 * (1 - means), names=names)
    seen = [
        played(prior, names, means, tasks=tasks, pulls=20, floor=0.2).alarm().log_evidence
        for tasks in (41, 60, 80, 81, 110)
    ]
    assert seen == sorted(seen)


def test_real_rewards_have_a_backtest_and_arms_keep_their_names():
    """Arms that are all alike are learned as exchangeable; those who ask need not name them."""
    names, rng = ["z", "b", "a"], np.random.default_rng(base_seed())
    prior = pw.GaussianPrior(np.zeros(3), np.eye(3), 1.0, names=names)
    made = pw.Decider(prior, pw.ThompsonSampling(), horizon=20, seed=base_seed(), floor=0.1)
    for k in range(40):
        means = dict(zip(names, rng.normal(size=3), strict=True))
        for _ in range(20):
            d = made.decide(f"t{k}")
            made.reward(d.token, float(rng.normal(means[d.arm])))
        made.close(f"t{k}")
    found = made.refit("gaussian:exchangeable", seed=base_seed())
    assert found.gain is not None, found.why_not
    made.accept(found.version)
    assert made.decide("new").version == 2
    assert set(made.summary("new").arms) == set(names)


def test_arms_that_are_new_in_every_task_stay_so():
    """Also where all tasks so far happened to have the same names."""
    rng = np.random.default_rng(base_seed())
    made = pw.Decider(
        pw.ExchangeableBetaPrior(2, 8), pw.ThompsonSampling(), horizon=20, seed=base_seed()
    )
    for k in range(40):
        for _ in range(20):
            d = made.decide(f"t{k}", ["a", "b"])
            made.reward(d.token, float(rng.random() < (0.7 if d.arm == "a" else 0.2)))
        made.close(f"t{k}")
    made.accept(made.refit(seed=base_seed()).version)
    assert made.decide("new", ["c", "d", "e"]).version == 2


def test_mixtures_of_exchangeable_arms_decide_and_have_no_alarm():
    parts = [pw.ExchangeableBetaPrior(2, 8), pw.ExchangeableBetaPrior(8, 2)]
    prior = pw.families.ExchangeableMixturePrior(parts, [0.5, 0.5])
    made = pw.Decider(prior, pw.ThompsonSampling(), horizon=20, seed=base_seed())
    for k in range(40):
        d = made.decide(f"t{k}", ["a", "b", "c"][: 2 + k % 2])
        made.reward(d.token, 1.0)
        made.close(d.task)
    assert made.replay("t7") == []
    with pytest.raises(Refused, match="alarm"):
        made.alarm()


@pytest.mark.parametrize("accept", ["ask", "better"])
def test_a_schedule_proposes_and_accepts_by_its_rule(accept):
    """After every 20 closed tasks; a prior that is far off is replaced where the rule says so, new
    tasks start with the new one and a running task keeps its own.
    """
    means, names = np.array([0.8, 0.2, 0.2]), ["a", "b", "c"]
    wrong = pw.BetaPrior([2, 80, 80], [80, 20, 20], names=names)
    learn = pw.serve.Learning(every=20, family="beta", accept=accept)
    with pytest.raises(ValueError, match="every"):
        pw.serve.Learning(every=3)
    with pytest.raises(ValueError, match="accept"):
        pw.serve.Learning(accept="always")
    made = played(wrong, names, means, tasks=40, pulls=40, floor=0.1, learn=learn)
    made.decide("running")
    made._fit_thread.join()
    assert made.store.value(LAST_FIT) == ""
    found = made.versions()
    assert len(found) >= 2
    assert found[1].story["fitted_on"]["tasks"] >= 20
    assert (made.version > 1) == (accept == "better")
    assert all(each.status == "proposed" for each in found[1:]) == (accept == "ask")
    assert made.decide("running").version == made.store.task("running").version
    assert made.decide("new").version == made.version


@pytest.mark.parametrize("there", [True, False])
def test_a_refit_that_a_store_does_not_allow_ends_in_one_line(tmp_path, there):
    path, options = tmp_path / "decisions.db", {"horizon": 5, "seed": base_seed()}
    pw.Decider(pw.BetaPrior(1, 1), pw.Greedy(), store=str(path), **options).close()
    store = str(path) if there else "postgresql://localhost:1/none"
    command = ["refit", store, "-p", "greedy", "--horizon", "5", "--seed", "0"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    problem = "a fit needs 20 closed tasks" if there else "PostgresStore"
    assert result.stderr.startswith(f"Error: STORE: {problem}")
    assert result.stderr.count("\n") == 1


def test_a_client_names_a_value_that_json_does_not_have():
    with (
        pw.serve.Client("http://localhost:1", retries=0) as client,
        pytest.raises(TypeError, match="must be values that JSON has, got"),
    ):
        client.decide("task", [object()])
