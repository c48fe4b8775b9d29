"""Which tests of the suite an adapter fails, each run on a service of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import attrs
import pytest

from dragoman import Inbound
from dragoman.testing import platform_hearing, platform_living, platform_stage
from dragoman.testing.platform_suite import PlatformSuite
from peers.memory_harness import MemoryHarness
from peers.memory_platform import MemoryPlatform

FLAG = "test_a_flag_is_said_exactly_where_there_is_behaviour"
FAILURE = "test_a_failure_says_what_to_do_next"
LONGEST = "test_the_longest_text_is_taken_and_shown_whole"


@attrs.define
class Mutants:
    """Adapters, each with the tests that it is to fail."""

    known: list[tuple[type[MemoryPlatform], frozenset[str]]] = attrs.field(factory=list)

    def fails(self, *names: str) -> Callable[[type[MemoryPlatform]], type[MemoryPlatform]]:
        """Say which tests a mutant fails; it passes all others."""

        def add(mutant: type[MemoryPlatform]) -> type[MemoryPlatform]:
            self.known.append((mutant, frozenset(names)))
            return mutant

        return add


def names_of(mutants: Mutants) -> list[str]:
    return [mutant.__name__ for mutant, _ in mutants.known]


def changed(event: Inbound | None, **changes: object) -> Inbound | None:
    return event and attrs.evolve(event, **changes)


async def failures_of(adapter: type[MemoryPlatform], patch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of the tests that an adapter fails; nothing is waited for in vain for long."""
    for module in (platform_hearing, platform_living, platform_stage):
        patch.setattr(module, "LIMIT", 0.4)
    failed = set()
    for name, run in _tests():
        try:
            await run(MemoryHarness(adapter))
        except pytest.skip.Exception:
            pass
        except (Exception, pytest.fail.Exception, BaseExceptionGroup):
            failed.add(name)
    return failed


def _tests() -> Iterator[tuple[str, Callable[[MemoryHarness], Awaitable[None]]]]:
    suite = PlatformSuite()
    for name in dir(PlatformSuite):
        test = getattr(suite, name)
        if not (name.startswith("test_") and inspect.iscoroutinefunction(test)):
            continue
        marks = [one for one in getattr(test, "pytestmark", ()) if one.name == "parametrize"]
        if not marks:
            yield name, test
        for mark in marks:
            argument, values = mark.args
            for value in values:
                yield f"{name}[{value}]", partial(test, **{argument: value})
