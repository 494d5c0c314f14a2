"""One page for whoever decides: what was learned, how well it fits, what it would have earned, what
is risked, what to do.
"""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any, Final, Unpack

from priorwise.advise.backtest_result import Backtest
from priorwise.advise.backtest_words import MUCH, share_of
from priorwise.advise.backtesting import learned_from, replay_on
from priorwise.advise.candidates import THOMPSON
from priorwise.advise.certificate import Certificate
from priorwise.advise.certifying import certify
from priorwise.advise.gains import share_in_words
from priorwise.advise.later import TRAIN, player_of
from priorwise.advise.recommending import chosen_for
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import Estimate, plus_minus
from priorwise.figures.pages import document, embedded, facts, folded, stacked, tag
from priorwise.logs.options import Reading
from priorwise.policies.thompson import ThompsonSampling

TITLE: Final = "What to do with the next tasks"
DRAWS: Final = 20
"""Plausible truths of the certificate."""
MOST_TASKS: Final = 512
"""Tasks simulated under each, at most."""


def advice_page(
    advice: Any, certificate: Certificate | None = None, replayed: Backtest | str = ""
) -> str:
    """Return a whole HTML page about a recommendation.

    ``certificate`` says what is risked, ``replayed`` what would have been earned, or why that is
    not known; without them the page says what the simulation tells.
    """
    parts = (
        tag("header", f"<h1>{TITLE}</h1>\n{_top(advice)}"),
        "<main>",
        *_section("What to do", _what_to_do(advice)),
        *_section("What was learned", _learned(advice)),
        *_section("How well it fits", _fits(advice)),
        *_section("What it would have earned", _earned(advice, replayed)),
        *_section("What is risked", _risked(advice, certificate)),
        "</main>",
        tag("footer", "".join(_p(f"Assumed: {e}", "soft small") for e in advice.fit.assumptions)),
    )
    return document(TITLE, parts)


def certificate_of(advice: Any, *, progress: bool | None = None) -> Certificate | None:
    """Certify the recommended policy, for tasks with the usual number of arms; None where it
    believes nothing that was learned.
    """
    if not advice.candidates[advice.chosen].learned:
        return None
    fit = advice.fit
    how: Any = {"horizon": advice.horizon, "batch": advice.batch, "seed": advice.seed}
    how |= {"draws": DRAWS, "tasks": min(advice.tasks, MOST_TASKS)}
    how |= {"bootstrap": 0 if fit.fit.uncertainty is not None else DRAWS}
    found = certify(fit, advice.policy, **how, progress=progress)
    return replace(found, policy=advice.chosen)  # by the name that the page has for it


def backtest_of(
    advice: Any,
    log: Any,
    *,
    family: str = "auto",
    progress: bool | None = None,
    **reading: Unpack[Reading],
) -> Backtest | str:
    """Return the backtest that the advice rests on. If it rests on simulation, replay on the later
    half of the log the policy that would have been recommended from the earlier half, and Thompson
    sampling, for as many pulls as records last; why not, where that cannot be.
    """
    if isinstance(advice.replayed, Backtest):
        return advice.replayed
    how: Any = {"horizon": advice.horizon, "batch": advice.batch, "seed": advice.seed}
    try:
        halves = learned_from(log, TRAIN, family, None, advice.seed, reading)
        name, best = chosen_for(halves.fit, **how, arms=halves.arms)
        policy = player_of(name, best, halves) if not best.learned else best.policy
        policies = {name: policy, THOMPSON: ThompsonSampling()}
        return replay_on(halves, policies, **how, limit=MUCH, progress=progress, picked=name)
    except ArgumentError as error:
        return str(error)


def _section(title: str, parts: Iterator[str]) -> Iterator[str]:
    yield f"<section>\n<h2>{title}</h2>"
    yield from parts
    yield "</section>"


def _p(text: str, kind: str = "") -> str:
    together = escape(text).replace(" %", "&nbsp;%").replace(" ± ", "&nbsp;±&nbsp;")
    return tag("p", together, kind)


def _top(advice: Any) -> str:
    log = advice.fit.log
    numbers = [(advice.chosen, "the policy to play")]
    gain = advice.gain
    numbers.append((f"{gain.mean:+.3g} ± {gain.std_error:.1g}", "gain over random choice, a task"))
    numbers.append((f"{len(log.tasks):,}", f"past tasks, {log.pulls.sum():,.0f} pulls"))
    numbers.append((f"{advice.horizon:,}", "pulls in a task to come"))
    return facts(numbers)


def _what_to_do(advice: Any) -> Iterator[str]:
    meaning = advice.candidates[advice.chosen].meaning
    if advice.interrupted:
        yield _p(f"Interrupted. {advice.interrupted}", "note")
    yield _p(f"Play {advice.chosen}: {meaning}.")
    if advice.batch > 1:
        yield _p(f"Look at the rewards after every {advice.batch:,} pulls, and decide anew.")
    test = advice.ab_test
    if not advice.gains_measurably:
        yield _p("No policy gains measurably over random choice here.", "note")
    elif test is not None and test != advice.chosen and advice.ab_test_serves:
        yield _p("A plain A/B test is equally good here.", "note")
    for each in advice.reasons[2 if advice.fit.check is not None else 1 :]:
        yield _p(each)


def _learned(advice: Any) -> Iterator[str]:
    fit = advice.fit
    yield _p(advice.reasons[0])
    worth = fit.worth
    if worth is not None and (worth < 1e9).all():
        low, high = f"{worth.min():.3g}", f"{worth.max():.3g}"
        pulls = low if low == high else f"{low} to {high}"
        yield _p(f"What past tasks teach is worth as much as {pulls} pulls of each arm.")
    yield embedded("What is believed of an arm before its first pull", fit.figure())
    yield folded("The numbers", tag("pre", escape(str(fit.fit)), "wide"))


def _fits(advice: Any) -> Iterator[str]:
    check = advice.fit.check
    if check is None:
        yield _p("There is no check for this family of priors.")
        return
    yield _p(check.verdict, "" if not check.doubts else "note")
    yield embedded("The log (line) among logs that the prior generates (bars)", check.figure())


def _earned(advice: Any, replayed: Backtest | str) -> Iterator[str]:
    if isinstance(replayed, str):
        if replayed:
            yield _p(f"Later tasks of the log cannot be replayed: {replayed}.", "soft")
    else:
        if replayed.chosen != advice.chosen:
            yield _p(
                f"From the earlier half of the log alone, {replayed.chosen} would have been "
                f"recommended: that is what is replayed here, and not {advice.chosen}.",
                "note",
            )
        yield from (_p(line) for line in replayed.card.splitlines())
        yield embedded("Replayed on later tasks of the log, and predicted", replayed.figure())
        yield folded("The table", _replayed(replayed))
    own = advice.reward
    yield _p(
        f"On simulated tasks to come it earns {plus_minus(own.mean, own.std_error)} a task. All "
        "policies that were tried:"
    )
    yield _policies(advice)
    for name, why in advice.left_out.items():
        yield _p(f"Not tried: {name} ({why}).", "soft small")


def _policies(advice: Any) -> str:
    rows = []
    for name in advice.table()["policy"]:
        own, gap = advice.promise(name), advice.gain_over(name)
        chosen = name == advice.chosen
        kept = advice.kept(name)
        share = "recommended" if chosen else "" if kept is None else share_in_words(kept)
        rows.append((name, _written(own), "" if chosen else _written(gap), share))
    return stacked(("Policy", "Reward of a task", "Less than recommended", "Gain kept"), rows)


def _replayed(found: Backtest) -> str:
    rows = []
    for name in sorted(found.lines, key=lambda name: -found.reward(name).mean):
        predicted = found.lines[name].predicted
        shares = share_of(found.share(name)), share_of(found.shrunken_share(name))
        gap = "" if name == found.winner else _written(found.difference(name, found.winner))
        promised = "" if predicted is None else _written(predicted)
        rows.append((name, _written(found.reward(name)), *shares, promised, gap))
    titles = ("Policy", "Reward of a task", "Share of the gap", "Shrunken share", "Predicted")
    return stacked((*titles, f"Minus {found.winner}"), rows)


def _written(value: Estimate) -> str:
    return plus_minus(value.mean, value.std_error)


def _risked(advice: Any, certificate: Any) -> Iterator[str]:
    yield _p(
        "What was learned is not the truth. Up in the picture earns more; right hangs more on what "
        "was learned."
    )
    yield embedded("What policies earn, and what hangs on the prior", advice.figure())
    if certificate is not None:
        yield from (_p(line.strip()) for line in str(certificate).splitlines())
        yield embedded("What may be lost, over what the truth may be", certificate.figure())
