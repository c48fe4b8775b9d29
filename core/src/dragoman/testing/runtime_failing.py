"""How a runtime fails, as tests: a part of `dragoman.testing.runtime_suite`."""

from __future__ import annotations

import logging
from typing import Final

import pytest

from dragoman.runevents import Failed, FailureKind, Finished
from dragoman.testing.leftovers import logged
from dragoman.testing.runtime_harness import FAULTS, RuntimeHarness
from dragoman.testing.runtime_script import Act, Fail, Hold, Say, Step
from dragoman.testing.runtime_stage import staged

_CANARY: Final = "canary"
"""Part of every text that no operator may find in a failure or a log."""


@pytest.mark.anyio
class FailingSuite:
    """A failure is an end, by what people and operators can do about it, and quotes nobody."""

    @pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.value)
    async def test_a_failure_is_called_by_its_kind(
        self, harness: RuntimeHarness, kind: FailureKind
    ) -> None:
        """D13, invariant 12: without words of people or backends, and the next turn works.

        Services quote keys when they refuse one: that is not kept either.
        """
        hasty = kind is FailureKind.TIMEOUT
        fault: Step = Hold() if hasty else Fail(kind, f"your {_CANARY} is refused")
        async with staged(harness) as stage:
            stage.need("script", kind.value, *(["hold"] if hasty else []))
            with logged(logging.INFO) as lines:
                async with stage.opened(hasty=hasty) as runtime:
                    stage.script(f"fail {_CANARY}", fault)
                    talk = await stage.say(runtime, f"fail {_CANARY}")
                    _is_failure(talk.end, kind, harness)
                    kept = str(talk.host.session.spaces)
                    assert not [one for one in harness.secrets if one in kept], "a secret is kept"
                    if not hasty:  # which may be so with any answer, where a machine is busy
                        talk = await stage.say(runtime, "now", session=talk.host.session)
                        assert talk.end == Finished()
            assert not [line for line in lines if _CANARY in line], "a text is in a log record"

    async def test_a_failure_behind_text_keeps_the_text(self, harness: RuntimeHarness) -> None:
        """What was shown is not taken back."""
        kind = FailureKind.TRANSPORT
        async with staged(harness) as stage:
            stage.need("script", kind.value)
            async with stage.opened() as runtime:
                if not runtime.capabilities.stream:
                    pytest.skip("the runtime does not say 'stream'")
                stage.script("half", Say(("The first half",)), Fail(kind, _CANARY))
                talk = await stage.say(runtime, "half")
                _is_failure(talk.end, kind, harness)
                assert talk.texts == ["The first half"]

    async def test_what_cannot_be_reached_fails_the_turn(self, harness: RuntimeHarness) -> None:
        """A backend that is down is a failure of each turn, and of nothing else."""
        async with staged(harness) as stage:
            stage.need("unreachable")
            async with stage.opened(reachable=False) as runtime:
                for _ in range(2):
                    talk = await stage.say(runtime, f"hello {_CANARY}")
                    _is_failure(talk.end, FailureKind.TRANSPORT, harness)

    async def test_nothing_that_goes_well_is_logged_in_words(self, harness: RuntimeHarness) -> None:
        """Invariant 12: neither what people say nor what is answered or called."""
        async with staged(harness) as stage:
            acts = (
                [Act(f"{_CANARY} call", fails=stage.can("tool error"))] if stage.can("act") else []
            )
            with logged(logging.INFO) as lines:
                async with stage.opened() as runtime:
                    stage.script(f"tell {_CANARY}", *acts, Say((f"the {_CANARY} ", "sings")))
                    talk = await stage.say(runtime, f"tell {_CANARY}")
            assert not [line for line in lines if _CANARY in line], "a text is in a log record"
            assert _CANARY not in repr(talk.events), "a text is in the repr of an event"


def _is_failure(end: object, kind: FailureKind, harness: RuntimeHarness) -> None:
    assert isinstance(end, Failed), f"{kind.value} ends the turn as {end!r}"
    assert end.kind is kind, f"{kind.value} is called {end!r}"
    assert _CANARY not in end.detail, "a message's text is in the detail"
    assert not [one for one in harness.secrets if one in end.detail], "a secret is in the detail"
