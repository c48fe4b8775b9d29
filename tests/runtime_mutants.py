"""Which tests of the suite a runtime fails, each with a model of its own."""

from __future__ import annotations

import pytest
from hypothesis import Phase

from dragoman.testing import runtime_remembering, runtime_stage
from dragoman.testing.runtime_suite import RuntimeSuite
from peers.memory_model_harness import MemoryModelHarness
from peers.memory_runtime import MemoryRun, MemoryRuntime
from suite_mutants import tests_of

FLAG = "test_a_flag_is_said_exactly_where_there_is_behaviour"
FAILURE = "test_a_failure_is_called_by_its_kind"
EARLIER = "test_earlier_turns_reach_the_next"
BROKEN = "test_what_was_shown_of_a_broken_turn_is_remembered"
AT_WORK = "test_a_backend_at_work_is_ended"
GIVEN = "test_what_is_said_to_be_taken_in_was_given"
CUTS = (
    "test_it_may_be_cancelled_at_every_await_of_its_reader",
    "test_it_may_be_cancelled_at_every_call_of_its_host",
    "test_it_may_be_cancelled_at_any_moment",
)


class QuickSuite(RuntimeSuite):
    """As few repetitions as still find what is wrong."""

    cancelled_at = 14
    messages = 20


def maker(mutant: type[MemoryRun | MemoryRuntime]):
    """Return what makes a runtime of a wrong class, or with turns of one."""
    if issubclass(mutant, MemoryRuntime):
        return mutant
    return lambda *parts: MemoryRuntime(*parts, make=mutant)


async def failures_of(
    mutant: type[MemoryRun | MemoryRuntime], patch: pytest.MonkeyPatch
) -> set[str]:
    """Return the names of the tests that a runtime fails; nothing is waited for in vain for long."""
    patch.setattr(runtime_stage, "LIMIT", 1.0)
    patch.setattr(runtime_remembering, "PHASES", [Phase.generate])
    failed = set()
    for name, run in tests_of(QuickSuite):
        try:
            await run(MemoryModelHarness(maker(mutant)))
        except pytest.skip.Exception:
            pass
        except (Exception, pytest.fail.Exception, BaseExceptionGroup):
            failed.add(name)
    return failed
