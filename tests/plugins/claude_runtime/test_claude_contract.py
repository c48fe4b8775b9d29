"""The runtime's contract, over the real SDK and its program, with a model server of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman.testing.runtime_suite import RuntimeSuite
from peers.claude_server import ClaudeServer
from plugins.claude_runtime.harness import ClaudeHarness, harness


class ClaudeSuite(RuntimeSuite):
    """Each program takes half a second to start, and does its work beside ours."""

    under_way = 1

    @pytest.fixture
    def harness(
        self, contract_server: ClaudeServer, request: pytest.FixtureRequest
    ) -> ClaudeHarness:
        many = request.function.__name__ == "test_turns_at_once_do_not_mix"
        return harness(contract_server, self.at_once if many else 1)


@pytest.fixture(scope="module")
def contract_server() -> Iterator[ClaudeServer]:
    with ClaudeServer() as server:
        yield server


@pytest.mark.proof
class TestClaudeRuntime(ClaudeSuite):
    """All of it, in the suite's own numbers; but for starts, each half a second of a core."""

    at_once = 5
