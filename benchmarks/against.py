"""``python -m benchmarks.against SRC``: this checkout beside another one, section by section.

``SRC`` is the ``src`` folder of the other checkout, for instance of ``git worktree add ../before
HEAD~1``. One process per checkout stays up and runs the same sections, warm, on one thread. Rounds
alternate (A B, B A, ...), and processor time is compared within rounds, so that the noise of the
machine meets both; the clock is compared where a section runs on several threads. The table has the
geometric mean of the ratios with its 95 % interval; a section whose whole interval lies above 1.05
is slower.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

SLOWER = 1.05
CLOCKED = {"sample complexity"}
"""Sections that run on several threads: the clock is compared."""


def checked_source(path: str | Path) -> Path:
    """Return the absolute ``src`` folder of a checkout, if Python imports priorwise from it."""
    source = Path(path).resolve()
    words = [sys.executable, "-c", "import priorwise; print(priorwise.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    home = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    if Path(home).parents[1] != source:
        wrong = f"{source} is not the src folder of a checkout: priorwise comes from {home.strip()}"
        raise argparse.ArgumentTypeError(wrong)
    return source


def sections() -> dict[str, Callable[[], Any]]:
    """What is timed; names are looked up wherever a checkout keeps them."""
    import priorwise as pw
    from priorwise.experiments import problems

    def named(name: str) -> Any:
        homes = (pw, *(getattr(pw, each, None) for each in ("sensitivity", "meta")))
        return next(getattr(home, name) for home in homes if hasattr(home, name))

    gaussian, discrete, linear = (
        getattr(problems, name)().prior for name in ("gaussian", "discrete", "linear")
    )
    beta = pw.BetaPrior([2.0] * 10, [8.0] * 10)
    families = {"gaussian": gaussian, "beta": beta, "discrete": discrete, "linear": linear}

    def play(prior: Any, policy: Any, tasks: int, **options: Any) -> Callable[[], Any]:
        return lambda: pw.simulate(
            prior, policy, horizon=10, tasks=tasks, seed=0, threads=1, **options
        )

    out: dict[str, Callable[[], Any]] = {}
    for name, prior in families.items():
        out[f"{name}, Thompson sampling"] = play(prior, pw.ThompsonSampling(), 20_000)
        out[f"{name}, greedy"] = play(prior, pw.Greedy(), 20_000)
        out[f"{name}, look-ahead 10 x 10"] = play(prior, pw.KnowledgeGradient(10, 10), 500)
        out[f"{name}, exact knowledge gradient"] = play(prior, pw.ExactKnowledgeGradient(), 500)
        out[f"{name}, Bayes-UCB"] = play(prior, pw.BayesUCB(), 500)
        out[f"{name}, top-two"] = play(prior, pw.TopTwoThompson(), 128)
    out["gaussian, NumPy loop"] = play(gaussian, pw.ThompsonSampling(), 2_000, engine="numpy")
    out["gaussian, 64 tasks"] = lambda: [
        play(gaussian, pw.ThompsonSampling(), 64)() for _ in range(20)
    ]
    wrong = pw.GaussianPrior(gaussian.mean[::-1], gaussian.cov, gaussian.noise_var)
    kept = {
        name: pw.simulate(prior, pw.Uniform(), horizon=10, tasks=1_000, seed=1, keep=True)
        for name, prior in families.items()
    }
    fits = {
        "gaussian, moments": (pw.GaussianMoments(), "gaussian"),
        "gaussian, likelihood": (pw.GaussianMarginalLikelihood(), "gaussian"),
        "beta, moments": (pw.BetaMoments(), "beta"),
        "beta, likelihood": (pw.BetaMarginalLikelihood(), "beta"),
        "linear, moments": (pw.LinearMoments(linear.contexts), "linear"),
        "linear, likelihood": (pw.LinearMarginalLikelihood(linear.contexts), "linear"),
        "discrete, likelihood": (pw.FiniteMarginalLikelihood(discrete), "discrete"),
    }
    for name, (estimator, data) in fits.items():
        out[f"fit: {name}"] = lambda estimator=estimator, data=data: estimator.fit(kept[data])
    out["ladder"] = lambda: named("sensitivity_ladder")(
        gaussian, wrong, pw.ThompsonSampling(), 10, seed=0
    )
    two_arms = pw.GaussianPrior([0.0, 0.5], [[1.0, 0.3], [0.3, 1.0]])
    out["sample complexity"] = lambda: named("sample_complexity")(
        two_arms, 0.3, 0.2, horizon=2, seed=0
    )
    learner = named("EmpiricalBayes")(pw.GaussianMarginalLikelihood())
    out["empirical Bayes"] = lambda: named("simulate_meta")(
        gaussian, learner, horizon=10, episodes=200, replicates=2, seed=0, jobs=1
    )
    return out


def serve() -> None:
    """Run sections on request: one line in, one line of processor time out."""
    ready: dict[str, Callable[[], Any]] = {}
    try:
        ready = sections()
        print(json.dumps(list(ready)), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return
    for line in sys.stdin:
        name, repeats = json.loads(line)
        try:
            now = time.perf_counter if name in CLOCKED else time.process_time
            begun = now()
            for _ in range(repeats):
                ready[name]()
            answer: Any = now() - begun
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


class Checkout:
    """A process that runs the sections of one checkout."""

    def __init__(self, src: Path) -> None:
        """Start it."""
        here = Path(__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.against", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(src), "OMP_NUM_THREADS": "1"},
        )
        self.sections = self._answer()
        if isinstance(self.sections, dict):
            raise SystemExit(f"{src}: {self.sections['error']}")

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def time(self, name: str, repeats: int) -> float | str:
        """Processor seconds of a section, or why it failed."""
        assert self._process.stdin is not None
        print(json.dumps([name, repeats]), file=self._process.stdin, flush=True)
        answer: float | str = self._answer()
        return answer


def compared(
    name: str, now: Checkout, before: Checkout, rounds: int, seconds: float
) -> list[float] | str:
    """Ratios now / before of alternating rounds, each about ``seconds`` long."""
    both = (now, before)
    for each in both:  # warm
        if isinstance(first := each.time(name, 1), str):
            return first
    slow = max(float(each.time(name, 1)) for each in both)
    repeats = max(1, math.ceil(seconds / max(slow, 1e-6)))
    ratios = []
    for number in range(rounds):
        order = both if number % 2 else both[::-1]
        spent = {id(each): float(each.time(name, repeats)) for each in order}
        ratios.append(spent[id(now)] / spent[id(before)])
    return ratios


def main() -> int:
    """Compare; the status is 1 if a section is slower for sure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("src", type=checked_source, help="src folder of the other checkout")
    parser.add_argument("--only", nargs="+", default=[], help="sections whose name has this in it")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each round")
    chosen = parser.parse_args()
    from scipy.stats import t

    now, before = Checkout(Path(__file__).parent.parent / "src"), Checkout(chosen.src)
    console = Console(highlight=False, width=100)
    console.print(f"{'section':36}{'now / before':>14}   95 % interval")
    slower = 0
    for name in now.sections:
        if chosen.only and not any(word in name for word in chosen.only):
            continue
        ratios = compared(name, now, before, chosen.rounds, chosen.seconds)
        if isinstance(ratios, str):
            console.print(f"{name:36}{ratios}")
            continue
        logs = np.log(ratios)
        half = t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
        low, high = np.exp(logs.mean() - half), np.exp(logs.mean() + half)
        slower += bool(low > SLOWER)
        said = "slower" if low > SLOWER else "faster" if high < 1.0 / SLOWER else ""
        console.print(f"{name:36}{np.exp(logs.mean()):14.3f}   {low:.3f} to {high:.3f}  {said}")
    return int(slower > 0)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve()
    else:
        raise SystemExit(main())
