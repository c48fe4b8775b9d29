"""What people said and sent, as prompts."""

import base64
from datetime import UTC, datetime

import anyio
import attrs
import pytest

from dragoman import Attachment, FetchedFile, FileUnavailable, Sender, TurnInput
from dragoman.runtimes import told
from dragoman_claude import prompts
from dragoman_claude.prompts import Room, prompt, prompt_id

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
PDF = b"%PDF-1.7" + bytes(8)

pytestmark = pytest.mark.anyio
TOO_LATE = "This came too late to be part of the previous message, to which it belongs."


def said(text, *attachments, event_id=12, late=False):
    sender = Sender("1", "Ann")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return TurnInput(event_id, text, sender, at, tuple(attachments), late)


def photo(size=None, **fields):
    return Attachment("f", "photo", size=size, **fields)


def document(name, mime=""):
    return Attachment("f", "document", name=name, mime=mime)


@attrs.define
class Files:
    """The files of a session, in a folder, by reference."""

    folder: anyio.Path
    fetched: list = attrs.field(factory=list)

    async def put(self, reference, data):
        await (self.folder / reference).write_bytes(data)

    async def fetch(self, reference):
        self.fetched.append(reference)
        path = self.folder / reference
        if not await path.exists():
            raise FileUnavailable("it is not there any more")
        return FetchedFile(path._path, "name", "", (await path.stat()).st_size)

    async def read(self, reference, limit=0):
        text = (await (self.folder / reference).read_bytes()).decode()
        return text[:limit]


@pytest.fixture
def files(tmp_path):
    return Files(anyio.Path(tmp_path))


async def content(files, *inputs, earlier=(), **room):
    made = await prompt("u", inputs, files, earlier, Room(**room))
    assert (made["type"], made["uuid"], made["parent_tool_use_id"]) == ("user", "u", None)
    return made["message"]["content"]


def texts(blocks):
    return [block["text"] for block in blocks if block["type"] == "text"]


def unseen(blocks):
    """What the message's own block says of files that a model cannot look at."""
    return [line for line in texts(blocks)[0].splitlines() if "cannot be shown" in line]


def shown(blocks):
    return [block["source"]["media_type"] for block in blocks if block["type"] != "text"]


def test_another_attempt_is_another_prompt():
    """FC-RST-04: the program skips what it has seen, without an answer."""
    first, again = prompt_id("turn_1", 1), prompt_id("turn_1", 2)
    assert prompt_id("turn_1", 1) == first != again
    assert len(first) == 36


async def test_each_message_is_a_block_and_earlier_ones_come_first(files):
    blocks = await content(files, said("one"), said("two", event_id=13), earlier=["before"])
    assert texts(blocks) == ["before", "one", "two"]


async def test_a_late_message_says_so(files):
    assert texts(await content(files, said("rest", late=True))) == [f"[{TOO_LATE}]\nrest"]


def test_half_characters_are_replaced():
    """FC-I18-01: no service takes them."""
    assert told(said("pair \ud83c\udf78, half \ud83d")) == "pair \U0001f378, half \ufffd"


async def test_pictures_and_pdfs_are_shown(files):
    await files.put("12.1", PNG)
    await files.put("12.2", PDF)
    blocks = await content(files, said("look", photo(), document("a.pdf")))
    assert shown(blocks) == ["image/png", "application/pdf"]
    assert [block["type"] for block in blocks] == ["text", "text", "image", "text", "document"]
    assert base64.b64decode(blocks[2]["source"]["data"]) == PNG
    assert texts(blocks) == [
        "look\n[photo 12.1]\n[document 12.2: a.pdf]",
        "[12.1:]",
        "[12.2:]",
    ]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0", ["image/jpeg"]),
        (b"GIF89a", ["image/gif"]),
        (b"RIFF1234WEBPVP8", ["image/webp"]),
        (b"RIFF1234WAVE", []),
        (b"<svg>", []),
        (b"", []),
    ],
)
async def test_a_picture_is_what_its_bytes_say(files, head, kind):
    """What its sender calls it may be wrong, and the model service refuses it then."""
    await files.put("12.1", head)
    assert shown(await content(files, said("x", photo(mime="image/png")))) == kind


async def test_text_is_shown_as_far_as_there_is_room(files):
    await files.put("12.1", b"0123456")
    await files.put("12.2", b"789abcdef")
    await files.put("12.3", b"more")
    attached = (document("a.md"), document("b", "application/x-yaml"), document("c.csv"))
    blocks = await content(files, said("read", *attached), characters=10)
    assert texts(blocks)[1:] == ["[12.1:]", "0123456", "[12.2:]", "789"]
    assert unseen(blocks) == ["[12.3 cannot be shown: too much text came at once]"]


async def test_what_is_too_large_is_not_fetched(files, monkeypatch):
    """And what turns out to be too large is not shown; the model is told."""
    blocks = await content(files, said("big", photo(size=11_000_000)))
    assert unseen(blocks) == ["[12.1 cannot be shown: it is too large]"]
    assert files.fetched == []
    monkeypatch.setattr(prompts, "MAX_IMAGE", 10)
    await files.put("12.1", PNG)
    assert shown(await content(files, said("big", photo()))) == []
    monkeypatch.setattr(prompts, "MAX_IMAGE", 100)
    await files.put("12.2", PNG)
    blocks = await content(files, said("two", photo(), photo()), bytes=20)
    assert shown(blocks) == ["image/png"]
    assert unseen(blocks) == ["[12.2 cannot be shown: too much came at once]"]


async def test_only_so_many_are_shown(files):
    for number in (1, 2):
        await files.put(f"12.{number}", PNG)
    blocks = await content(files, said("two", photo(), photo()), shown=1)
    assert unseen(blocks) == ["[12.2 cannot be shown: too many files came at once]"]


async def test_what_cannot_be_had_is_said(files):
    blocks = await content(files, said("look", photo(), document("gone.txt")))
    assert len(blocks) == 1
    assert unseen(blocks) == [
        "[12.1 cannot be shown: it is not there any more]",
        "[12.2 cannot be shown: it is not there any more]",
    ]


async def test_what_nobody_can_look_at_stays_a_line(files):
    attached = (
        Attachment("f", "voice", mime="audio/ogg"),
        document("a.zip", "application/zip"),
        photo(missing="too large"),
    )
    blocks = await content(files, said("hear", *attached))
    assert len(blocks) == 1
    assert "[voice 12.1: audio/ogg]" in texts(blocks)[0]
    assert files.fetched == []
