"""The suite of platforms passes a right adapter."""

from __future__ import annotations

import pytest

from dragoman.testing.platform_suite import PlatformSuite
from peers.memory_platform import MemoryHarness


class TestReference(PlatformSuite):
    @pytest.fixture
    def harness(self) -> MemoryHarness:
        return MemoryHarness()
