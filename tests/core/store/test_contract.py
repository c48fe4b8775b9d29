"""The SQLite store passes the suite that every store has to pass."""

import itertools

import pytest

from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import StoreSuite


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def open_store(self):
        return lambda: open_sqlite(None)


class TestFileStore(StoreSuite):
    # Fewer: the statements are the same as in memory; each commit is a disk's.
    quick, histories = 12, 200

    @pytest.fixture
    def open_store(self, tmp_path):
        numbers = itertools.count()
        return lambda: open_sqlite(tmp_path / f"{next(numbers)}.db")
