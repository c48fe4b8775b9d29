"""The contract of a runtime as tests: `RuntimeSuite`.

A subclass supplies one fixture, ``harness``: a `dragoman.testing.runtime_harness.RuntimeHarness`,
made anew for each test. What the harness cannot do is skipped with the reason that its author
wrote; what the runtime does not promise in its capabilities is not asked of it.
"""

from __future__ import annotations

import pytest

from dragoman.testing.runtime_acting import ActingSuite
from dragoman.testing.runtime_answering import AnsweringSuite
from dragoman.testing.runtime_ending import EndingSuite
from dragoman.testing.runtime_failing import FailingSuite
from dragoman.testing.runtime_flags import FlagsSuite
from dragoman.testing.runtime_harness import ABILITIES, FAULTS, RuntimeHarness
from dragoman.testing.runtime_pausing import PausingSuite
from dragoman.testing.runtime_remembering import RememberingSuite
from dragoman.testing.runtime_script import (
    Act,
    Book,
    Count,
    Fail,
    Hold,
    Line,
    Say,
    Step,
    Think,
    outcome,
)
from dragoman.testing.runtime_steering import SteeringSuite

__all__ = [
    "ABILITIES",
    "FAULTS",
    "Act",
    "Book",
    "Count",
    "Fail",
    "Hold",
    "Line",
    "RuntimeHarness",
    "RuntimeSuite",
    "Say",
    "Step",
    "Think",
    "outcome",
]


@pytest.mark.anyio
class RuntimeSuite(
    AnsweringSuite,
    RememberingSuite,
    ActingSuite,
    PausingSuite,
    SteeringSuite,
    FlagsSuite,
    FailingSuite,
    EndingSuite,
):
    """Subclass it and supply ``harness``."""

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        """Both event loops; a component that says otherwise is skipped on the other one."""
        return str(request.param)

    @pytest.fixture
    def harness(self) -> RuntimeHarness:
        """Return the runtime to judge."""
        raise NotImplementedError

    def test_what_is_waived_has_its_reason(self, harness: RuntimeHarness) -> None:
        """Every ability that is missing is one of those there are, and says why."""
        assert set(harness.cannot) <= ABILITIES
        assert all(reason.strip() for reason in harness.cannot.values())

    def test_no_test_of_the_suite_is_replaced(self) -> None:
        """A subclass may add tests; to change one of these would waive it without a reason."""
        names = [name for name in dir(RuntimeSuite) if name.startswith("test_")]
        assert names
        assert not [n for n in names if getattr(type(self), n) is not getattr(RuntimeSuite, n)]
