"""The contract of a platform as tests: `PlatformSuite`.

A subclass supplies one fixture, ``harness``: a `dragoman.testing.platform_harness.PlatformHarness`,
made anew for each test. What the harness cannot do is skipped with the reason that its author
wrote; what the platform does not promise in its capabilities is not asked of it.
"""

from __future__ import annotations

import pytest

from dragoman.testing.platform_failing import FailingSuite
from dragoman.testing.platform_flags import FlagsSuite
from dragoman.testing.platform_harness import (
    ABILITIES,
    FAULTS,
    Fault,
    PlatformHarness,
    Seen,
)
from dragoman.testing.platform_hearing import HearingSuite
from dragoman.testing.platform_living import LivingSuite
from dragoman.testing.platform_speaking import SpeakingSuite

__all__ = ["ABILITIES", "FAULTS", "Fault", "PlatformHarness", "PlatformSuite", "Seen"]


@pytest.mark.anyio
class PlatformSuite(HearingSuite, SpeakingSuite, FlagsSuite, FailingSuite, LivingSuite):
    """Subclass it and supply ``harness``."""

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        """Both event loops; a component that says otherwise is skipped on the other one."""
        return str(request.param)

    @pytest.fixture
    def harness(self) -> PlatformHarness:
        """Return the service to test against."""
        raise NotImplementedError

    def test_what_is_waived_has_its_reason(self, harness: PlatformHarness) -> None:
        """Every ability that is missing is one of those there are, and says why."""
        assert set(harness.cannot) <= ABILITIES
        assert all(reason.strip() for reason in harness.cannot.values())

    def test_no_test_of_the_suite_is_replaced(self) -> None:
        """A subclass may add tests; to change one of these would waive it without a reason."""
        names = [name for name in dir(PlatformSuite) if name.startswith("test_")]
        assert names
        assert not [n for n in names if getattr(type(self), n) is not getattr(PlatformSuite, n)]
