"""A certificate in plain words."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from priorwise.advise.gains import is_measurable
from priorwise.advise.losses import rule_of_three, upper
from priorwise.core.estimates import percent, plus_minus

if TYPE_CHECKING:
    from priorwise.advise.certificate import Certificate

SOURCES: Final = {"law": "the law of the fit", "bootstrap": "refits of resampled tasks"}
CLEAR: Final = 3.0
"""Standard errors from which on a difference is called one."""
NOISY: Final = 0.5
"""Share of the losses' variance that may be noise of the simulation before it is spoken of."""


def in_words(found: "Certificate") -> Iterator[str]:
    """Sentences about a certificate."""
    prior, tasks = type(found.prior).__name__, f"{found.fitted_tasks:,} tasks"
    pulls = f"{found.horizon:,} pulls a task"
    pulls += f" in batches of {found.batch:,}" if found.batch > 1 else ""
    arms = f", {found.prior.arms:,} arms"
    yield f"{found.policy} with a {prior} learned from {tasks}, {pulls}{arms}:"
    if found.interrupted:
        yield f"Interrupted. {found.interrupted}"
    yield from _of_loss(found)
    sources = [
        f"{len(each.losses)} from {SOURCES[name]} ({upper(each.clear):.2g})"
        for name, each in found.measured.items()
    ]
    larger = "; the larger 95 % loss counts" if len(sources) > 1 else ""
    yield f"Plausible truths: {' and '.join(sources)}{larger}."
    yield _of_bound(found)
    if math.isfinite(found.vague_loss):
        yield _of_vague(found)
    if found.more_tasks is not None:
        yield f"Halving the 95 % loss takes about {_rounded(found.more_tasks)} more past tasks."
    yield _of_promise(found)
    if found.noise > NOISY:
        share = f"{100 * found.noise:.0f} % of the spread of these losses"
        yield f"warning: {share} is noise of the simulation; more tasks make them more exact"
    for each in found.warnings:
        yield f"warning: {each}"


def _of_loss(found: "Certificate") -> Iterator[str]:
    """What is lost, on average and at most."""
    if not found.differed:
        count = f"{found.compared:,} simulated tasks"
        yield f"Deciding with it instead of the truth made no difference in {count}:"
        yield f"{rule_of_three(found.compared)}. What one that differs may lose is not known."
        return
    mean, most = found.expected_loss, found.loss_95
    mean_text = plus_minus(abs(mean), found.expected_loss_std_error)
    how = f"loses {mean_text}" if mean >= 0.0 else f"earns {mean_text} more"
    also = "" if mean >= 0.0 else "loses "
    yield f"Deciding with it instead of the truth {how} a task on average{_shares(found, mean)},"
    if most > 0.0:
        most_text = plus_minus(most, found.loss_95_std_error)
        yield f"and {also}no more than {most_text} with 95 % confidence{_shares(found, most)}."
    elif most < 0.0:
        least = plus_minus(-most, found.loss_95_std_error)
        yield f"and with 95 % confidence it loses nothing: it earns at least {least} more."
    else:
        many = f"{found.tasks:,} simulated tasks each"
        yield f"and {also}nothing under 95 % of the plausible truths, as far as {many} tell."


def _shares(found: "Certificate", loss: float) -> str:
    """Write a loss as a share of the gain over random choice, if the gain is measurable."""
    if not is_measurable(found.losses.uniform):
        return ""
    return f" ({percent(abs(loss) / found.gain)} of the gain over random choice)"


def _of_bound(found: "Certificate") -> str:
    bound = found.bound
    if bound is None:
        return f"The theorem gives no bound here: {found.without_bound}."
    if bound.vacuous:
        any_two = "no less than what holds for any two policies"
        return f"The theorem's bound, {bound.value:.3g}, is vacuous: {any_two}."
    if bound.kind == "approximate":
        cost = "what its approximate posterior adds is not counted"
        return f"The theorem's bound for an exact posterior: {bound.value:.3g}; {cost}."
    return f"The theorem's bound: no more than {bound.value:.3g} with 95 % confidence."


def _of_vague(found: "Certificate") -> str:
    gap, share = found.beats_vague, 100 * found.beats_vague_share
    more = "more" if gap.mean >= 0.0 else "less"
    text = f"It earns {plus_minus(abs(gap.mean), gap.std_error)} {more} than a vague prior"
    if more == "more":
        text += f", and more under {share:.0f} % of the plausible truths"
    elif -gap.mean > CLEAR * gap.std_error:
        text += ": this policy makes no good use of it here (recommend compares policies)"
    least = found.break_even_tasks
    if least is not None and least < found.fitted_tasks:
        text += f"; break-even at about {_rounded(least)} past tasks"
    return f"{text}."


def _of_promise(found: "Certificate") -> str:
    off = found.promise_error_95
    text = f"The promised reward, {found.promised.mean:.4g}, may be off by {off:.2g} (95%)"
    if 0.0 < 2.0 * found.loss_95 <= off:
        text += f", {off / found.loss_95:.2g} times the loss: the choice is surer than the promise"
    return f"{text}."


def _rounded(tasks: int) -> str:
    """Two digits: more are not known."""
    return f"{round(tasks, 2 - len(str(tasks))) if tasks > 99 else tasks:,}"
