"""Everything that a decider does, each operation declared once.

The methods of :class:`~priorwise.serve.decider.Decider`,
:class:`~priorwise.serve.decider.AsyncDecider` and :class:`~priorwise.serve.client.Client`, the
routes of the service and its OpenAPI document are made from these values.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypeVar, final

from priorwise.core.serial import load_prior
from priorwise.serve import types
from priorwise.serve.errors import Conflict, NotFound, Refused, TooLate
from priorwise.serve.many import DecisionList
from priorwise.serve.operations import Operations
from priorwise.serve.problems import received, sent
from priorwise.serve.stores.store import Session
from priorwise.serve.types import Answer, Request, Scope

if TYPE_CHECKING:
    from priorwise.serve.decider import Decider

P = ParamSpec("P")
Q = TypeVar("Q", bound=Request)
A = TypeVar("A")
F = TypeVar("F", bound=Callable[..., Any])
Threads = Literal["aside", "summaries", "exports"]
"""Where a service runs what takes a while: of summaries and exports there are few at a time."""


@dataclass(eq=False)
class Declared(Generic[P, Q, A]):
    """What is declared of every operation.

    Parameters
    ----------
    parameters
        The class of its requests, which is called with the parameters of its methods.
    run
        Does it.
    scope
        What a key needs.
    address
        Method and path; a name in braces is a parameter. A ``POST`` without names has the
        parameters in its body, others have them in the path and in the query.
    answer
        What the service answers, where it is JSON.
    field
        Of the answer, which holds what a decider returns; None where that is the answer itself.
    raises
        Errors of it, apart from those that all have.
    convert
        Makes what stands in that field, and what a decider returns of it.

    """

    parameters: Callable[P, Q]
    run: Callable[..., A]
    scope: Scope
    address: str
    answer: type[Answer] | None
    field: str | None = None
    raises: Sequence[type[Refused]] = ()
    convert: tuple[Callable[[A], object], Callable[[Any], A]] | None = None  # of the field

    @property
    def request(self) -> type[Request]:
        """The class of its requests."""
        assert isinstance(self.parameters, type)
        return self.parameters

    @property
    def method(self) -> str:
        """The method of its address."""
        return self.address.split()[0]

    @property
    def path(self) -> str:
        """The path of its address."""
        return self.address.split()[1]

    @property
    def has_body(self) -> bool:
        """Whether the parameters come in a body."""
        return self.method == "POST" and "{" not in self.path

    def wrap(self, value: A) -> Answer:
        """Return what the service answers."""
        if isinstance(value, Answer):
            return value
        assert self.answer is not None
        assert self.field is not None
        return self.answer(**{self.field: self.convert[0](value) if self.convert else value})

    def joined(self, values: list[A]) -> A:
        """Return what several requests returned as one: lists follow each other."""
        if len(values) == 1:
            return values[0]
        result: Any = [each for part in values for each in part]  # type: ignore[attr-defined]
        return result

    def unwrap(self, answer: Answer) -> A:
        """Return what a decider returns."""
        value: Any = answer if self.field is None else getattr(answer, self.field)
        result: A = value if self.convert is None else self.convert[1](value)
        return result


def described(method: F, operation: Declared[..., Any, Any]) -> F:
    """Give a method the parameters and the text of its request."""
    fields = inspect.signature(operation.request).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([own, *fields])  # type: ignore[attr-defined]
    method.__doc__ = operation.request.__doc__
    return method


@final
@dataclass(eq=False)
class Operation(Declared[P, Q, A]):
    """Reads and writes rows, in one transaction; ``after`` is called once that is kept."""

    run: Callable[[Operations, Session, Q, float], A]
    answer: type[Answer]
    after: Callable[[Decider, A], None] | None = None


@final
@dataclass(eq=False)
class Inquiry(Declared[P, Q, A]):
    """Asks a decider for what takes a while; a service runs it in ``threads``."""

    run: Callable[[Decider, Q], A]
    threads: Threads = "aside"


DECIDE: Final = Operation(
    types.Decide,
    Operations.decide,
    "decide",
    "POST /v1/decide",
    types.Decision,
    raises=[Conflict],
)
DECIDE_MANY: Final = Operation(
    types.DecideMany,
    Operations.decide_many,
    "decide",
    "POST /v1/decide_many",
    types.Decisions,
    "decisions",
    raises=[Conflict],
    convert=(list, DecisionList),
)
REWARD: Final = Operation(
    types.Reward,
    Operations.reward,
    "reward",
    "POST /v1/reward",
    types.Rewarded,
    "outcome",
    raises=[NotFound, Conflict, TooLate],
)
REWARDS: Final = Operation(
    types.Rewards,
    Operations.rewards,
    "reward",
    "POST /v1/rewards",
    types.AllRewarded,
    "outcomes",
    convert=(sent, received),
)
ALLOCATE: Final = Operation(
    types.Allocate,
    Operations.allocate,
    "decide",
    "POST /v1/allocate",
    types.Allocation,
    raises=[Conflict],
)
RECORD: Final = Operation(
    types.Record,
    Operations.record,
    "reward",
    "POST /v1/record",
    types.Rewarded,
    "outcome",
    raises=[NotFound, Conflict],
)
TASKS: Final = Inquiry(
    types.ListTasks,
    lambda decider, asked: decider.tasks(asked.closed, asked.after, asked.limit),
    "read",
    "GET /v1/tasks",
    types.Tasks,
)
SUMMARY: Final = Inquiry(
    types.Summarize,
    lambda decider, asked: decider.summary(asked.task, asked.context).answer(),
    "read",
    "GET /v1/tasks/{task}",
    types.Summary,
    raises=[NotFound, Conflict],
    threads="summaries",
)
REPLAY: Final = Inquiry(
    types.Replay,
    lambda decider, asked: decider.replay(asked.task),
    "read",
    "GET /v1/tasks/{task}/replay",
    types.Replayed,
    "differ",
    raises=[NotFound],
    threads="summaries",
)
CLOSE: Final = Operation(
    types.CloseTask,
    Operations.close,
    "decide",
    "POST /v1/tasks/{task}/close",
    types.Closed,
    "closed",
    raises=[NotFound, Conflict],
    after=lambda decider, closed: decider.learn_if_due() if closed else None,
)
DELETE: Final = Operation(
    types.DeleteUnit,
    Operations.delete,
    "admin",
    "DELETE /v1/units/{unit}",
    types.Deleted,
    "decisions",
    raises=[NotFound, Conflict],
)
PRIORS: Final = Inquiry(
    types.ListPriors,
    lambda decider, asked: decider.priors(),
    "read",
    "GET /v1/priors",
    types.Priors,
)
PROPOSE: Final = Inquiry(
    types.Propose,
    # starts with a brace: nothing that is read as the name of a file
    lambda decider, asked: types.Proposed(
        decider.propose(load_prior(json.dumps(asked.prior)), asked.story), "proposed"
    ),
    "admin",
    "POST /v1/priors",
    types.Proposed,
)
ACCEPT: Final = Inquiry(
    types.Accept,
    lambda decider, asked: decider.judge(asked.version, "accepted"),
    "admin",
    "POST /v1/priors/{version}/accept",
    types.Proposed,
    raises=[NotFound, Conflict],
)
DECLINE: Final = Inquiry(
    types.Decline,
    lambda decider, asked: decider.judge(asked.version, "declined"),
    "admin",
    "POST /v1/priors/{version}/decline",
    types.Proposed,
    raises=[NotFound, Conflict],
)
REFIT: Final = Inquiry(
    types.Refit,
    lambda decider, asked: decider.refit(
        asked.family, seed=asked.seed, accept=asked.accept
    ).answer(),
    "admin",
    "POST /v1/refit",
    types.Refitted,
    raises=[Conflict],
    threads="exports",
)
ALARM: Final = Inquiry(
    types.CheckPrior,
    lambda decider, asked: decider.alarm(level=asked.level).answer(),
    "read",
    "GET /v1/alarm",
    types.Alarm,
    raises=[Conflict],
    threads="exports",
)


def _log(decider: Decider, asked: types.Export) -> Path:
    with NamedTemporaryFile(suffix=".parquet", delete=False) as file:
        path = Path(file.name)
    try:
        decider.export(path, closed=asked.closed, outstanding=asked.outstanding)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


LOG: Final = Inquiry(types.Export, _log, "read", "GET /v1/log", None, threads="exports")

TABLE: Final[dict[str, Operation[..., Any, Any] | Inquiry[..., Any, Any]]] = {
    "decide": DECIDE,
    "decide_many": DECIDE_MANY,
    "reward": REWARD,
    "rewards": REWARDS,
    "allocate": ALLOCATE,
    "record": RECORD,
    "tasks": TASKS,
    "summary": SUMMARY,
    "replay": REPLAY,
    "close_task": CLOSE,
    "delete_unit": DELETE,
    "priors": PRIORS,
    "propose": PROPOSE,
    "accept": ACCEPT,
    "decline": DECLINE,
    "refit": REFIT,
    "alarm": ALARM,
    "log": LOG,
}
"""By the name of the operation in the OpenAPI document."""
