"""Files on their way out and in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Address, Attachment, Gone, NotSent, Outbound, OutboundFile, Place, Refused
from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio
BINARY = bytes(range(256)) * 5000 + b"\r\n--\r\n\n\r"
"""More than one piece, with whatever could be taken for an end."""


@pytest.fixture
def room(fake: DiscordFake) -> Address:
    guild = fake.add_guild()
    return Address("discord", str(fake.add_channel(guild)), "", str(guild), Place.GROUP)


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., OutboundFile]:
    """Return what makes a file to send."""

    def make(name: str = 'näme "x".bin', content: bytes = BINARY, **more: Any) -> OutboundFile:
        path = tmp_path / f"file_{len(list(tmp_path.iterdir()))}"
        path.write_bytes(content)
        return OutboundFile(path=path, name=name, size=len(content), **more)

    return make


async def test_a_file_is_shown_once_however_often_it_is_sent(
    fake: DiscordFake, open_bot: Any, room: Address, copy: Any
) -> None:
    """C3, B7: with its caption, and under its key."""
    message = Outbound("d1", "the *data*", file=copy("data.bin"))
    fake.cut("create_message", after_apply=True)
    async with open_bot() as bot:
        with pytest.raises(Exception, match="no answer came"):
            await bot.send(room, message)
        receipt = await bot.send(room, message)
        found = await bot.look_up(room, message)
    [shown] = fake.shown(int(room.channel))
    assert (shown.text, shown.files) == ("the *data*", {"data.bin": BINARY})
    assert receipt.shown is None
    assert found is not None
    assert found.native_id == receipt.native_id == str(shown.id)


async def test_a_file_can_come_without_words_and_with_any_name(
    fake: DiscordFake, open_bot: Any, room: Address, copy: Any
) -> None:
    async with open_bot() as bot:
        await bot.send(room, Outbound("d1", "", file=copy(mime="image/png", kind="image")))
    [shown] = fake.shown(int(room.channel))
    assert (shown.text, list(shown.files.values())) == ("", [BINARY])


async def test_a_copy_that_changed_is_refused_and_one_that_was_cut_short_was_not_sent(
    fake: DiscordFake, open_bot: Any, room: Address, copy: Any
) -> None:
    changed, gone = copy(), copy()
    changed.path.write_bytes(b"short")
    gone.path.unlink()
    async with open_bot() as bot:
        for file in (changed, gone):
            with pytest.raises(Refused, match="copy"):
                await bot.send(room, Outbound("d1", "", file=file))
    assert fake.shown(int(room.channel)) == []


async def test_fc_att_01_a_file_in_is_named_and_sized_and_fetched_by_its_id_alone(
    fake: DiscordFake, live: Any, inbox: Any, room: Address
) -> None:
    """C8: its address is asked for anew, so an old link does not matter."""
    ada = fake.person("Ada")
    async with live() as bot:
        said = fake.say(int(room.channel), ada, "see", files={"a.png": b"picture", "b.bin": BINARY})
        fake.say(int(room.channel), ada, forward=said)
        event, forward = await inbox.wait(2)
        facts = [(each.kind, each.name, each.mime, each.size) for each in event.attachments]
        assert facts == [
            ("image", "a.png", "image/png", 7),
            ("file", "b.bin", "application/octet-stream", len(BINARY)),
        ]
        content = b""
        async with bot.fetch(event.attachments[1]) as pieces:
            async for piece in pieces:
                content += piece
        assert content == BINARY
        assert forward.forwarded
        assert [each.name for each in forward.attachments] == ["a.png", "b.bin"]
        async with bot.fetch(forward.attachments[0]) as pieces:
            assert b"".join([piece async for piece in pieces]) == b"picture"
        fake.delete(said)
        with pytest.raises(Gone):
            async with bot.fetch(event.attachments[1]):
                pass


async def test_a_file_is_fetched_from_discord_alone(
    fake: DiscordFake, live: Any, inbox: Any, room: Address
) -> None:
    """Whatever a message says, no other server is asked."""
    ada = fake.person("Ada")
    async with live() as bot:
        fake.say(int(room.channel), ada, "see", files={"a.png": b"picture"})
        [event] = await inbox.wait()
        [file] = event.attachments
        fake._world.shelf.base = "http://localhost:9"
        with pytest.raises(Refused, match="own servers"):
            async with bot.fetch(file):
                pass
        for name in ("", "1/2", "1/2/x", "../../users/@me", "1/2/3/4/5"):
            with pytest.raises((Refused, Gone)):
                async with bot.fetch(Attachment(name, "file")):
                    pass


async def test_an_upload_that_is_cut_short_was_not_sent(
    fake: DiscordFake, open_bot: Any, room: Address, copy: Any, monkeypatch: Any
) -> None:
    """The server had not all of it, so it did nothing: it may be sent again."""
    import httpx2

    from dragoman_discord.pool import Pool

    async def breaks(self: Any, method: str, url: str, **request: Any) -> Any:
        await anext(request["content"])
        raise httpx2.WriteError("broken")

    monkeypatch.setattr(Pool, "request", breaks)
    async with open_bot() as bot:
        with pytest.raises(NotSent, match="cut short"):
            await bot.send(room, Outbound("d1", "", file=copy()))
