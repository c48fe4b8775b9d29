"""Which tests of the suite an adapter fails, each run on a service of its own."""

from __future__ import annotations

import attrs
import pytest

from dragoman import Inbound
from dragoman.testing import platform_hearing, platform_living, platform_stage
from dragoman.testing.platform_suite import PlatformSuite
from peers.memory_harness import MemoryHarness
from peers.memory_platform import MemoryPlatform
from suite_mutants import tests_of

FLAG = "test_a_flag_is_said_exactly_where_there_is_behaviour"
FAILURE = "test_a_failure_says_what_to_do_next"
LONGEST = "test_the_longest_text_is_taken_and_shown_whole"


def changed(event: Inbound | None, **changes: object) -> Inbound | None:
    return event and attrs.evolve(event, **changes)


async def failures_of(adapter: type[MemoryPlatform], patch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of the tests that an adapter fails; nothing is waited for in vain for long."""
    for module in (platform_hearing, platform_living, platform_stage):
        patch.setattr(module, "LIMIT", 0.4)
    failed = set()
    for name, run in tests_of(PlatformSuite):
        try:
            await run(MemoryHarness(adapter))
        except pytest.skip.Exception:
            pass
        except (Exception, pytest.fail.Exception, BaseExceptionGroup):
            failed.add(name)
    return failed
