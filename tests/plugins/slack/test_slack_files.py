"""Files in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Address,
    Attachment,
    Gone,
    NotSent,
    Outbound,
    OutboundFile,
    Place,
    Refused,
    Unknown,
)
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


@pytest.fixture
def copy(tmp_path: Path) -> OutboundFile:
    path = tmp_path / "copy"
    path.write_bytes(b"abc" * 100_000)
    return OutboundFile(path=path, name="résumé.txt", size=300_000, mime="text/plain")


def at(channel: str, thread: str = "") -> Address:
    return Address("slack", channel, thread, "T0FIXTURE", Place.GROUP)


async def test_a_file_is_shown_with_its_caption_where_it_belongs(
    fake: SlackFake, room: str, open_app: Any, copy: OutboundFile
) -> None:
    root = fake.say(room, ADA, "send it").ts
    async with open_app() as slack:
        sent = await slack.send(
            at(room, root), Outbound("d1", "**Here** <@U0ADA> & more", file=copy)
        )
    shown = fake.shown(room, root)[-1]
    assert sent.native_id == shown.ts
    assert shown.plain.replace("\u2060", "") == "*Here* <@U0ADA> & more"
    assert shown.called == frozenset()
    assert fake.file(shown.files[0]) == b"abc" * 100_000
    assert fake.file_name(shown.files[0]) == "résumé.txt"


@pytest.mark.parametrize(
    "step", ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"]
)
@pytest.mark.parametrize("after_apply", [False, True])
async def test_a_file_whose_answer_is_lost_is_shown_once(
    fake: SlackFake, room: str, open_app: Any, copy: OutboundFile, step: str, after_apply: bool
) -> None:
    """Invariant 5: only the last step shows anything, and then the file is asked for."""
    message = Outbound("d1", "", file=copy)
    async with open_app() as slack:
        fake.cut(step, after_apply=after_apply)
        with pytest.raises(NotSent if step == "upload" else Unknown):
            await slack.send(at(room), message)
        await slack.send(at(room), message)
        assert await slack.look_up(at(room), message) is not None
    assert len([one for one in fake.shown(room) if one.files]) == 1


async def test_a_file_of_an_earlier_life_is_found(
    fake: SlackFake, room: str, open_app: Any, host: Any, copy: OutboundFile
) -> None:
    message = Outbound("d1", "", file=copy, created_at=host.clock.now())
    for _ in range(2):
        async with open_app() as slack:
            await slack.send(at(room), message)
    assert len(fake.shown(room)) == 1


async def test_a_copy_that_changed_is_not_sent(
    fake: SlackFake, room: str, open_app: Any, copy: OutboundFile
) -> None:
    copy.path.unlink()
    async with open_app() as slack:
        with pytest.raises(Refused):
            await slack.send(at(room), Outbound("d1", "", file=copy))
    assert fake.shown(room) == []


async def read(slack: Any, attachment: Attachment) -> bytes:
    async with slack.fetch(attachment) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_what_people_send_can_be_had_by_its_id_alone(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    """C8: by way of the event, as core asks for it."""
    async with running() as slack:
        fake.say(room, ADA, "look", files=[("a.png", b"\x89PNG" * 50_000)])
        [event] = await inbox.until(1)
        [attachment] = event.attachments
        assert (attachment.kind, attachment.name, attachment.mime) == (
            "photo",
            "a.png",
            "image/png",
        )
        assert attachment.size == 200_000
        assert await read(slack, Attachment(attachment.id, "file")) == b"\x89PNG" * 50_000


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio the client's own parts complain
async def test_a_file_may_be_left_in_the_middle(fake: SlackFake, room: str, open_app: Any) -> None:
    fake.say(room, ADA, "", files=[("a.bin", b"abc" * 1_000_000)])
    [attachment] = [Attachment(fake.shown(room)[0].files[0], "file")]
    async with open_app() as slack:
        for _ in range(3):
            async with slack.fetch(attachment) as pieces:
                assert await anext(pieces)
        assert len(await read(slack, attachment)) == 3_000_000


async def test_files_that_cannot_be_had_say_why(fake: SlackFake, room: str, open_app: Any) -> None:
    external = fake.share(room, ADA, "external")
    gone = fake.share(room, ADA, "tombstone")
    here = fake.say(room, ADA, "", files=[("a.txt", b"abc")])
    ids = {one.ts: one.files[0] for one in fake.shown(room)}
    async with open_app() as slack:
        with pytest.raises(Refused, match="another service"):
            await read(slack, Attachment(ids[external.ts], "file"))
        for unknown in (ids[gone.ts], "F404"):
            with pytest.raises(Gone):
                await read(slack, Attachment(unknown, "file"))
        fake.fail("download", 200, headers={"Content-Type": "text/html; charset=utf-8"})
        with pytest.raises(Refused, match="sign in"):
            await read(slack, Attachment(ids[here.ts], "file"))
        fake.cut("download")
        with pytest.raises(Unknown):
            await read(slack, Attachment(ids[here.ts], "file"))
        assert await read(slack, Attachment(ids[here.ts], "file")) == b"abc"


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/F1",
        "http://files.slack.com/F1",
        "https://slack.com.evil.example/F1",
        "https://evil" + "slack.com/F1",
        "https://slack.com@evil.example/F1",
        "http://127.0.0.1:9/F1",
    ],
)
async def test_the_token_goes_to_slack_alone(
    fake: SlackFake, room: str, open_app: Any, url: str
) -> None:
    """Invariant 12: whatever address an answer names."""
    file = {"id": "F1", "url_private_download": url, "mimetype": "text/plain"}
    answer = json.dumps({"ok": True, "file": file}).encode()
    async with open_app() as slack:
        fake.fail("files.info", 200, answer, headers={"Content-Type": "application/json"})
        with pytest.raises(Refused, match="elsewhere"):
            await read(slack, Attachment("F1", "file"))
