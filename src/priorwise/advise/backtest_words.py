"""A backtest in words: a card for a manager, and a table for a statistician."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from priorwise.advise.gains import given_away
from priorwise.core.errors import option
from priorwise.core.estimates import Estimate, mean_estimate, percent, plus_minus

if TYPE_CHECKING:
    from priorwise.advise.backtest_result import Backtest

SURE: Final = 3.0
"""Standard errors from which on a difference is called one."""
FEW: Final = 5
"""Effective tasks below which weighted estimates are not to be trusted."""
MUCH: Final = 0.002
"""Share of pulls beyond the records from which on a backtest is doubted. They draw again what was
lucky: on rare clicks, 2 % of them double what a policy seems to gain.
"""


def card(found: "Backtest") -> Iterator[str]:
    """Sentences for a manager, about the policy that the earlier tasks speak for."""
    name, tasks = found.chosen, len(found.uniform)
    own, uniform = found.reward(name), float(found.uniform.mean())
    if found.interrupted:
        yield f"Interrupted. {found.interrupted}"
    if found.ran_out > MUCH:
        yield (
            "Do not lean on this: too many records ran out, which flatters policies that keep to "
            f"one arm. Replay fewer pulls per task: {option('most_run_out', MUCH)} finds how many."
        )
    if short := _shortened(found):
        yield f"{short}."
    yield (
        f"On {tasks:,} later tasks that it had not seen, {name} would have earned {own.mean:.4g} "
        f"per task of {found.horizon:,} pulls, where choosing at random earns {uniform:.4g}."
    )
    gain = mean_estimate(found.gains(name))
    if not found.gains_measurably:
        yield (
            f"It gains {plus_minus(gain.mean, gain.std_error)} a task, so it does not gain "
            "measurably over random choice. Collect more tasks before you switch."
        )
    else:
        share = (None if found.doubted else found.shrunken_share(name)) or found.share(name)
        yield (
            f"It gains {plus_minus(gain.mean, gain.std_error)} a task: "
            f"{percent(share.mean, 0)} (give or take {percent(2 * share.std_error, 0)}) of what "
            "knowing the best arm from the start would have added."
        )
    if len(found.lines) > 1:
        how = "is the policy named first: rewards of policies were not predicted"
        if found.selected:
            how = (
                "was chosen by simulation from the earlier tasks, before any later one was looked "
                "at, so there is no selection bias"
            )
        yield f"{name} {how}."
        yield from _rivals(found, name)
    if (off := found.held(name)) is not None:
        kept = abs(off) < SURE
        word = "held" if kept else f"did not hold: {'more' if off > 0 else 'less'} was earned"
        yield f"What the simulation had promised {word}."
    if (check := found.fit.check) is not None and found.doubted:
        yield f"The prior does not fit the earlier tasks: {check.verdict}"


def _rivals(found: "Backtest", name: str) -> Iterator[str]:
    """Report rivals that earned more, and which share of the gain the others give away."""
    rivals = [other for other in found.lines if other != name]
    gaps = {other: found.difference(other, name) for other in rivals}
    better = {other: gap for other, gap in gaps.items() if gap.mean > 0.0 and _clear(gap)}
    if better:
        by = ", ".join(f"{n} ({plus_minus(gap.mean, gap.std_error)})" for n, gap in better.items())
        yield f"Earned more per task than {name}, and by more than luck: {by}."
    if not found.gains_measurably:
        return
    equal = [other for other in rivals if other not in better and found.as_good(other)]
    if equal:
        names = ", ".join(equal)
        yield f"Equally good (at least 95 % of the gain, with 95 % probability): {names}."
    for other in rivals:
        if other not in (*better, *equal) and (kept := found.kept(other)) is not None:
            yield f"{other} {given_away(kept)}."


def _shortened(found: "Backtest") -> str:
    """That fewer pulls were replayed than had been asked for; "" if all were."""
    if found.limit is None or found.horizon == found.asked:
        return ""
    return (
        f"{found.horizon:,} of {found.asked:,} pulls of a task were replayed: with more, over "
        f"{100.0 * found.limit:g} % of a policy's pulls would have come after the records of an "
        "arm had run out"
    )


def in_words(found: "Backtest") -> Iterator[str]:
    """Lines of the table, what is to be known of it first."""
    if found.interrupted:
        yield f"Interrupted. {found.interrupted}"
    worst = max(found.lines, key=lambda name: found.lines[name].ran_out)
    out = "Recorded rewards sufficed for all pulls"
    if found.ran_out > 0.0:
        out = (
            f"Recorded rewards had run out for up to {percent(found.ran_out, 2)} of the pulls "
            f"({worst}), which drew them again"
        )
        out += ": too many to trust" if found.ran_out > MUCH else ""
    yield f"{out}."
    if short := _shortened(found):
        yield f"{short}."
    seen = f", rewards seen every {found.batch:,}" if found.batch > 1 else ""
    learned = f"prior {found.fit.chosen} learned from {len(found.fit.log.tasks):,} earlier tasks"
    yield f"{len(found.uniform):,} later tasks of {found.horizon:,} pulls{seen}; {learned}."
    yield from (f"({each})" for each in found.said)
    yield ""
    width = max(map(len, (*found.lines, "best arm in hindsight")))
    head = f"{'':{width}}  {'reward':>19}  {'share of the gap':>18}  {'shrunken':>18}"
    yield f"{head}  {'predicted':>19}  {'minus ' + found.winner:>20}"
    for name in sorted(found.lines, key=lambda name: -found.reward(name).mean):
        shares = [share_of(found.share(name)), share_of(found.shrunken_share(name))]
        predicted = found.lines[name].predicted
        gap = "" if name == found.winner else str(found.difference(name, found.winner))
        yield (
            f"{name:{width}}  {found.reward(name)!s:>19}  {shares[0]:>18}  {shares[1]:>18}  "
            f"{'' if predicted is None else str(predicted):>19}  {gap:>20}".rstrip()
        )
    for name, raw, shrunken in (
        ("any arm", found.uniform, found.shrunken_uniform),
        ("best arm in hindsight", found.best, found.shrunken_best),
    ):
        earned = f"{name:{width}}  {mean_estimate(raw)!s:>19}"
        by = "" if shrunken is None else f"  (by shrunken rates {mean_estimate(shrunken)})"
        yield earned + by
    if found.doubted:
        yield (
            "The prior does not fit the earlier tasks; shrunken shares and predictions lean on it."
        )
    yield from _weighted(found, width)


def _weighted(found: "Backtest", width: int) -> Iterator[str]:
    known = {n: each.weighted for n, each in found.lines.items() if each.weighted is not None}
    if not known:
        return
    yield ""
    yield "From the recorded pulls themselves, weighted by propensities:"
    yield f"{'':{width}}  {'inverse':>19}  {'doubly robust':>19}  {'effective':>20}"
    for name, each in known.items():
        size = f"{each.effective:,.1f} of {each.tasks:,} tasks"
        yield f"{name:{width}}  {each.ips!s:>19}  {each.dr!s:>19}  {size:>20}"
    if few := [name for name, each in known.items() if each.effective < FEW]:
        yield (
            f"Less than {FEW} effective tasks ({', '.join(few)}): too few for estimates, and for "
            "their standard errors."
        )


def _clear(difference: Estimate) -> bool:
    return abs(difference.mean) >= SURE * difference.std_error and difference.mean != 0.0


def share_of(share: Estimate | None) -> str:
    """Write a share with its standard error; a dash where there is none."""
    if share is None or share.mean != share.mean:
        return "–"
    return f"{percent(share.mean)} ± {percent(share.std_error)}"
