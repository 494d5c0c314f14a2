"""Where decisions are kept: one contract, three stores."""

import os
from typing import TYPE_CHECKING

from priorwise.core.errors import ArgumentTypeError

if TYPE_CHECKING:
    from priorwise.serve.stores.store import Store


def opened(store: "Store | str | os.PathLike[str] | None") -> "Store":
    """Return the store that an argument means: None, a path, a URL, or a store itself."""
    if store is None:
        from priorwise.serve.stores.memory import MemoryStore

        return MemoryStore()
    if isinstance(store, str) and store.partition("://")[0] in ("postgresql", "postgres"):
        from priorwise.serve.stores.postgres import PostgresStore

        return PostgresStore(store)
    if isinstance(store, (str, os.PathLike)) and str(store) and "://" not in str(store):
        from priorwise.serve.stores.sqlite import SqliteStore

        return SqliteStore(store)
    if isinstance(store, (str, os.PathLike)) or not hasattr(store, "put_version"):
        raise ArgumentTypeError(
            "store",
            "must be None for memory, the path of a file, a URL that starts with postgresql://, "
            "or a store",
            got=store,
        )
    return store
