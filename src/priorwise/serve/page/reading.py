"""What the page asks of a store and a decider, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast

from priorwise.serve.rows import Decided, Event, Listed, Task


class Service(Protocol):
    """What the page needs: a decider, and what a key may do. Three more are used where a service
    has them: ``open``, whether nobody needs a key; ``counters()``, how often something was repeated
    since the process started; ``key_id(key)`` and ``key_reads(id)``, to end the sessions of a key
    that was revoked.
    """

    @property
    def decider(self) -> Any:
        """Who decides."""

    def scope_of(self, key: str) -> set[str] | None:
        """Return what a key may do, None for one that there is not."""


class Log(NamedTuple):
    """A task with all that happened in it."""

    task: Task
    decisions: list[Decided]
    events: list[Event]


def every_row(store: Any, *, closed: bool | None = None, block: int = 2_000) -> Iterator[Listed]:
    """All tasks, the newest first."""
    after = None
    while rows := store.tasks(closed=closed, most=block, after=after):
        yield from rows
        if len(rows) < block:
            return
        after = rows[-1].name


def log_of(store: Any, name: str) -> Log | None:
    """Return a task with its log."""

    def read(session: Any) -> Log | None:
        task = session.task(name)
        if task is None:
            return None
        return Log(_copied(task), session.decisions(name), session.events(name))

    return cast("Log | None", store.look(read))


def tasks_of(store: Any, names: list[str]) -> list[Task]:
    """Return tasks as they stand."""

    def read(session: Any) -> list[Task]:
        found = (session.task(name) for name in names)
        return [_copied(each) for each in found if each is not None]

    return cast(list[Task], store.look(read))


def _copied(task: Task) -> Task:
    """Return a task that stays as it is while others go on with it."""
    state = task.state.copy() if hasattr(task.state, "copy") else task.state
    return Task(
        task.name, task.key, task.version, task.arms, state, task.opened, task.steps, task.events,
        task.closed,
    )  # fmt: skip


def counters(service: Any) -> Mapping[str, int] | None:
    """How often something was repeated since the process started, where the service counts."""
    count = getattr(service, "counters", None)
    if count is not None:
        return dict(count())
    metrics = getattr(service, "metrics", None)
    rewards = getattr(metrics, "rewards", None)
    return None if rewards is None else {"repeated rewards": int(rewards.get("repeated", 0))}
