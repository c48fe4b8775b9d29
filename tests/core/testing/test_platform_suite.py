"""The suite of platforms passes a right adapter."""

from __future__ import annotations

import pytest

from dragoman.testing.platform_hearing import HearingSuite
from dragoman.testing.platform_suite import PlatformSuite
from peers.memory_harness import MemoryHarness


class TestReference(PlatformSuite):
    @pytest.fixture
    def harness(self) -> MemoryHarness:
        return MemoryHarness()


@pytest.mark.anyio
async def test_a_component_is_judged_on_its_own_event_loops_only():
    harness = MemoryHarness(backends=("trio",))
    with pytest.raises(pytest.skip.Exception, match="runs on trio only"):
        await HearingSuite().test_a_direct_message_is_well_formed(harness)


@pytest.mark.anyio
async def test_what_a_harness_cannot_do_is_skipped_with_its_reason():
    harness = MemoryHarness(cannot={"reply": "nobody replies here"})
    with pytest.raises(pytest.skip.Exception, match="nobody replies here"):
        await HearingSuite().test_a_reply_to_the_account_is_addressed(harness)


def test_a_waiver_without_a_reason_and_a_replaced_test_fail():
    class TestOther(PlatformSuite):
        async def test_plain_is_plain(self, harness):
            """Replaced."""

    for cannot in ({"reply": " "}, {"fly": "it has no wings"}):
        with pytest.raises(AssertionError):
            TestOther().test_what_is_waived_has_its_reason(MemoryHarness(cannot=cannot))
    with pytest.raises(AssertionError, match="test_plain_is_plain"):
        TestOther().test_no_test_of_the_suite_is_replaced()
