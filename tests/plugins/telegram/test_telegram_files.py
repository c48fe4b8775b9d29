"""Files on their way out: as what they are shown, how they travel, and what cuts them short."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from dragoman import Address, NotSent, Outbound, OutboundFile, Place, Refused, Unknown
from dragoman_telegram.platform import Telegram
from dragoman_telegram.uploads import PHOTO, way_of
from peers.botapi import BotApi, File
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
DM = Address("telegram", "700000001")
GROUP = Address("telegram", "-1500000001", place=Place.GROUP)
PERSON = 700000001
BINARY = bytes(range(256)) * 5000 + b"\r\n--\r\n\n\r"
"""More than one piece, with whatever could be taken for an end."""


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., OutboundFile]:
    """Return what makes a file to send."""

    def make(name: str, mime: str, kind: str, content: bytes = BINARY) -> OutboundFile:
        path = tmp_path / f"file_{len(list(tmp_path.iterdir()))}"
        path.write_bytes(content)
        return OutboundFile(path=path, name=name, size=len(content), mime=mime, kind=kind)

    return make


def file(kind: str, mime: str, size: int = 9, name: str = "x") -> OutboundFile:
    return OutboundFile(path=Path("x"), name=name, size=size, mime=mime, kind=kind)


@pytest.mark.parametrize(
    ("one", "way"),
    [
        (file("image", "image/png"), "photo"),
        (file("image", "image/png", PHOTO + 1), "document"),
        (file("image", "image/svg+xml"), "document"),
        (file("image", "image/gif"), "document"),
        (file("voice", "audio/ogg"), "voice"),
        (file("voice", "audio/mpeg"), "audio"),
        (file("voice", "audio/wav"), "document"),
        (file("audio", "audio/mpeg"), "audio"),
        (file("audio", "audio/ogg"), "document"),
        (file("video", "video/mp4"), "video"),
        (file("video", "video/webm"), "document"),
        (file("file", "image/png"), "document"),
        (file("image", "application/octet-stream", name="A.WEBP"), "photo"),
        (file("voice", "application/octet-stream", name="a.ogg"), "voice"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.kind} {value.mime}",
)
def test_a_file_is_shown_as_what_telegram_takes_it_for(one: OutboundFile, way: str) -> None:
    """Facts, platforms 5.1: photos up to 10 MB; voice notes are Ogg."""
    assert way_of(one) == way


@pytest.mark.parametrize(
    ("name", "mime", "kind", "method", "caption"),
    [
        ("a chart.png", "image/png", "image", "sendPhoto", "the *caption* ü"),
        ('bericht "ü" 日本.pdf', "application/pdf", "file", "sendDocument", "x" * 1024),
        ("note.ogg", "audio/ogg", "voice", "sendVoice", ""),  # it knows no captions of these
    ],
)
async def test_a_file_arrives_whole_with_its_caption(
    botapi: BotApi,
    open_bot: OpenBot,
    copy: Callable[..., OutboundFile],
    name: str,
    mime: str,
    kind: str,
    method: str,
    caption: str,
) -> None:
    """C2: judged by a server that nobody here wrote."""
    async with open_bot(botapi.url) as bot:
        made = Outbound("d1", caption, reply_to="11", file=copy(name, mime, kind))
        receipt = await bot.send(GROUP, made)
    [call] = botapi.calls(method)
    assert call["answer"]["result"]["message_id"] == int(receipt.native_id)
    assert call["answer"]["result"].get("caption", "") == caption.replace("*", "")
    assert call["params"][method[4:].lower()] == File(name, mime, BINARY)
    assert call["params"]["chat_id"] == -1500000001
    assert call["params"]["reply_parameters"] == (
        '{"message_id": 11, "allow_sending_without_reply": true}'
    )


@pytest.mark.parametrize(
    ("name", "mime", "kind", "field"),
    [
        ("a.jpg", "image/jpeg", "image", "photo"),
        ("a.ogg", "audio/ogg", "voice", "voice"),
        ("a.mp3", "audio/mpeg", "audio", "audio"),
        ("a.mp4", "video/mp4", "video", "video"),
        ("a.bin", "application/octet-stream", "file", "document"),
    ],
)
async def test_every_kind_is_taken_without_a_caption(
    fake: TelegramFake,
    open_bot: OpenBot,
    copy: Callable[..., OutboundFile],
    name: str,
    mime: str,
    kind: str,
    field: str,
) -> None:
    fake.say(PERSON, PERSON, "a chat has to be begun")
    async with open_bot(fake.url) as bot:
        receipt = await bot.send(DM, Outbound("d1", "", file=copy(name, mime, kind)))
    [shown] = [one for one in fake.chat(PERSON) if one.sender == fake.bot_id]
    assert (shown.message_id, shown.text) == (int(receipt.native_id), "")
    assert fake.file(shown.files[0]) == BINARY
    [call] = fake.calls_of(f"send{field.capitalize()}")
    assert call.files[field].media_type == mime


async def test_a_file_that_telegram_refuses_is_refused(
    botapi: BotApi, open_bot: OpenBot, copy: Callable[..., OutboundFile]
) -> None:
    """C2: a caption that is too long, words of the server about a picture, too large a body."""
    picture = copy("a.png", "image/png", "image")
    async with open_bot(botapi.url) as bot:
        with pytest.raises(Refused, match="caption is too long"):
            await bot.send(DM, Outbound("d1", "x" * 1025, file=picture))
        botapi.refuse("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
        with pytest.raises(Refused, match="PHOTO_INVALID_DIMENSIONS"):
            await bot.send(DM, Outbound("d1", "", file=picture))
        botapi.refuse("sendPhoto", 413, "Request Entity Too Large")
        with pytest.raises(Refused):
            await bot.send(DM, Outbound("d1", "", file=picture))


async def test_a_lost_answer_to_a_whole_upload_is_unknown(
    botapi: BotApi, open_bot: OpenBot, copy: Callable[..., OutboundFile]
) -> None:
    botapi.lose_answer("sendDocument")
    async with open_bot(botapi.url) as bot:
        with pytest.raises(Unknown):
            await bot.send(DM, Outbound("d1", "", file=copy("a", "a/b", "file")))
    assert len(botapi.calls("sendDocument")) == 1


async def test_an_upload_that_is_cut_short_was_not_sent(
    open_bot: OpenBot, copy: Callable[..., OutboundFile], deaf: str
) -> None:
    """C2: a body that never came to its end was surely not applied, so it may be sent again."""
    large = copy("a", "a/b", "file", bytes(30_000_000))
    async with open_bot(deaf) as bot:
        with pytest.raises(NotSent, match="cut short"):
            await bot.send(DM, Outbound("d1", "", file=large))


@pytest.mark.parametrize("damage", ["gone", "shorter", "longer"])
async def test_a_copy_that_is_not_what_it_was_is_refused(
    botapi: BotApi, open_bot: OpenBot, copy: Callable[..., OutboundFile], damage: str
) -> None:
    """C1: told to core, which then tells people; and the next call finds a connection."""
    made = copy("a", "a/b", "file")
    if damage == "gone":
        made.path.unlink()
    else:
        made.path.write_bytes(BINARY[:-1] if damage == "shorter" else BINARY + b"x")
    async with open_bot(botapi.url) as bot:
        with pytest.raises(Refused, match="the gateway's copy"):
            await bot.send(DM, Outbound("d1", "", file=made))
        await bot.send(DM, Outbound("d2", "words"))
    assert botapi.calls("sendDocument") == []


@pytest.fixture
async def deaf() -> Any:
    """A server that reads a little of each request and leaves."""

    async def leave(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, leave)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()
