"""The contract of stores over those of the package, and what only databases can do wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import database, postgres

from priorwise.serve import MemoryStore
from priorwise.serve.stores.postgres import PostgresStore
from priorwise.serve.stores.sqlite import SqliteStore
from priorwise.testing import StoreContract

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


class TestMemory(StoreContract):
    @pytest.fixture
    def opened(self) -> Callable[[], Any]:
        store = MemoryStore()
        return lambda: store


class TestSqlite(StoreContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[[], Any]:
        return lambda: SqliteStore(tmp_path / "store.db")


class TestPostgres(StoreContract):
    @pytest.fixture
    def opened(self, server: str) -> Callable[[], Any]:
        url = database(server)
        return lambda: PostgresStore(url)
