"""One server for all tests of a run; each test begins with a clean shim and a channel of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from peers.yepcord import Yepcord, missing


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yepcord]:
    """The server that the whole run shares."""
    reason = missing()
    if reason is not None and os.environ.get("CI"):
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)
    with Yepcord(tmp_path_factory.mktemp("yepcord")) as started:
        yield started


@pytest.fixture
def yepcord(server: Yepcord) -> Iterator[Yepcord]:
    """The server, with nothing left of the test before; the shim itself has made no mistake."""
    server.reset()
    yield server
    server.reset()
    assert server.shim.journal.errors == []


@pytest.fixture
def room(yepcord: Yepcord) -> str:
    """A channel for one test."""
    return yepcord.channel()
