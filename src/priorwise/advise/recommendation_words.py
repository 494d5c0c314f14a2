"""A recommendation in plain words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from priorwise.advise.candidates import THOMPSON, UNIFORM
from priorwise.advise.gains import given_away
from priorwise.advise.losses import rule_of_three
from priorwise.core.estimates import mean_estimate, percent, plus_minus

if TYPE_CHECKING:
    from priorwise.advise.backtest_result import Backtest
    from priorwise.advise.recommendation import Recommendation


def in_words(found: "Recommendation") -> Iterator[str]:
    """Sentences about a recommendation."""
    yield _of_prior(found)
    if found.fit.check is not None:
        yield found.fit.check.verdict
    yield from _of_replay(found)
    yield _of_reward(found)
    yield from _of_simple(found)
    equal = [
        name
        for name in found.losses
        if name not in (found.chosen, found.ab_test, UNIFORM) and found.as_good(name)
    ]
    if equal and found.gains_measurably:
        yield (
            f"Equally good: {', '.join(equal)}. Each keeps at least 95 % of the gain with a "
            "probability of 95 %."
        )
    yield _of_loss(found)
    if found.fit.drift is not None and found.fit.drift.raised:
        yield found.fit.drift.verdict
    for name, why in found.left_out.items():
        yield f"Not tried: {name} ({why})."
    for each in (*found.said, *found.fit.fit.warnings):
        yield f"Note: {each}."


def _of_prior(found: "Recommendation") -> str:
    fit = found.fit
    tasks = f"{fit.fit.tasks:,} past tasks"
    models = fit.models
    if models is None:
        return f"The prior {fit.chosen} was learned from {tasks}."
    others = [name for name in models.scores if name != fit.chosen]
    if models.best == fit.chosen:
        nearest = max(others, key=lambda name: models.estimate(name).mean)
        gap = models.difference(fit.chosen, nearest)
        by = f"by {plus_minus(gap.mean, gap.std_error)} in log likelihood of a task over {nearest}"
        what = f"{fit.chosen} predicts held-out ones of {tasks} best"
        return f"Of {len(others) + 1} priors, {what}, {by}."
    best = f"{models.best}, which predicts held-out tasks best"
    return f"The prior {fit.chosen} is as good as {best} among {len(others) + 1}, and simpler."


def _of_replay(found: "Recommendation") -> Iterator[str]:
    """Set gains in simulation beside those on later tasks, and say which to trust."""
    if isinstance(found.replayed, str):
        yield (
            "The later tasks of the log cannot be replayed to check the simulation: "
            f"{found.replayed}. Treat the gains below with caution."
        )
    later = found.later
    if later is None:
        return
    yield (
        "The prior fails its check, so trust the later tasks of the log and not the simulation. "
        f"The prior was learned again from the earlier {len(later.fit.log.tasks):,} tasks, and "
        f"policies were replayed on the later {len(later.uniform):,}."
    )
    pairs = [f"{name} {_gain(found, name)} and {_later_gain(later, name)}" for name in later.lines]
    yield f"Gain over random choice in simulation and on later tasks: {', '.join(pairs)}."
    if found.chosen != found.simulated:
        gap = later.difference(found.chosen, found.simulated)
        yield (
            f"Simulation prefers {found.simulated}. On later tasks {found.chosen} earns "
            f"{plus_minus(gap.mean, gap.std_error)} more."
        )
    if later.horizon != later.asked:
        yield f"Records last for {later.horizon:,} of {later.asked:,} pulls of a task."


def _gain(found: "Recommendation", name: str) -> str:
    gain = found.scored.difference(name, UNIFORM)
    return plus_minus(gain.mean, gain.std_error)


def _later_gain(later: "Backtest", name: str) -> str:
    gain = mean_estimate(later.gains(name))
    return plus_minus(gain.mean, gain.std_error)


def _of_reward(found: "Recommendation") -> str:
    own, gain, where = found.reward, found.gain, ""
    if found.later is not None:
        own, where = found.later.reward(found.chosen), "On later tasks "
    text = f"{where}{found.chosen} earns {plus_minus(own.mean, own.std_error)} a task"
    if found.chosen != UNIFORM:
        text += (
            f", {plus_minus(gain.mean, gain.std_error)} more than random choice: this is its gain"
        )
    if found.later is not None:
        return f"{text}."
    return f"{text}. It was chosen on other simulated tasks than these."


def _of_simple(found: "Recommendation") -> Iterator[str]:
    """Compare with simpler policies: how much of the gain they give away."""
    if not found.gains_measurably:
        yield "No policy gains measurably over random choice."
        return
    if found.ab_test == found.chosen:
        yield "A plain A/B test earns most: no learned prior is needed."
    elif found.ab_test is not None:
        yield from _compared(found, found.ab_test, "A plain A/B test")
    if THOMPSON in found.losses and found.chosen != THOMPSON:
        yield from _compared(found, THOMPSON, "Thompson sampling")


def _compared(found: "Recommendation", name: str, who: str) -> Iterator[str]:
    kept = found.kept(name)
    if kept is None:
        return
    gap = (
        found.gain_over(name) if found.later is None else found.later.difference(found.chosen, name)
    )
    meaning = "" if name == THOMPSON else f" ({found.candidates[name].meaning})"
    text = f"{who}{meaning} {given_away(kept)}, {plus_minus(abs(gap.mean), gap.std_error)} a task"
    yield f"{text}: it is equally good." if found.as_good(name) else f"{text}."


def _of_loss(found: "Recommendation") -> str:
    if not found.candidates[found.chosen].learned:
        return "It does not use the learned prior, so a wrong prior costs nothing."
    if not found.losses[found.chosen].any():
        count = found.tasks * len(found.losses[found.chosen])
        what = f"Believing the learned prior instead of the truth made no difference in {count:,}"
        return f"{what} simulated tasks: {rule_of_three(count)}."
    loss = found.loss(found.chosen)
    size = abs(loss.mean)
    gain = found.gain_over(UNIFORM)
    share = f", {percent(size / gain.mean)} of the gain" if found.gains_measurably else ""
    how = "costs it" if loss.mean >= 0.0 else "loses it nothing: it earns more by"
    what = f"Believing the learned prior instead of the truth {how}"
    return f"{what} {plus_minus(size, loss.std_error)} a task on average{share}."
