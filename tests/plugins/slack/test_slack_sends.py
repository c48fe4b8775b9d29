"""What the app shows, on the Slack of the tests."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import (
    Address,
    Button,
    Forbidden,
    Gone,
    Outbound,
    Place,
    RateLimited,
    Refused,
    Unauthorized,
    Unknown,
)
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


def at(channel: str, thread: str = "", place: Place = Place.GROUP) -> Address:
    return Address("slack", channel, thread, "T0FIXTURE", place)


def called(blocks: Any) -> bool:
    """Whether blocks call anybody."""
    return any(kind in repr(blocks) for kind in ("'user'", "'broadcast'"))


async def test_an_answer_goes_into_its_thread_as_markdown(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    root = fake.say(room, ADA, "hi").ts
    async with open_app() as slack:
        receipt = await slack.send(at(room, root), Outbound("d1", "**Bold** & <tag>"))
    [shown] = [one for one in fake.shown(room, root) if one.user == fake.app.user_id]
    assert (shown.ts, shown.source, shown.thread) == (receipt.native_id, "**Bold** & <tag>", root)
    assert shown.metadata["event_payload"]["id"] == "d1"


async def test_a_send_whose_answer_is_lost_is_found_and_not_repeated(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    """B7, invariant 5: by Slack's own key, and by metadata where that is not honoured."""
    async with open_app() as slack:
        fake.cut("chat.postMessage", after_apply=True)
        with pytest.raises(Unknown):
            await slack.send(at(room), Outbound("d1", "once"))
        found = await slack.look_up(at(room), Outbound("d1", "once"))
        again = await slack.send(at(room), Outbound("d1", "once"))
        assert found is not None
        assert found.native_id == again.native_id
        assert await slack.look_up(at(room), Outbound("d2", "never")) is None
    assert fake.said_by_bot(room) == ["once"]


async def test_an_attempt_that_had_less_to_say_is_brought_up_to_date(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    """Invariant 6: Slack answers with the message it has, which shows the first words only."""
    async with open_app() as slack:
        first = await slack.send(at(room), Outbound("d1", "The first", final=False))
        second = await slack.send(at(room), Outbound("d1", "The first words, and all others."))
    assert second.native_id == first.native_id
    assert fake.said_by_bot(room) == ["The first words, and all others."]


async def test_what_an_earlier_life_may_have_sent_is_looked_for_first(
    fake: SlackFake, room: str, host: Any, open_app: Any
) -> None:
    """B7: also where Slack has forgotten its key."""
    created = host.clock.now()
    message = Outbound("d1", "once", created_at=created)
    async with open_app() as slack:
        await slack.send(at(room), message)
    fake.settings.client_msg_ids = False
    async with open_app() as slack:
        await slack.send(at(room), message)
    assert fake.said_by_bot(room) == ["once"]


async def test_edits_replace_text_and_buttons(fake: SlackFake, room: str, open_app: Any) -> None:
    buttons = (Button("Yes", "y", "primary"), Button("No", "n", "danger"))
    async with open_app() as slack:
        sent = await slack.send(at(room), Outbound("d1", "Sure?", buttons=buttons))
        assert fake.shown(room)[0].actions == ("dragoman:0", "dragoman:1")
        await slack.edit(at(room), sent.native_id, Outbound("d1", "Done."))
        await slack.edit(at(room), sent.native_id, Outbound("d1", "Done."))
    [shown] = fake.shown(room)
    assert (shown.source, shown.actions) == ("Done.", ())


@pytest.mark.parametrize("size", [3999, 4001, 11_000])
async def test_long_texts_can_be_sent_and_edited_in_every_form(
    fake: SlackFake, room: str, open_app: Any, size: int
) -> None:
    """FC-EDT-03: the limit of an edited text is no limit of blocks."""
    text = ("word " * 2200)[:size].strip() + "."
    buttons = tuple(Button(f"b{n}", f"v{n}") for n in range(5))
    async with open_app() as slack:
        for plain in (False, True):
            message = Outbound(f"d{plain}", text, plain=plain, buttons=buttons)
            sent = await slack.send(at(room), message)
            edited = await slack.edit(at(room), sent.native_id, message)
            assert edited.shown == (text if plain else None)


async def test_plain_text_is_shown_to_the_letter(fake: SlackFake, room: str, open_app: Any) -> None:
    text = "*not bold* <@U0ADA> <!channel> &amp; `x` https://example.com"
    async with open_app() as slack:
        sent = await slack.send(at(room), Outbound("d1", text, plain=True))
    [shown] = fake.shown(room)
    assert sent.shown == text
    assert shown.called == frozenset()


@pytest.mark.parametrize("text", ["<@U0ADA> look", "<!channel> now", "<!here|here>", "`<@U0ADA>`"])
async def test_what_the_agent_writes_calls_nobody(
    fake: SlackFake, room: str, open_app: Any, text: str
) -> None:
    async with open_app() as slack:
        await slack.send(at(room), Outbound("d1", text))
    async with open_app(mentions=True) as slack:
        await slack.send(at(room), Outbound("d2", text))
    quiet, loud = fake.shown(room)
    assert not quiet.called
    assert not called(quiet.blocks)
    assert "`" in text or (loud.called and called(loud.blocks))


async def test_fc_edt_06_answers_to_what_was_deleted_are_shown_once(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    """FC-EDT-06: the thread's root, then the message itself."""
    root = fake.say(room, ADA, "a question").ts
    fake.delete(room, root)
    for number, reaction in enumerate(("refused", "unthreaded")):
        fake.settings.missing_root = reaction
        before = len(fake.calls)
        async with open_app() as slack:
            sent = await slack.send(at(room, root), Outbound(f"d{number}", f"answer {number}"))
            assert len(fake.calls) - before <= 2
            fake.delete(room, sent.native_id)
            with pytest.raises(Gone) as gone:
                await slack.edit(at(room, root), sent.native_id, Outbound(f"d{number}", "more"))
            assert gone.value.what == "message"
            renewed = Outbound(f"d{number}.2", f"answer {number}, more")
            await slack.send(at(room, root), renewed)
            await slack.delete(at(room, root), sent.native_id)
    assert fake.said_by_bot(room) == ["answer 0, more", "answer 1, more"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("msg_too_long", Refused),
        ("invalid_blocks", Refused),
        ("message_not_found", Gone),
        ("edit_window_closed", Gone),
        ("channel_not_found", Gone),
        ("is_archived", Forbidden),
        ("not_in_channel", Forbidden),
        ("invalid_auth", Unauthorized),
        ("token_revoked", Unauthorized),
        ("internal_error", Unknown),
        ("something_new", Refused),
    ],
)
async def test_refusals_say_what_to_do_next(
    fake: SlackFake, room: str, open_app: Any, code: str, error: type[Exception]
) -> None:
    fake.refuse("chat.update", code)
    async with open_app() as slack:
        with pytest.raises(error):
            await slack.edit(at(room), "1.000001", Outbound("d1", "x"))


async def test_rate_limits_name_their_method_and_time(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    fake.rate_limit("chat.postMessage", 7)
    async with open_app() as slack:
        with pytest.raises(RateLimited) as limited:
            await slack.send(at(room), Outbound("d1", "x"))
    assert (limited.value.retry_after, limited.value.scope) == (7.0, "method")


async def test_an_answer_that_is_none_of_slacks_is_in_doubt(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    fake.fail("chat.postMessage", 502)
    fake.fail("chat.postMessage", 200)
    async with open_app() as slack:
        for _ in range(2):
            with pytest.raises(Unknown):
                await slack.send(at(room), Outbound("d1", "x"))


async def test_reactions_are_set_and_taken_back_as_often_as_asked(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    ts = fake.say(room, ADA, "hi").ts
    async with open_app() as slack:
        for on in (True, True):
            await slack.react(at(room), ts, "👀", on=on)
        assert dict(fake.shown(room)[0].reactions) == {"eyes": (fake.app.user_id,)}
        for _ in range(2):
            await slack.react(at(room), ts, "👀", on=False)
        with pytest.raises(Refused):
            await slack.react(at(room), ts, "🦄🦄", on=True)
    assert not fake.shown(room)[0].reactions


async def test_deleting_what_is_gone_is_success(fake: SlackFake, room: str, open_app: Any) -> None:
    async with open_app() as slack:
        sent = await slack.send(at(room), Outbound("d1", "x"))
        for _ in range(2):
            await slack.delete(at(room), sent.native_id)
    assert fake.said_by_bot(room) == []


async def test_typing_is_a_status_in_threads_and_nothing_elsewhere(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    root = fake.say(room, ADA, "hi").ts
    async with open_app() as slack:
        await slack.typing(at(room))
        await slack.typing(at(room, root))
        assert fake.status(room, root) == "is thinking…"
        await slack.send(at(room, root), Outbound("d1", "there"))
        assert fake.status(room, root) == ""
        fake.refuse("assistant.threads.setStatus", "missing_scope", needed="chat:write")
        await slack.typing(at(room, root))
        await slack.typing(at(room, root))
    assert len(fake.calls_of("assistant.threads.setStatus")) == 2


async def test_a_message_that_was_shown_and_deleted_is_gone_for_good(
    fake: SlackFake, room: str, open_app: Any
) -> None:
    """FC-EDT-06: Slack knows its key and has no message for it; nobody loops."""
    async with open_app() as slack:
        sent = await slack.send(at(room), Outbound("d1", "x"))
        fake.delete(room, sent.native_id)
        with pytest.raises(Gone):
            await slack.send(at(room), Outbound("d1", "x"))
    assert fake.said_by_bot(room) == []
