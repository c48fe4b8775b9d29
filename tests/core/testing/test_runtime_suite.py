"""The suite of runtimes passes a right runtime."""

from __future__ import annotations

import pytest

from dragoman import Failed, RuntimeFailed
from dragoman.testing.runtime_answering import AnsweringSuite
from dragoman.testing.runtime_suite import RuntimeSuite
from peers.memory_model_harness import MemoryModelHarness
from peers.memory_runtime import Feed, MemoryRun
from runtime_mutants import failures_of


class TestReference(RuntimeSuite):
    @pytest.fixture
    def harness(self) -> MemoryModelHarness:
        return MemoryModelHarness()


@pytest.mark.anyio
async def test_a_component_is_judged_on_its_own_event_loops_only():
    harness = MemoryModelHarness(backends=("trio",))
    with pytest.raises(pytest.skip.Exception, match="runs on trio only"):
        await AnsweringSuite().test_a_turn_ends_once(harness)


@pytest.mark.anyio
async def test_what_a_harness_cannot_do_is_skipped_with_its_reason():
    harness = MemoryModelHarness(cannot={"think": "it acts at once"})
    with pytest.raises(pytest.skip.Exception, match="it acts at once"):
        await AnsweringSuite().test_thinking_is_no_part_of_the_answer(harness)


class RaisingFeed(Feed):
    async def __anext__(self):
        event = await super().__anext__()
        if isinstance(event, Failed):
            raise RuntimeFailed(event.kind, event.detail)
        return event


class Raising(MemoryRun):
    def __init__(self, *parts):
        super().__init__(*parts, feed=RaisingFeed())


@pytest.mark.anyio
async def test_a_failure_may_be_raised(monkeypatch):
    assert await failures_of(Raising, monkeypatch) == set()


def test_a_waiver_without_a_reason_and_a_replaced_test_fail():
    class TestOther(RuntimeSuite):
        async def test_a_turn_ends_once(self, harness):
            """Replaced."""

    for cannot in ({"think": " "}, {"fly": "it has no wings"}):
        with pytest.raises(AssertionError):
            TestOther().test_what_is_waived_has_its_reason(MemoryModelHarness(cannot=cannot))
    with pytest.raises(AssertionError, match="test_a_turn_ends_once"):
        TestOther().test_no_test_of_the_suite_is_replaced()
