"""Rich messages and previews (R22, R27); where the service was measured, it says so."""

from __future__ import annotations

from typing import Any

import pytest

from peers.telegram_fake import ManualClock, TelegramFake
from peers.telegram_fake.errors import BotError
from peers.telegram_fake.rich_html import parse_rich_html
from peers.telegram_fake.rich_markdown import parse_rich_markdown
from peers.telegram_fake.rich_shapes import BLOCKS, CELL, ITEM, TEXTS, detect, lines
from peers.telegram_fake.rich_size import check_size

pytestmark = pytest.mark.anyio
PERSON, GROUP = 700000001, -1500000001

EVERYTHING = """\
# Title *one*

Plain **bold** _it_ ~~s~~ `code` ==mark== ||hidden|| $x^2$ [l](https://a.example) @someone
next line of the same

| a | b |
|:--|--:|
| 1 | **2** |

1. one
   - [x] done
   - [ ] open

> quote
>
> more

```py
x = 1
```

$$E = mc^2$$

<details open><summary>More</summary>

inside

</details>

---

![](https://pictures.example/p.png)
"""


async def answered(http, method: str, **params: Any) -> Any:
    body = (await http.post(method, json=params)).json()
    assert body["ok"], body
    return body["result"]


async def refused(http, method: str, **params: Any) -> str:
    body = (await http.post(method, json=params)).json()
    assert not body["ok"], body
    return body["description"].removeprefix("Bad Request: ")


def shape(blocks: list[Any]) -> list[Any]:
    return [(one["type"], one.get("text")) for one in blocks]


def from_markdown(source: str) -> list[Any]:
    return parse_rich_markdown(source, lambda kind, source: {"type": kind, kind: source})


def from_html(source: str) -> list[Any]:
    return parse_rich_html(source, lambda kind, source: {"type": kind, kind: source})


def test_its_shapes_are_those_of_the_reference():
    """Every block and text that aiogram 3.31 knows, with what has to be there."""
    import aiogram.types

    def pascal(name: str) -> str:
        return "".join(part.title() for part in name.split("_"))

    titles = {
        "heading": "SectionHeading",
        "pre": "Preformatted",
        "blockquote": "BlockQuotation",
        "expandable_blockquote": "ExpandableBlockQuotation",
        "pullquote": "PullQuotation",
    }
    names = {name for name in dir(aiogram.types) if name.startswith("InputRichBlock")}
    known = names - {"InputRichBlock", "InputRichBlockListItem", "InputRichBlockUnion"}
    assert {f"InputRichBlock{titles.get(kind, pascal(kind))}" for kind in BLOCKS} == known
    for kind, (needed, allowed) in BLOCKS.items():
        model = getattr(aiogram.types, f"InputRichBlock{titles.get(kind, pascal(kind))}")
        fields = model.model_fields
        assert {n for n, field in fields.items() if field.is_required()} == set(needed.split())
        assert set(fields) - {"type"} == set(needed.split()) | set(allowed.split()), kind
    for kind, needed in TEXTS.items():
        fields = getattr(aiogram.types, f"RichText{pascal(kind)}").model_fields
        assert set(fields) - {"type"} == set(needed.split()), kind
    item, cell = aiogram.types.InputRichBlockListItem, aiogram.types.RichBlockTableCell
    assert set(item.model_fields) == {"blocks", *ITEM.split()}
    assert set(cell.model_fields) == {"align", "valign", *CELL.split()}


async def test_markdown_comes_back_as_the_blocks_that_aiogram_reads(fake: TelegramFake, bot):
    from aiogram.types import InputRichMessage

    asked = fake.say(PERSON, PERSON, "?")
    sent = await bot.send_rich_message(PERSON, InputRichMessage(markdown=EVERYTHING))
    assert sent.text is None
    assert [one.type for one in sent.rich_message.blocks] == [
        "heading",
        "paragraph",
        "table",
        "list",
        "blockquote",
        "pre",
        "mathematical_expression",
        "details",
        "divider",
        "photo",
    ]
    heading, plain, table, outer, quote, code, formula, details, _, photo = sent.rich_message.blocks
    assert (heading.size, heading.text[1].type) == (1, "italic")
    styles = [piece.type for piece in plain.text if not isinstance(piece, str)]
    assert styles == (
        "bold italic strikethrough code marked spoiler mathematical_expression url mention".split()
    )
    assert plain.text[-1] == " next line of the same"
    assert [(cell.text, cell.align, cell.is_header) for cell in table.cells[0]] == [
        ("a", "left", True),
        ("b", "right", True),
    ]
    assert table.cells[1][1].text.type == "bold"
    done, still = outer.items[0].blocks[1].items
    assert (outer.items[0].label, outer.items[0].value) == ("1.", 1)
    assert (done.is_checked, still.has_checkbox, still.is_checked) == (True, True, None)
    assert len(quote.blocks) == 2
    assert (code.text, code.language) == ("x = 1", "py")
    assert (formula.expression, details.is_open) == ("E = mc^2", True)
    assert photo.photo[-1].file_id
    shown = fake.chat(PERSON)[-1]
    assert shown.blocks[0]["type"] == "heading"
    assert shown.text.startswith("Title one\nPlain bold it s code mark hidden x^2 l @someone next")
    assert "a | b\n1 | 2" in shown.text
    assert fake.said_by_bot(PERSON) == [shown.text]
    assert asked.message_id < sent.message_id


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("EXA_API_KEY", "EXA_API_KEY"),
        ("mcp__brain__auth", ["mcp", {"type": "bold", "text": "brain"}, "auth"]),
        ("a**b**c", ["a", {"type": "bold", "text": "b"}, "c"]),
        ("foo*bar*baz", ["foo", {"type": "italic", "text": "bar"}, "baz"]),
        ("a~~b~~c", ["a", {"type": "strikethrough", "text": "b"}, "c"]),
        ("a==b==c", ["a", {"type": "marked", "text": "b"}, "c"]),
        ("a||b||c", ["a", {"type": "spoiler", "text": "b"}, "c"]),
        ("costs $5 to $10", "costs $5 to $10"),
        ("so $x^2$", ["so ", {"type": "mathematical_expression", "expression": "x^2"}]),
        ("`a__b__<u>`", {"type": "code", "text": "a__b__<u>"}),
        (r"\_a\_ \*b\* \[c\] \=\=d==", "_a_ *b* [c] ==d=="),
        ("<u>x</u><script>y</script>", {"type": "underline", "text": "x"}),
        ("[x](javascript:alert)", "x"),
        ("one == two", "one == two"),
    ],
)
def test_markdown_is_read_as_the_service_was_measured_to(source, text):
    assert shape(from_markdown(source)) == [("paragraph", text)]


def test_a_mention_by_number_calls_somebody():
    [block] = from_markdown("[x](tg://user?id=777000)")
    assert block["text"]["type"] == "text_mention"
    assert block["text"]["user"]["id"] == 777000


def test_html_is_read():
    source = (
        "<h2>T</h2>loose <b>bold <i>both</i></b><p>one<p>two<br>three</p>"
        '<blockquote>q<cite>who</cite></blockquote><blockquote collapsed="">c</blockquote>'
        '<a name="here"></a><a href="#here">up</a> <a href="mailto:a@b.example">mail</a>'
        '<tg-button-row><tg-button type="callback_data" data="go">Go</tg-button></tg-button-row>'
        '<figure><img src="https://a.example/p"><figcaption>cap</figcaption></figure>'
        "<footer>end</footer>"
    )
    found = from_html(source)
    assert [one["type"] for one in found] == [
        "heading",
        "paragraph",
        "paragraph",
        "paragraph",
        "blockquote",
        "expandable_blockquote",
        "paragraph",
        "buttons",
        "photo",
        "footer",
    ]
    assert found[3]["text"] == "two\nthree"
    assert found[4]["credit"] == "who"
    assert found[7]["buttons"] == [{"text": "Go", "callback_data": "go"}]
    assert found[8]["caption"] == {"text": "cap"}
    assert list(lines(found))[:3] == ["T", "loose bold both", "one"]


def test_what_shows_itself_is_found_outside_of_code_and_links():
    block = {"type": "paragraph", "text": ["@ada /stop ", {"type": "code", "text": "@x_y"}]}
    mention, _, command, _, code = detect([block])[0]["text"]
    assert (mention["type"], mention["username"]) == ("mention", "ada")
    assert command == {"type": "bot_command", "text": "/stop", "bot_command": "/stop"}
    assert code == {"type": "code", "text": "@x_y"}


def nested(levels: int) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "paragraph", "text": "x"}
    for _ in range(levels - 1):
        block = {"type": "blockquote", "blocks": [block]}
    return block


def row(columns: int) -> dict[str, Any]:
    cells = [[{"align": "left", "valign": "top", "text": "x"}] * columns]
    return {"type": "table", "cells": cells}


PARAGRAPH = {"type": "paragraph", "text": "x"}
PHOTO = {"type": "photo", "photo": []}


@pytest.mark.parametrize(
    ("fits", "goes_beyond", "error"),
    [
        (
            [{"type": "paragraph", "text": "🎉" * 32_768}],
            [{"type": "paragraph", "text": "x" * 32_769}],
            "RICH_MESSAGE_TEXT_TOO_LONG",
        ),
        ([PARAGRAPH] * 500, [PARAGRAPH] * 501, "RICH_MESSAGE_BLOCKS_TOO_MANY"),
        ([nested(16)], [nested(17)], "RICH_MESSAGE_DEPTH_INVALID"),
        ([PHOTO] * 50, [PHOTO] * 51, "RICH_MESSAGE_MEDIA_TOO_MANY"),
        ([row(20)], [row(21)], "RICH_MESSAGE_TABLE_COLS_TOO_MANY"),
        ([PARAGRAPH], [{"type": "heading", "text": "", "size": 1}], "RICH_MESSAGE_CONTENT_REQ"),
        ([PARAGRAPH], [{"type": "divider"}] * 60, "RICH_MESSAGE_EMPTY"),
        ([PARAGRAPH], [{"type": "thinking", "text": ""}], "RICH_MESSAGE_BLOCK_UNSUPPORTED"),
    ],
)
def test_each_limit_is_where_it_is_said_to_be(fits, goes_beyond, error):
    check_size(fits, draft=False)
    with pytest.raises(BotError, match=error):
        check_size(goes_beyond, draft=False)


async def test_content_that_is_none_is_refused_before_the_chat_is_looked_at(
    fake: TelegramFake, http
):
    async def no(chat: int = 4711, **rich: Any) -> str:
        return await refused(http, "sendRichMessage", chat_id=chat, rich_message=rich)

    assert await no() == "RICH_MESSAGE_MARKDOWN_INVALID"
    assert await no(markdown=" ") == "RICH_MESSAGE_MARKDOWN_INVALID"
    assert await no(html="") == "RICH_MESSAGE_HTML_INVALID"
    assert "exactly one" in await no(html="a", markdown="a")
    assert await no(markdown="---\n" * 60) == "RICH_MESSAGE_EMPTY"
    assert "unknown field" in await no(markdown="a", colour=1)
    assert await no(markdown="a") == "chat not found"
    heading = {"type": "heading", "text": "x"}
    assert await no(blocks=[heading]) == "can't parse InputRichBlock: Can't find field \"size\""
    assert 'type "title" is unsupported' in await no(blocks=[{"type": "title"}])
    assert "unknown field" in await no(blocks=[{**heading, "size": 1, "level": 1}])
    link = {"type": "url", "text": "x", "url": "https://a b"}
    assert await no(blocks=[{"type": "paragraph", "text": link}]) == "RICH_MESSAGE_URL_INVALID"
    assert await no(markdown="![](tg://photo?id=none)") == "RICH_MESSAGE_MEDIA_INVALID"
    table = "|" + "a|" * 21 + "\n|" + "-|" * 21
    assert await no(markdown=table) == "RICH_MESSAGE_TABLE_COLS_TOO_MANY"
    assert fake.calls[-1].params["rich_message"] == {"markdown": table}


def items(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "list", "items": [{"blocks": [PARAGRAPH], **one} for one in items]}


@pytest.mark.parametrize(
    ("block", "error"),
    [
        (items(), "list must be non-empty"),
        (items({"type": "1"}, {}), "list must be either ordered or unordered"),
        (items({"type": "x"}), "invalid list item type"),
        ({"type": "heading", "text": "x", "size": 7}, "invalid section heading size"),
        (row(1) | {"cells": [[{"align": "up", "valign": "top"}]]}, "invalid horizontal"),
        (row(1) | {"cells": [[{"align": "left", "valign": "up"}]]}, "invalid vertical"),
    ],
)
async def test_blocks_that_contradict_themselves_are_refused(http, block, error):
    """R27c."""
    blocks = {"blocks": [block]}
    assert error in await refused(http, "sendRichMessage", chat_id=1, rich_message=blocks)


async def test_blocks_come_back_as_the_library_keeps_them(fake: TelegramFake, http):
    """R27c: numbers go with a type, texts are cleaned, and nobody is called by what a bot writes."""
    fake.say(PERSON, PERSON, "?")
    mention = {"type": "mention", "text": "@ada", "username": "ada"}
    blocks = [
        items({"type": "1", "value": 3}, {"type": "1"}),
        items({"value": 3, "has_checkbox": True}),
        {"type": "paragraph", "text": ["\ta\u202eb\n", mention, " /stop"]},
    ]
    sent = await answered(
        http,
        "sendRichMessage",
        chat_id=PERSON,
        rich_message={"blocks": blocks, "skip_entity_detection": True},
    )
    ordered, bullets, text = sent["rich_message"]["blocks"]
    assert [one["label"] for one in ordered["items"]] == ["3.", "0."]
    assert bullets["items"] == [{"blocks": [PARAGRAPH], "has_checkbox": True, "label": "•"}]
    assert text["text"] == [" ab\n", "@ada", " /stop"]


async def test_a_message_changes_between_plain_and_rich(fake: TelegramFake, bot, clock):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, InputRichMessage

    fake.say(PERSON, PERSON, "?")
    sent = await bot.send_message(PERSON, "plain")
    place = {"chat_id": PERSON, "message_id": sent.message_id}
    rich = InputRichMessage(markdown="**rich**")
    edited = await bot.edit_message_text(**place, rich_message=rich)
    assert (edited.text, edited.rich_message.blocks[0].text.type) == (None, "bold")
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await bot.edit_message_text(**place, rich_message=rich)
    button = InlineKeyboardButton(text="Go", callback_data="go")
    marked = await bot.edit_message_reply_markup(
        **place, reply_markup=InlineKeyboardMarkup(inline_keyboard=[[button]])
    )
    assert marked.rich_message is not None
    with pytest.raises(TelegramBadRequest, match="not both"):
        await bot.edit_message_text("x", **place, rich_message=rich)
    back = await bot.edit_message_text("rich", **place)
    assert (back.text, back.rich_message) == ("rich", None)
    assert [version.text for version in fake.chat(PERSON)[-1].versions] == ["plain", "rich", "rich"]


async def test_media_are_uploaded_known_or_named(fake: TelegramFake, bot):
    from aiogram.types import (
        BufferedInputFile,
        InputMediaPhoto,
        InputRichBlockPhoto,
        InputRichMessage,
        InputRichMessageMedia,
    )

    fake.say(PERSON, PERSON, "?")
    upload = InputMediaPhoto(media=BufferedInputFile(b"jpeg", "p.jpg"))
    named = InputRichMessageMedia(id="cover", media=upload)
    sent = await bot.send_rich_message(
        PERSON, InputRichMessage(markdown="![](tg://photo?id=cover)\n\ntext", media=[named])
    )
    known = sent.rich_message.blocks[0].photo[-1].file_id
    assert fake.file(known) == b"jpeg"
    again = InputRichBlockPhoto(photo=InputMediaPhoto(media=known, has_spoiler=True))
    sent = await bot.send_rich_message(PERSON, InputRichMessage(blocks=[again]))
    assert sent.rich_message.blocks[0].has_spoiler
    assert fake.file(sent.rich_message.blocks[0].photo[-1].file_id) == b"jpeg"


async def test_buttons_inside_of_a_message_can_be_pressed(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import InputRichMessage

    def row(data: str) -> InputRichMessage:
        button = f'<tg-button type="callback_data" data="{data}"><b>Go</b> on</tg-button>'
        return InputRichMessage(html=f"<p>Ready?</p><tg-button-row>{button}</tg-button-row>")

    fake.say(PERSON, PERSON, "?")
    sent = await bot.send_rich_message(PERSON, row("go"))
    assert sent.rich_message.blocks[1].buttons[0].callback_data == "go"
    assert fake.chat(PERSON)[-1].buttons == (("Go on",),)
    pressed = fake.press(PERSON, sent.message_id, PERSON, "go")
    [update] = await bot.get_updates(offset=pressed.update_id)
    assert update.callback_query.message.rich_message.blocks[0].text == "Ready?"
    with pytest.raises(LookupError):
        fake.press(PERSON, sent.message_id, PERSON, "stop")
    with pytest.raises(TelegramBadRequest, match="BUTTON_DATA_INVALID"):
        await bot.send_rich_message(PERSON, row("g" * 65))


async def test_ptb_reads_a_rich_message_as_one_of_a_kind_it_does_not_know(fake: TelegramFake, ptb):
    fake.say(PERSON, PERSON, "?")
    found = await ptb.do_api_request(
        "sendRichMessage", {"chat_id": PERSON, "rich_message": {"markdown": "# T"}}
    )
    assert found["rich_message"]["blocks"][0]["type"] == "heading"
    rich = {"rich_message": {"html": "<p>other</p>"}}
    edited = await ptb.edit_message_text(
        None, chat_id=PERSON, message_id=found["message_id"], api_kwargs=rich
    )
    assert edited.api_kwargs["rich_message"]["blocks"][0]["text"] == "other"


@pytest.mark.parametrize("fake", [{"rich": "unknown"}], indirect=True)
async def test_an_old_server_knows_no_rich_messages(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramBadRequest, TelegramNotFound
    from aiogram.types import InputRichMessage

    fake.say(PERSON, PERSON, "?")
    rich = InputRichMessage(markdown="# T")
    with pytest.raises(TelegramNotFound, match="method not found"):
        await bot.send_rich_message(PERSON, rich)
    with pytest.raises(TelegramNotFound, match="method not found"):
        await bot.send_rich_message_draft(PERSON, 1, rich)
    sent = await bot.send_message(PERSON, "x")
    with pytest.raises(TelegramBadRequest, match="message text is empty"):
        await bot.edit_message_text(chat_id=PERSON, message_id=sent.message_id, rich_message=rich)
    assert [call.status for call in fake.calls_of("sendRichMessage")] == [404]
    fake.rich = "markup"
    blocks = {"rich_message": {"blocks": [PARAGRAPH]}}
    with pytest.raises(TelegramBadRequest, match="rich message must be non-empty"):
        await bot.send_rich_message(PERSON, InputRichMessage(**blocks["rich_message"]))
    assert await bot.send_rich_message(PERSON, rich)
    fake.rich = "refused"
    with pytest.raises(TelegramBadRequest, match="not supported"):
        await bot.send_rich_message(PERSON, rich)
    fake.rich = "known"
    assert await bot.send_rich_message(PERSON, rich)


async def test_faults_reach_the_new_methods(fake: TelegramFake, http):
    import httpx

    fake.say(PERSON, PERSON, "?")
    send = {"chat_id": PERSON, "rich_message": {"markdown": "once"}}
    fake.fail("sendRichMessage", status=429, retry_after=3)
    assert "retry after 3" in await refused(http, "sendRichMessage", **send)
    fake.cut("sendRichMessage", after_apply=True)
    with pytest.raises((httpx.NetworkError, httpx.RemoteProtocolError)):
        await http.post("sendRichMessage", json=send)
    assert fake.said_by_bot(PERSON) == ["once"]


async def test_a_draft_is_shown_for_half_a_minute_or_until_the_answer(
    fake: TelegramFake, bot, clock: ManualClock
):
    from aiogram.types import InputRichMessage

    fake.say(PERSON, PERSON, "?")
    assert await bot.send_message_draft(PERSON, 5, text="")
    assert fake.preview(PERSON).text == "", "an empty one says that the bot thinks"
    clock.advance(29)
    assert await bot.send_rich_message_draft(
        PERSON, 5, InputRichMessage(html="<tg-thinking>Looking</tg-thinking><p>so far</p>")
    )
    assert [one["type"] for one in fake.preview(PERSON).rich["blocks"]] == [
        "thinking",
        "paragraph",
    ]
    clock.advance(29)
    assert fake.preview(PERSON).text == "Looking\nso far"
    clock.advance(1)
    assert fake.preview(PERSON) is None
    await bot.send_message_draft(PERSON, 5, text="so far", parse_mode="HTML")
    await bot.send_message(PERSON, "the answer")
    assert fake.preview(PERSON) is None
    assert len(fake.drafts(PERSON)) == 3
    assert fake.said_by_bot(PERSON) == ["the answer"]


async def test_people_stop_a_draft_that_lets_them(fake: TelegramFake, bot, http):
    fake.say(PERSON, PERSON, "?")
    await bot.send_message_draft(PERSON, 5, text="so far")
    with pytest.raises(LookupError):
        fake.stop_generation(PERSON)
    await bot.send_message_draft(PERSON, 5, text="so far", can_stop=True)
    number = fake.stop_generation(PERSON)
    assert fake.preview(PERSON) is None
    [update] = await bot.get_updates(offset=number)
    assert update.stopped_message_generation.draft_id == 5
    assert update.stopped_message_generation.chat.id == PERSON
    await bot.send_message_draft(PERSON, 5, text="and on", can_stop=True)
    assert fake.preview(PERSON) is None, "what was stopped is not shown again"
    await bot.send_message_draft(PERSON, 6, text="new", can_stop=True, keep_on_stop=True)
    fake.stop_generation(PERSON)
    assert fake.preview(PERSON).text == "new"
    await bot.send_message(PERSON, "new")
    assert fake.preview(PERSON) is None
    draft = {"chat_id": PERSON, "text": "x"}
    assert await refused(http, "sendMessageDraft", **draft, draft_id=0) == "RANDOM_ID_INVALID"
    fake.say(GROUP, PERSON, "?")
    rich = {"draft_id": 1, "rich_message": {"markdown": "x"}}
    peer = await refused(http, "sendRichMessageDraft", chat_id=GROUP, **rich)
    assert peer == "TEXTDRAFT_PEER_INVALID"
    assert await answered(http, "sendRichMessageDraft", chat_id=PERSON, **rich)
