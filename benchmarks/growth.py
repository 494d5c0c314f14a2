"""Every family with three policies, and how the time of a pull grows with arms, pulls and tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import priorwise as pw
from benchmarks.children import memory
from benchmarks.report import Goal, Section, rounds_of, show, table
from benchmarks.timing import Timing, interleaved, sized, timed
from priorwise.experiments import problems

ARMS = (2, 5, 10, 20, 50, 100, 200)
PULLS = (1, 10, 100, 1000)
TASKS = (1_000, 10_000, 100_000, 1_000_000)
FLAT = 1.2


def simulated(prior: Any, policy: Any, horizon: int, tasks: int) -> pw.Run:
    """One thread of the compiled engine."""
    return pw.simulate(
        prior, policy, horizon=horizon, tasks=tasks, seed=1, engine="compiled", threads=1
    )


def per_pull(
    cases: Mapping[str, tuple[Any, Any, int]], seconds: float, rounds: int
) -> dict[str, Timing]:
    """Nanoseconds per pull of each case: prior, policy, horizon."""
    contenders = {}
    for name, (prior, policy, horizon) in cases.items():
        tasks = sized(lambda n, case=(prior, policy, horizon): simulated(*case, n), seconds)
        contenders[name] = timed(
            lambda case=(prior, policy, horizon), n=tasks: simulated(*case, n), tasks * horizon
        )
    return interleaved(contenders, rounds)


def families(quick: bool) -> Section:
    """Section 5."""
    seconds, rounds = (0.05, 2) if quick else (0.25, 5)
    discrete = problems.discrete().prior
    means = np.clip(discrete.means, 0.05, 0.95)
    rows: dict[str, tuple[Any, int]] = {
        "Gaussian, 6 arms, 10 pulls": (problems.gaussian().prior, 10),
        "linear Gaussian, 6 arms, 6 features, 20 pulls": (problems.linear().prior, 20),
        "finite without noise, 20 arms, 16 tasks, 10 pulls": (discrete, 10),
        "finite Bernoulli, 20 arms, 16 tasks, 10 pulls": (
            pw.FinitePrior(means, discrete.probs, "bernoulli"),
            10,
        ),
        "finite Gaussian, 20 arms, 16 tasks, 10 pulls": (
            pw.FinitePrior(discrete.means, discrete.probs, "gaussian", 1.0),
            10,
        ),
        "Beta-Bernoulli, 10 arms, 10 pulls": (pw.BetaPrior(np.ones(10), np.ones(10)), 10),
    }
    policies = {
        "Thompson": pw.ThompsonSampling(),
        "2-RHC(10, 10, online)": pw.RecedingHorizon(10, 10, "online"),
        "greedy": pw.Greedy(),
    }
    cases = {
        f"{family} | {name}": (*row, policy)
        for family, row in rows.items()
        for name, policy in policies.items()
    }
    timings = per_pull(
        {name: (prior, policy, horizon) for name, (prior, horizon, policy) in cases.items()},
        seconds,
        rounds,
    )
    section = Section("5. Families and policies, compiled engine, one thread")
    out = table(f"ns per pull, best of {rounds} interleaved rounds", "", *policies)
    for family in rows:
        out.add_row(family, *(show(timings[f"{family} | {name}"].best) for name in policies))
    section.tables.append(out)
    section.numbers = {"ns_per_pull": rounds_of(timings)}
    return section


def priors(arms: int) -> dict[str, Any]:
    """Return priors over so many arms."""
    return {
        "Gaussian": pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5).for_arms(arms),
        "Beta-Bernoulli": pw.ExchangeableBetaPrior(1.0, 1.0).for_arms(arms),
        "Normal-gamma": pw.NormalGammaPrior(np.zeros(arms), 1.0, 3.0, 3.0),
    }


def growth(quick: bool) -> Section:
    """Section 6."""
    seconds, rounds = (0.05, 2) if quick else (0.2, 5)
    policy = pw.ThompsonSampling()
    section = Section("6. Growth, Thompson sampling, compiled engine, one thread")
    by_arms = {
        (name, arms): (prior, policy, 10) for arms in ARMS for name, prior in priors(arms).items()
    }
    by_pulls = {
        (name, pulls): (prior, policy, pulls)
        for pulls in PULLS
        for name, prior in priors(6).items()
    }
    for axis, title, cases in (("arms", "10 pulls", by_arms), ("pulls", "6 arms", by_pulls)):
        timings = per_pull(
            {f"{name} {size}": case for (name, size), case in cases.items()}, seconds, rounds
        )
        sizes = list(dict.fromkeys(size for _, size in cases))
        out = table(
            f"ns per pull by {axis}, {title}",
            axis,
            *(f"{size:,}" for size in sizes),
            "exponent, last two",
        )
        curves = {}
        for name in dict.fromkeys(name for name, _ in cases):
            curves[name] = [timings[f"{name} {size}"].best for size in sizes]
            slope = math.log(curves[name][-1] / curves[name][-2]) / math.log(sizes[-1] / sizes[-2])
            out.add_row(name, *map(show, curves[name]), f"{slope:.2f}")
        section.tables.append(out)
        section.numbers[axis] = {"sizes": sizes, "ns_per_pull": curves}
    by_tasks(section, 3 if quick else 9)
    memory(section)
    return section


def by_tasks(section: Section, rounds: int) -> None:
    """Nanoseconds per pull must not grow with tasks; a call costs something of its own, which few
    tasks show.
    """
    prior = problems.gaussian().prior
    contenders = {}
    for tasks in TASKS:
        simulated(prior, pw.ThompsonSampling(), 10, tasks)
        repeats = max(1, 100_000 // tasks)  # so that every contender runs for some time

        def run(tasks: int = tasks, repeats: int = repeats) -> None:
            for _ in range(repeats):
                simulated(prior, pw.ThompsonSampling(), 10, tasks)

        contenders[f"{tasks:,}"] = timed(run, 10 * tasks * repeats)
    timings = interleaved(contenders, rounds)
    ns = [timing.best for timing in timings.values()]
    fixed = (ns[0] - ns[-1]) * 10 * TASKS[0] / 1e6
    note = f"a call costs {fixed:.2f} ms of its own, which 10³ tasks show"
    section.goals.append(
        Goal("time per pull, 10⁶ tasks ÷ 10⁴ tasks", ns[-1] / ns[1], "×", at_most=FLAT, note=note)
    )
    out = table("ns per pull by tasks, Gaussian, 6 arms, 10 pulls", "tasks", *timings)
    out.add_row("Gaussian", *map(show, ns))
    section.tables.append(out)
    section.numbers["tasks"] = {"sizes": TASKS, "ns_per_pull": ns, "ms_per_call": fixed}
