"""What a runtime keeps and tells its backend again, as tests: a part of `runtime_suite`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dragoman.inputs import TurnInput
from dragoman.messages import Attachment, Quote, Sender
from dragoman.protocols import EncodedInput, Runtime
from dragoman.runevents import FailureKind, Finished, TextDelta
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Fail, Hold, Say
from dragoman.testing.runtime_stage import of_role, staged

_TEXTS: Final = st.text(max_size=40) | st.sampled_from(["\ud83d", "a\udc00b", "\x00", "\u202e"])
"""Surrogates included, which stand alone where a platform cuts a text."""
_FILES: Final = st.builds(
    Attachment,
    id=st.just("1"),
    kind=st.sampled_from(["file", "photo", "voice", ""]),
    name=_TEXTS,
    mime=_TEXTS,
    size=st.none() | st.integers(0, 1 << 40),
    missing=st.sampled_from(["", "too large"]),
)
_MESSAGES: Final = st.builds(
    TurnInput,
    event_id=st.integers(1, 1 << 40),
    text=_TEXTS,
    sender=st.builds(Sender, id=st.just("7"), name=_TEXTS),
    sent_at=st.just(datetime(2026, 1, 2, tzinfo=UTC)),
    attachments=st.lists(_FILES, max_size=2).map(tuple),
    late=st.booleans(),
    quote=st.none() | st.builds(Quote, text=_TEXTS, author=_TEXTS, own=st.booleans()),
    forwarded=_TEXTS,
    notes=st.lists(_TEXTS, max_size=2).map(tuple),
)
PHASES: Final = list(Phase)
_QUICK: Final = 0.05
"""Seconds of computing that one callback may take (invariant 13)."""


@pytest.mark.anyio
class RememberingSuite:
    """What people said reaches the backend, each message once, now and in later turns."""

    messages: ClassVar[int] = 100
    """How many messages are drawn."""

    async def test_every_message_can_be_kept(self, harness: RuntimeHarness) -> None:
        """Whatever it is made of, it becomes an item that a store can write, or none."""
        async with staged(harness) as stage, stage.opened() as runtime:
            _encode_any(runtime, self.messages)

    async def test_a_message_is_always_the_same_item(self, harness: RuntimeHarness) -> None:
        """It is encoded before the turn, and again after a crash by another process."""
        async with staged(harness) as stage:
            async with stage.opened() as runtime:
                messages = [stage.message(text) for text in ("hello", "", "half \ud83d")]
                first = [runtime.encode_input(message) for message in messages]
            async with stage.opened() as runtime:
                assert [runtime.encode_input(message) for message in messages] == first

    async def test_keeping_a_message_is_quick(self, harness: RuntimeHarness) -> None:
        """Invariant 13: core calls it on the event loop."""
        async with staged(harness) as stage, stage.opened() as runtime:
            message = stage.message("long words " * 3000)
            taken = min(_seconds(runtime, message) for _ in range(5))
            assert taken < _QUICK, f"{taken:.3f} s for {len(message.text)} characters"

    async def test_a_message_reaches_the_backend_once(self, harness: RuntimeHarness) -> None:
        """It is in the records and in the request; one of them is enough."""
        async with staged(harness) as stage:
            stage.need("asked")
            async with stage.opened() as runtime:
                if stage.can("act"):
                    stage.script("just once", Act("knocking"), Say(("Yes.",)))
                await stage.say(runtime, "just once")
                asked = await stage.asked("just once")
            assert asked
            for lines in asked:
                assert of_role(lines, "user") == ["just once"]

    async def test_all_of_a_message_reaches_the_backend(self, harness: RuntimeHarness) -> None:
        """C8: quote, origin, notes and files, as `TurnInput.words` has them."""
        async with staged(harness) as stage:
            stage.need("asked")
            message = stage.message(
                "what is this",
                attachments=(Attachment("1", "photo", "cat.png", "image/png", 5000),),
                quote=Quote("the words before", author="Grace"),
                forwarded="Lin",
                notes=("they reacted with 👍",),
                late=True,
            )
            async with stage.opened() as runtime:
                await stage.say(runtime, message)
                [lines] = await stage.asked("what is this")
            [given] = of_role(lines, "user")
            assert message.words in given

    async def test_messages_of_one_turn_keep_their_order(self, harness: RuntimeHarness) -> None:
        """B4: all that was collected is given, and stays apart or in one text."""
        async with staged(harness) as stage:
            stage.need("asked")
            async with stage.opened() as runtime:
                await stage.say(runtime, "the first", "the second", "the third")
                [lines] = await stage.asked("the third")
            given = "\n".join(of_role(lines, "user"))
            places = [given.find(text) for text in ("the first", "the second", "the third")]
            assert -1 not in places
            assert places == sorted(places)
            assert given.count("the first") == 1

    async def test_half_a_character_harms_nobody(self, harness: RuntimeHarness) -> None:
        """FC-I18-01: neither its own turn nor those behind it."""
        async with staged(harness) as stage, stage.opened() as runtime:
            session = stage.session()
            for text in ("half \ud83d", "and then"):
                talk = await stage.say(runtime, text, session=session)
                assert talk.end == Finished()

    @pytest.mark.parametrize("reopened", [False, True], ids=["same", "reopened"])
    async def test_earlier_turns_reach_the_next(
        self, harness: RuntimeHarness, reopened: bool
    ) -> None:
        """D2, D5: with what was answered, in order, each once; another process knows it, too."""
        async with staged(harness) as stage:
            stage.need("script", "asked", "history")
            session = stage.session()
            stage.script("my name is Ada", Say(("Hello ", "Ada.")))
            async with stage.opened() as runtime:
                await stage.say(runtime, "my name is Ada", session=session)
                if not reopened:
                    await stage.say(runtime, "who am I", session=session)
            if reopened:
                async with stage.opened() as runtime:
                    await stage.say(runtime, "who am I", session=session)
            [lines] = await stage.asked("who am I")
            said = [(one.role, one.text) for one in lines]
            expected = [("user", "my name is Ada"), ("assistant", "Hello Ada.")]
            assert said == [*expected, ("user", "who am I")]

    async def test_a_call_and_its_result_reach_the_next_turn(self, harness: RuntimeHarness) -> None:
        """D5: whole items are kept."""
        async with staged(harness) as stage:
            stage.need("script", "asked", "history", "act")
            session = stage.session()
            async with stage.opened() as runtime:
                stage.script("feed the cat", Act("feeding"), Say(("Fed.",)))
                await stage.say(runtime, "feed the cat", session=session)
                await stage.say(runtime, "is it fed", session=session)
            [lines] = await stage.asked("is it fed")
            roles = [one.role for one in lines]
            assert roles == ["user", "tool", "assistant", "user"]

    async def test_sessions_know_nothing_of_each_other(self, harness: RuntimeHarness) -> None:
        """Invariant 16: one after the other, too."""
        async with staged(harness) as stage:
            stage.need("asked")
            async with stage.opened() as runtime:
                await stage.say(runtime, "a canary of one")
                await stage.say(runtime, "something else")
                [lines] = await stage.asked("something else")
            assert [one.text for one in lines if one.role == "user"] == ["something else"]
            assert not [one for one in lines if "canary" in one.text]

    async def test_another_attempt_begins_with_the_message(self, harness: RuntimeHarness) -> None:
        """The records of the attempt that a crash cut off are gone; its message is given once."""
        async with staged(harness) as stage:
            stage.need("script", "asked", "busy", "hold")
            host = stage.way_back()
            async with stage.opened() as runtime:
                stage.script("try again", Say(("I begin",)), Hold())
                async with stage.turn(runtime, "try again", host=host) as talk:
                    await stage.until_busy(1)
                stage.script("try again", Say(("I end.",)))
                again, [message] = host.after_a_crash(), talk.request.inputs
                talk = await stage.say(runtime, message, host=again, attempt=2)
            assert (talk.texts, talk.end) == (["I end."], Finished())
            lines = (await stage.asked("try again"))[-1]
            assert [(one.role, one.text) for one in lines] == [("user", "try again")]

    @pytest.mark.parametrize("way", ["left", "failed"])
    async def test_what_was_shown_of_a_broken_turn_is_remembered(
        self, harness: RuntimeHarness, way: str
    ) -> None:
        """D8: people and backend agree on what was said, and the message stays, once."""
        async with staged(harness) as stage:
            stage.need("script", "asked", "history", "hold", "transport")
            session = stage.session()
            async with stage.opened() as runtime:
                if not runtime.capabilities.stream:
                    pytest.skip("the runtime does not say 'stream'")
                failure = Fail(FailureKind.TRANSPORT, "broken")
                stage.script("a story", Say(("Once upon",)), Hold(), failure)
                async with stage.turn(runtime, "a story", session=session) as talk:
                    await talk.until(TextDelta)
                    if way == "failed":
                        await harness.release()
                        await talk.read()
                await stage.say(runtime, "go on", session=session)
            [lines] = await stage.asked("go on")
            assert of_role(lines, "user") == ["a story", "go on"]
            assert ["Once upon" in text for text in of_role(lines, "assistant")] == [True]


def _encode_any(runtime: Runtime, count: int) -> None:
    """Encode whatever hypothesis draws, twice."""

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    @given(message=_MESSAGES)
    def check(message: TurnInput) -> None:
        encoded = runtime.encode_input(message)
        assert runtime.encode_input(message) == encoded
        if encoded is not None:
            assert isinstance(encoded, EncodedInput)
            assert encoded.namespace
            encoded.item.encode()

    check()


def _seconds(runtime: Runtime, message: TurnInput) -> float:
    begin = time.thread_time()
    runtime.encode_input(message)
    return time.thread_time() - begin
