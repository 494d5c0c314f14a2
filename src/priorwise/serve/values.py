"""Values that a store keeps by name: short names, and those that earlier versions gave them."""

from __future__ import annotations

from typing import Final

from priorwise.serve.stores.store import Store
from priorwise.serve.summary import DRAWS

CLOSED_AT_FIT: Final = "fit.closed"
"""Closed tasks at the last fit."""
LAST_FIT: Final = "fit.error"
"""What went wrong in the last fit."""
READY: Final = "service.ready"
"""When the service was ready."""
SECRET: Final = "page.secret"
"""What signs the sessions of the page."""

EARLIER: Final = {
    CLOSED_AT_FIT: "closed tasks at the last fit",
    LAST_FIT: "what the last fit said",
    SECRET: "secret of the page's sessions",
}


def value_of(store: Store, name: str, earlier: str | None = None) -> str | None:
    """Return a value, by the name that it has or had."""
    text, earlier = store.value(name), earlier or EARLIER.get(name)
    return store.value(earlier) if text is None and earlier is not None else text


def stopping_names(settings: int, version: int, arms: int, tolerance: float) -> tuple[str, str]:
    """Return the name of how well advice to stop does, and that of earlier versions."""
    earlier = f"stopping of settings {settings}, prior {version}, arms {arms}"
    return (
        f"stopping.{settings}.{version}.{arms}.{DRAWS}.{tolerance!r}",
        f"{earlier}, tolerance {tolerance!r}, draws {DRAWS}",
    )
