"""What a platform raises, as tests: a part of `dragoman.testing.platform_suite`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from dragoman.errors import (
    Forbidden,
    Gone,
    Moved,
    NotSent,
    PlatformError,
    RateLimited,
    Refused,
    Unauthorized,
    Unknown,
)
from dragoman.messages import Address
from dragoman.testing.platform_harness import FAULTS, Fault, PlatformHarness
from dragoman.testing.platform_stage import staged


def _asks_to_wait(error: PlatformError) -> bool:
    return isinstance(error, RateLimited) and 7 <= error.retry_after < 8


def _is_gone(what: str) -> Callable[[PlatformError], bool]:
    return lambda error: isinstance(error, Gone) and error.what == what


def _leaves_the_thread(error: PlatformError) -> bool:
    """It is gone, or the conversation goes on outside of it."""
    if isinstance(error, Moved):
        return not error.address.thread
    return _is_gone("thread")(error)


_RIGHT: Final[Mapping[Fault, Callable[[PlatformError], bool]]] = {
    "lost": lambda error: isinstance(error, Unknown),
    "limited": _asks_to_wait,
    "blocked": lambda error: isinstance(error, Forbidden) and error.who == "person",
    "unauthorized": lambda error: isinstance(error, Unauthorized),
    "refused": lambda error: isinstance(error, Refused),
    "garbled": lambda error: isinstance(error, Unknown),
    "no channel": _is_gone("channel"),
    "no thread": _leaves_the_thread,
}
"""Whether the error says what the caller has to do next, by what went wrong."""


@pytest.mark.anyio
class FailingSuite:
    """A failure is one of `dragoman.PlatformError`, by what the caller has to do next."""

    @pytest.mark.parametrize("fault", FAULTS)
    async def test_a_failure_says_what_to_do_next(
        self, harness: PlatformHarness, fault: Fault
    ) -> None:
        """It was one attempt, and a call elsewhere works after it: nothing of the failure is left."""
        async with staged(harness) as stage:
            stage.need(fault, *(["thread"] if fault == "no thread" else []))
            where, elsewhere = _places(harness, fault)
            async with stage.opened() as platform:
                await harness.fault(fault)
                with pytest.raises(PlatformError) as raised:
                    await platform.send(where, stage.out("first"))
                assert _RIGHT[fault](raised.value), f"{fault} is {raised.value!r}"
                assert not [one for one in harness.secrets if one in repr(raised.value)]
                if fault not in ("unauthorized", "limited"):
                    await platform.send(elsewhere, stage.out("second"))
                    assert await stage.texts(elsewhere) == ["second"]
            if not fault.startswith("no "):
                assert await stage.texts(where) == (["first"] if fault == "lost" else [])

    async def test_what_never_left_is_not_sent(self, harness: PlatformHarness) -> None:
        """Core repeats it without a doubt; so it is no `Unknown`."""
        async with staged(harness) as stage:
            stage.need("unreachable")
            async with stage.opened(reachable=False) as platform:
                with pytest.raises(NotSent):
                    await platform.send(harness.dm, stage.out("first"))


def _places(harness: PlatformHarness, fault: Fault) -> tuple[Address, Address]:
    """Return where a fault is met, and another place."""
    if fault == "no thread":
        return harness.thread, harness.dm
    return (harness.room, harness.dm) if fault == "no channel" else (harness.dm, harness.room)
