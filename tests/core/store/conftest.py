"""Files as earlier versions of dragoman left them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

SCHEMAS = Path(__file__).with_name("schemas")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def made_by():
    """Return what writes the file of a schema: a row of every kind, and a turn that runs."""

    def make(path, version):
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript((SCHEMAS / f"{version}.sql").read_text())
            db.commit()

    return make
