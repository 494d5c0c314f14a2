"""A recommendation in plain words."""

from collections.abc import Iterator
from typing import Any, Final

from priorwise.advise.candidates import THOMPSON, UNIFORM
from priorwise.advise.losses import rule_of_three
from priorwise.core.estimates import Estimate, percent, plus_minus

SURE: Final = 2.0
"""Standard errors within which two policies count as equally good."""


def in_words(found: Any) -> Iterator[str]:
    """Sentences about a recommendation."""
    yield _of_prior(found)
    if found.fit.check is not None:
        yield found.fit.check.verdict
    yield _of_reward(found)
    yield from _of_simple(found)
    equal = [
        name
        for name in found.losses
        if name not in (found.chosen, _simplest(found)) and found.as_good(name)
    ]
    if equal:
        yield f"As good, within 1 % of the reward or what simulation can tell: {', '.join(equal)}."
    yield _of_loss(found)
    if found.fit.drift is not None and found.fit.drift.raised:
        yield found.fit.drift.verdict
    for name, why in found.left_out.items():
        yield f"Not tried: {name} ({why})."
    for each in (*found.said, *found.fit.fit.warnings):
        yield f"Note: {each}."


def _of_prior(found: Any) -> str:
    fit = found.fit
    tasks = f"{fit.fit.tasks:,} past tasks"
    if fit.models is None:
        return f"The prior {fit.chosen} was learned from {tasks}."
    others = [name for name in fit.models.scores if name != fit.chosen]
    if fit.models.best == fit.chosen:
        nearest = max(others, key=lambda name: fit.models.estimate(name).mean)
        gap = fit.models.difference(fit.chosen, nearest)
        by = f"by {plus_minus(gap.mean, gap.std_error)} in log likelihood of a task over {nearest}"
        what = f"{fit.chosen} predicts held-out ones of {tasks} best"
        return f"Of {len(others) + 1} priors, {what}, {by}."
    best = f"{fit.models.best}, which predicts held-out tasks best"
    return f"The prior {fit.chosen} is as good as {best} among {len(others) + 1}, and simpler."


def _of_reward(found: Any) -> str:
    own = found.reward
    text = f"{found.chosen} earns {plus_minus(own.mean, own.std_error)} a task"
    more = [
        _more(found, name, words)
        for name, words in ((UNIFORM, "playing any arm"), (THOMPSON, "Thompson sampling"))
        if name in found.losses and name != found.chosen
    ]
    fresh = "It was chosen on other simulated tasks than these."
    return f"{text}: {' and '.join(more)}. {fresh}" if more else f"{text}. {fresh}"


def _more(found: Any, name: str, words: str) -> str:
    gap, share = found.gain_over(name), found.above(name)
    much = f" ({percent(share, sign=True)})" if share == share else ""
    return f"{_amount(gap)} than {words}{much}"


def _amount(gap: Estimate) -> str:
    word = "more" if gap.mean >= 0.0 else "less"
    return f"{plus_minus(abs(gap.mean), gap.std_error)} {word}"


def _simplest(found: Any) -> str | None:
    """The simple policy that ``_of_simple`` speaks of."""
    return UNIFORM if found.uniform_serves else found.ab_test


def _little(found: Any, name: str) -> str:
    """How little another policy that is as good gives away."""
    gap = found.gain_over(name)
    if gap.mean <= 0.0:
        return "it earns no less"
    noise = gap.mean <= SURE * gap.std_error
    why = "within noise" if noise else "less than 1 % of the reward"
    return f"it earns {plus_minus(gap.mean, gap.std_error)} less a task, which is {why}"


def _of_simple(found: Any) -> Iterator[str]:
    """Whether something simpler would do."""
    if found.uniform_serves and found.chosen != UNIFORM:
        yield f"Playing any arm would serve as well: {_little(found, UNIFORM)}."
        return
    test = found.ab_test
    if test is None or test == found.chosen:
        if test is not None:
            yield "A plain A/B test earns most: no learned prior is needed."
        return
    gap = found.gain_over(test)
    meaning = f"({found.candidates[test].meaning})"
    if found.ab_test_serves:
        yield f"A plain A/B test {meaning} would serve as well: {_little(found, test)}."
        return
    share = found.above(test)
    more = f": {found.chosen} earns {percent(share)} more" if share == share else ""
    lost = f"{plus_minus(gap.mean, gap.std_error)} a task{more}"
    yield f"A plain A/B test {meaning} would give away {lost}."


def _of_loss(found: Any) -> str:
    if not found.candidates[found.chosen].learned:
        return "It believes nothing that was learned, so that a wrong prior costs nothing."
    if not found.losses[found.chosen].any():
        count = found.tasks * len(found.losses[found.chosen])
        what = f"Believing the learned prior instead of the truth made no difference in {count:,}"
        return f"{what} simulated tasks: {rule_of_three(count)}."
    loss = found.loss(found.chosen)
    gain = found.gain_over(UNIFORM).mean
    size = abs(loss.mean)
    share = f", {percent(size / gain)} of what it adds to any arm" if gain > 0.0 else ""
    how = "costs it" if loss.mean >= 0.0 else "loses it nothing: it earns more by"
    what = f"Believing the learned prior instead of the truth {how}"
    return f"{what} {plus_minus(size, loss.std_error)} a task on average{share}."
