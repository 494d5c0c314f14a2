"""What can be asked of the service: one function for each endpoint, and the table of them all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from priorwise.core.serial import load_prior
from priorwise.core.validation import shown
from priorwise.serve.http import problems, types
from priorwise.serve.http.problems import Stop
from priorwise.serve.http.table import PARQUET, PROMETHEUS, Call, Download, Endpoint, Raw, Table

if TYPE_CHECKING:
    from priorwise.serve.http.service import Service

MOST_TASKS: Final = 1000
"""Tasks in one answer."""
AT_ONCE: Final = 20
"""Tasks that one request decides about before other keys have their turn."""


async def decide(service: Service, call: Call) -> types.Decision:
    """Choose an arm for the next pull of a task; a new name starts a task."""
    b: types.Decide = call.body
    made = await service.do(
        "decide", b.task, b.available, b.context, unit=b.unit, request=b.request
    )
    service.metrics.decisions += 1
    return types.Decision(*made)


async def decide_many(service: Service, call: Call) -> types.Decisions:
    """Choose an arm for each of several tasks, some at a time: after an error those before it stay.
    With an id for each, a retry gives the same ones.
    """
    b: types.DecideMany = call.body
    for name in ("contexts", "requests"):
        given = getattr(b, name)
        if given is not None and len(given) != len(b.tasks):
            raise Stop(
                422, f"{name} must have one for each of {len(b.tasks)} tasks, got {len(given)}",
                f"$.{name}",
            )  # fmt: skip
    made: list[Any] = []
    async with service.deadline():
        for first in range(0, len(b.tasks), AT_ONCE):
            tasks, contexts, requests = (
                None if all_of is None else all_of[first : first + AT_ONCE]
                for all_of in (b.tasks, b.contexts, b.requests)
            )
            made += await service.do("decide_many", tasks, b.available, contexts, requests=requests)
    service.metrics.decisions += len(made)
    return types.Decisions([types.Decision(*one) for one in made])


async def reward(service: Service, call: Call) -> types.Rewarded:
    """Take the reward of a decision; the same one again changes nothing."""
    b: types.Reward = call.body
    try:
        outcome = await service.do("reward", b.token, b.value, correct=b.correct)
    except Exception:
        service.metrics.rewarded("refused")
        raise
    service.metrics.rewarded(outcome)
    return types.Rewarded(outcome)


async def rewards(service: Service, call: Call) -> types.AllRewarded:
    """Take rewards of several decisions, each with its own outcome: a bad one stops no other."""
    items: list[types.Reward | Stop] = call.body.rewards
    good = [each for each in items if not isinstance(each, Stop)]
    done = await service.together(
        "reward", [((b.token, b.value), {"correct": b.correct}) for b in good]
    )
    after = iter(done)
    out = []
    for each in items:
        outcome = each if isinstance(each, Stop) else next(after)
        if isinstance(outcome, BaseException):
            stop = problems.stop_of(outcome) or service.bug(outcome)
            service.metrics.rewarded("refused")
            out.append(types.OneRewarded(error=stop.problem))
        else:
            service.metrics.rewarded(outcome)
            out.append(types.OneRewarded(outcome))
    return types.AllRewarded(out)


class Unchecked(msgspec.Struct, forbid_unknown_fields=True):
    """Rewards before each is looked at."""

    rewards: list[msgspec.Raw]


def rewards_one_by_one(content: bytes) -> Any:
    """Decode rewards of which some are wrong: those become what is said of them."""
    raw = msgspec.json.decode(content, type=Unchecked).rewards
    if not 1 <= len(raw) <= types.MOST_ITEMS:
        raise Stop(
            422, f"rewards must be 1 to {types.MOST_ITEMS:,} in one request, got {len(raw):,}",
            "$.rewards",
        )  # fmt: skip
    out: list[types.Reward | Stop] = []
    for place, each in enumerate(raw):
        try:
            out.append(msgspec.json.decode(each, type=types.Reward))
        except (ValueError, RecursionError) as error:
            stop = problems.undecoded(error)
            stop.where = f"$.rewards[{place}]" + (stop.where or "$")[1:]
            out.append(stop)
    return types.Rewards(out)  # type: ignore[arg-type]


async def allocate(service: Service, call: Call) -> types.Allocation:
    """Choose the next pulls of a task at once, all from what is known now."""
    b: types.Allocate = call.body
    made = await service.do("allocate", b.task, b.pulls, b.available, request=b.request)
    service.metrics.decisions += 1
    return types.Allocation(*made)


async def record(service: Service, call: Call) -> types.Rewarded:
    """Take the sum of the rewards of several pulls of an arm, as of a batch."""
    b: types.Record = call.body
    try:
        outcome = await service.do(
            "record", b.task, b.arm, b.pulls, b.reward, squares=b.squares, request=b.request
        )
    except Exception:
        service.metrics.rewarded("refused")
        raise
    service.metrics.rewarded(outcome)
    return types.Rewarded(outcome)


async def close_task(service: Service, call: Call) -> types.Closed:
    """Close a task: no more decisions, but late rewards."""
    return types.Closed(await service.do("close", *call.names))


async def delete_unit(service: Service, call: Call) -> types.Deleted:
    """Erase what is known of a unit; its rewards stay as parts of sums that name nobody."""
    return types.Deleted(await service.aside(service.decider.delete, *call.names))


async def tasks(service: Service, call: Call) -> types.Tasks:
    """List tasks, the newest first."""
    closed = _choice(call, "closed", {"true": True, "false": False})
    most = _whole(call, "limit", 100, MOST_TASKS)
    found = await service.aside(
        service.decider.store.tasks, closed=closed, most=most + 1, after=call.query.get("after")
    )
    lines = [types.TaskLine(*each) for each in found[:most]]
    return types.Tasks(lines, lines[-1].task if len(found) > most else None)


async def summary(service: Service, call: Call) -> types.Summary:
    """Say where a task stands: what is believed of each arm, and whether to stop."""
    context = None
    if (text := call.query.get("context")) is not None:
        try:
            context = msgspec.json.decode(text, type=types.Context)
        except (ValueError, RecursionError) as error:
            stop = problems.undecoded(error)
            raise Stop(
                422, f"context must be rows of numbers as JSON: {stop}", "?context"
            ) from None
    made = await service.few(service.summaries, service.decider.summary, *call.names, context)
    return summed_up(made)


def summed_up(made: Any) -> types.Summary:
    """Write a summary as an answer."""
    columns = made.table()
    arms = [types.Arm(*row) for row in zip(*columns.values(), strict=True)]
    rule = made.stopping
    advice = None
    if rule is not None:
        advice = types.Stopping(
            rule.tolerance, rule.stopped, rule.false_stops.mean, rule.false_stops.std_error,
            rule.lost.mean, rule.lost.std_error, rule.pulls, rule.every_pull,
        )  # fmt: skip
    return types.Summary(
        made.task, arms, made.decided, made.horizon, made.closed, made.version, made.leader,
        made.expected_loss, made.value_remaining, made.stop, made.advice, advice,
    )  # fmt: skip


async def priors(service: Service, call: Call) -> types.Priors:
    """List every prior that was ever proposed."""
    rows = await service.aside(service.decider.versions)
    current = await service.aside(lambda: service.decider.version)
    return types.Priors(
        [
            types.Prior(
                each.number, each.status, each.number == current, each.made, each.accepted,
                each.story, json.loads(each.prior),
            )
            for each in rows
        ]
    )  # fmt: skip


async def propose(service: Service, call: Call) -> types.Proposed:
    """Keep a prior for somebody to accept."""
    b: types.Propose = call.body
    text = json.dumps(b.prior)  # starts with a brace: nothing that is read as the name of a file

    def work() -> int:
        return int(service.decider.propose(load_prior(text), b.story))

    return types.Proposed(await service.aside(work), "proposed")


async def accept(service: Service, call: Call) -> types.Proposed:
    """Let new tasks start with a proposed prior; running ones keep theirs."""
    version = _version(call)
    await service.aside(service.decider.accept, version)
    return types.Proposed(version, "accepted")


async def decline(service: Service, call: Call) -> types.Proposed:
    """Put a proposed prior aside."""
    version = _version(call)
    await service.aside(service.decider.decline, version)
    return types.Proposed(version, "declined")


async def log(service: Service, call: Call) -> Download:
    """Download the log of all decisions and rewards, as fit_prior reads it."""

    def work() -> Path:
        with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as file:
            path = Path(file.name)
        try:
            service.decider.export(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    return Download(await service.few(service.exports, work), PARQUET, "decisions.parquet")


async def openapi(service: Service, call: Call) -> Raw:
    """Describe the service, as OpenAPI."""
    return Raw(service.document, "application/json")


async def health(service: Service, call: Call) -> types.Alive:
    """Say that the service runs."""
    return types.Alive()


async def ready(service: Service, call: Call) -> types.Ready:
    """Say whether the store answers."""
    await service.answers()
    return types.Ready()


async def metrics(service: Service, call: Call) -> Raw:
    """Counts and times in the text format of Prometheus."""
    gauges = await service.aside(service.gauges)
    return Raw(service.counted().text(gauges).encode(), PROMETHEUS)


def _choice(call: Call, name: str, known: dict[str, Any]) -> Any:
    if (word := call.query.get(name)) is None:
        return None
    if word not in known:
        raise Stop(422, f"{name} must be {' or '.join(known)}, got {shown(word)}", f"?{name}")
    return known[word]


def _whole(call: Call, name: str, default: int, most: int) -> int:
    word = call.query.get(name, str(default))
    if not (word.isascii() and word.isdigit() and len(word) < 10 and 1 <= int(word) <= most):
        raise Stop(422, f"{name} must be 1 to {most:,}, got {shown(word)}", f"?{name}")
    return int(word)


def _version(call: Call) -> int:
    (word,) = call.names
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise Stop(404, f"there is no prior of version {shown(word)}")
    return int(word)


_LIST: Final = {
    "closed": "true or false: only tasks that are; both without it.",
    "after": "The name of the last task of the answer before.",
    "limit": f"How many tasks, at most {MOST_TASKS:,}; 100 without it.",
}

_FEATURES: Final = {"context": "Features, one row per arm, as JSON: for priors that have some."}

TABLE: Final = Table(
    [
        Endpoint("POST", "/v1/decide", "decide", types.Decision, decide, types.Decide),
        Endpoint(
            "POST", "/v1/decide_many", "decide", types.Decisions, decide_many, types.DecideMany
        ),
        Endpoint("POST", "/v1/reward", "reward", types.Rewarded, reward, types.Reward),
        Endpoint("POST", "/v1/rewards", "reward", types.AllRewarded, rewards, types.Rewards),
        Endpoint("POST", "/v1/allocate", "decide", types.Allocation, allocate, types.Allocate),
        Endpoint("POST", "/v1/record", "reward", types.Rewarded, record, types.Record),
        Endpoint("GET", "/v1/tasks", "read", types.Tasks, tasks, query=_LIST),
        Endpoint("GET", "/v1/tasks/{task}", "read", types.Summary, summary, query=_FEATURES),
        Endpoint("POST", "/v1/tasks/{task}/close", "decide", types.Closed, close_task),
        Endpoint("DELETE", "/v1/units/{unit}", "admin", types.Deleted, delete_unit),
        Endpoint("GET", "/v1/priors", "read", types.Priors, priors),
        Endpoint(
            "POST", "/v1/priors", "admin", types.Proposed, propose, types.Propose, large=True
        ),
        Endpoint("POST", "/v1/priors/{version}/accept", "admin", types.Proposed, accept),
        Endpoint("POST", "/v1/priors/{version}/decline", "admin", types.Proposed, decline),
        Endpoint("GET", "/v1/log", "read", None, log, kind=PARQUET),
        Endpoint("GET", "/openapi.json", None, None, openapi),
        Endpoint("GET", "/health", None, types.Alive, health),
        Endpoint("GET", "/ready", None, types.Ready, ready),
        Endpoint("GET", "/metrics", "read", None, metrics, kind=PROMETHEUS),
    ]
)  # fmt: skip
